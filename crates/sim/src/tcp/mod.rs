//! CoAP over TCP (RFC 8323): simulated hosts, a client that works through a plan and a server that answers.
//!
//! The TCP is smoltcp: NewReno without selective retransmission, the timer of RFC 6298, Nagle's algorithm, delayed
//! ACKs; no timestamps, no F-RTO, no tail loss probe, no Fast Open. Its timer constants are fixed, but the simulator
//! chooses when smoltcp looks at its timers, and so can make every timer fire later. This lengthens the timeouts of the
//! handshake ([`TcpParameters::handshake_timeout_percent`]) and puts all timers on the grid of Linux's timer wheel
//! ([`TcpParameters::timer_hz`]). As in Linux, the wheel has the timers of retransmissions, of SYN and its answer, of
//! delayed ACKs and of closed connections. RTT samples keep their true times, with one exception: without Nagle's
//! algorithm, data that leave between the end of a timeout and the firing of its timer are stamped with the end of the
//! timeout. An ACK whose delay ends in that interval waits for the timer, too.
//!
//! A SYN that comes twice is answered twice at once, and the timer of the answer restarts, like in Linux. smoltcp alone
//! would send the second answer only when its timer fires.
//!
//! The defaults differ from the Linux of Raitahila 2019 in
//!
//! * the RTO: 1 s to 60 s, instead of 200 ms above SRTT to 120 s (for a SYN it is 2 s to 120 s in both);
//! * the margin of the RTO above SRTT: at least 5 ms, instead of 200 ms;
//! * the first RTO of data after a SYN was repeated: 2 s and more, instead of 3 s (RFC 6298 §5.7);
//! * the ACK of the first segments, which is delayed like all others.
//!
//! With 250 ticks a second, 17 of 18 published medians are reproduced within 15 %. The other median, of 100 continuous
//! clients before a buffer of 2500 bytes, is 15.5 % slow. Without the wheel it is 34 % slow, and the median of 400
//! clients is 48 % slow. None of the differences above moves the median of the 100 clients by more than 2 %.

mod channel;
mod client;
mod connection;
mod ledger;
mod server;
mod stack;
mod wheel;

pub use client::{TcpClient, TcpPlan, TcpReport};
pub use server::{TcpResponse, TcpServer, TcpServerCounters};

use crate::{Mark, Span};

/// The port of CoAP over TCP (RFC 8323 §7.1).
pub const PORT: u16 = 5683;

/// The largest number of bytes before the options of a message: five for the length, one for the code, eight for the
/// token.
const MAX_HEAD: usize = 14;

/// The parameters of both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpParameters {
    /// The largest IP packet in bytes; at least 88, because smoltcp accepts no MSS below 48 bytes.
    pub mtu: u16,
    /// The size of the receive buffer, and of the send buffer, of a connection in bytes.
    pub buffer_bytes: u32,
    /// The longest time that an ACK waits for data that it can travel with, in whole microseconds.
    pub ack_delay: Span,
    /// True if Nagle's algorithm holds back short segments (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// The factor on the timeouts of the handshake, in per cent; at least 100. smoltcp has 1 s, doubled up to 60 s; 200 makes it 2 s to
    /// 120 s.
    pub handshake_timeout_percent: u16,
    /// The ticks per second of a Linux kernel whose timer wheel makes the timers fire late; 0 for timers that fire when they
    /// expire.
    pub timer_hz: u16,
    /// The largest CoAP message that is accepted in bytes, announced in the CSM.
    pub max_message_bytes: u32,
    /// True if exchanges may take more than 256 packets each way. In a mark, the upper bits of the exchange then count
    /// how often the transmission number has wrapped, so a client can have at most 2²⁰ exchanges.
    pub is_bulk: bool,
}

/// The largest number of exchanges of a client with [`TcpParameters::is_bulk`]. The exchange of a mark grows by this
/// number whenever its transmission number wraps.
const BULK_EXCHANGES: u32 = 1 << 20;

impl TcpParameters {
    /// Returns the mark of the packet after the one with `mark`.
    fn next(&self, mark: Mark) -> Mark {
        let transmission = mark.transmission.wrapping_add(1);
        // 256 packets are through: the round goes into the upper bits of the exchange, so that no two packets have the same mark.
        let rounds = if self.is_bulk && transmission == 0 { BULK_EXCHANGES } else { 0 };
        Mark { exchange: mark.exchange.wrapping_add(rounds), transmission }
    }

    /// Returns the number of the exchange of a mark.
    const fn exchange(&self, mark: Mark) -> u32 {
        if self.is_bulk { mark.exchange % BULK_EXCHANGES } else { mark.exchange }
    }
}

impl Default for TcpParameters {
    fn default() -> Self {
        Self {
            mtu: 296,
            buffer_bytes: 2048,
            ack_delay: Span::from_millis(200),
            nagle: true,
            handshake_timeout_percent: 200,
            timer_hz: 0,
            max_message_bytes: coapace_proto::stream::BASE_MAX_MESSAGE_SIZE,
            is_bulk: false,
        }
    }
}
