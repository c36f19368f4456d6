//! The behaviour of motes, which all motes of a population share.

use std::sync::Arc;

use coapace_control::Seam;
use coapace_proto::{Code, Setup, Tail, Token};
use coapace_scenario::patterns::Timing;
use coapace_scenario::{Clients, Flow, Method};
use coapace_sim::{NodeId, Stream, Time};

use crate::nodes::{GET, with_path};

/// The behaviour that all clients of a population share, or that all sinks share.
#[derive(Debug)]
pub(crate) struct MotePlan {
    /// The index of the population.
    pub(crate) population: usize,
    /// The mechanism and the transmission parameters.
    pub(crate) setup: Arc<Setup<Seam>>,
    /// All flows, in the order of their numbers.
    pub(crate) flows: Vec<Arc<FlowPlan>>,
    /// Random numbers for timeouts, keyed by client, exchange and transmission.
    pub(crate) dither: Stream,
    /// Random numbers for the times of registrations, keyed by client, flow and registration.
    pub(crate) renewals: Stream,
    /// The end of the warm-up. Earlier events do not count.
    pub(crate) measured_from: Time,
}

/// A flow, with its encoded messages.
#[derive(Debug)]
pub(crate) struct FlowPlan {
    /// The keys of the flow in the scenario.
    pub(crate) keys: Flow,
    /// The flow's number, from 0. It is the first byte of the flow's tokens.
    pub(crate) number: u8,
    /// For each client, the sink that gets its messages; `None` for a client that does not take part in the flow.
    pub(crate) sinks: Vec<Option<NodeId>>,
    /// The times at which messages are offered.
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
        // All messages of a flow have the same content, so it is encoded once for all clients.
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
            // An empty value is the integer 0, which registers (RFC 7641 §2).
            registration: with_path(Tail::default().option(coap_numbers::option::OBSERVE, &[]), clients)
                .into_bytes(),
            keys: keys.clone(),
        }
    }

    /// Returns the sink of the client with the number `client`, from 1; `None` if the client does not take part in the
    /// flow.
    pub(crate) fn sink_of(&self, client: u32) -> Option<NodeId> {
        self.sinks.get(client as usize - 1).copied().flatten()
    }

    /// Returns the encoded options and payload of the notification with this number.
    pub(crate) fn notification(&self, number: u32) -> Vec<u8> {
        // The value of Observe has three bytes at most (RFC 7641 §2).
        let [_, value @ ..] = (FIRST_NOTIFICATION + number).to_be_bytes();
        Tail::default().option(coap_numbers::option::OBSERVE, &value).payload(&self.payload).into_bytes()
    }
}

/// Returns the token of a message or a registration. `number` is the number of the message, or of the client for a
/// registration.
pub(super) fn token(flow: u8, number: u32) -> Token {
    let [_, a, b, c] = number.to_be_bytes();
    // Four bytes are always a valid token.
    Token::new(&[flow, a, b, c]).unwrap_or_default()
}

/// Returns the flow and the number in a token of [`token`]; `None` if the token is too short. A mechanism may have
/// added a byte at the end.
pub(super) fn read_token(token: &Token) -> Option<(u8, u32)> {
    let &[flow, a, b, c, ..] = &token[..] else { return None };
    Some((flow, u32::from_be_bytes([0, a, b, c])))
}

/// Returns the number of a notification from `sequence`, the value of its Observe option; `None` for the response to a
/// registration.
pub(super) fn notification_number(sequence: u32) -> Option<u32> {
    sequence.checked_sub(FIRST_NOTIFICATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_a_mote_identifies_flow_and_message_even_if_marked() {
        let plain = token(7, 0x0001_0203);
        assert_eq!(read_token(&plain), Some((7, 0x0001_0203)));
        assert_eq!(read_token(&plain.with(2)), Some((7, 0x0001_0203)));
        assert_eq!(read_token(&Token::EMPTY), None);
    }
}
