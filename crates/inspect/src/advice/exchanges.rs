//! Exchanges, reconstructed from messages.

use std::collections::{BTreeSet, HashMap};

use coapace_control::Marking;
use coapace_proto::{Code, Kind};
use coapace_sim::{Span, Time};
use smallvec::SmallVec;

use super::clock::{CaptureClock, Straightened};
use super::counts::Counts;
use super::message::SeenMessage;
use crate::EXCHANGE_LIFETIME_S;
use crate::nearest::marking;

/// EXCHANGE_LIFETIME with the parameters of RFC 7252 §4.8.2.
const EXCHANGE_LIFETIME: Span = Span::from_secs(EXCHANGE_LIFETIME_S);

/// MAX_TRANSMIT_WAIT (RFC 7252 §4.8.2).
const MAX_TRANSMIT_WAIT: Span = Span::from_secs(93);

/// The maximum number of exchanges that are stored.
const MOST_EXCHANGES: usize = 1_000_000;

/// The maximum number of copies, and also the most answers, that are stored for an exchange.
const MOST_COPIES: usize = 255;

/// A side of a client–server pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum From {
    /// The side that makes requests.
    Client,
    /// The side that answers requests.
    Server,
}

/// An exchange in a capture: a message, its copies, and the answers to them.
#[derive(Clone, Debug)]
pub struct CapturedExchange {
    /// The number of the client–server pair in [`Traffic::pairs`](super::traffic::Traffic::pairs).
    pub pair: u32,
    /// The number of the client, from 0; also 0 if the server began the exchange.
    pub client: u32,
    /// How many times the client had [restarted](super::lives) before the exchange.
    pub life: u32,
    /// The side that began the exchange.
    pub from: From,
    /// Whether the message is confirmable.
    pub is_confirmable: bool,
    /// The transmissions of the message in sequence, the first one included.
    pub copies: SmallVec<[Copied; 1]>,
    /// The answers in sequence: acknowledgements and Resets, or responses if the message is non-confirmable. Later
    /// notifications are left out.
    pub answers: SmallVec<[CapturedAnswer; 1]>,
    /// The time of the first response, piggybacked or separate.
    pub response_at: Option<Time>,
    /// The length of the first copy in bytes, as an IP packet.
    pub request_bytes: u32,
    /// The length of the longest answer in bytes, as an IP packet; 0 without an answer.
    pub response_bytes: u32,
    /// The number of [steps](super::clock) of the clock before the exchange.
    pub steps: u32,
    /// The length of the token in bytes.
    pub token_bytes: u8,
    /// The token as a number; 0 if it has more than 8 bytes.
    pub token: u64,
    content: u64,
    response_content: u64,
    era: u32,
}

/// A captured transmission.
#[derive(Clone, Copy, Debug)]
pub struct Copied {
    /// The time of the transmission.
    pub at: Time,
    message_id: u16,
    mark: u64,
    token_bytes: u8,
    has_count: bool,
}

impl Copied {
    fn new(at: Time, seen: &SeenMessage) -> Self {
        let &SeenMessage { message_id, mark, token_bytes, has_count, .. } = seen;
        Self { at, message_id, mark, token_bytes, has_count }
    }
}

/// A captured answer to a message.
#[derive(Clone, Copy, Debug)]
pub struct CapturedAnswer {
    /// The time of the answer.
    pub at: Time,
    /// The number of the answered copy, from 0; `None` if no token, option or Message ID identifies it.
    pub copy: Option<u8>,
}

/// Reconstructs exchanges from messages, which are added one after the other.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    all: Vec<CapturedExchange>,
    /// For each client–server pair, side and Message ID: the number of the last exchange with them.
    by_id: HashMap<(u32, From, u16), u32>,
    /// For each client–server pair and token: the number of the last exchange whose request has the token.
    by_token: HashMap<(u32, u64), u32>,
    /// The number of the [era](super::clock) to which added messages belong.
    pub(super) era: u32,
    /// Whether the clock stepped back at the beginning of this era.
    pub(super) went_back: bool,
    /// The numbers of the exchanges that were answered only in the era after their own.
    crossed: BTreeSet<u32>,
}

