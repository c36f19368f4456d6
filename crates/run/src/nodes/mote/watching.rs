//! The observations (RFC 7641) of a sink: its registrations at clients whose flows send notifications.

use std::collections::{BTreeMap, BTreeSet};

use coapace_control::Seam;
use coapace_proto::{Endpoint, ExchangeId, NotificationOrder, Request};
use coapace_sim::{NodeId, Span, Stream, Time};

use super::plan::{self, MotePlan};
use crate::nodes::GET;

/// The default of Max-Age, for responses without this option (RFC 7252 §5.10.5).
const MAX_AGE: Span = Span::from_secs(60);

/// The time from a failed registration to the next attempt.
const RETRY: Span = Span::from_secs(10);

/// The time over which the first registrations are spread if the flow starts at the start of the run.
const SPREAD: Span = Span::from_secs(10);

/// A sink's observation of one flow of one client.
#[derive(Clone, Copy, Debug)]
struct MoteObservation {
    client: NodeId,
    /// The number of the client, which is part of the token.
    number: u32,
    flow: u8,
    /// The time of the next registration.
    due: Time,
    /// The number of registrations that were sent so far.
    times: u32,
}

/// The observations of a sink, and the times of its registrations.
#[derive(Debug)]
pub(super) struct Watching {
    watches: Vec<MoteObservation>,
    /// The times of the next registrations, each with the index of its observation in `watches`.
    due: BTreeSet<(Time, usize)>,
    /// For each exchange of a registration, the index of its observation in `watches`.
    exchanges: BTreeMap<ExchangeId, usize>,
    registrations: Vec<std::sync::Arc<plan::FlowPlan>>,
    renewals: Stream,
}

impl Watching {
    /// Makes the observations of the sink `own`: one for each client and each of its flows that sends notifications to
    /// this sink. `clients` has the node and the number of each client. Returns `None` if there are no observations.
    pub(super) fn new(plan: &MotePlan, clients: &[(NodeId, u32)], own: NodeId) -> Option<Self> {
        let mut watches = Vec::new();
        for flow in plan.flows.iter().filter(|flow| flow.keys.observe) {
            let takes_part = |(_, number): &&(NodeId, u32)| flow.sink_of(*number) == Some(own);
            let observed: Vec<_> = clients.iter().filter(takes_part).collect();
            let before = flow.timing.start - Time::ZERO;
            let span = if before > Span::ZERO { before } else { SPREAD };
            for (place, &&(client, number)) in observed.iter().enumerate() {
                // First registrations are spread evenly before the flow starts, so that they do not collide.
                let turn = u128::from(span.as_nanos()) * place as u128 / observed.len() as u128;
                // `place` is below the number of clients, so the turn is within the span and fits 64 bits.
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

    /// Returns the time when the next registration is due; `None` if none is planned.
    pub(super) fn next(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Sends the registrations that are due.
    pub(super) fn register_due(&mut self, now: Time, endpoint: &mut Endpoint<Seam, NodeId>) {
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
            // If the endpoint has no room, the next registration tries again.
            if let Ok(id) = endpoint.observe(now.instant(), client, request) {
                // The registration replaces the earlier one, whose late events mean nothing any more.
                self.exchanges.retain(|_, other| *other != place);
                self.exchanges.insert(id, place);
            }
            self.watches[place].times = times + 1;
            // The next registration is put off until this one is answered or fails.
            self.put_off(place, now + MAX_AGE + RETRY);
        }
    }

    /// Handles a response or notification: plans the next registration at its client. Returns the flow; `None` if
    /// `exchange` belongs to no observation.
    pub(super) fn heard(&mut self, now: Time, exchange: ExchangeId) -> Option<u8> {
        let place = *self.exchanges.get(&exchange)?;
        let MoteObservation { number, flow, times, due, .. } = self.watches[place];
        // Without renewal one answered registration is enough. Only a failed one is repeated.
        if self.registrations.get(usize::from(flow)).is_some_and(|plan| !plan.keys.renew) {
            self.due.remove(&(due, place));
            return Some(flow);
        }
        let draw = self.renewals.draw(u64::from(number), u64::from(flow), u64::from(times));
        // A representation is stale after Max-Age. The next registration follows 5 to 15 s later.
        let slack = NotificationOrder::new().register_again_at(draw);
        self.put_off(place, now + MAX_AGE + (Time::from(slack) - Time::ZERO));
        Some(flow)
    }

    /// Handles the failure of a registration: plans the next attempt.
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
