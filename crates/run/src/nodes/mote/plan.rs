//! The plans of motes. All motes with the same behaviour share one.

use std::sync::Arc;

use coapace_control::Mechanism;
use coapace_proto::{Code, Setup, Tail, Token};
use coapace_scenario::patterns::Timing;
use coapace_scenario::{Clients, Flow, Method};
use coapace_sim::{NodeId, Stream, Time};

use crate::nodes::{GET, with_path};

/// The behaviour that all motes of a population share, or all sinks.
#[derive(Debug)]
pub(crate) struct MotePlan {
    /// The number of the population.
    pub(crate) population: usize,
    /// The mechanism and the transmission parameters.
    pub(crate) setup: Arc<Setup<Mechanism>>,
    /// All flows, by their numbers.
    pub(crate) flows: Vec<Arc<FlowPlan>>,
    /// Random numbers for timeouts, keyed by client, exchange and transmission.
    pub(crate) dither: Stream,
    /// Random numbers for the moments of registrations, keyed by sink and registration.
    pub(crate) renewals: Stream,
    /// The time from which on events count.
    pub(crate) measured_from: Time,
}

/// A flow, with its encoded messages.
#[derive(Debug)]
pub(crate) struct FlowPlan {
    /// The keys of the flow in the scenario.
    pub(crate) keys: Flow,
    /// The number among the flows, from 0: the first byte of its tokens.
    pub(crate) number: u8,
    /// The sink of every client; `None` for a client that does not take part.
    pub(crate) sinks: Vec<Option<NodeId>>,
    /// The times of the pattern.
    pub(crate) timing: Timing,
    /// The time from which on no message is offered.
    pub(crate) end: Time,
    /// The method of a request.
    pub(crate) code: Code,
    /// Options and payload of a request.
    pub(crate) request: Vec<u8>,
    /// Options and payload of a response.
    pub(crate) response: Vec<u8>,
    /// The payload of a message.
    pub(crate) payload: Vec<u8>,
    /// Options of a registration.
    pub(crate) registration: Vec<u8>,
}

/// The sequence number of the first notification. From here on all sequence numbers take three bytes.
const FIRST_NOTIFICATION: u32 = 1 << 16;

impl FlowPlan {
    /// Encodes the messages of a flow from `clients` to `sinks`.
    pub(crate) fn new(
        keys: &Flow,
        number: u8,
        sinks: Vec<Option<NodeId>>,
        timing: Timing,
        end: Time,
        clients: &Clients,
    ) -> Self {
        let payload = vec![b'.'; keys.sizes(clients.uri_path_bytes()).0 as usize];
        let options = with_path(Tail::default(), clients);
        // The value 26 suppresses responses of the classes 2, 4 and 5 (RFC 7967 §2.1).
        let options =
            if keys.confirmable { options } else { options.option(coap_numbers::option::NO_RESPONSE, &[26]) };
        Self {
            number,
            sinks,
            timing,
            end,
            code: match keys.method {
                Method::Post => Code(coap_numbers::code::POST),
                Method::Get => GET,
            },
            request: options.payload(&payload).into_bytes(),
            response: Tail::default().payload(&vec![b'.'; keys.response_bytes as usize]).into_bytes(),
            payload,
            registration: with_path(Tail::default().option(coap_numbers::option::OBSERVE, &[]), clients)
                .into_bytes(),
            keys: keys.clone(),
        }
    }

    /// Returns the sink of the client of this number, counted from 1, if it takes part.
    pub(crate) fn sink_of(&self, client: u32) -> Option<NodeId> {
        self.sinks.get(client as usize - 1).copied().flatten()
    }

    /// Returns the options and the payload of the notification of this number.
    pub(crate) fn notification(&self, number: u32) -> Vec<u8> {
        let [_, value @ ..] = (FIRST_NOTIFICATION + number).to_be_bytes();
        Tail::default().option(coap_numbers::option::OBSERVE, &value).payload(&self.payload).into_bytes()
    }
}

/// Returns the token of a message, from its flow and its number, or of a registration, from its flow and its client.
pub(super) fn token(flow: u8, number: u32) -> Token {
    let [_, a, b, c] = number.to_be_bytes();
    Token::new(&[flow, a, b, c]).unwrap_or_default()
}

/// Returns the flow and the number in a token. A mechanism may have added a byte behind them.
pub(super) fn read_token(token: &Token) -> Option<(u8, u32)> {
    let &[flow, a, b, c, ..] = &token[..] else { return None };
    Some((flow, u32::from_be_bytes([0, a, b, c])))
}

/// Returns the number of a notification from its sequence number; `None` for the answer to a registration.
pub(super) fn notification_number(sequence: u32) -> Option<u32> {
    sequence.checked_sub(FIRST_NOTIFICATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_flow_and_number_marked_or_not() {
        let plain = token(7, 0x0001_0203);
        assert_eq!(read_token(&plain), Some((7, 0x0001_0203)));
        assert_eq!(read_token(&plain.with(2)), Some((7, 0x0001_0203)));
        assert_eq!(read_token(&Token::EMPTY), None);
    }
}
