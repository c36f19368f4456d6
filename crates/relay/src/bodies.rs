//! Bodies that the relay reads ahead of clients that request one block after the other (RFC 7959 §2.4).
//!
//! The first block is forwarded like any response. If other blocks follow it, the relay requests them from the server
//! with the bulk mechanism, several at once, and answers the client's next requests from the blocks that have arrived.
//! A request for another block waits.

use std::collections::HashMap;
use std::mem;
use std::net::SocketAddr;

use coap_numbers::option;
use coapace_control::{Duration, Instant};
use coapace_proto::block::{Block, MAX_SZX, Piece, Progress, Transfer};
use coapace_proto::{
    Code, ExchangeId, Failure, Kind, Message, Options, REXMIT_CNT, Request, Responder, Tail, Token,
};

use crate::message::next_hop;
use crate::{Face, Relay};

/// The longest body that is read ahead, in bytes.
const LONGEST: usize = 8 << 20;

/// The minimum number of bytes that are reserved for a body. It limits the number of bodies.
const SHORTEST: usize = 64 << 10;

/// The maximum number of bodies of one client. If the client begins another, its body that was requested longest ago is
/// given up.
const OF_CLIENT: usize = 4;

/// The maximum number of bytes of a body that are read beyond the client's furthest request. This limits what a client
/// that has gone costs the server.
const AHEAD: usize = 128 << 10;

/// The maximum number of bytes of a block.
const BLOCK: usize = 16 << MAX_SZX;

/// The maximum number of requests of one client that wait for blocks of one body. Further requests are forwarded to the
/// server.
const MAX_WAITING: usize = 64;

/// How long a body is kept after the client's last request: MAX_TRANSMIT_WAIT (RFC 7252 §4.8.2).
const IDLE: Duration = Duration::from_secs(93);

/// Returns whether a request is a confirmable GET for the start of a representation, without Observe and OSCORE. The
/// response to such a request may be the first block of a body.
pub(crate) fn asks_for_front(message: &Message<'_>) -> bool {
    let is_plain = message.code == Code::GET && message.kind == Kind::Confirmable;
    // Blocks inside of OSCORE are not seen here, and each request has its own key.
    let is_open = message.observe().is_none() && message.value(option::OSCORE).is_none();
    is_plain && is_open && message.block2().is_ok_and(|block| block.is_none_or(|block| block.num() == 0))
}

/// Returns the options that the requests for all blocks of a body have in common.
fn key(message: &Message<'_>) -> Vec<u8> {
    // The requests for the blocks of one body may differ in these.
    let hop_by_hop = [option::BLOCK2, option::SIZE2, option::ECHO, option::HOP_LIMIT, REXMIT_CNT];
    let options = hop_by_hop.into_iter().fold(Options::of(message), Options::without);
    options.tail(&[]).map(Tail::into_bytes).unwrap_or_default()
}

/// A body that the relay reads ahead of its client.
#[derive(Debug)]
struct RelayedBody {
    id: u64,
    /// The address of the client. The next field, `peer`, is the source whose port requests the blocks.
    client: SocketAddr,
    peer: SocketAddr,
    key: Vec<u8>,
    transfer: Transfer,
    /// The options of the first block, without its number.
    options: Options,
    /// The bytes that are reserved for the body.
    reserved: usize,
    /// The end of the furthest block that the client has requested, in bytes from the start of the body.
    asked: usize,
    /// The number of the relay's outstanding requests for blocks.
    under_way: usize,
    /// True if the whole body has arrived.
    whole: bool,
    /// The client's requests for blocks that have not arrived, each with its block, and with its options and payload.
    waiting: Vec<(Responder<SocketAddr>, Block, Vec<u8>)>,
    /// The time of the client's last request.
    heard: Instant,
}