impl CapturedExchange {
    /// Returns the time of the first copy.
    pub fn began_at(&self) -> Time {
        self.copies.first().map_or(Time::ZERO, |copy| copy.at)
    }

    /// Returns the time of the last copy.
    pub(super) fn last_at(&self) -> Time {
        self.copies.last().map_or(Time::ZERO, |copy| copy.at)
    }

    /// Removes the steps of the clock from all times.
    fn straighten(&mut self, clock: &Straightened) {
        // Copies and answers of another era are not stored in an exchange, so one era holds for all its times.
        let era = self.era;
        self.steps = clock.steps_before(era);
        let copies = self.copies.iter_mut().map(|copy| &mut copy.at);
        let answers = self.answers.iter_mut().map(|answer| &mut answer.at);
        for at in copies.chain(answers).chain(&mut self.response_at) {
            *at = clock.time(era, *at);
        }
    }

    /// Returns the Message ID of the first copy.
    pub fn message_id(&self) -> u16 {
        self.copies.first().map_or(0, |copy| copy.message_id)
    }

    /// Returns the time of the response, or else of the first acknowledgement or Reset; `None` if the exchange was not answered.
    pub fn ended_at(&self) -> Option<Time> {
        self.response_at.or_else(|| self.answers.first().map(|answer| answer.at))
    }

    /// Returns how the copies are marked, so that an answer can identify one of them.
    pub(super) fn marking(&self) -> Marking {
        let (Some(first), Some(last)) = (self.copies.first(), self.copies.last()) else {
            return Marking::None;
        };
        // The first copy has a shorter token if only retransmissions are marked.
        let by_token = if first.mark == last.mark {
            Marking::None
        } else if first.token_bytes == last.token_bytes {
            Marking::Token
        } else {
            Marking::TokenOnRetransmit
        };
        let has_count = self.copies.iter().any(|copy| copy.has_count);
        marking(has_count, [first.message_id, last.message_id], by_token)
    }

    /// Makes an exchange from the times of its copies and answers, which are not marked.
    #[cfg(test)]
    pub(super) fn plain(copies: impl Iterator<Item = Time>, answers: impl Iterator<Item = Time>) -> Self {
        let copies: SmallVec<_> = copies
            .map(|at| Copied { at, message_id: 0, mark: 0, token_bytes: 0, has_count: false })
            .collect();
        let copy = (copies.len() == 1).then_some(0);
        Self {
            pair: 0,
            client: 0,
            life: 0,
            from: From::Client,
            is_confirmable: true,
            copies,
            answers: answers.map(|at| CapturedAnswer { at, copy }).collect(),
            response_at: None,
            request_bytes: 40,
            response_bytes: 100,
            steps: 0,
            token_bytes: 0,
            token: 0,
            content: 0,
            response_content: 0,
            era: 0,
        }
    }

    /// Returns whether a message with the same Message ID or token is a copy, and not a new message that reuses them.
    fn has_copy(&self, at: Time, seen: &SeenMessage) -> bool {
        let Some(last) = self.copies.last() else { return false };
        let since_first = at - self.began_at();
        let since_last = at - last.at;
        if self.content != seen.content {
            return false;
        }
        // Behind the answer, a copy can only be one that the network delayed, or one of a client that lost the answer.
        if self.ended_at().is_some() {
            return since_first <= MAX_TRANSMIT_WAIT;
        }
        // A mechanism may wait longer than RFC 7252 does. So four times the last interval counts, too.
        let before = self.copies.iter().rev().nth(1).map_or(Span::ZERO, |before| last.at - before.at);
        since_first <= EXCHANGE_LIFETIME || since_last <= EXCHANGE_LIFETIME.max(before * 4)
    }

    fn add_copy(&mut self, at: Time, seen: &SeenMessage) {
        if self.copies.len() < MOST_COPIES {
            self.copies.push(Copied::new(at, seen));
        }
    }

