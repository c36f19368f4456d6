//! The bodies that clients fetch from a server or upload to it.

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

/// The body that all clients of a transfer fetch or upload.
#[derive(Debug)]
pub(crate) struct TransferBody {
    /// The index of the transfer in the scenario.
    pub(crate) number: usize,
    /// The bytes, which are random.
    pub(crate) bytes: Vec<u8>,
    /// The name of the transfer, which is the path of the body.
    name: String,
    etag: [u8; 8],
    size_exponent: u8,
}

impl TransferBody {
    /// Makes the body of a transfer from random numbers.
    pub(crate) fn new(keys: &Transfer, number: usize, luck: Luck) -> Self {
        let stream = luck.stream(&format!("transfer/{}/body", keys.name));
        let words = (0..keys.bytes.div_ceil(8)).flat_map(|word| stream.bits(word, 0, 0).to_be_bytes());
        let bytes: Vec<u8> = words.take(keys.bytes as usize).collect();
        let etag = etag(&bytes);
        Self { number, bytes, name: keys.name.clone(), etag, size_exponent: keys.size_exponent() }
    }

    /// Returns the response with the block that a request asks for; `None` if the body does not have the block.
    fn slice(&self, message: &Message<'_>) -> Option<(Code, Tail)> {
        let slice = Slice::new(&self.bytes, message.block2().ok()?, self.size_exponent)?;
        let tail = slice.options(Options::default().etag(&self.etag)).tail(slice.payload).ok()?;
        Some((CONTENT, tail))
    }
}

/// The reaction of a server to a request for a body.
#[derive(Debug)]
pub(crate) enum TransferAnswer {
    /// A response that is piggybacked on the acknowledgement.
    Response(Code, Tail),
    /// An empty acknowledgement, because more blocks of the upload are to come.
    Acknowledgement,
}

/// Returns the number and size of the block that a request uploads; `None` if it uploads none.
fn brought(message: &Message<'_>) -> Option<Block> {
    message.block1().ok().flatten().or(message.q_block1().ok().flatten())
}

/// The bodies of a server, and the uploads that are in progress.
#[derive(Debug)]
pub(crate) struct ServerBodies {
    all: Vec<Arc<TransferBody>>,
    reassembly: Reassembly<NodeId>,
    /// For each client that uploads a body: the blocks that have arrived, and whether the body is complete.
    coming: BTreeMap<NodeId, (BlockSet, bool)>,
    /// For each body, the number of blocks that arrived more than once.
    twice: Vec<u64>,
}

impl ServerBodies {
    /// Makes the bodies of a server. At most `clients` clients may upload a body at the same time.
    pub(crate) fn new(bodies: Vec<Arc<TransferBody>>, clients: u32) -> Self {
        let largest = bodies.iter().map(|body| body.bytes.len()).max().unwrap_or(0);
        let bounds = Bounds {
            max_bodies: clients as usize + 1,
            max_body: largest,
            // The number of bodies and the size of each bound the bytes already.
            max_bytes: usize::MAX,
            max_szx: bodies.iter().map(|body| body.size_exponent).max().unwrap_or(0),
            ..Bounds::default()
        };
        let twice = vec![0; bodies.len()];
        Self { all: bodies, reassembly: Reassembly::new(bounds), coming: BTreeMap::new(), twice }
    }

    /// Adds the numbers of blocks that arrived more than once to the results of the run.
    pub(crate) fn report(&self, result: &mut RunResult) {
        for (body, twice) in self.all.iter().zip(&self.twice) {
            if let Some(own) = result.transfers.get_mut(body.number) {
                own.blocks_twice += twice;
            }
        }
    }

    /// Answers a request; `None` if the request is not for a body. An uploaded body that arrived changed is answered 4.00.
    pub(crate) fn answer(
        &mut self,
        now: Time,
        from: NodeId,
        message: &Message<'_>,
    ) -> Option<TransferAnswer> {
        let place = self.place(message)?;
        let bad = (Code(code::BAD_REQUEST), Tail::default());
        let body = self.all.get(place)?.clone();
        // A block is cut from the body for every request, so the server keeps nothing for a client that fetches.
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
            // A late copy of another block leaves the body whole, and counts as a copy.
            *is_whole &= block.num() > 0;
            if !seen.note(block.num()) {
                self.twice[place] += 1;
            }
        }
        // Blocks are counted above, because the reassembly does not say which of them it had already.
        Some(match self.reassembly.handle(now.instant(), from, message) {
            Assembled::Answer { code, tail } => TransferAnswer::Response(code, tail),
            Assembled::Taken => TransferAnswer::Acknowledgement,
            Assembled::Whole { body: bytes, block } => {
                self.coming.entry(from).or_default().1 = true;
                let is_same = *bytes == *body.bytes;
                let code = if is_same { CHANGED } else { bad.0 };
                // The response names the block that it acknowledges (RFC 7959 §2.3).
                let options = block.into_iter().fold(Options::default(), Options::block1);
                TransferAnswer::Response(code, options.tail(&[]).unwrap_or_default())
            }
        })
    }

    /// Counts a copy of a request that was answered before, if the request uploads a block.
    pub(crate) fn note_copy(&mut self, bytes: &[u8]) {
        let Ok(message) = Message::parse(bytes) else { return };
        if brought(&message).is_some()
            && let Some(place) = self.place(&message)
        {
            self.twice[place] += 1;
        }
    }

    /// Returns the index of the body that a request is for; `None` if it is not for a body.
    fn place(&self, message: &Message<'_>) -> Option<usize> {
        let path = message.value(option::URI_PATH).filter(|_| message.code.is_request())?;
        self.all.iter().position(|body| body.name.as_bytes() == path)
    }
}
