//! Bounds of a mesh: the air around a sink carries every frame of every message at least once.
//!
//! Two facts hold whatever the routes, the luck and the mechanism are:
//!
//! * **Ear.** A radio receives one frame at a time, and none while it sends. A message that reaches its sink was received there frame by
//!   frame, and the sink's radio acknowledged each. A response left that radio frame by frame. These times do not overlap. The turnaround
//!   before an acknowledgement is as lost as the acknowledgement, because nothing fits into it.
//! * **Ring.** Between a client out of the sink's range and the sink, each message crosses from the second ring of nodes to the
//!   first, and each response crosses back. On unit disks such a frame does not arrive while the sink sends. The sink receives nothing
//!   while such a frame is on the air, if the sink is in the interference range of the whole second ring. So the time of these frames adds to that
//!   of the ear. The hops between both rings fall into groups in which each disturbs each other. With θ groups, θ frames at most
//!   arrive at the same time, so a θ-th of their time counts.
//!
//! A frame counts once, with the shortest headers that its place allows, and without a backoff: the least backoff is 0 and lets others send. With TSCH a
//! frame takes the cell of its slotframe. With ContikiMAC a frame is sent many times, so the bound is far off.

use coapace_scenario::patterns::Pace;
use coapace_scenario::{File, Flow, Mesh, Mobility, Scenario, WorkloadKind};
use coapace_sim::mesh::{DutyCycle, HopPlace, MeshConfig, Propagation, UnitDisk};
use coapace_sim::{Layout, Position, Span};

use super::{Bound, Holds};
use crate::results::Metric;
use coapace_run::{interval, mesh_config};

/// Returns the bounds of a mesh.
pub(super) fn bounds(scenario: &Scenario, mesh: &Mesh, layout: &Layout) -> Vec<Bound> {
    let air = Air::new(mesh);
    let disk = match (&mesh.mobility, mesh.radio.propagation) {
        (Mobility::None(_), Propagation::UnitDisk(disk)) => Some(disk),
        _ => None,
    };
    let sinks: Vec<_> = layout.sinks.iter().map(|&sink| Surroundings::of(sink, layout, disk)).collect();
    let all = if sinks.is_empty() {
        None
    } else if scenario.workload.kind == WorkloadKind::Flows {
        of_flows(scenario, layout, &air, &sinks)
    } else {
        of_exchanges(scenario, layout, &air, &sinks)
    };
    all.unwrap_or_default()
}

/// Returns the bounds of clients that have one exchange after the other; `None` if frames cannot carry the messages.
fn of_exchanges(
    scenario: &Scenario,
    layout: &Layout,
    air: &Air,
    sinks: &[Surroundings],
) -> Option<Vec<Bound>> {
    let File { clients, server, workload, .. } = &**scenario;
    // A header without a token; a response has a payload marker.
    let request = 4 + clients.uri_path_bytes();
    let response = 4 + u32::from(server.payload_bytes > 0) + server.payload_bytes;
    let pause_s = workload.think_time.as_secs_f64();
    let mut demands = vec![Vec::new(); sinks.len()];
    // The shortest round trip and the shortest cycle, of the nearest client and of the farthest.
    let (mut nearest, mut farthest) = ((f64::INFINITY, f64::INFINITY), (0.0_f64, 0.0_f64));
    for (node, number) in layout.clients().zip(0..) {
        // Clients are dealt out to sinks in turn.
        let sink = number % sinks.len();
        let around = &sinks[sink];
        let trip_s =
            server.processing_delay.as_secs_f64() + air.path_s(around, node, &[request, response])?;
        let cycle_s = (trip_s + pause_s).max(workload.interval.as_secs_f64());
        let busy_s = air.busy_s(around, node, request, true)? + air.busy_s(around, node, response, false)?;
        demands[sink].push(Demand { value: 1.0, busy_s, most: 1.0 / cycle_s });
        nearest = (nearest.0.min(trip_s), nearest.1.min(cycle_s));
        farthest = (farthest.0.max(trip_s), farthest.1.max(cycle_s));
    }
    let mut all = vec![Bound { metric: Metric::ExchangeTime, value: nearest.0, holds: Holds::Always }];
    if let Some(exchanges) = workload.exchanges.map(f64::from) {
        let own_s = |(trip_s, cycle_s): (f64, f64)| (exchanges - 1.0) * cycle_s + trip_s;
        let busy_s = demands.iter().map(|of_sink| of_sink.iter().map(|demand| demand.busy_s).sum::<f64>());
        // The clients may start late.
        let final_s = exchanges * busy_s.fold(0.0, f64::max) - clients.start_spread.as_secs_f64();
        all.push(Bound { metric: Metric::FctMax, value: final_s.max(own_s(farthest)), holds: Holds::Always });
        for metric in [Metric::MedianFct, Metric::MeanFct, Metric::FctP90] {
            let own_s = own_s(nearest);
            let holds = if final_s > own_s { Holds::Fairly } else { Holds::Always };
            all.push(Bound { metric, value: final_s.max(own_s), holds });
        }
    } else {
        let most = demands.iter_mut().map(|of_sink| greatest(of_sink)).sum();
        all.push(Bound { metric: Metric::Throughput, value: most, holds: Holds::Always });
    }
    Some(all)
}