    fn add_answer(&mut self, at: Time, message_id: u16, mark: u64) {
        if self.answers.len() >= MOST_COPIES {
            return;
        }
        let is_own = |copy: &Copied| copy.message_id == message_id && copy.mark == mark;
        let is_id = |copy: &Copied| copy.message_id == message_id;
        // An empty acknowledgement has no token, but its Message ID may be enough.
        let only = |is_it: &dyn Fn(&Copied) -> bool| {
            // At most 255 copies are stored, so a number fits into a byte.
            let mut found = self.copies.iter().zip(0u8..).filter(|(copy, _)| is_it(copy));
            found.next().filter(|_| found.next().is_none()).map(|(_, number)| number)
        };
        let copy = only(&is_own).or_else(|| only(&is_id));
        self.answers.push(CapturedAnswer { at, copy });
    }
}

impl Exchanges {
    /// Adds a message that the side `from` of a pair sent. Returns whether it answers a message of the other side.
    pub(super) fn message(
        &mut self,
        at: Time,
        pair: u32,
        from: From,
        seen: &SeenMessage,
        ip_bytes: u32,
        counts: &mut Counts,
    ) -> bool {
        match seen.kind {
            Kind::Acknowledgement | Kind::Reset => {
                // An acknowledgement has the Message ID of the message that it answers, which the other end chose.
                let other = if from == From::Client { From::Server } else { From::Client };
                // No exchange has the number `u32::MAX`.
                let number = self.by_id.get(&(pair, other, seen.message_id)).copied().unwrap_or(u32::MAX);
                let Some(exchange) = self.all.get_mut(number as usize) else {
                    counts.unmatched += 1;
                    return false;
                };
                // Across a step of the clock the round-trip time is unknown.
                if exchange.era != self.era {
                    self.crosses(number);
                    return true;
                }
                exchange.add_answer(at, seen.message_id, seen.mark);
                if seen.code != Code::EMPTY && exchange.response_at.is_none() {
                    exchange.response_at = Some(at);
                }
                // An empty acknowledgement may come before a longer separate response.
                exchange.response_bytes = exchange.response_bytes.max(ip_bytes);
                true
            }
            Kind::Confirmable | Kind::NonConfirmable => {
                let is_response = seen.code.is_response() && from == From::Server;
                let met = is_response && self.respond(at, pair, seen, ip_bytes, counts);
                // A confirmable response is an exchange of its own, too, because the client acknowledges it.
                if !is_response || seen.kind == Kind::Confirmable {
                    self.begin(at, pair, from, seen, ip_bytes, counts);
                }
                met
            }
        }
    }

    /// Adds a separate or non-confirmable response to the exchange with its token. Returns whether this exchange exists.
    fn respond(
        &mut self,
        at: Time,
        pair: u32,
        seen: &SeenMessage,
        ip_bytes: u32,
        counts: &mut Counts,
    ) -> bool {
        let number = self.by_token.get(&(pair, seen.token)).copied().unwrap_or(u32::MAX);
        let Some(exchange) = self.all.get_mut(number as usize) else {
            counts.unmatched += 1;
            return false;
        };
        if exchange.era != self.era {
            self.crosses(number);
            return true;
        }
        if exchange.response_at.is_none() {
            exchange.response_at = Some(at);
            exchange.response_bytes = exchange.response_bytes.max(ip_bytes);
            exchange.response_content = seen.content;
        }
        // Once each copy has an answer, a response with other content is a notification or a block.
        let is_awaited = exchange.answers.len() < exchange.copies.len();
        let is_answer = is_awaited || exchange.response_content == seen.content;
        // A non-confirmable request gets no acknowledgement, so its responses are its answers.
        if !exchange.is_confirmable && is_answer && exchange.answers.len() < MOST_COPIES {
            // A response does not show which of several copies it answers.
            let copy = (exchange.copies.len() == 1).then_some(0);
            exchange.answers.push(CapturedAnswer { at, copy });
        }
        true
    }

    /// Records an exchange that began before the last step of the capture's clock and is answered after it. Its round-trip
    /// time is unknown.
    fn crosses(&mut self, number: u32) {
        let exchange = self.all.get(number as usize);
        if exchange.is_some_and(|it| it.era + 1 == self.era && it.ended_at().is_none()) {
            self.crossed.insert(number);
        }
    }

