//! Bodies whose blocks go to a client in confirmable sets (Q-Block2, RFC 9177 §4.4). A set departs when half of the set before
//! it has arrived.

use coap_numbers::option;
use coapace_proto::block::{Block, MAX_PAYLOADS};
use coapace_proto::{ExchangeId, Kind, Message, Options, Responder};

use crate::address::Remote;

/// The most bodies on their way. The oldest makes room for another: its client asks for the next set itself.
const MOST: usize = 64;

/// The bodies on their way.
#[derive(Debug, Default)]
pub(crate) struct BodyRequests {
    open: Vec<BodyRequest>,
}

/// A request for a whole body, or for its rest.
#[derive(Debug)]
pub(crate) struct BodyRequest {
    pub(crate) responder: Responder<Remote>,
    /// The options and the payload of the request.
    tail: Vec<u8>,
    /// The first block of the next set.
    next: Block,
    /// The block in the middle of this set, once it is on its way.
    middle: Option<ExchangeId>,
}

impl BodyRequests {
    /// Notes a request if it is confirmable and asks for a whole body, or for its rest from the first block of a set.
    pub(super) fn note(&mut self, responder: Responder<Remote>, message: &Message<'_>) {
        self.close(&responder);
        let whole = |block: &Block| block.more() && block.num().is_multiple_of(MAX_PAYLOADS);
        let Some(asked) = message.q_block2().ok().flatten().filter(whole) else { return };
        let next = Block::new(asked.num() + MAX_PAYLOADS, true, asked.szx());
        if let Some(next) = next.filter(|_| message.kind == Kind::Confirmable) {
            if self.open.len() >= MOST {
                self.open.remove(0);
            }
            self.open.push(BodyRequest { responder, tail: message.tail.to_vec(), next, middle: None });
        }
    }

    /// Notes which block of a set shows that the next one may depart, and the size of blocks.
    pub(super) fn wait(&mut self, responder: &Responder<Remote>, middle: ExchangeId, szx: u8) {
        let Some(place) = self.place(responder) else { return };
        let open = &mut self.open[place];
        open.middle = Some(middle);
        if let Some(next) = Block::new(open.next.num(), true, szx) {
            open.next = next;
        }
    }

    /// Forgets a request, because its body ends or its further sets are not sent.
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

    /// Takes the request whose set has this exchange in its middle. The exchange is over.
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
        let options = Options::of(&message).without(option::Q_BLOCK2).without(option::OBSERVE);
        options.q_block2(self.next).write(message.payload(), &mut tail);
        tail
    }
}