/// Returns the bounds of flows, where the air carries less than they offer; `None` if frames cannot carry the messages.
fn of_flows(scenario: &Scenario, layout: &Layout, air: &Air, sinks: &[Surroundings]) -> Option<Vec<Bound>> {
    let path_bytes = scenario.clients.uri_path_bytes();
    let clients: Vec<_> = layout.clients().collect();
    let (mut bits, mut messages) = (vec![Vec::new(); sinks.len()], vec![Vec::new(); sinks.len()]);
    for flow in &scenario.workload.flows {
        let bytes = flow.sizes(path_bytes).1;
        let most = messages_a_second(scenario, flow);
        for (&node, sink) in clients.iter().zip(flow.sinks(scenario.clients.count, Some(layout))) {
            let Some(sink) = sink else { continue };
            let sink = sink as usize % sinks.len();
            // That the response arrives is no condition: the message has reached its sink.
            let busy_s = air.busy_s(&sinks[sink], node, bytes, true)?;
            bits[sink].push(Demand { value: f64::from(bytes) * 8.0, busy_s, most });
            messages[sink].push(Demand { value: 1.0, busy_s, most });
        }
    }
    let offered = |demands: &[Vec<Demand>]| -> f64 {
        demands.iter().flatten().map(|demand| demand.value * demand.most).sum()
    };
    let carried = |demands: &mut [Vec<Demand>]| -> f64 { demands.iter_mut().map(|own| greatest(own)).sum() };
    let (all_bits, all_messages) = (offered(&bits), offered(&messages));
    let (bits, messages) = (carried(&mut bits), carried(&mut messages));
    // The offered load is known on average alone.
    let holds = Holds::OnAverage;
    let mut all = Vec::new();
    if bits < all_bits {
        all.push(Bound { metric: Metric::CarriedLoad, value: bits, holds });
    }
    if messages < all_messages && all_messages.is_finite() {
        all.push(Bound { metric: Metric::Pdr, value: messages / all_messages, holds });
    }
    Some(all)
}

/// Returns the messages that a client of a flow offers in a second of the measured time on average.
fn messages_a_second(scenario: &Scenario, flow: &Flow) -> f64 {
    let end = scenario.workload.duration.map_or(0.0, Span::as_secs_f64);
    let from = scenario.workload.warm_up.as_secs_f64();
    let active_s =
        flow.end.map_or(end, |own| own.as_secs_f64().min(end)) - flow.start.as_secs_f64().max(from);
    let count = match flow.pattern.pace {
        Pace::Backlogged => f64::INFINITY,
        Pace::Once(_) => 1.0,
        Pace::Clock(_) => {
            let (on_s, off_s) = (flow.on.as_secs_f64(), flow.off.as_secs_f64());
            let share = if flow.pattern.has_pauses { on_s / (on_s + off_s) } else { 1.0 };
            active_s.max(0.0) * share / interval(scenario, flow).as_secs_f64()
        }
    };
    count / (end - from)
}

