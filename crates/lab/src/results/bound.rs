//! Bounds on figures that follow from a scenario alone.
//!
//! Three facts bound what any mechanism achieves where clients have one exchange after the other over hops:
//!
//! * **Rate.** Every exchange takes a request through each hop up, and a response through each hop down. N·K exchanges of s bytes,
//!   headers included, keep a hop of rate R busy for N·K·8·s/R. The slowest hop counts, in whichever direction. The last client is
//!   not done before. Clients that *share fairly* are all done then; if some are done earlier, others have waited for them.
//! * **Path.** An exchange takes the shortest round trip at least.
//! * **Loss.** A transmission is answered if neither its request nor its response is lost: with probability 1 − q, where
//!   q = 1 − (1 − p up)·(1 − p down). So an exchange costs 1/(1 − q) transmissions on average, whoever decides when they are
//!   made. A bound on the *time* needs an assumption. That a message was lost is certain only when the longest round trip, RTTmax, is
//!   over. Mechanisms that wait for certainty, and so never send a copy in vain, need
//!   E = RTT + q/(1 − q)·RTTmax on average. A mechanism that does not wait may be faster: it pays with needless copies. With
//!   MAX_RETRANSMIT, exchanges that need more transmissions are given up and not among the completed ones, so the number of
//!   failures of the others, on average, is q/(1 − q) − m·q^m/(1 − q^m), where m transmissions may be made.
//!
//! Round trips are those of an idle network: queues and other traffic add to them. In meshes the [air](air) bounds throughput and
//! times. Flows over hops and transfers have no bound here.

mod air;

use coapace_scenario::{Endurance, File, Hop, Loss, Scenario, WorkloadKind};
use serde::{Deserialize, Serialize};

use super::Metric;

/// The best value of a figure that can be expected, under a condition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The metric. If small values are better, the bound is a least one, and a greatest one otherwise.
    pub metric: Metric,
    /// The bound, in the unit of the metric.
    pub value: f64,
    /// The mechanisms and clients that it holds for.
    pub holds: Holds,
}

/// The condition under which a bound holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holds {
    /// Whatever the mechanism does, in every run.
    Always,
    /// Whatever the mechanism does, on average over many exchanges.
    OnAverage,
    /// If the clients share the bottleneck alike: one may be below if another is above.
    Fairly,
    /// On average, if nothing is sent again before it is certain that it was lost.
    Patiently,
}

impl Holds {
    /// Returns the condition in words, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::OnAverage => "on average",
            Self::Fairly => "if clients share fairly",
            Self::Patiently => "on average without spurious copies",
        }
    }

    /// Returns whether no mechanism can do better.
    pub const fn is_for_all(self) -> bool {
        matches!(self, Self::Always | Self::OnAverage)
    }
}

/// The explanation of a row of bounds.
pub const BOUNDS: &str = "bound: no mechanism can do better in this network, whose slowest hop has to carry every exchange (docs/rank.md).";

