//! Bodies larger than a message (RFC 7959). The bodies of requests are reassembled, and the bodies of responses are cut into
//! blocks.

use std::borrow::Cow;

use coap_numbers::option;
use coapace_control::Instant;
use coapace_proto::block::{Assembled, BERT, Block, Bounds, MAX_SZX, Overdue, Reassembly, Slice, Unverified};
use coapace_proto::{Code, Message, Options, Tail};

use super::large_responses::LargeResponses;
use super::terms::{Terms, length};
use crate::Response;
use crate::address::Remote;

/// The bodies of incomplete block-wise transfers: of requests, and of responses whose first blocks were sent.
#[derive(Debug)]
pub(crate) struct TransferBodies {
    requests: Reassembly<Remote>,
    responses: LargeResponses,
}

/// What a server does next with a request.
#[derive(Debug)]
pub(crate) enum ServerStep<'a> {
    /// Call the handler with these options and this complete payload.
    Call(Cow<'a, [u8]>),
    /// Answer with a block of this response, whose earlier blocks were sent.
    Answer(Response),
    /// Send this code with these options.
    Reply(Code, Tail),
    /// Acknowledge a confirmable request without a response, because the body continues in other requests.
    Acknowledge,
    /// Challenge the client, because the limit of bodies of unverified clients is reached.
    Challenge,
}

/// The transport of a response, with the size of its messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ResponseTransport {
    /// A datagram with a block of at most 2^(`max_szx` + 4) bytes. [`Terms`] limit the whole message.
    Datagram { max_szx: u8 },
    /// A message over a connection with at most `room` bytes of options and payload, to a client that may accept many blocks in
    /// one message (BERT).
    Stream { room: usize, bert: bool },
}

/// The result of writing a response: the next step of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseOutcome {
    /// Send this code, with the options and payload that were written.
    Send(Code),
    /// Send nothing, because the client does not want this response (RFC 7967).
    Unwanted,
    /// Send an error or a challenge instead: the response has more bytes than this client may be sent.
    TooLarge,
}

