//! The keys of a transfer.

use std::ops::Range;

use coapace_sim::Span;

use crate::naming::parse_bulk;
use crate::schema::kind::Or;
use crate::schema::scalar::{BYTES, NAME, OneLine, TIME, Whole, one_of};
use crate::schema::table::{Misfit, keys};
use crate::schema::words::words;
use crate::workload::Workload;

keys! {
    /// Bodies that some of the clients download from a server or upload to it, block by block or over TCP. Over hops
    /// each transfer has a server of its own, behind the same network; in a mesh its server is the primary sink. The
    /// server responds to every block at once.
    pub struct Transfer checked by transfer_fits {
        /// The name in dotted paths and in results, and the path of the resource; unique among the transfers.
        name: String, NAME;
        /// The number of clients that take part. "all" takes all clients that the earlier transfers in the file leave.
        /// The clients with the lowest numbers, which take part in no transfer, send requests as in the kind
        /// `continuous`.
        clients: Option<u32>, Or("all", Whole(1, 1_000_000)) => None;
        /// The direction of the body: "down" from the server, or "up" to it.
        direction: Direction, one_of() => Direction::Down;
        /// Bytes of the body, up to 128 MiB.
        bytes: u64, BYTES;
        /// Bytes of a block: a power of two from 16 to 1024 (RFC 7959 §2.2).
        block_bytes: u64, BYTES => 1_024;
        /// The protocol of the transfer: block-wise (RFC 7959), Q-Block1 (RFC 9177, for uploads only), or TCP (RFC
        /// 8323). With the mechanism `tcp` it is always TCP.
        protocol: Protocol, one_of() => Protocol::Block;
        /// The mechanism that decides how many blocks may be under way, as on the command line: `NAME` or
        /// `NAME:parameter=value,…`. With "none" each block waits for the response to the block before, and uses the
        /// mechanism of the run.
        bulk: Option<String>, Or("none", OneLine(200)) => Some("tide".to_owned());
        /// The number of transfers that each client makes, one after the other. With "none" a client starts another one
        /// until the run ends, and the workload needs a `duration`.
        count: Option<u32>, Or("none", Whole(1, 1_000_000)) => Some(1);
        /// The time from the end of a client's transfer to the start of its next.
        pause: Span, TIME => Span::ZERO;
        /// The time in the run at which the first transfers start.
        start: Span, TIME => Span::ZERO;
        /// The span after `start` in which each client starts at a random time, uniformly; 0 s starts all of them at
        /// once.
        spread: Span, TIME => Span::ZERO;
    }
}

words! {
    /// The direction of a body.
    pub enum Direction {
        /// The client downloads from the server: GET.
        Down = "down",
        /// The client uploads to the server: PUT.
        Up = "up",
    }
}

words! {
    /// The protocol of a transfer.
    pub enum Protocol {
        /// Block-wise transfer over UDP (RFC 7959).
        Block = "block",
        /// Q-Block1 with several confirmable blocks under way (RFC 9177), for uploads only. Downloads can have several blocks
        /// under way with `block`.
        QBlock = "q-block",
        /// CoAP over TCP (RFC 8323), with the body in one message. The mechanism `tcp` uses the same TCP, with NewReno.
        Tcp = "tcp",
    }
}

/// The largest number of blocks of a body (RFC 7959 §2.2).
const MOST_BLOCKS: u64 = 1 << 20;

/// The maximum number of bytes of a body. A run holds several bodies in memory.
const LARGEST: u64 = 128 << 20;

/// The bytes of Q-Block1, Size1 and Request-Tag, or of ETag, Block2 and Size2, with their option headers, whichever are more.
const BLOCK_OPTIONS: u32 = 9 + 4 + 6;

impl Transfer {
    /// Returns the size exponent of blocks: a block has 2^(exponent + 4) bytes.
    pub fn size_exponent(&self) -> u8 {
        // SZX is 0 for 16 bytes and 6 for 1024 (RFC 7959 §2.2). `transfer_fits` refuses other sizes.
        (self.block_bytes.max(16).ilog2() as u8).saturating_sub(4)
    }

    /// Returns the length in bytes of the longest message: header, token, options, payload marker and block.
    pub(crate) fn message_bytes(&self) -> u32 {
        let block = self.bytes.min(self.block_bytes) as u32;
        // The header, a token of two bytes and a marking; the path; the payload marker.
        4 + 3 + 3 + self.name.len() as u32 + BLOCK_OPTIONS + 1 + block
    }

    /// Returns the dotted path of the key `key` of this transfer.
    pub(crate) fn path(&self, key: &str) -> String {
        format!("workload.transfers.{}.{key}", self.name)
    }
}

impl Workload {
    /// Returns the numbers of the clients of each transfer, counted from 1, if there are `count` clients in all. A transfer for
    /// which too few are left has an empty range.
    pub fn transferring(&self, count: u32) -> Vec<Range<u32>> {
        let mut left = count;
        let mut sizes = Vec::new();
        for transfer in &self.transfers {
            let size = transfer.clients.unwrap_or(left);
            // A transfer gets all its clients or none: an empty range is refused with the key that asks for too many.
            let size = if size > left { 0 } else { size };
            left -= size;
            sizes.push(size);
        }
        // Transfers have the last clients. Those that ask then have the numbers from 1, with or without transfers.
        let mut next = left + 1;
        let range = |size: u32| {
            let first = next;
            next += size;
            first..next
        };
        sizes.into_iter().map(range).collect()
    }

    /// Returns how many of `count` clients send single requests, because they are in no transfer.
    pub fn asking(&self, count: u32) -> u32 {
        // Does not underflow: no transfer gets more clients than are left.
        count - self.transferring(count).iter().map(|range| range.end - range.start).sum::<u32>()
    }
}

fn transfer_fits(transfer: &Transfer) -> Result<(), Misfit> {
    let Transfer { bytes, block_bytes, .. } = transfer;
    let is_size = block_bytes.is_power_of_two() && (16..=1_024).contains(block_bytes);
    Misfit::unless(is_size, "block_bytes", "must be 16, 32, 64, 128, 256, 512 or 1024")?;
    let most = LARGEST.min(MOST_BLOCKS * block_bytes);
    let problem = format!("must be at most {most} with blocks of {block_bytes} bytes");
    Misfit::unless(*bytes <= most, "bytes", problem)?;
    let is_quick = transfer.protocol == Protocol::QBlock;
    let fits = !is_quick || transfer.direction == Direction::Up && transfer.bulk.is_some();
    // A body to the client needs no Q-Block, and without a bulk mechanism only one block is under way.
    let problem = "\"q-block\" needs the direction \"up\" and a `bulk` mechanism";
    Misfit::unless(fits, "protocol", problem)?;
    // Read here, so that a run can rely on the name.
    let read = transfer.bulk.as_deref().map_or(Ok(()), |name| parse_bulk(name).map(drop));
    read.map_err(|problem| Misfit::new("bulk", format!("is wrong: {problem}")))
}
