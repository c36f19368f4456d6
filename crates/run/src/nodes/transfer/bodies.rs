//! The bodies that a server has for clients, or gets from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use coap_numbers::{code, option};
use coapace_proto::block::{Assembled, Block, Bounds, Reassembly, Slice, etag};
use coapace_proto::{Code, Message, Options, Tail};
use coapace_scenario::Transfer;
use coapace_sim::{Luck, NodeId, Time};

use super::block_set::BlockSet;
use crate::measured::RunResult;
use crate::nodes::{CHANGED, CONTENT, GET};

/// The body of a transfer. All clients fetch or bring the same one.
#[derive(Debug)]
pub(crate) struct TransferBody {
    /// The number of the transfer in the scenario, from 0.
    pub(crate) number: usize,
    /// The bytes, which are random.
    pub(crate) bytes: Vec<u8>,
    /// The path.
    name: String,
    etag: [u8; 8],
    size_exponent: u8,
}

impl TransferBody {
    /// Draws the body of a transfer.
    pub(crate) fn new(keys: &Transfer, number: usize, luck: Luck) -> Self {
        let stream = luck.stream(&format!("transfer/{}/body", keys.name));
        let words = (0..keys.bytes.div_ceil(8)).flat_map(|word| stream.bits(word, 0, 0).to_be_bytes());
        let bytes: Vec<u8> = words.take(keys.bytes as usize).collect();
        let etag = etag(&bytes);
        Self { number, bytes, name: keys.name.clone(), etag, size_exponent: keys.size_exponent() }
    }

    /// Returns the response to a request for a block.
    fn slice(&self, message: &Message<'_>) -> Option<(Code, Tail)> {
        let slice = Slice::new(&self.bytes, message.block2().ok()?, self.size_exponent)?;
        let tail = slice.options(Options::default().etag(&self.etag)).tail(slice.payload).ok()?;
        Some((CONTENT, tail))
    }
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum TransferAnswer {
    /// A response, on the acknowledgement.
    Response(Code, Tail),
    /// An acknowledgement alone: more blocks are to come.
    Acknowledgement,
}

/// Returns which block of a body a request brings.
fn brought(message: &Message<'_>) -> Option<Block> {
    message.block1().ok().flatten().or(message.q_block1().ok().flatten())
}

/// The bodies of a server.
#[derive(Debug)]
pub(crate) struct ServerBodies {
    all: Vec<Arc<TransferBody>>,
    reassembly: Reassembly<NodeId>,
    /// The blocks of the body that each client is bringing, and whether all of them have come.
    coming: BTreeMap<NodeId, (BlockSet, bool)>,
    /// The blocks of each body that arrived more than once.
    twice: Vec<u64>,
}

impl ServerBodies {
    /// Makes the bodies of a server. At most `clients` of them arrive at once.
    pub(crate) fn new(bodies: Vec<Arc<TransferBody>>, clients: u32) -> Self {
        let largest = bodies.iter().map(|body| body.bytes.len()).max().unwrap_or(0);
        let bounds = Bounds {
            max_bodies: clients as usize + 1,
            max_body: largest,
            max_bytes: usize::MAX,
            max_szx: bodies.iter().map(|body| body.size_exponent).max().unwrap_or(0),
            ..Bounds::default()
        };
        let twice = vec![0; bodies.len()];
        Self { all: bodies, reassembly: Reassembly::new(bounds), coming: BTreeMap::new(), twice }
    }

    /// Adds the counts to the results of the run.
    pub(crate) fn report(&self, result: &mut RunResult) {
        for (body, twice) in self.all.iter().zip(&self.twice) {
            if let Some(own) = result.transfers.get_mut(body.number) {
                own.blocks_twice += twice;
            }
        }
    }

    /// Answers a request; `None` if it is not for a body. A body that differs from the one that was sent is answered 4.00.
    pub(crate) fn answer(
        &mut self,
        now: Time,
        from: NodeId,
        message: &Message<'_>,
    ) -> Option<TransferAnswer> {
        let place = self.place(message)?;
        let bad = (Code(code::BAD_REQUEST), Tail::default());
        let body = self.all.get(place)?.clone();
        if message.code == GET {
            let (code, tail) = body.slice(message).unwrap_or(bad);
            return Some(TransferAnswer::Response(code, tail));
        }
        if let Some(block) = brought(message) {
            let (seen, is_whole) = self.coming.entry(from).or_default();
            // Block 0 after a whole body begins the next body.
            if *is_whole && block.num() == 0 {
                seen.clear();
            }
            *is_whole &= block.num() > 0;
            if !seen.note(block.num()) {
                self.twice[place] += 1;
            }
        }
        Some(match self.reassembly.handle(now.instant(), from, message) {
            Assembled::Answer { code, tail } => TransferAnswer::Response(code, tail),
            Assembled::Taken => TransferAnswer::Acknowledgement,
            Assembled::Whole { body: bytes, block } => {
                self.coming.entry(from).or_default().1 = true;
                let is_same = *bytes == *body.bytes;
                let code = if is_same { CHANGED } else { bad.0 };
                let options = block.into_iter().fold(Options::default(), Options::block1);
                TransferAnswer::Response(code, options.tail(&[]).unwrap_or_default())
            }
        })
    }

    /// Notes a copy of a request that was answered before.
    pub(crate) fn note_copy(&mut self, bytes: &[u8]) {
        let Ok(message) = Message::parse(bytes) else { return };
        if brought(&message).is_some()
            && let Some(place) = self.place(&message)
        {
            self.twice[place] += 1;
        }
    }

    /// Returns the number of the body that a request is about.
    fn place(&self, message: &Message<'_>) -> Option<usize> {
        let path = message.value(option::URI_PATH).filter(|_| message.code.is_request())?;
        self.all.iter().position(|body| body.name.as_bytes() == path)
    }
}