/// Returns the bounds that are known for a scenario, one for each metric at most; empty for flows over hops, and for transfers.
pub fn bounds(scenario: &Scenario) -> Vec<Bound> {
    let File { clients, workload, network, .. } = &**scenario;
    if workload.kind == WorkloadKind::Transfer {
        return Vec::new();
    }
    if let (Some(mesh), Some(layout)) = (&network.mesh, scenario.layout()) {
        return air::bounds(scenario, mesh, layout);
    }
    if workload.kind == WorkloadKind::Flows {
        return Vec::new();
    }
    let path = Path::of(scenario);
    let count = f64::from(clients.count);
    let pause_s = workload.think_time.max(workload.interval).as_secs_f64();
    let failures = path.failures(scenario);
    // The time from the beginning of an exchange to the next, and its bounds for every mechanism and for patient ones.
    let least_s = (path.shortest_s + workload.think_time.as_secs_f64()).max(pause_s);
    let patient_s = path.mean_s + failures * path.longest_s;
    let cycle_s = (patient_s + workload.think_time.as_secs_f64()).max(pause_s);
    let mut all = Vec::new();
    let mut push = |metric, value, holds| all.push(Bound { metric, value, holds });
    if let Some(exchanges) = workload.exchanges.map(f64::from) {
        // The first request and the last response have the path for themselves, and the clients may start late.
        let shared_s = path.shortest_s + (count * exchanges - 1.0) * path.slot_s;
        let final_s = shared_s - clients.start_spread.as_secs_f64();
        let own_s = least_s * (exchanges - 1.0) + path.shortest_s;
        let patient_own_s = cycle_s * (exchanges - 1.0) + patient_s;
        push(Metric::FctMax, final_s.max(own_s), Holds::Always);
        for metric in [Metric::MedianFct, Metric::MeanFct, Metric::FctP90] {
            let own = if failures > 0.0 { (patient_own_s, Holds::Patiently) } else { (own_s, Holds::Always) };
            let (value, holds) = if final_s > own.0 { (final_s, Holds::Fairly) } else { own };
            // Losses bound what is usual, not the slowest tenth.
            if metric != Metric::FctP90 || holds != Holds::Patiently {
                push(metric, value, holds);
            }
        }
    } else {
        let by_loss = if failures > 0.0 {
            (count / cycle_s, Holds::Patiently)
        } else {
            (count / least_s, Holds::Always)
        };
        let by_rate = if path.slot_s > 0.0 { 1.0 / path.slot_s } else { f64::INFINITY };
        let (value, holds) = if by_rate < by_loss.0 { (by_rate, Holds::Always) } else { by_loss };
        push(Metric::Throughput, value, holds);
    }
    if failures > 0.0 {
        push(Metric::ExchangeTime, patient_s, Holds::Patiently);
        push(Metric::TransmissionsPerExchange, 1.0 / (1.0 - path.loss), Holds::OnAverage);
    } else {
        push(Metric::ExchangeTime, path.shortest_s, Holds::Always);
        push(Metric::TransmissionsPerExchange, 1.0, Holds::Always);
    }
    all
}

/// Returns the bound of a metric among `bounds`.
pub fn bound_of(bounds: &[Bound], metric: Metric) -> Option<Bound> {
    bounds.iter().copied().find(|bound| bound.metric == metric)
}

/// The path of an exchange through an idle network, there and back.
struct Path {
    /// The shortest round trip in seconds.
    shortest_s: f64,
    /// The mean round trip.
    mean_s: f64,
    /// The longest round trip.
    longest_s: f64,
    /// The time that an exchange keeps the slowest hop busy.
    slot_s: f64,
    /// The probability that request or response is lost.
    loss: f64,
}

impl Path {
    fn of(scenario: &Scenario) -> Self {
        // UDP and CoAP headers without a token; a response has a payload marker.
        let headers = scenario.network.ip.header_bytes() + 8 + 4;
        let marker = u32::from(scenario.server.payload_bytes > 0);
        let request = headers + scenario.clients.uri_path_bytes();
        let response = headers + marker + scenario.server.payload_bytes;
        let processing_s = scenario.server.processing_delay.as_secs_f64();
        let mut path = Self {
            shortest_s: processing_s,
            mean_s: processing_s,
            longest_s: processing_s,
            slot_s: 0.0,
            loss: 0.0,
        };
        let mut through = 1.0;
        let up = scenario.network.up.iter().map(|hop| (hop, request));
        for (hop, bytes) in up.chain(scenario.network.down.iter().map(|hop| (hop, response))) {
            let busy_s = hop.rate.map_or(0.0, |rate| f64::from(bytes) * 8.0 / rate as f64);
            let (least, most) = (hop.jitter.min.as_secs_f64(), hop.jitter.max.as_secs_f64());
            let (held, held_s) =
                hop.reordering.as_ref().map_or((0.0, 0.0), |it| (it.probability, it.delay.as_secs_f64()));
            let fixed_s = busy_s + hop.delay.as_secs_f64();
            path.shortest_s += fixed_s + least;
            path.mean_s += fixed_s + f64::midpoint(least, most) + held * held_s;
            path.longest_s += fixed_s + most + held_s;
            path.slot_s = path.slot_s.max(busy_s);
            through *= 1.0 - loss(hop);
        }
        Self { loss: 1.0 - through, ..path }
    }

    /// Returns the mean number of transmissions that are lost before the one that completes an exchange, among the exchanges that
    /// are not given up.
    fn failures(&self, scenario: &Scenario) -> f64 {
        let q = self.loss;
        if q <= 0.0 || q >= 1.0 {
            return 0.0;
        }
        // A patient endpoint makes one more attempt, when MAX_TRANSMIT_SPAN is over.
        let more = if scenario.clients.patience == Endurance::Rfc7252 { 2 } else { 1 };
        let attempts = i32::from(scenario.clients.max_retransmit) + more;
        let given_up = q.powi(attempts);
        q / (1.0 - q) - f64::from(attempts) * given_up / (1.0 - given_up)
    }
}

