//! Bounds on metrics that follow from a scenario alone, and that no mechanism can beat.
//!
//! Three facts bound the results of any mechanism if clients make one exchange after the other over hops:
//!
//! * **Rate.** Every exchange takes a request through each hop up, and a response through each hop down. N·K exchanges of s
//!   bytes, headers included, keep a hop of rate R busy for N·K·8·s/R. The slowest hop of either direction counts. The last
//!   client cannot finish earlier.
//! * **Path.** An exchange takes at least the shortest round trip.
//! * **Loss.** A transmission is answered if neither its request nor its response is lost: with probability 1 − q, where q = 1
//!   − (1 − p up)·(1 − p down). So an exchange needs 1/(1 − q) transmissions on average, whenever they are made.
//!
//! Round trips are taken as in an idle network: queues and other traffic add to them. Meshes, flows and transfers have
//! no bound in this module.

use coapace_scenario::{File, Hop, Loss, Scenario, WorkloadKind};
use serde::{Deserialize, Serialize};

use super::Metric;

/// The best value of a metric that any mechanism can reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The metric. If small values are better, the bound is a lower one, otherwise an upper one. Transmissions for each
    /// exchange are bounded on average over many.
    pub metric: Metric,
    /// The bound, in the unit of the metric.
    pub value: f64,
}

/// The explanation of a table row with bounds.
pub const BOUNDS: &str = "bound: no mechanism can do better in this network, whose slowest hop has to carry every exchange (docs/rank.md).";

/// Returns the known bounds of a scenario, at most one for each metric; empty for meshes, flows and transfers.
pub fn bounds(scenario: &Scenario) -> Vec<Bound> {
    let File { clients, workload, network, .. } = &**scenario;
    if matches!(workload.kind, WorkloadKind::Transfer | WorkloadKind::Flows) || network.mesh.is_some() {
        return Vec::new();
    }
    let path = IdlePath::of(scenario);
    let count = f64::from(clients.count);
    let pause_s = workload.think_time.max(workload.interval).as_secs_f64();
    // The time from the beginning of an exchange to the next.
    // Thinking begins after the response, an interval with the request: the longer of both counts.
    let least_s = (path.shortest_s + workload.think_time.as_secs_f64()).max(pause_s);
    let mut all = Vec::new();
    let mut push = |metric, value| all.push(Bound { metric, value });
    if let Some(exchanges) = workload.exchanges.map(f64::from) {
        // The first request and the last response have the path for themselves, and the clients may start late.
        let shared_s = path.shortest_s + (count * exchanges - 1.0) * path.slot_s;
        let final_s = shared_s - clients.start_spread.as_secs_f64();
        let own_s = least_s * (exchanges - 1.0) + path.shortest_s;
        push(Metric::FctMax, final_s.max(own_s));
        // Where clients share the slowest hop, some may be done long before others.
        if own_s >= final_s {
            for metric in [Metric::MedianFct, Metric::MeanFct, Metric::FctP90] {
                push(metric, own_s);
            }
        }
    } else {
        // Without a rate on any hop, only the round trips of the clients bound the throughput.
        let by_rate = if path.slot_s > 0.0 { 1.0 / path.slot_s } else { f64::INFINITY };
        push(Metric::Throughput, by_rate.min(count / least_s));
    }
    push(Metric::ExchangeTime, path.shortest_s);
    // If everything is lost, no number of transmissions is enough.
    if path.loss < 1.0 {
        push(Metric::TransmissionsPerExchange, 1.0 / (1.0 - path.loss));
    }
    all
}

/// Returns the bound of a metric among `bounds`.
pub fn bound_of(bounds: &[Bound], metric: Metric) -> Option<Bound> {
    bounds.iter().copied().find(|bound| bound.metric == metric)
}

/// The path of an exchange through an idle network, in both directions.
struct IdlePath {
    /// The shortest round trip in seconds.
    shortest_s: f64,
    /// The time for which an exchange occupies the slowest hop, in seconds.
    slot_s: f64,
    /// The probability that request or response is lost.
    loss: f64,
}