/// The demand of a client on the air around its sink.
#[derive(Clone, Copy)]
struct Demand {
    /// The worth of a message or an exchange.
    value: f64,
    /// The time that it takes of the air.
    busy_s: f64,
    /// The most of them in a second.
    most: f64,
}

/// Returns the greatest value in a second that the air around a sink carries: those with the most value for their time come first.
fn greatest(demands: &mut [Demand]) -> f64 {
    let worth = |demand: &Demand| demand.value / demand.busy_s;
    demands.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    let (mut left, mut sum) = (1.0, 0.0);
    for demand in demands {
        let count = demand.most.min(left / demand.busy_s);
        (left, sum) = (left - count * demand.busy_s, sum + count * demand.value);
    }
    sum
}

/// The time that datagrams take on the air of a mesh.
struct Air {
    config: MeshConfig,
    /// The time of an acknowledgement by the sink, and of the turnaround before it; 0 if it may be left out.
    acknowledgement_s: f64,
    /// The time from one cell to the next, with TSCH.
    cell_s: Option<f64>,
}

impl Air {
    fn new(mesh: &Mesh) -> Self {
        let config = mesh_config(mesh);
        // A second frame in the turnaround before an acknowledgement would get none.
        let shortest = config.hop_frames(HopPlace::Only, 0).map_or(Span::ZERO, |frames| frames.on_air);
        let is_sure = config.mac.acknowledgements && config.mac.ack_turnaround < shortest;
        Self {
            acknowledgement_s: if is_sure { config.acknowledgement_time().as_secs_f64() } else { 0.0 },
            cell_s: match config.mac.duty_cycle {
                DutyCycle::Tsch(tsch) => Some((tsch.slot * u64::from(tsch.slotframe)).as_secs_f64()),
                DutyCycle::None(_) | DutyCycle::ContikiMac(_) => None,
            },
            config,
        }
    }

    /// Returns the number of frames of a datagram on a hop, and the time that they take.
    fn hop(&self, place: HopPlace, payload_bytes: u32) -> Option<(f64, f64)> {
        let frames = self.config.hop_frames(place, payload_bytes as usize)?;
        let count = f64::from(frames.count);
        Some((count, self.cell_s.map_or(frames.on_air.as_secs_f64(), |cell_s| count * cell_s)))
    }

    /// Returns the time that a datagram from or to a client keeps the air around its sink.
    fn busy_s(&self, around: &Surroundings, node: u32, payload_bytes: u32, is_heard: bool) -> Option<f64> {
        let ring = around.ring(node);
        let last = if ring == Ring::First { HopPlace::Only } else { HopPlace::End };
        let (count, mut busy_s) = self.hop(last, payload_bytes)?;
        if is_heard && self.cell_s.is_none() {
            busy_s += count * self.acknowledgement_s;
        }
        if let (Ring::Second | Ring::Beyond, Some(at_once)) = (ring, around.at_once) {
            let before = if ring == Ring::Second { HopPlace::End } else { HopPlace::Middle };
            busy_s += self.hop(before, payload_bytes)?.1 / at_once;
        }
        Some(busy_s)
    }

    /// Returns the shortest time of datagrams, one after the other, between a client and its sink.
    fn path_s(&self, around: &Surroundings, node: u32, payloads: &[u32]) -> Option<f64> {
        let hops = around.hops(node);
        let place = if hops > 1.0 { HopPlace::End } else { HopPlace::Only };
        let mac = &self.config.mac;
        let wait = mac.turnaround + if mac.csma { mac.cca } else { Span::ZERO };
        let mut sum_s = 0.0;
        for &payload in payloads {
            let (count, time_s) = self.hop(place, payload)?;
            sum_s += hops * (time_s + if self.cell_s.is_some() { 0.0 } else { count * wait.as_secs_f64() });
        }
        // The first cell may come at once, and a frame needs a part of its cell.
        Some((sum_s - self.cell_s.unwrap_or(0.0)).max(0.0))
    }
}

