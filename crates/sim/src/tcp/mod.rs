//! CoAP over TCP (RFC 8323): simulated hosts, a client that works through a plan and a server that answers.
//!
//! The TCP is smoltcp: NewReno without selective retransmission, the timer of RFC 6298, Nagle's algorithm, delayed
//! ACKs; no timestamps, no F-RTO, no tail loss probe, no Fast Open. Its timer constants are fixed, but the moment at which it
//! looks at its timers is not: every timer can be made to fire later. This lengthens the timeouts of the handshake
//! ([`TcpParameters::handshake_timeout_percent`]) and puts all timers on the grid of Linux's timer wheel
//! ([`TcpParameters::timer_hz`]). In Linux the wheel has the timers of retransmissions, of SYN and its answer, of delayed ACKs
//! and of closed connections, so it has all of them here. RTT samples keep their true times, with one exception: without
//! Nagle's algorithm, data that leave between the end of a timeout and the firing of its timer are stamped with the end of the
//! timeout. An ACK whose delay ends in that interval waits for the timer, too.
//!
//! A SYN that comes twice is answered twice at once, and the timer of the answer restarts, like in Linux; smoltcp alone
//! would leave it to its timer.
//!
//! From the Linux of Raitahila 2019 the defaults differ in
//!
//! * the RTO: 1 s to 60 s, instead of 200 ms above SRTT to 120 s (for a SYN it is 2 s to 120 s in both);
//! * the margin of the RTO above SRTT: at least 5 ms, instead of 200 ms;
//! * the first RTO of data after a SYN was repeated: 2 s and more, instead of 3 s (RFC 6298 §5.7);
//! * the ACK of the first segments, which is delayed like all others.
//!
//! With 250 ticks a second, 17 of 18 published medians come out within 15 %. The other is 100 continuous clients before 2500
//! bytes, 15.5 % slow; without the wheel they are 34 % slow, and 400 are 48 %. None of the differences above moves it by more
//! than 2 %.

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

/// The most bytes before the options of a message: five of length, one of code, eight of token.
const MAX_HEAD: usize = 14;

/// The parameters of both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpParameters {
    /// The largest IP packet in bytes; at least 88, because smoltcp accepts no MSS below 48 bytes.
    pub mtu: u16,
    /// The size of the receive buffer, and of the send buffer, of a connection in bytes.
    pub buffer_bytes: u32,
    /// The time that an ACK waits for data to travel with, in whole microseconds.
    pub ack_delay: Span,
    /// Whether Nagle's algorithm holds back short segments (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// The factor on the timeouts of the handshake, in per cent; at least 100. smoltcp has 1 s, doubled up to 60 s; 200 makes it 2 s to
    /// 120 s.
    pub handshake_timeout_percent: u16,
    /// The ticks per second of a Linux kernel whose timer wheel makes the timers fire late; 0 for timers that fire when they
    /// expire.
    pub timer_hz: u16,
    /// The largest CoAP message that is accepted in bytes, announced in the CSM.
    pub max_message_bytes: u32,
    /// Whether exchanges may take more than 256 packets each way, so that marks go on behind the last transmission of an exchange. There
    /// are 2²⁰ exchanges of a client then.
    pub is_bulk: bool,
}

/// The number of exchanges of a client in bulk. The rest of the number in a mark counts the rounds of 256 transmissions.
const BULK_EXCHANGES: u32 = 1 << 20;

impl TcpParameters {
    /// Returns the mark of the packet after the one with `mark`.
    fn next(&self, mark: Mark) -> Mark {
        let transmission = mark.transmission.wrapping_add(1);
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
