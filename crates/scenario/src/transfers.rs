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
    /// Bodies that some of the clients fetch from a server or bring to it, block by block or over TCP. Over hops each transfer has a
    /// server of its own, behind the same network; in a mesh its server is the primary sink. Blocks are answered at once.
    pub struct Transfer checked by transfer_fits {
        /// The name in dotted paths and in results, and the path of the resource; unique among the transfers.
        name: String, NAME;
        /// The number of clients that take part, or all that are left by the transfers before. The last clients take part; those that
        /// are in no transfer send requests, like those of the kind `continuous`.
        clients: Option<u32>, Or("all", Whole(1, 1_000_000)) => None;
        /// The way of the body.
        direction: Direction, one_of() => Direction::Down;
        /// Bytes of the body, up to 128 MiB.
        bytes: u64, BYTES;
        /// Bytes of a block: a power of two from 16 to 1024 (RFC 7959 §2.2).
        block_bytes: u64, BYTES => 1_024;
        /// The protocol of the transfer. The mechanism `tcp` makes it TCP.
        protocol: Protocol, one_of() => Protocol::Block;
        /// The mechanism that decides how many blocks are under way, as the command takes it: `NAME` or `NAME:parameter=value,…`. With
        /// "none" one block is exchanged after the other, each with the mechanism of the run.
        bulk: Option<String>, Or("none", OneLine(200)) => Some("tide".to_owned());
        /// Transfers of a client, one after the other. With "none" there is always one, and the workload needs a `duration`.
        count: Option<u32>, Or("none", Whole(1, 1_000_000)) => Some(1);
        /// The time from the end of a transfer to the next.
        pause: Span, TIME => Span::ZERO;
        /// The time in the run at which the first transfers start.
        start: Span, TIME => Span::ZERO;
        /// The span after `start` in which each client starts at a random moment, uniformly; 0 s starts all of them at once.
        spread: Span, TIME => Span::ZERO;
    }
}

words! {
    /// The way of a body.
    pub enum Direction {
        /// From the server to the client: GET.
        Down = "down",
        /// From the client to the server: PUT.
        Up = "up",
    }
}

words! {
    /// The protocol of a transfer.
    pub enum Protocol {
        /// Block-wise transfer over UDP (RFC 7959).
        Block = "block",
        /// Q-Block1 with confirmable blocks (RFC 9177), several of which are under way, to the server alone. Bodies to the client need
        /// nothing but `block` for that.
        QBlock = "q-block",
        /// CoAP over TCP (RFC 8323), the body in one message. The TCP is that of the mechanism `tcp`, NewReno.
        Tcp = "tcp",
    }
}

/// The largest number of blocks of a body (RFC 7959 §2.2).
const MOST_BLOCKS: u64 = 1 << 20;

/// The most bytes of a body. A run holds a few of them in memory.
const LARGEST: u64 = 128 << 20;

/// The bytes of Q-Block1, Size1 and Request-Tag, and of ETag, Block2 and Size2, with their option headers: the more of either.
const BLOCK_OPTIONS: u32 = 9 + 4 + 6;

impl Transfer {
    /// Returns the size exponent of blocks: they have 2^(it + 4) bytes.
    pub fn size_exponent(&self) -> u8 {
        (self.block_bytes.max(16).ilog2() as u8).saturating_sub(4)
    }

    /// Returns the most bytes of a message: header, token, options, payload marker and block.
    pub(crate) fn message_bytes(&self) -> u32 {
        let block = self.bytes.min(self.block_bytes) as u32;
        // The header, a token of two bytes and a marking; the path; the payload marker.
        4 + 3 + 3 + self.name.len() as u32 + BLOCK_OPTIONS + 1 + block
    }

    /// Returns the dotted path of a key.
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
            let size = if size > left { 0 } else { size };
            left -= size;
            sizes.push(size);
        }
        let mut next = left + 1;
        let range = |size: u32| {
            let first = next;
            next += size;
            first..next
        };
        sizes.into_iter().map(range).collect()
    }

    /// Returns how many of `count` clients send requests one after the other, because they are in no transfer.
    pub fn asking(&self, count: u32) -> u32 {
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
    let problem = "\"q-block\" needs the direction \"up\" and a `bulk` mechanism";
    Misfit::unless(fits, "protocol", problem)?;
    let read = transfer.bulk.as_deref().map_or(Ok(()), |name| parse_bulk(name).map(drop));
    read.map_err(|problem| Misfit::new("bulk", format!("is wrong: {problem}")))
}
