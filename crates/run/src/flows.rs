//! The hosts of workloads with flows, and the results of their messages.

use std::sync::Arc;

use coapace_control::{REGISTRY, Seam};
use coapace_proto::{Config, Setup};
use coapace_scenario::patterns::Timing;
use coapace_scenario::{Flow, Moment, Scenario};
use coapace_sim::{Luck, NodeId, Span, Time};

use super::endpoints::configs;
use super::observe::{Run, series};
use super::seats::{Casting, Role, Seats};
use crate::measured::{FlowResult, RunResult, Settling};
use crate::mix::Mix;
use crate::nodes::{DeliveredMessage, FlowPlan, HostNode, Mote, MotePlan, RelayNode};

/// Returns a function that makes the host for a role. Results count from the time `from` on, and no message is offered
/// from the time `end` on.
pub(super) fn hosts<'a>(
    run: Run<'a>,
    seats: &'a Seats,
    mix: &'a Mix,
    (from, end): (Time, Time),
) -> Casting<'a> {
    let Run { scenario, seed, observe, .. } = run;
    let luck = Luck::new(seed);
    let clients: Vec<(NodeId, u32)> = seats.clients().map(|(number, node)| (node, number)).collect();
    let flows = plans(scenario, seats, luck, end);
    // The names of streams are part of a run: the same seed and mechanism must draw the same numbers in every version.
    let plan = |population: usize, controller: Seam, config: Config| {
        Arc::new(MotePlan {
            population,
            setup: Arc::new(Setup { controller, config, bulk: None }),
            flows: flows.clone(),
            dither: luck.stream("dither"),
            renewals: luck.stream("renewals"),
            measured_from: from,
        })
    };
    let (own, of_sinks) = configs(scenario, seats);
    let plans: Vec<_> =
        mix.parts().iter().enumerate().map(|(number, part)| plan(number, part.seam(), own)).collect();
    // A sink begins no exchanges but its registrations.
    let sinks = plan(0, REGISTRY[0].mechanism.into(), of_sinks);
    Box::new(move |role| match role {
        // The node is the seed, so that each sink begins with a Message ID of its own.
        Role::Server(node) | Role::Depot(_, node) => {
            let sink = Mote::sink(sinks.clone(), u64::from(node.0), 0);
            HostNode::Mote(Box::new(sink.observing(&clients, node)))
        }
        Role::Client { number, .. } => {
            // Clients count from 1, and a mix deals its parts out from 0.
            let part = mix.part_of(number - 1);
            let series = series(mix, part, number, observe);
            HostNode::Mote(Box::new(Mote::client(plans[part].clone(), number, series)))
        }
        Role::Relay => HostNode::Relay(RelayNode),
    })
}

fn plans(scenario: &Scenario, seats: &Seats, luck: Luck, end: Time) -> Vec<Arc<FlowPlan>> {
    let plan = |(number, flow): (u8, &Flow)| {
        let sinks = flow.sinks(scenario.clients.count, scenario.layout());
        let timing = Timing {
            start: Time::ZERO + flow.start,
            interval: interval(scenario, flow),
            spread: flow.spread,
            on: flow.on,
            off: flow.off,
            stream: luck.stream(&format!("flow/{}", flow.name)),
        };
        // A flow may end earlier than the run, but not later.
        let end = flow.end.map_or(end, |own| (Time::ZERO + own).min(end));
        let sinks = sinks.into_iter().map(|sink| sink.map(|sink| seats.server(sink))).collect();
        Arc::new(FlowPlan::new(flow, number, sinks, timing, end, &scenario.clients))
    };
    (0..).zip(&scenario.workload.flows).map(plan).collect()
}

/// Returns the number of clients that take part in a flow.
fn participants(scenario: &Scenario, flow: &Flow) -> u32 {
    // A client without a sink takes no part.
    flow.sinks(scenario.clients.count, scenario.layout()).iter().flatten().count() as u32
}

/// Returns the time from a client's message to its next message. All clients together keep the rate of the flow, as an
/// average over messages and pauses.
pub(crate) fn interval(scenario: &Scenario, flow: &Flow) -> Span {
    const SHORTEST: Span = Span::from_nanos(1);
    let Some(rate) = flow.rate else { return flow.interval.unwrap_or(SHORTEST) };
    let message_bits = u128::from(flow.sizes(scenario.clients.uri_path_bytes()).1) * 8;
    // In 128 bits, because the product of bits, clients and nanoseconds exceeds 64.
    let each = message_bits * u128::from(participants(scenario, flow)) * 1_000_000_000 / u128::from(rate);
    let (on, off) = (u128::from(flow.on.as_nanos()), u128::from(flow.off.as_nanos()));
    // Messages are closer together while the flow is on, so that the average over pauses is the rate.
    let each = if flow.pattern.has_pauses { each * on / (on + off).max(1) } else { each };
    Span::from_nanos(u64::try_from(each).unwrap_or(u64::MAX)).max(SHORTEST)
}

