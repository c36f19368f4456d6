//! Plans of motes, each made once for all motes that do the same.

use std::sync::Arc;

use coapace_control::Mechanism;
use coapace_proto::{Code, Setup, Tail, Token};
use coapace_scenario::patterns::Timing;
use coapace_scenario::{Flow, Method};
use coapace_sim::{NodeId, Stream, Time};

use crate::nodes::GET;

/// The behaviour that all motes of a population share, or all sinks.
#[derive(Debug)]
pub(crate) struct MotePlan {
    /// The number of the population.
    pub(crate) population: usize,
    /// Mechanism and transmission parameters.
    pub(crate) setup: Arc<Setup<Mechanism>>,
    /// All flows, by their numbers.
    pub(crate) flows: Vec<Arc<FlowPlan>>,
    /// Random numbers for timeouts, keyed by client, exchange and transmission.
    pub(crate) dither: Stream,
    /// Random numbers for the moments of registrations, keyed by sink and registration.
    pub(crate) renewals: Stream,
    /// From when on things count.
    pub(crate) measured_from: Time,
}

/// A flow.
#[derive(Debug)]
pub(crate) struct FlowPlan {
    /// Its keys in the scenario.
    pub(crate) keys: Flow,
    /// Its number among the flows, from 0: the first byte of its tokens.
    pub(crate) number: u8,
    /// The node it goes to.
    pub(crate) sink: NodeId,
    /// The times of the pattern.
    pub(crate) timing: Timing,
    /// From when on nothing is offered.
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

/// The Uri-Path options of all requests: one a segment.
pub(crate) type PathOptions<'a> = &'a [&'a str];

/// Notifications are counted from here, so that all of their sequence numbers take three bytes.
const FIRST_NOTIFICATION: u32 = 1 << 16;

impl FlowPlan {
    /// Returns the messages of a flow between these nodes.
    pub(crate) fn new(
        keys: &Flow,
        number: u8,
        sink: NodeId,
        timing: Timing,
        end: Time,
        path: PathOptions<'_>,
    ) -> Self {
        let with_path = |tail: Tail| {
            let option = coap_numbers::option::URI_PATH;
            path.iter().fold(tail, |tail, segment| tail.option(option, segment.as_bytes()))
        };
        let path_bytes = with_path(Tail::default()).as_bytes().len() as u32;
        let payload = vec![b'.'; keys.sizes(path_bytes).0 as usize];
        let options = with_path(Tail::default());
        // 26: neither successes nor errors are wanted (RFC 7967 §2.1).
        let options =
            if keys.confirmable { options } else { options.option(coap_numbers::option::NO_RESPONSE, &[26]) };
        Self {
            number,
            sink,
            timing,
            end,
            code: match keys.method {
                Method::Post => Code(coap_numbers::code::POST),
                Method::Get => GET,
            },
            request: options.payload(&payload).into_bytes(),
            response: Tail::default().payload(&vec![b'.'; keys.response_bytes as usize]).into_bytes(),
            payload,
            registration: with_path(Tail::default().option(coap_numbers::option::OBSERVE, &[])).into_bytes(),
            keys: keys.clone(),
        }
    }

    /// Options and payload of the notification of this number.
    pub(crate) fn notification(&self, number: u32) -> Vec<u8> {
        let [_, value @ ..] = (FIRST_NOTIFICATION + number).to_be_bytes();
        Tail::default().option(coap_numbers::option::OBSERVE, &value).payload(&self.payload).into_bytes()
    }
}

/// Returns the token of a message: its flow and its number; of a registration, its flow and the client.
pub(super) fn token(flow: u8, number: u32) -> Token {
    let [_, a, b, c] = number.to_be_bytes();
    Token::new(&[flow, a, b, c]).unwrap_or_default()
}

/// Flow and number of a token; a mechanism may have put a byte behind.
pub(super) fn read_token(token: &Token) -> Option<(u8, u32)> {
    let &[flow, a, b, c, ..] = &token[..] else { return None };
    Some((flow, u32::from_be_bytes([0, a, b, c])))
}

/// Returns the number of a notification from its sequence number; nothing if it is the answer to a registration.
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