    fn begin(
        &mut self,
        at: Time,
        pair: u32,
        from: From,
        seen: &SeenMessage,
        ip_bytes: u32,
        counts: &mut Counts,
    ) {
        let key = (pair, from, seen.message_id);
        let known = self.by_id.get(&key).map(|number| *number as usize);
        let (era, went_back) = (self.era, self.went_back);
        if let Some(exchange) = known.and_then(|number| self.all.get_mut(number)) {
            if exchange.era != era {
                // A copy of a message from before a step. The time between them is not known.
                if went_back && exchange.era + 1 == era && exchange.content == seen.content {
                    counts.torn += 1;
                    return;
                }
            } else if exchange.has_copy(at, seen) {
                return exchange.add_copy(at, seen);
            } else {
                // After EXCHANGE_LIFETIME the Message ID is free again (RFC 7252 §4.4).
                counts.reused_ids += u64::from(at - exchange.began_at() < EXCHANGE_LIFETIME);
            }
        }
        // A mechanism may give every copy a Message ID of its own (Meng et al. 2017). The token is then what they share.
        let earlier = self.by_token.get(&(pair, seen.token)).map(|number| *number as usize);
        let is_marked = seen.token_bytes > 0 && seen.kind == Kind::Confirmable;
        if let Some((number, exchange)) =
            earlier.filter(|_| is_marked).and_then(|number| Some((number, self.all.get_mut(number)?)))
            && exchange.era == era
            && exchange.from == from
            && exchange.ended_at().is_none()
            && exchange.has_copy(at, seen)
        {
            exchange.add_copy(at, seen);
            // The acknowledgement of this copy has the Message ID of this copy.
            self.by_id.insert(key, number as u32);
            return;
        }
        if self.all.len() >= MOST_EXCHANGES {
            counts.left_out += 1;
            return;
        }
        let number = self.all.len() as u32;
        let mut exchange = CapturedExchange {
            pair,
            client: 0,
            life: 0,
            from,
            is_confirmable: seen.kind == Kind::Confirmable,
            copies: SmallVec::new(),
            answers: SmallVec::new(),
            response_at: None,
            request_bytes: ip_bytes,
            response_bytes: 0,
            steps: 0,
            token_bytes: seen.token_bytes,
            token: seen.token_number,
            content: seen.content,
            response_content: 0,
            era,
        };
        exchange.add_copy(at, seen);
        self.all.push(exchange);
        self.by_id.insert(key, number);
        // A response has the token of the request that it answers, and not one of its own.
        if seen.code.is_request() {
            self.by_token.insert((pair, seen.token), number);
        }
    }