/// The distance of a node from a sink, in hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ring {
    First,
    Second,
    Beyond,
}

/// The nodes around a sink.
struct Surroundings {
    places: Vec<Position>,
    sink: u32,
    /// The range of the radios; `None` if it is not certain which nodes hear each other, so that all count as neighbours of the sink.
    range_m: Option<f64>,
    rings: Vec<Ring>,
    /// The number of frames between both rings that may arrive at the same time; `None` if they do not concern the sink.
    at_once: Option<f64>,
}

/// The factor on ranges that keeps a link of exactly the range in spite of rounding, like in the simulator.
const TOLERANCE: f64 = 1.0 + 1e-9;

/// The most hops between both rings that are put into groups, which takes a square of time.
const MOST_HOPS: usize = 2_000;

impl Surroundings {
    fn of(sink: u32, layout: &Layout, disk: Option<UnitDisk>) -> Self {
        let places = layout.places.clone();
        let Some(disk) = disk else {
            return Self {
                rings: vec![Ring::First; places.len()],
                places,
                sink,
                range_m: None,
                at_once: None,
            };
        };
        let within = |a: u32, b: u32, bound_m: f64| {
            places[a as usize].distance(places[b as usize]) <= bound_m * TOLERANCE
        };
        let nodes = || 0..places.len() as u32;
        let near = |node: u32| within(node, sink, disk.range_m);
        let first: Vec<_> = nodes().filter(|&node| node != sink && near(node)).collect();
        let mut rings = vec![Ring::Beyond; places.len()];
        let mut hops = Vec::new();
        for node in nodes() {
            let of_first = first.iter().filter(|&&inner| within(node, inner, disk.range_m));
            if near(node) {
                rings[node as usize] = Ring::First;
            } else if hops.len() <= MOST_HOPS {
                let before = hops.len();
                hops.extend(of_first.flat_map(|&inner| [(node, inner), (inner, node)]));
                if hops.len() > before {
                    rings[node as usize] = Ring::Second;
                }
            }
        }
        let reach_m = disk.interference_m.max(disk.range_m).max(disk.sense_m);
        let disturbs = |a: u32, b: u32| a == b || within(a, b, reach_m);
        // A frame that fails at its sender disturbs nobody.
        let is_certain = disk.success_ratio_tx >= 1.0 && hops.len() <= MOST_HOPS;
        let hears_all = nodes().all(|node| rings[node as usize] != Ring::Second || disturbs(node, sink));
        let at_once = (is_certain && hears_all && !hops.is_empty()).then(|| groups(&hops, disturbs) as f64);
        Self { range_m: Some(disk.range_m), rings, at_once, places, sink }
    }

    fn ring(&self, node: u32) -> Ring {
        self.rings.get(node as usize).copied().unwrap_or(Ring::First)
    }

    /// Returns the least number of hops between a node and the sink.
    fn hops(&self, node: u32) -> f64 {
        let least = if self.ring(node) == Ring::First { 1.0 } else { 2.0 };
        let at = |node: u32| self.places.get(node as usize).copied().unwrap_or_default();
        let straight = self.range_m.map_or(1.0, |range_m| at(node).distance(at(self.sink)) / range_m);
        (straight / TOLERANCE).ceil().max(least)
    }
}

/// Returns the number of groups into which hops from a node to another fall, so that no two of a group succeed at the same time.
fn groups(hops: &[(u32, u32)], disturbs: impl Fn(u32, u32) -> bool) -> usize {
    let excludes = |&(from, to): &(u32, u32), &(other, end): &(u32, u32)| {
        from == other || disturbs(from, end) || disturbs(other, to)
    };
    let mut groups: Vec<Vec<(u32, u32)>> = Vec::new();
    for hop in hops {
        match groups.iter_mut().find(|group| group.iter().all(|other| excludes(hop, other))) {
            Some(group) => group.push(*hop),
            None => groups.push(vec![*hop]),
        }
    }
    groups.len()
}

