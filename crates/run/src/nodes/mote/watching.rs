//! The observations of a sink.

use std::collections::{BTreeMap, BTreeSet};

use coapace_control::Mechanism;
use coapace_proto::{Endpoint, ExchangeId, Observation, Request};
use coapace_sim::{NodeId, Span, Stream, Time};

use super::plan::{self, MotePlan};
use crate::nodes::GET;

/// The default of Max-Age, for a representation without the option (RFC 7252 §5.10.5).
const MAX_AGE: Span = Span::from_secs(60);

/// The time from a failed registration to the next.
const RETRY: Span = Span::from_secs(10);

/// The span over which first registrations are spread if the flow starts with the run.
const SPREAD: Span = Span::from_secs(10);

/// One observation.
#[derive(Clone, Copy, Debug)]
struct MoteObservation {
    client: NodeId,
    /// The number of the client, which is part of the token.
    number: u32,
    flow: u8,
    /// The time of the next registration.
    due: Time,
    /// The number of registrations so far.
    times: u32,
}

/// The observations of a sink.
#[derive(Debug)]
pub(super) struct Watching {
    watches: Vec<MoteObservation>,
    /// The times of the next registrations with the indices of their watches.
    due: BTreeSet<(Time, usize)>,
    /// The index of the watch that an exchange belongs to.
    exchanges: BTreeMap<ExchangeId, usize>,
    registrations: Vec<std::sync::Arc<plan::FlowPlan>>,
    renewals: Stream,
}

impl Watching {
    /// Prepares the observations of the sink `own`, of all clients (nodes and numbers) with flows to it; `None` without any.
    pub(super) fn new(plan: &MotePlan, clients: &[(NodeId, u32)], own: NodeId) -> Option<Self> {
        let mut watches = Vec::new();
        for flow in plan.flows.iter().filter(|flow| flow.keys.observe) {
            let takes_part = |(_, number): &&(NodeId, u32)| flow.sink_of(*number) == Some(own);
            let observed: Vec<_> = clients.iter().filter(takes_part).collect();
            let before = flow.timing.start - Time::ZERO;
            let span = if before > Span::ZERO { before } else { SPREAD };
            for (place, &&(client, number)) in observed.iter().enumerate() {
                let turn = u128::from(span.as_nanos()) * place as u128 / observed.len() as u128;
                let due = Time::from_nanos(turn as u64);
                watches.push(MoteObservation { client, number, flow: flow.number, due, times: 0 });
            }
        }
        let due = watches.iter().enumerate().map(|(place, watch)| (watch.due, place)).collect();
        let (registrations, renewals) = (plan.flows.clone(), plan.renewals);
        (!watches.is_empty()).then(|| Self {
            watches,
            due,
            exchanges: BTreeMap::new(),
            registrations,
            renewals,
        })
    }

    /// Returns the time of the next call of [`register_due`](Self::register_due).
    pub(super) fn next(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Sends the registrations that are due.
    pub(super) fn register_due(&mut self, now: Time, endpoint: &mut Endpoint<Mechanism, NodeId>) {
        while let Some(&(due, place)) = self.due.first()
            && due <= now
        {
            let MoteObservation { client, number, flow, times, .. } = self.watches[place];
            let Some(plan) = self.registrations.get(usize::from(flow)) else { return };
            let request = Request {
                confirmable: true,
                code: GET,
                token: plan::token(flow, number),
                tail: &plan.registration,
                repeatable: false,
            };
            if let Ok(id) = endpoint.observe(now.instant(), client, request) {
                self.exchanges.retain(|_, other| *other != place);
                self.exchanges.insert(id, place);
            }
            self.watches[place].times = times + 1;
            // The next registration is put off until this one is answered or fails.
            self.put_off(place, now + MAX_AGE + RETRY);
        }
    }

    /// Handles a response or notification of an observation. Returns its flow.
    pub(super) fn heard(&mut self, now: Time, exchange: ExchangeId) -> Option<u8> {
        let place = *self.exchanges.get(&exchange)?;
        let MoteObservation { number, flow, times, due, .. } = self.watches[place];
        if self.registrations.get(usize::from(flow)).is_some_and(|plan| !plan.keys.renew) {
            self.due.remove(&(due, place));
            return Some(flow);
        }
        let draw = self.renewals.draw(u64::from(number), u64::from(flow), u64::from(times));
        // A representation is stale after Max-Age. The next registration follows 5 to 15 s later.
        let slack = Observation::new().register_again_at(draw);
        self.put_off(place, now + MAX_AGE + (Time::from(slack) - Time::ZERO));
        Some(flow)
    }

    /// Handles the failure of a registration.
    pub(super) fn failed(&mut self, now: Time, exchange: ExchangeId) {
        if let Some(&place) = self.exchanges.get(&exchange) {
            self.put_off(place, now + RETRY);
        }
    }

    fn put_off(&mut self, place: usize, due: Time) {
        let before = std::mem::replace(&mut self.watches[place].due, due);
        self.due.remove(&(before, place));
        self.due.insert((due, place));
    }
}