impl RelayedBody {
    /// Returns the options and the payload of a block, and whether other blocks follow; `None` if the block has not
    /// arrived.
    fn block(&self, asked: Block) -> Option<(Tail, bool)> {
        let body = self.transfer.body();
        let (start, end) = (asked.offset(), asked.offset() + asked.size());
        // A block that is not full may only be the last one, and no block is known to be the last before all have arrived.
        if start >= body.len() || end > body.len() && !self.whole {
            return None;
        }
        let more = end < body.len() || !self.whole;
        let option = Block::new(asked.num(), more, asked.szx())?;
        let options = self.options.clone().block2(option);
        options.tail(&body[start..end.min(body.len())]).ok().map(|tail| (tail, more))
    }

    /// Returns whether another block may be requested: less than [`AHEAD`] bytes beyond the client's furthest request
    /// are received or on their way.
    fn has_room(&self) -> bool {
        // The answers to outstanding requests may be as long as the largest block.
        let there = self.transfer.transferred().received + self.under_way * BLOCK;
        there < self.asked.saturating_add(AHEAD)
    }
}

/// A request of the relay for a block.
#[derive(Debug)]
struct BlockRequest {
    body: u64,
    piece: Piece,
    peer: SocketAddr,
    token: Token,
}

/// The bodies that are read ahead.
#[derive(Debug, Default)]
pub(crate) struct RelayedBodies {
    list: Vec<RelayedBody>,
    parts: HashMap<ExchangeId, BlockRequest>,
    begun: u64,
}

impl RelayedBodies {
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns when the next body is given up if its client stays silent; `None` without bodies.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.list.iter().map(|body| body.heard + IDLE).min()
    }

    /// Returns whether the relay requests a block of a body with this exchange.
    pub(crate) fn has(&self, exchange: ExchangeId) -> bool {
        self.parts.contains_key(&exchange)
    }

    /// Returns the index of the client's body that was requested longest ago; `None` if the client has fewer than
    /// [`OF_CLIENT`] bodies.
    fn oldest_of(&self, client: SocketAddr) -> Option<usize> {
        let own = || self.list.iter().enumerate().filter(|(_, body)| body.client == client);
        let has_all = own().count() >= OF_CLIENT;
        own().min_by_key(|(_, body)| body.heard).filter(|_| has_all).map(|(place, _)| place)
    }

    fn place(&self, id: u64) -> Option<usize> {
        self.list.iter().position(|body| body.id == id)
    }
}

impl Relay {
    /// If a client requests a block of a body that is read ahead, answers the request, or keeps it until the block
    /// arrives. Returns false if the request must be forwarded.
    pub(crate) fn answer_ahead(
        &mut self,
        now: Instant,
        responder: &Responder<SocketAddr>,
        message: &Message<'_>,
    ) -> bool {
        let of_client = |body: &RelayedBody| body.client == responder.to;
        // Most clients read no body, and need no key for the search.
        if message.code != Code::GET || !self.bodies.list.iter().any(of_client) {
            return false;
        }
        let key = key(message);
        let of_this = |body: &RelayedBody| of_client(body) && body.key == key;
        let Some(place) = self.bodies.list.iter().position(of_this) else { return false };
        let Some(block) = message.block2().ok().flatten().filter(|block| block.num() > 0) else {
            // The client begins again, and may get another version.
            self.fail_body(now, place);
            return false;
        };
        let body = &mut self.bodies.list[place];
        body.heard = now;
        // The relay reads a bounded way ahead of the last byte that the client has asked for.
        body.asked = body.asked.max(block.offset() + block.size());
        if let Some((tail, more)) = body.block(block) {
            let code = Code::CONTENT;
            self.counts.read_ahead += 1;
            self.answer(now, Face::Clients, *responder, code, tail.as_bytes());
            if !more {
                self.drop_body(now, place);
            }
            return true;
        }
        // A whole body gets no more blocks. The server decides about one that lies beyond its end.
        let may_come = !body.whole && body.waiting.len() < MAX_WAITING;
        if may_come {
            body.waiting.push((*responder, block, message.tail.to_vec()));
        }
        may_come
    }

