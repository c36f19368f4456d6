//! Bodies that are sent to a client in confirmable sets of blocks (Q-Block2, RFC 9177 §4.4). A set departs when half of the
//! previous set has arrived.

use coap_numbers::option;
use coapace_proto::block::{Block, MAX_PAYLOADS};
use coapace_proto::{ExchangeId, Kind, Message, Options, Responder};

use crate::address::Remote;

/// The maximum number of bodies in progress. Beyond that the oldest is dropped, and the client of that body requests
/// the next set itself.
const MOST: usize = 64;

/// The requests whose bodies are being sent in sets.
#[derive(Debug, Default)]
pub(crate) struct BodyRequests {
    open: Vec<BodyRequest>,
}

/// A client's request for a whole body, or for the rest of a body.
#[derive(Debug)]
pub(crate) struct BodyRequest {
    pub(crate) responder: Responder<Remote>,
    /// The options and the payload of the request.
    tail: Vec<u8>,
    /// The first block of the next set.
    next: Block,
    /// The exchange that sends the block in the middle of this set, once it has begun.
    middle: Option<ExchangeId>,
}

impl BodyRequests {
    /// Tracks a request if it is confirmable and asks for a whole body, or for the rest of a body from the first block
    /// of a set.
    pub(super) fn note(&mut self, responder: Responder<Remote>, message: &Message<'_>) {
        // A request with the same token replaces the earlier one.
        self.close(&responder);
        // With M the option asks for the whole body, or to continue it with the next set (RFC 9177 §4.4).
        let whole = |block: &Block| block.more() && block.num().is_multiple_of(MAX_PAYLOADS);
        let Some(asked) = message.q_block2().ok().flatten().filter(whole) else { return };
        let next = Block::new(asked.num() + MAX_PAYLOADS, true, asked.szx());
        // Acknowledgements of confirmable blocks show when a set has arrived. Otherwise the client asks for the next one.
        if let Some(next) = next.filter(|_| message.kind == Kind::Confirmable) {
            if self.open.len() >= MOST {
                // The client of the oldest body asks for its next set by itself.
                self.open.remove(0);
            }
            self.open.push(BodyRequest { responder, tail: message.tail.to_vec(), next, middle: None });
        }
    }

    /// Records the exchange whose acknowledgement lets the next set depart (`middle`), and the size of the blocks.
    pub(super) fn wait(&mut self, responder: &Responder<Remote>, middle: ExchangeId, szx: u8) {
        let Some(place) = self.place(responder) else { return };
        let open = &mut self.open[place];
        open.middle = Some(middle);
        // The first set may have had smaller blocks than the request asked for. The number already counts these.
        if let Some(next) = Block::new(open.next.num(), true, szx) {
            open.next = next;
        }
    }

    /// Drops a request, because its body is complete or its further sets are not sent.
    pub(super) fn close(&mut self, responder: &Responder<Remote>) {
        if let Some(place) = self.place(responder) {
            self.open.remove(place);
        }
    }

    fn place(&self, responder: &Responder<Remote>) -> Option<usize> {
        let is_same = |open: &BodyRequest| {
            open.responder.to == responder.to && open.responder.token() == responder.token()
        };
        self.open.iter().position(is_same)
    }

    /// Removes and returns the request of the set whose middle block was sent by `exchange`, if there is one. Call it
    /// once the exchange has ended.
    pub(super) fn take(&mut self, exchange: ExchangeId) -> Option<BodyRequest> {
        let place = self.open.iter().position(|open| open.middle == Some(exchange))?;
        Some(self.open.remove(place))
    }
}

impl BodyRequest {
    /// Returns the options and the payload of a request for the next set.
    pub(super) fn next_tail(&self) -> Vec<u8> {
        let message = Message { tail: &self.tail, ..Message::empty(Kind::Confirmable, 0) };
        let mut tail = Vec::new();
        // A further set continues the same answer, so it must not register an observer again.
        let options = Options::of(&message).without(option::Q_BLOCK2).without(option::OBSERVE);
        options.q_block2(self.next).write(message.payload(), &mut tail);
        tail
    }
}
