//! A datagram that passed, and what can be checked of it.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use coap_numbers::option;
use coapace_net::Direction;
use coapace_proto::block::Block;
use coapace_proto::{Code, Kind, Message};

/// An endpoint reads its clock up to so long before a datagram is noted here, on a machine with other things to do.
pub(crate) const MOMENT: Duration = Duration::from_millis(50);

/// A message that passed. Each check fails the case, and returns the message for the next.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) direction: Direction,
    pub(crate) kind: Kind,
    pub(crate) code: Code,
    pub(crate) id: u16,
    pub(crate) token: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_lost: bool,
    options: Vec<(u16, Vec<u8>)>,
}

impl Seen {
    pub(crate) fn new(direction: Direction, bytes: &[u8]) -> Self {
        let message = Message::parse(bytes).expect("a well-formed message");
        Self {
            at: Instant::now(),
            direction,
            kind: message.kind,
            code: message.code,
            id: message.message_id,
            token: message.token.to_vec(),
            payload: message.payload().into(),
            bytes: bytes.into(),
            is_lost: false,
            options: message.options().map(|(number, value)| (number, value.into())).collect(),
        }
    }

    /// Type and code, and of a request also path and query: `CON GET /query?first=1`, `ACK 2.05`.
    pub(crate) fn name(&self) -> String {
        let mut name = String::from(match self.kind {
            Kind::Confirmable => "CON ",
            Kind::NonConfirmable => "NON ",
            Kind::Acknowledgement => "ACK ",
            Kind::Reset => "RST ",
        });
        match self.code {
            Code::GET => name.push_str("GET "),
            Code::POST => name.push_str("POST "),
            Code::PUT => name.push_str("PUT "),
            Code::DELETE => name.push_str("DELETE "),
            code => write!(name, "{}", code.dotted()).expect("a string"),
        }
        if self.code.is_request() {
            for segment in self.values(option::URI_PATH) {
                write!(name, "/{}", String::from_utf8_lossy(segment)).expect("a string");
            }
            for (place, argument) in self.values(option::URI_QUERY).into_iter().enumerate() {
                name.push(if place == 0 { '?' } else { '&' });
                name.push_str(&String::from_utf8_lossy(argument));
            }
        }
        name
    }

    /// The values of the options of this number.
    pub(crate) fn values(&self, number: u16) -> Vec<&[u8]> {
        let of_number = self.options.iter().filter(|(other, _)| *other == number);
        of_number.map(|(_, value)| &value[..]).collect()
    }

    /// The value of the one option of this number, as an unsigned integer.
    #[track_caller]
    pub(crate) fn uint(&self, number: u16) -> u32 {
        let values = self.values(number);
        let [value] = values[..] else { panic!("one option {number} in {self:?}") };
        assert!(value.len() <= 4, "a number of at most 32 bits in {self:?}");
        value.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte))
    }

    /// Asserts that the option `number` is there with the integer `value`.
    #[track_caller]
    pub(crate) fn with(self, number: u16, value: u32) -> Self {
        assert_eq!(self.uint(number), value, "option {number} of {self:?}");
        self
    }

    /// The options of this number have these values, in this order; none if there are none.
    #[track_caller]
    pub(crate) fn with_all(self, number: u16, values: &[&[u8]]) -> Self {
        assert_eq!(self.values(number), values, "option {number} of {self:?}");
        self
    }

    /// The option is not there.
    #[track_caller]
    pub(crate) fn without(self, number: u16) -> Self {
        self.with_all(number, &[])
    }

    /// The block option has this number, says whether there are more, and has this size in bytes.
    #[track_caller]
    pub(crate) fn with_block(self, number: u16, (num, more, size): (u32, bool, usize)) -> Self {
        let block = Block::decode(self.uint(number)).expect("a size that is not reserved");
        assert_eq!((block.num(), block.more(), block.size()), (num, more, size), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn with_payload(self, payload: impl AsRef<[u8]>) -> Self {
        assert_eq!(self.payload, payload.as_ref(), "payload of {self:?}");
        self
    }

    /// The payload is not empty, and its Content-Format is given.
    #[track_caller]
    pub(crate) fn with_content(self, format: u16) -> Self {
        assert!(!self.payload.is_empty(), "a payload in {self:?}");
        self.with(option::CONTENT_FORMAT, format.into())
    }

    /// The Content-Format is given if there is a payload.
    #[track_caller]
    pub(crate) fn says_its_format(self) -> Self {
        assert!(self.payload.is_empty() || self.values(option::CONTENT_FORMAT).len() == 1, "{self:?}");
        self
    }

    /// A token of 1 to 8 bytes.
    #[track_caller]
    pub(crate) fn with_token(self) -> Self {
        assert!((1..=8).contains(&self.token.len()), "{self:?}");
        self
    }

    /// Checks that it goes with this request: the token is the same.
    #[track_caller]
    pub(crate) fn of(self, request: &Self) -> Self {
        assert_eq!(self.token, request.token, "{self:?} of {request:?}");
        self
    }

    /// Checks that it answers this request in its acknowledgement: Message ID and token are the same.
    #[track_caller]
    pub(crate) fn to(self, request: &Self) -> Self {
        assert_eq!(self.id, request.id, "{self:?} to {request:?}");
        self.of(request)
    }

    /// Checks that it is an empty message that goes with `other`: four bytes with its Message ID.
    #[track_caller]
    pub(crate) fn empty_to(self, other: &Self) -> Self {
        assert_eq!((self.bytes.len(), self.id), (4, other.id), "{self:?} to {other:?}");
        self
    }

    /// Checks that it is another message than these: a new Message ID, and a new token.
    #[track_caller]
    pub(crate) fn new_after(self, others: &[&Self]) -> Self {
        for other in others {
            assert!(self.id != other.id && self.token != other.token, "{self:?} after {other:?}");
        }
        self
    }

    /// Checks that it is a copy of `first`.
    #[track_caller]
    pub(crate) fn again(self, first: &Self) -> Self {
        assert_eq!(self.bytes, first.bytes, "a retransmission");
        self
    }

    /// Checks that it was lost on its way.
    #[track_caller]
    pub(crate) fn lost(self) -> Self {
        assert!(self.is_lost, "{self:?}");
        self
    }

    /// At least so much time is between it and this one.
    #[track_caller]
    pub(crate) fn after(&self, other: &Self, time: Duration) {
        let passed = self.at - other.at;
        assert!(passed + MOMENT >= time, "{passed:?} instead of {time:?}");
    }

    /// Checks that the Observe option is newer than the one of `before` (RFC 7641 §3.4).
    #[track_caller]
    pub(crate) fn newer_than(self, before: &Self) -> Self {
        let (old, new) = (before.uint(option::OBSERVE), self.uint(option::OBSERVE));
        let ahead = new.wrapping_sub(old) & 0xff_ffff;
        assert!(ahead != 0 && ahead < 1 << 23, "{new} after {old}");
        self
    }
}