    /// Starts to read a body ahead, if `message` is the response with its first block and other blocks follow. `tail`
    /// is the options and payload of the request to the server.
    pub(crate) fn begin_body(
        &mut self,
        now: Instant,
        client: SocketAddr,
        peer: SocketAddr,
        tail: &[u8],
        message: &Message<'_>,
    ) {
        let Ok(Some(block)) = message.block2() else { return };
        let is_front = message.code == Code::CONTENT && block.num() == 0 && block.more();
        let reserved = message.size2().map_or(LONGEST, |size| size as usize).max(SHORTEST);
        let taken: usize = self.bodies.list.iter().map(|body| body.reserved).sum();
        let has_room = reserved <= LONGEST && taken + reserved <= self.config.max_body_bytes;
        // Without an ETag nobody could tell blocks of two versions apart.
        if self.config.bulk.is_none() || !is_front || !has_room || message.etag().is_none() {
            return;
        }
        let request = Message { tail, ..Message::empty(Kind::Confirmable, 0) };
        let options = Options::of(&request).without(option::ECHO);
        let mut transfer = Transfer::new(options, Vec::new(), block.szx(), reserved).with_random_access();
        // The client has made the transfer's first request already, and `message` is the answer.
        let Ok(Some((piece, _))) = transfer.next_request() else { return };
        // No other block follows, or the first one is not usable. Then the relay only forwards.
        if transfer.handle_piece(piece, message) != Ok(Progress::Continue) {
            return;
        }
        if let Some(place) = self.bodies.oldest_of(client) {
            self.fail_body(now, place);
        }
        self.bodies.begun += 1;
        // A body counts as a line, so that its source keeps the port.
        self.sources.begin(peer);
        self.bodies.list.push(RelayedBody {
            id: self.bodies.begun,
            client,
            peer,
            key: key(&request),
            transfer,
            options: Options::of(message).without(option::BLOCK2).without(REXMIT_CNT),
            reserved,
            asked: block.size(),
            under_way: 0,
            whole: false,
            waiting: Vec::new(),
            heard: now,
        });
    }

    /// Requests more blocks of all bodies, as far as the mechanism and their clients allow.
    pub(crate) fn read_ahead(&mut self, now: Instant) {
        let mut place = 0;
        while let Some(body) = self.bodies.list.get(place) {
            let peer = body.peer;
            if body.whole || !body.has_room() || !self.half(Face::Server).endpoint.wants_bulk(peer) {
                place += 1;
                continue;
            }
            match self.bodies.list[place].transfer.next_request() {
                Ok(Some((piece, tail))) => {
                    if !self.ask_ahead(now, place, piece, &tail) {
                        // The endpoint has no room. The next call tries again.
                        place += 1;
                    }
                }
                Ok(None) => place += 1,
                Err(_) => self.fail_body(now, place),
            }
        }
    }

    /// Requests a block of the body at index `place` from the server. Returns false if the endpoint has no room for the
    /// request.
    fn ask_ahead(&mut self, now: Instant, place: usize, piece: Piece, tail: &Tail) -> bool {
        let (id, peer) = (self.bodies.list[place].id, self.bodies.list[place].peer);
        let token = self.choose_token(Face::Server, peer, Token::EMPTY);
        let request =
            Request { confirmable: true, code: Code::GET, token, tail: tail.as_bytes(), repeatable: true };
        let half = self.half(Face::Server);
        let begun = half.endpoint.request_part(now, peer, request);
        if let Ok(exchange) = begun {
            half.take_token(peer, token, exchange);
            self.bodies.parts.insert(exchange, BlockRequest { body: id, piece, peer, token });
            self.bodies.list[place].under_way += 1;
        } else {
            // Nothing was sent, so the transfer has to return this block again.
            self.bodies.list[place].transfer.lost(piece);
        }
        begun.is_ok()
    }