impl IdlePath {
    fn of(scenario: &Scenario) -> Self {
        // UDP and CoAP headers without a token; a response has a payload marker.
        let headers = scenario.network.ip.header_bytes() + 8 + 4;
        let marker = u32::from(scenario.server.payload_bytes > 0);
        let request = headers + scenario.clients.uri_path_bytes();
        let response = headers + marker + scenario.server.payload_bytes;
        let mut path =
            Self { shortest_s: scenario.server.processing_delay.as_secs_f64(), slot_s: 0.0, loss: 0.0 };
        let mut through = 1.0;
        let up = scenario.network.up.iter().map(|hop| (hop, request));
        for (hop, bytes) in up.chain(scenario.network.down.iter().map(|hop| (hop, response))) {
            let busy_s = hop.rate.map_or(0.0, |rate| f64::from(bytes) * 8.0 / rate as f64);
            // Jitter adds at least its lower end.
            path.shortest_s += busy_s + hop.delay.as_secs_f64() + hop.jitter.min.as_secs_f64();
            path.slot_s = path.slot_s.max(busy_s);
            // Hops lose packets independently of each other, so the probabilities multiply.
            through *= 1.0 - loss(hop);
        }
        Self { loss: 1.0 - through, ..path }
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

    fn scenario(name: &str, set: &[(&str, &str)]) -> Scenario {
        let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Scenario::load(name, &set).unwrap()
    }

    #[track_caller]
    fn assert_bound(bounds: &[Bound], metric: Metric, value: f64) {
        let bound = bound_of(bounds, metric).unwrap();
        assert!((bound.value / value - 1.0).abs() < 1e-6, "{metric}: {} is not {value}", bound.value);
    }

    #[test]
    fn the_lower_bound_of_many_clients_is_the_time_on_the_slowest_hop() {
        // A response has 20 + 8 + 4 + 1 + 60 = 93 bytes and takes 24.8 ms at 30 kbit/s; a request has 38 and takes 5.0667 ms at
        // 60 kbit/s. The shortest round trip is 200 + 400 + 2·10 + 24.8 + 5.0667 ms.
        let bounds = bounds(&scenario("nb-iot", &[("clients", "400")]));
        let shortest = 0.6 + 0.02 + 0.0248 + 38.0 * 8.0 / 60_000.0;
        let shared = shortest + (400.0 * 50.0 - 1.0) * 0.0248;
        assert_bound(&bounds, Metric::FctMax, shared);
        assert!(
            bound_of(&bounds, Metric::MedianFct).is_none(),
            "half of them may be done before the others begin"
        );
        assert_bound(&bounds, Metric::ExchangeTime, shortest);
        assert_bound(&bounds, Metric::TransmissionsPerExchange, 1.0);
        assert!(bound_of(&bounds, Metric::Throughput).is_none(), "clients finish");
    }

    #[test]
    fn the_lower_bound_uses_the_slower_direction() {
        let set = [("clients", "400"), ("network.up.radio.rate", "1 kbit/s")];
        let path = IdlePath::of(&scenario("nb-iot", &set));
        assert!((path.slot_s - 38.0 * 8.0 / 1_000.0).abs() < 1e-12);
    }

    #[test]
    fn the_lower_bound_of_one_client_is_its_number_of_round_trips() {
        let bounds = bounds(&scenario("nb-iot", &[("clients", "1")]));
        let shortest = 0.6 + 0.02 + 0.0248 + 38.0 * 8.0 / 60_000.0;
        assert_bound(&bounds, Metric::MedianFct, 50.0 * shortest);
        assert_bound(&bounds, Metric::FctMax, 50.0 * shortest);
    }

    #[test]
    fn the_lower_bound_includes_retransmissions_for_losses() {
        // The round trip of lossy-switch takes 70 ms at least, and the time of two packets at 100 Mbit/s. 20 % each way are q = 0.36.
        let bounds = bounds(&scenario("lossy-switch", &[("loss", "20 %")]));
        let path = IdlePath::of(&scenario("lossy-switch", &[("loss", "20 %")]));
        assert!((0.07..0.07 + 2e-5).contains(&path.shortest_s), "{}", path.shortest_s);
        assert_bound(&bounds, Metric::ExchangeTime, path.shortest_s);
        assert_bound(&bounds, Metric::TransmissionsPerExchange, 1.0 / 0.64);
        assert_bound(&bounds, Metric::Throughput, 60.0 / path.shortest_s);
    }

    #[test]
    fn no_lower_bound_is_known_for_flows_over_hops() {
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