#[cfg(test)]
mod tests {
    use super::super::bounds;
    use super::super::tests::{assert_bound, scenario};
    use super::*;

    const SHORTEST: (&str, &str) = ("network.mesh.routing", "{ kind = \"shortest\" }");
    const NO_PAUSE: (&str, &str) = ("workload.interval", "0 s");

    #[test]
    fn clients_beside_the_sink_share_its_ear() {
        let wide = "{ kind = \"unit-disk\", range = \"50 m\", interference = \"100 m\", sense = \"100 m\" }";
        let bounds = bounds(&scenario(
            "rathod-grid",
            &[
                SHORTEST,
                NO_PAUSE,
                ("network.mesh.mac", "{ preset = \"standard\" }"),
                ("network.mesh.radio.propagation", wide),
                ("clients.start_spread", "0 s"),
            ],
        ));
        // A request has 6 + 21 + 2 + 9 + 15 bytes of 32 µs, and its acknowledgement takes 192 + 11·32 µs; a response has 5 bytes more.
        let (request, response, acknowledgement) = (53.0 * 32e-6, 58.0 * 32e-6, 544e-6);
        let shared = 7.0 * 50.0 * (request + response + acknowledgement);
        assert_bound(&bounds, Metric::FctMax, shared, Holds::Always);
        assert_bound(&bounds, Metric::MedianFct, shared, Holds::Fairly);
        // Turnaround and assessment of the channel.
        assert_bound(&bounds, Metric::ExchangeTime, request + response + 2.0 * 320e-6, Holds::Always);
    }

    #[test]
    fn what_comes_from_beyond_the_first_ring_takes_the_air_twice() {
        let bounds = bounds(&scenario("rathod-half-dumbbell", &[NO_PAUSE, ("network.mesh.mac.cca", "0 s")]));
        // Without acknowledgements; an address and the RPL option take 8 bytes each.
        let (request, response) = (69.0 * 32e-6, 74.0 * 32e-6);
        assert_bound(&bounds, Metric::Throughput, 1.0 / (2.0 * (request + response)), Holds::Always);
        assert_bound(&bounds, Metric::ExchangeTime, 2.0 * (request + response + 2.0 * 192e-6), Holds::Always);
    }

    #[test]
    fn a_frame_takes_a_cell_of_its_slotframe() {
        let set = [("radio", "tsch-101"), ("interval", "1 s"), SHORTEST];
        let bounds = bounds(&scenario("mesh-sleepy", &set));
        // Messages of 40 bytes, one in each slotframe of 101 slots of 10 ms.
        assert_bound(&bounds, Metric::CarriedLoad, 40.0 * 8.0 / 1.01, Holds::OnAverage);
    }

    #[test]
    fn a_mesh_that_has_room_for_all_that_is_offered_has_no_bound() {
        assert_eq!(bounds(&scenario("mesh-grid", &[])), []);
    }

    #[test]
    fn the_dearest_clients_get_what_the_others_leave() {
        let demand = |busy_s, most| Demand { value: 1.0, busy_s, most };
        let mut demands = [demand(0.2, f64::INFINITY), demand(0.1, 4.0)];
        assert!((greatest(&mut demands) - (4.0 + 0.6 / 0.2)).abs() < 1e-12);
    }

    #[test]
    fn hops_that_do_not_disturb_each_other_fall_into_two_groups() {
        // Nodes in a row, each of which disturbs the next two.
        let disturbs = |a: u32, b: u32| a.abs_diff(b) <= 2;
        assert_eq!(groups(&[(2, 1), (1, 2), (3, 4)], disturbs), 1);
        assert_eq!(groups(&[(2, 1), (1, 2), (11, 12), (12, 11)], disturbs), 2);
    }
}