    /// Handles the answer to the relay's request for a block, or the failure of that request. If the body cannot be
    /// completed, gives it up.
    pub(crate) fn take_ahead(
        &mut self,
        now: Instant,
        exchange: ExchangeId,
        answer: Result<&Message<'_>, Failure>,
    ) {
        let Some(BlockRequest { body, piece, peer, token }) = self.bodies.parts.remove(&exchange) else {
            return;
        };
        self.half(Face::Server).free_token(peer, token);
        // The body may have left while the request for its block was under way.
        let Some(place) = self.bodies.place(body) else { return };
        let body = &mut self.bodies.list[place];
        body.under_way -= 1;
        let goes_on = match answer {
            Ok(message) => match body.transfer.handle_piece(piece, message) {
                Ok(Progress::Continue) => true,
                // An error response completes the transfer, too, but not the body.
                Ok(Progress::Complete) => {
                    body.whole = message.code == Code::CONTENT;
                    body.whole
                }
                Err(_) => false,
            },
            Err(Failure::Reset) => false,
            // The server may have answered other requests in the meantime, and then the body goes on.
            Err(Failure::GivenUp | Failure::TimedOut) => body.transfer.lost(piece),
        };
        if goes_on {
            self.serve_waiting(now, place);
        } else {
            self.fail_body(now, place);
        }
    }

    /// Answers the waiting requests whose blocks have arrived.
    fn serve_waiting(&mut self, now: Instant, place: usize) {
        let (mut is_over, peer) = (false, self.bodies.list[place].peer);
        // Taken out, because answering needs the whole relay. Requests whose blocks are still missing are put back.
        for (responder, block, tail) in mem::take(&mut self.bodies.list[place].waiting) {
            let body = &mut self.bodies.list[place];
            if let Some((answer, more)) = body.block(block) {
                is_over |= !more;
                self.counts.read_ahead += 1;
                self.answer(now, Face::Clients, responder, Code::CONTENT, answer.as_bytes());
            } else if body.whole {
                self.pass_on(now, peer, responder, &tail);
            } else {
                body.waiting.push((responder, block, tail));
            }
        }
        // The client has the last block and asks for no other one.
        if is_over && self.bodies.list[place].waiting.is_empty() {
            self.drop_body(now, place);
        }
    }

    /// Forwards a request that waited for a block.
    fn pass_on(&mut self, now: Instant, peer: SocketAddr, responder: Responder<SocketAddr>, tail: &[u8]) {
        let message = Message {
            code: Code::GET,
            token: responder.token(),
            tail,
            ..Message::empty(Kind::Confirmable, 0)
        };
        // It was passed on once, so it has a hop left.
        if let Ok(tail) = next_hop(&message) {
            self.pass_remembered(now, Face::Clients, peer, responder, &message, tail);
        }
    }

    /// Gives up a body. The client's requests that wait for its blocks are forwarded to the server.
    fn fail_body(&mut self, now: Instant, place: usize) {
        let peer = self.bodies.list[place].peer;
        for (responder, _, tail) in self.drop_body(now, place) {
            self.pass_on(now, peer, responder, &tail);
        }
    }

    /// Removes a body, and cancels the relay's requests for its blocks. Returns the client's requests that wait for a
    /// block.
    fn drop_body(&mut self, now: Instant, place: usize) -> Vec<(Responder<SocketAddr>, Block, Vec<u8>)> {
        let body = self.bodies.list.swap_remove(place);
        let Self { bodies, halves, .. } = self;
        let half = &mut halves[Face::Server as usize];
        bodies.parts.retain(|&exchange, part| {
            if part.body == body.id {
                half.endpoint.cancel(now, exchange);
                half.free_token(part.peer, part.token);
            }
            part.body != body.id
        });
        self.sources.end(body.peer);
        body.waiting
    }

    /// Drops the bodies whose clients have been silent for too long.
    pub(crate) fn drop_idle_bodies(&mut self, now: Instant) {
        // Giving a body up changes the list, so the search begins again.
        while let Some(place) = self.bodies.list.iter().position(|body| body.heard + IDLE <= now) {
            self.fail_body(now, place);
        }
    }
}