    /// Returns all exchanges, sorted by their first copies, and the clock, whose steps are removed from all times.
    /// Exchanges that were unanswered at a step are left out, because it is unknown how they would have ended.
    pub(super) fn finish(
        self,
        mut clock: CaptureClock,
        counts: &mut Counts,
    ) -> (Vec<CapturedExchange>, Straightened) {
        let mut all = self.all;
        // An answer on the other side of a gap shows that the gap is a step, so the clock learns this first.
        for exchange in self.crossed.iter().filter_map(|&number| all.get(number as usize)) {
            clock.crossed(exchange.era, exchange.last_at(), MAX_TRANSMIT_WAIT);
        }
        let clock = clock.straightened();
        let count = all.len();
        all.retain(|it| it.ended_at().is_some() || !clock.is_cut(it.era, it.last_at(), MAX_TRANSMIT_WAIT));
        counts.torn += (count - all.len()) as u64;
        if !clock.steps.is_empty() {
            for exchange in &mut all {
                exchange.straighten(&clock);
            }
        }
        all.sort_by_key(CapturedExchange::began_at);
        (all, clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds messages of pair 0: seconds, whether the client sends it, bytes.
    fn play(messages: &[(u64, bool, &[u8])]) -> (Vec<CapturedExchange>, Counts) {
        let (mut exchanges, mut counts) = (Exchanges::default(), Counts::default());
        for &(s, is_client, bytes) in messages {
            let from = if is_client { From::Client } else { From::Server };
            let seen = SeenMessage::read(bytes, true).unwrap();
            exchanges.message(Time::from_secs(s), 0, from, &seen, 28 + bytes.len() as u32, &mut counts);
        }
        let (all, _) = exchanges.finish(CaptureClock::default(), &mut counts);
        (all, counts)
    }

    const GET: &[u8] = &[0x40, 1, 0, 7, 0xb1, b'a'];
    const CONTENT: &[u8] = &[0x60, 0x45, 0, 7];

    #[test]
    fn copies_and_answers_are_grouped_into_exchanges() {
        let (all, _) = play(&[(0, true, GET), (2, true, GET), (3, false, CONTENT), (4, false, CONTENT)]);
        assert_eq!((all.len(), all[0].copies.len(), all[0].answers.len()), (1, 2, 2));
        assert_eq!(all[0].ended_at(), Some(Time::from_secs(3)));
        assert!(all[0].answers.iter().all(|answer| answer.copy.is_none()), "the copies are the same bytes");
    }

    #[test]
    fn a_token_or_message_id_of_an_answer_identifies_the_answered_copy() {
        let (all, _) = play(&[
            (0, true, &[0x41, 1, 0, 7, 0]),
            (2, true, &[0x41, 1, 0, 7, 1]),
            (3, false, &[0x61, 0x45, 0, 7, 1]),
        ]);
        assert_eq!((all.len(), all[0].answers[0].copy), (1, Some(1)));
        let (all, _) = play(&[
            (0, true, &[0x41, 1, 0, 7, 9]),
            (2, true, &[0x41, 1, 0, 8, 9]),
            (3, false, &[0x61, 0x45, 0, 7, 9]),
        ]);
        assert_eq!((all.len(), all[0].copies.len(), all[0].answers[0].copy), (1, 2, Some(0)));
    }

    #[test]
    fn a_reused_message_id_is_another_exchange_in_a_capture() {
        let other: &[u8] = &[0x40, 1, 0, 7, 0xb1, b'b'];
        let (all, counts) = play(&[(0, true, GET), (1, false, CONTENT), (5, true, other)]);
        assert_eq!((all.len(), counts.reused_ids), (2, 1));
        let (all, counts) = play(&[(0, true, GET), (1, false, CONTENT), (300, true, GET)]);
        assert_eq!((all.len(), counts.reused_ids), (2, 0), "after EXCHANGE_LIFETIME it may be");
    }

    #[test]
    fn in_a_capture_a_separate_response_ends_the_exchange_and_its_acknowledgement_does_not() {
        let (all, counts) = play(&[
            (0, true, &[0x41, 1, 0, 7, 5]),
            (1, false, &[0x60, 0, 0, 7]),
            (8, false, &[0x41, 0x45, 9, 9, 5]),
            (9, true, &[0x60, 0, 9, 9]),
        ]);
        let (request, response) = (&all[0], &all[1]);
        assert_eq!((request.answers.len(), request.ended_at()), (1, Some(Time::from_secs(8))));
        assert_eq!((response.from, response.answers.len()), (From::Server, 1));
        assert_eq!(counts.unmatched, 0);
    }

    #[test]
    fn notifications_and_answers_without_a_request_are_counted() {
        let (all, counts) = play(&[(0, false, &[0x51, 0x45, 0, 1, 5]), (1, false, CONTENT)]);
        assert_eq!((all.len(), counts.unmatched), (0, 2));
    }

    #[test]
    fn the_stored_answers_of_a_request_are_bounded() {
        let answers = (1..400).map(|s| (s, false, &[0x51, 0x45, 9, 9, 5][..]));
        let (all, _) =
            play(&[(0, true, &[0x51, 1, 0, 7, 5][..])].into_iter().chain(answers).collect::<Vec<_>>());
        assert_eq!(all[0].answers.len(), MOST_COPIES);
    }
}