/// The spans of time that begin with the bursts of one flow. A delay counts only if its message is offered or, by the
/// choice of the flow, arrives in one of these spans.
struct Counted {
    start: Time,
    /// The time from a burst to the next; `None` if there is only one burst.
    interval: Option<Span>,
    within: Span,
    by: Moment,
}

impl Counted {
    /// Returns the spans of every flow that has `delays_within`, which restricts the delays that count.
    fn of(scenario: &Scenario) -> Vec<Self> {
        let counted = |flow: &Flow| {
            Some(Self {
                start: Time::ZERO + flow.start,
                interval: (!flow.pattern.is_event()).then(|| interval(scenario, flow)),
                within: flow.delays_within?,
                by: flow.delays_by,
            })
        };
        scenario.workload.flows.iter().filter_map(counted).collect()
    }

    fn includes(&self, offered: Time, arrived: Time) -> bool {
        let at = match self.by {
            Moment::Offer => offered,
            Moment::Arrival => arrived,
        };
        let since = at - self.start;
        let since =
            self.interval.map_or(since, |interval| Span::from_nanos(since.as_nanos() % interval.as_nanos()));
        // Before the first burst the span since it is zero, so the start is tested as well.
        at >= self.start && since < self.within
    }
}

/// Matches the messages that clients offered with the messages that arrived at the sinks, from the time `from` to
/// `end`, and adds the results of all flows.
pub(super) fn settle(
    scenario: &Scenario,
    seats: &Seats,
    hosts: &[HostNode],
    (from, end): (Time, Time),
    result: &mut RunResult,
) {
    let motes =
        || hosts.iter().filter_map(|host| if let HostNode::Mote(mote) = host { Some(mote) } else { None });
    let mut arrivals: Vec<DeliveredMessage> =
        motes().flat_map(|mote| mote.ledger().arrivals.iter().copied()).collect();
    // Retransmissions and copies may deliver a message twice, and a message counts once.
    arrivals.sort_unstable();
    // The first copy of a message comes first, and stays.
    arrivals.dedup_by_key(|arrival| (arrival.flow, arrival.client, arrival.number));

    let path_bytes = scenario.clients.uri_path_bytes();
    let flow = |flow: &Flow| {
        let (payload_bytes, message_bytes) = flow.sizes(path_bytes);
        let clients = participants(scenario, flow);
        FlowResult { name: flow.name.clone(), clients, message_bytes, payload_bytes, ..FlowResult::default() }
    };
    let mut flows: Vec<FlowResult> = scenario.workload.flows.iter().map(flow).collect();
    let counted = Counted::of(scenario);
    let mut delayed = Vec::new();
    // The offers decide what counts: messages of the warm-up arrive, too, and a message that never arrived is offered.
    for (_, node) in seats.clients() {
        let Some(HostNode::Mote(mote)) = hosts.get(node.0 as usize) else { continue };
        let ledger = mote.ledger();
        for offer in &ledger.offers {
            let Some(flow) = flows.get_mut(usize::from(offer.flow)) else { continue };
            flow.offered += 1;
            let key = (offer.flow, node, offer.number);
            let place =
                arrivals.binary_search_by_key(&key, |arrival| (arrival.flow, arrival.client, arrival.number));
            if let Some(arrival) = place.ok().and_then(|place| arrivals.get(place)) {
                let delay = arrival.at - offer.at;
                flow.reached += 1;
                // Without a restricted flow every delay counts.
                if counted.is_empty() || counted.iter().any(|spans| spans.includes(offer.at, arrival.at)) {
                    flow.delays.add(delay.as_micros());
                }
                delayed.push((arrival.at.as_secs_f64(), delay.as_secs_f64()));
            }
        }
        for (flow, tally) in flows.iter_mut().zip(&ledger.tallies) {
            // A ledger lists only accepted messages, so those dropped at the client are added to the offers here.
            flow.offered += tally.dropped;
            flow.dropped += tally.dropped;
            flow.completed += tally.completed;
            flow.gave_up += tally.gave_up;
        }
    }
    delayed.sort_by(|a, b| a.0.total_cmp(&b.0));
    // An event during the warm-up has no measured time before it to settle back to.
    let events = scenario.workload.flows.iter().filter(|flow| flow.pattern.is_event());
    let event = events.map(|flow| Time::ZERO + flow.start).min().filter(|event| *event > from);
    result.settling = event.and_then(|event| Settling::of(&delayed, event.as_secs_f64(), end.as_secs_f64()));
    // Here only payloads of flows count: responses have no part in the goodput of a flow.
    let completed_bits = |flow: &FlowResult| flow.completed as f64 * f64::from(flow.payload_bytes) * 8.0;
    if result.duration_s > 0.0 {
        result.goodput_bps = flows.iter().map(completed_bits).sum::<f64>() / result.duration_s;
    }
    result.flows = flows;
}