impl TransferBodies {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { requests: Reassembly::new(bounds), responses: LargeResponses::new(bounds) }
    }

    /// Returns the time from which non-confirmable blocks of requests may be overdue.
    pub(crate) const fn overdue_from(&self) -> Instant {
        self.requests.overdue_from()
    }

    /// Returns the next 4.08 response to a client whose non-confirmable blocks are overdue (RFC 9177 §7.2), if there is
    /// one.
    pub(crate) fn take_overdue(&mut self, now: Instant) -> Option<Overdue<Remote>> {
        self.requests.take_overdue(now)
    }

    /// Handles the Block options of a request, and returns the next step. If the request completes a body, `terms` gets
    /// its last block.
    pub(crate) fn take<'a>(
        &mut self,
        now: Instant,
        from: Remote,
        message: &Message<'a>,
        terms: &mut Terms,
    ) -> ServerStep<'a> {
        if terms.block2.is_some_and(|block| block.num() > 0) {
            match self.responses.get(now, from, terms.operation) {
                Some(response) => return ServerStep::Answer(response),
                // The response was not kept. The handler of a GET may be called again.
                None if message.code == Code::GET => {}
                None => return ServerStep::Reply(Code::REQUEST_ENTITY_INCOMPLETE, Tail::default()),
            }
        }
        // With Block1, a client that sends a later block has received the answer to an earlier one. Q-Block1 does not show that, so
        // an address without a limit is enough.
        let is_set = message.value(option::Q_BLOCK1).is_some();
        let is_known = terms.verified || is_set && !terms.allowance.is_limited();
        match self.requests.handle_from(now, from, is_known, message) {
            Err(Unverified) => ServerStep::Challenge,
            Ok(Assembled::Answer { code, tail }) => ServerStep::Reply(code, tail),
            Ok(Assembled::Taken) => ServerStep::Acknowledge,
            // The body came in one message, so the handler reads it where it lies.
            Ok(Assembled::Whole { body: Cow::Borrowed(_), .. }) => {
                ServerStep::Call(Cow::Borrowed(message.tail))
            }
            Ok(Assembled::Whole { body, block }) => {
                terms.block1 = block;
                // The response may turn out too large for a stranger. Then the client repeats the last block only.
                if terms.may_be_challenged() {
                    self.requests.put_back(now, from, message, &body);
                }
                let mut whole = Vec::new();
                // The handler sees the whole body, so the options that described its blocks would be wrong.
                let ends = [option::BLOCK1, option::Q_BLOCK1, option::SIZE1];
                ends.into_iter().fold(Options::of(message), Options::without).write(&body, &mut whole);
                ServerStep::Call(Cow::Owned(whole))
            }
        }
    }

    /// Writes options and payload of the answer to a request according to its terms, and stores the response if the client will
    /// request further blocks. `to` is `None` for a notification to all observers.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        to: Option<Remote>,
        terms: &Terms,
        response: Response,
        medium: ResponseTransport,
        into: &mut Vec<u8>,
    ) -> ResponseOutcome {
        if terms.suppresses(response.code) {
            return ResponseOutcome::Unwanted;
        }
        let asked = terms.block2.filter(|_| response.is_success());
        let observed = terms.observed.filter(|_| response.is_success());
        let (mut szx, whole) = match medium {
            ResponseTransport::Datagram { max_szx } => (max_szx, 16 << max_szx),
            ResponseTransport::Stream { room, .. } => (MAX_SZX, room),
        };
        // All blocks of a body need the same ETag, so that a client notices a change between two of them.
        let response = if response.size() > whole { response.with_etag() } else { response };
        let mut options = terms.block1.into_iter().fold(response.options.clone(), Options::block1);
        options = observed.into_iter().fold(options, Options::observe);
        let mut stream_room = None;
        if let ResponseTransport::Stream { room, bert } = medium {
            into.clear();
            options.write(&[], into);
            let left = room.saturating_sub(into.len());
            let fits = response.representation().is_whole() && response.payload.len() < left;
            if asked.is_none() && fits {
                into.clear();
                options.write(&response.payload, into);
                return ResponseOutcome::Send(response.code);
            }
            // A client that did not announce block-wise transfers may support those without BERT (RFC 8323 §5.3.2).
            stream_room = asked.map_or(bert, |block| block.szx() == BERT).then_some(left);
        }
        let last = loop {
            let part = response.representation();
            let slice = match stream_room {
                Some(left) => Slice::reliable_of(part, asked, left),
                None => Slice::of(part, asked, szx),
            };
            into.clear();
            // The client asked for a block behind the end of the representation.
            let Some(slice) = slice else { return ResponseOutcome::Send(Code::BAD_REQUEST) };
            let options = options.clone();
            let named =
                if terms.set.is_some() { slice.quick_options(options) } else { slice.options(options) };
            named.write(slice.payload, into);
            let fits = match medium {
                ResponseTransport::Datagram { .. } => {
                    length(terms.token, into.len()) <= terms.allowance.room()
                }
                ResponseTransport::Stream { room, .. } => into.len() <= room,
            };
            if fits {
                break asked.map_or(0, Block::offset) + slice.payload.len() == response.size();
            }
            match (medium, szx.checked_sub(1)) {
                // A request that has had its effect cannot be challenged. It is answered in blocks that strangers may be
                // sent.
                (ResponseTransport::Datagram { .. }, _) if terms.repeatable => {
                    return ResponseOutcome::TooLarge;
                }
                (_, Some(smaller)) if stream_room.is_none() => szx = smaller,
                (ResponseTransport::Datagram { .. }, _) => {
                    // The options alone are too long for a stranger, which gets only the code.
                    into.clear();
                    terms.block1.into_iter().fold(Options::default(), Options::block1).write(&[], into);
                    return ResponseOutcome::Send(response.code);
                }
                (ResponseTransport::Stream { .. }, _) => return ResponseOutcome::TooLarge,
            }
        };
        let (code, is_first) = (response.code, terms.block2.is_none_or(|block| block.num() == 0));
        // The client will ask for more. A member of a group is asked again as a server of its own (RFC 7959 §2.8).
        if is_first && !last && !terms.to_group {
            self.responses.put(now, to, terms.operation, response);
        } else if !is_first && last && (terms.repeatable || terms.set.is_some()) {
            self.responses.let_go(to, terms.operation);
        } else if !is_first && last {
            self.responses.take(to, terms.operation);
        }
        ResponseOutcome::Send(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_proto::{Allowance, Kind};

    const PEER: Remote = Remote::new(std::net::Ipv6Addr::LOCALHOST, 1, 0);

    fn request(options: &Options, code: Code, read: impl FnOnce(&Message<'_>)) {
        let tail = options.tail(&[]).unwrap();
        let message = Message { code, tail: tail.as_bytes(), ..Message::empty(Kind::Confirmable, 0) };
        read(&message);
    }

    /// Answers a request of an unverified client. Returns the outcome and the number of bytes written.
    fn answered(code: Code, response: Response, medium: ResponseTransport) -> (ResponseOutcome, usize) {
        let (mut bodies, mut into) = (TransferBodies::new(Bounds::default()), Vec::new());
        let mut answered = ResponseOutcome::Unwanted;
        request(&Options::default().uri_path("x"), code, |message| {
            let mut terms = Terms::of(message, None);
            terms.allowance = Allowance::ipv4(length(message.token, message.tail.len()));
            answered = bodies.answer(Instant::ZERO, Some(PEER), &terms, response, medium, &mut into);
        });
        (answered, into.len())
    }

    #[test]
    fn an_unverified_client_is_challenged_for_safe_requests_and_sent_small_blocks_otherwise() {
        let datagram = ResponseTransport::Datagram { max_szx: MAX_SZX };
        let large = || Response::content(vec![7; 500]);
        assert_eq!(answered(Code::GET, large(), datagram).0, ResponseOutcome::TooLarge);
        let (post, bytes) = answered(Code::POST, large(), datagram);
        assert!(post == ResponseOutcome::Send(Code::CONTENT) && bytes <= 3 * (28 + 6) - 28 - 4, "{bytes}");
        let located = Response::new(Code::CREATED).option(option::LOCATION_PATH, &[b'x'; 200]);
        assert_eq!(answered(Code::POST, located, datagram), (ResponseOutcome::Send(Code::CREATED), 0));
    }

    #[test]
    fn a_block_over_tcp_fills_the_message_and_oversized_options_are_an_error() {
        let stream = |bert| ResponseTransport::Stream { room: 5_000, bert };
        let send = ResponseOutcome::Send(Code::CONTENT);
        let large = || Response::content(vec![7; 9_000]);
        let (bert, bytes) = answered(Code::GET, large(), stream(true));
        assert!(bert == send && bytes > 4 * 1_024, "{bytes}");
        let (blocks, bytes) = answered(Code::GET, large(), stream(false));
        assert!(blocks == send && bytes < 1_100, "{bytes}");
        assert_eq!(answered(Code::GET, Response::content(vec![7; 4_900]), stream(false)), (send, 4_901));
        let options = (0..30).fold(large(), |response, _| response.option(8, &[7; 250]));
        assert_eq!(answered(Code::GET, options, stream(false)).0, ResponseOutcome::TooLarge);
    }

    #[test]
    fn a_block_of_a_forgotten_response_repeats_a_get_and_fails_a_post() {
        let mut bodies = TransferBodies::new(Bounds::default());
        let second = Options::default().block2(Block::new(1, false, 0).unwrap());
        for (method, calls) in [(Code::GET, true), (Code::POST, false)] {
            request(&second, method, |message| {
                let mut terms = Terms::of(message, message.block2().unwrap());
                let step = bodies.take(Instant::ZERO, PEER, message, &mut terms);
                assert_eq!(matches!(step, ServerStep::Call(_)), calls, "{step:?}");
            });
        }
    }

    #[test]
    fn all_blocks_of_a_get_come_from_one_call_of_the_handler() {
        let (mut bodies, mut into) = (TransferBodies::new(Bounds::default()), Vec::new());
        for num in [0_u32, 2, 1, 2] {
            let options = Options::default().block2(Block::new(num, false, 2).unwrap());
            request(&options, Code::GET, |message| {
                let mut terms = Terms::of(message, message.block2().unwrap());
                let response = match bodies.take(Instant::ZERO, PEER, message, &mut terms) {
                    ServerStep::Call(_) if num == 0 => Response::content(vec![7; 150]),
                    ServerStep::Answer(response) if num > 0 => response,
                    step => return assert!(matches!(step, ServerStep::Answer(_)), "{num} {step:?}"),
                };
                let medium = ResponseTransport::Datagram { max_szx: 2 };
                let sent = bodies.answer(Instant::ZERO, Some(PEER), &terms, response, medium, &mut into);
                assert_eq!(sent, ResponseOutcome::Send(Code::CONTENT));
            });
        }
    }

    #[test]
    fn all_blocks_of_a_response_come_from_one_call_and_the_last_block_frees_it() {
        let (mut bodies, mut into) = (TransferBodies::new(Bounds::default()), Vec::new());
        let medium = ResponseTransport::Datagram { max_szx: 2 };
        for num in 0..4_u32 {
            let options = Options::default().block2(Block::new(num, false, 2).unwrap());
            request(&options, Code::POST, |message| {
                let mut terms = Terms::of(message, message.block2().unwrap());
                let response = match bodies.take(Instant::ZERO, PEER, message, &mut terms) {
                    ServerStep::Call(_) if num == 0 => Response::content(vec![7; 150]),
                    ServerStep::Answer(response) if (1..3).contains(&num) => response,
                    step => {
                        return assert!(num == 3 && matches!(step, ServerStep::Reply(..)), "{num} {step:?}");
                    }
                };
                let sent = bodies.answer(Instant::ZERO, Some(PEER), &terms, response, medium, &mut into);
                assert_eq!(sent, ResponseOutcome::Send(Code::CONTENT));
            });
        }
    }
}