/// Returns the share of packets that a hop loses on average.
fn loss(hop: &Hop) -> f64 {
    match &hop.loss {
        Loss::Random(probability) => *probability,
        Loss::Burst(burst) => burst.average,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn scenario(name: &str, set: &[(&str, &str)]) -> Scenario {
        let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Scenario::load(name, &set).unwrap()
    }

    #[track_caller]
    pub(super) fn assert_bound(bounds: &[Bound], metric: Metric, value: f64, holds: Holds) {
        let bound = bound_of(bounds, metric).unwrap();
        assert!((bound.value / value - 1.0).abs() < 1e-6, "{metric}: {} is not {value}", bound.value);
        assert_eq!(bound.holds, holds, "{metric}");
    }

    #[test]
    fn many_clients_wait_for_the_slowest_hop() {
        // A response has 20 + 8 + 4 + 1 + 60 = 93 bytes and takes 24.8 ms at 30 kbit/s; a request has 38 and takes 5.0667 ms at
        // 60 kbit/s. The shortest round trip is 200 + 400 + 2·10 + 24.8 + 5.0667 ms.
        let bounds = bounds(&scenario("nb-iot", &[("clients", "400")]));
        let shortest = 0.6 + 0.02 + 0.0248 + 38.0 * 8.0 / 60_000.0;
        let shared = shortest + (400.0 * 50.0 - 1.0) * 0.0248;
        assert_bound(&bounds, Metric::FctMax, shared, Holds::Always);
        for metric in [Metric::MedianFct, Metric::MeanFct, Metric::FctP90] {
            assert_bound(&bounds, metric, shared, Holds::Fairly);
        }
        assert_bound(&bounds, Metric::ExchangeTime, shortest, Holds::Always);
        assert_bound(&bounds, Metric::TransmissionsPerExchange, 1.0, Holds::Always);
        assert!(bound_of(&bounds, Metric::Throughput).is_none(), "clients finish");
    }

    #[test]
    fn the_direction_that_takes_longer_counts() {
        let set = [("clients", "400"), ("network.up.radio.rate", "1 kbit/s")];
        let path = Path::of(&scenario("nb-iot", &set));
        assert!((path.slot_s - 38.0 * 8.0 / 1_000.0).abs() < 1e-12);
    }

    #[test]
    fn a_single_client_needs_its_round_trips() {
        let bounds = bounds(&scenario("nb-iot", &[("clients", "1")]));
        let shortest = 0.6 + 0.02 + 0.0248 + 38.0 * 8.0 / 60_000.0;
        assert_bound(&bounds, Metric::MedianFct, 50.0 * shortest, Holds::Always);
        assert_bound(&bounds, Metric::FctMax, 50.0 * shortest, Holds::Always);
    }

    #[test]
    fn losses_cost_the_longest_round_trip_each() {
        // The round trip of lossy-switch takes 70 to 90 ms, and the time of two packets at 100 Mbit/s. 20 % each way are q = 0.36.
        // With MAX_RETRANSMIT 4 there are five attempts: 0.5625 − 5·0.36⁵/(1 − 0.36⁵) failures.
        let bounds = bounds(&scenario("lossy-switch", &[("loss", "20 %")]));
        let path = Path::of(&scenario("lossy-switch", &[("loss", "20 %")]));
        let sent = path.shortest_s - 0.07;
        assert!(sent > 0.0 && sent < 2e-5 && (path.longest_s - path.shortest_s - 0.02).abs() < 1e-12);
        let given_up = 0.36_f64.powi(5);
        let failures = 0.5625 - 5.0 * given_up / (1.0 - given_up);
        let patient = 0.08 + sent + failures * (0.09 + sent);
        assert_bound(&bounds, Metric::ExchangeTime, patient, Holds::Patiently);
        assert_bound(&bounds, Metric::TransmissionsPerExchange, 1.0 / 0.64, Holds::OnAverage);
        assert_bound(&bounds, Metric::Throughput, 60.0 / patient, Holds::Patiently);
    }

    #[test]
    fn flows_over_hops_have_none() {
        let flow = "[{ name = \"a\", pattern = \"constant\", interval = \"1 s\" }]";
        let set = [
            ("workload.kind", "flows"),
            ("workload.flows", flow),
            ("workload.duration", "60 s"),
            ("workload.exchanges", "none"),
        ];
        assert_eq!(bounds(&scenario("nb-iot", &set)), []);
    }
}
