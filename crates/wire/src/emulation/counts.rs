//! The counters of an emulation, and complaints about what went wrong.

use std::time::Duration;

use coapace_run::measured::Delays;
use coapace_sim::HopCounters;

/// The counters of an emulation so far.
#[derive(Clone, Debug, Default)]
pub struct EmulationCounts {
    /// The time since the start.
    pub elapsed: Duration,
    /// Packets that entered the network.
    pub entered: u64,
    /// Packets that left the network at its other end.
    pub arrived: u64,
    /// Packets that found a buffer full or that queue management dropped.
    pub dropped: u64,
    /// Packets lost on links.
    pub lost: u64,
    /// Packets marked by queue management (RFC 3168).
    pub marked: u64,
    /// The names of the hops with their counters. The hops towards the server come first.
    pub hops: Vec<(String, HopCounters)>,
    /// Sources that the emulator knows now.
    pub sources: u64,
    /// Sources that the emulator forgot because a new source needed their slot.
    pub replaced: u64,
    /// Packets of new sources that got no slot, because all known sources had packets in flight.
    pub refused: u64,
    /// The number of times that the system had no socket for a new source.
    pub without_socket: u64,
    /// The last reason why the system had no socket.
    pub without_socket_reason: Option<String>,
    /// Packets longer than the scenario's `network.mtu`. They are forwarded whole.
    pub oversized: u64,
    /// Packets that are not IP, or do not go from one host to another (TUN mode only). They are not forwarded.
    pub ignored: u64,
    /// Packets that the system dropped before the emulator received them, because its buffer was full.
    pub overflowed: u64,
    /// Packets that the system refused to send.
    pub unsent: u64,
    /// The last reason why the system refused to send.
    pub unsent_reason: Option<String>,
    /// ICMP messages of the server's host which say that no program listens at the port.
    pub unreachable: u64,
    /// The lateness of each departure: the time from the moment when a packet was due until it had left.
    pub lateness: Delays,
    /// Packets that left more than [`LATE`](Self::LATE) after they were due.
    pub late: u64,
}

impl EmulationCounts {
    /// A packet that leaves more than this after it was due counts as late: the emulator did not get enough of the
    /// processor.
    pub const LATE: Duration = Duration::from_millis(5);

    /// Counts a packet that left the network `lateness` after it was due.
    pub(super) fn depart(&mut self, lateness: Duration) {
        self.lateness.add(lateness.as_micros() as u64);
        self.late += u64::from(lateness > Self::LATE);
    }

    /// Counts a new source for which the system had no socket, and keeps the reason.
    pub(super) fn refuse_socket(&mut self, error: &std::io::Error) {
        self.without_socket += 1;
        self.without_socket_reason = Some(error.to_string());
    }

    /// Counts a packet that the system refused to send, and keeps the reason.
    pub(super) fn refuse(&mut self, error: &std::io::Error) {
        self.unsent += 1;
        self.unsent_reason = Some(error.to_string());
    }

    /// Returns the lateness that a `share` of the departures, from 0 to 1, did not exceed; zero without departures.
    pub fn lateness(&self, share: f64) -> Duration {
        Duration::from_secs_f64(self.lateness.quantile_s(share).unwrap_or(0.0))
    }

    /// Returns the lines of a summary: one on sources and packets, one on each hop, and one on lateness.
    pub fn summary(&self) -> Vec<String> {
        let Self { entered, arrived, dropped, lost, marked, sources, .. } = self;
        let under_way = entered.saturating_sub(arrived + dropped + lost);
        let seconds = self.elapsed.as_secs_f64();
        let mut lines = vec![format!(
            "{sources} sources, {entered} packets in {seconds:.1} s: {arrived} arrived, {dropped} dropped, {lost} lost, \
             {marked} marked, {under_way} under way"
        )];
        for (name, hop) in &self.hops {
            lines.push(format!(
                "{name}: {} packets, {} bytes, {} dropped, {} lost, longest queue {} bytes",
                hop.packets, hop.bytes, hop.dropped, hop.lost, hop.max_queue_bytes
            ));
        }
        let ms = |share| self.lateness(share).as_secs_f64() * 1e3;
        lines.push(format!(
            "lateness: 50 % of departures within {:.3} ms, 99 % within {:.3} ms, all within {:.3} ms",
            ms(0.5),
            ms(0.99),
            self.lateness.max_us as f64 / 1e3
        ));
        lines
    }

    /// Returns whether the machine was too slow to emulate the scenario: packets were lost before they were read, or more than one
    /// departure in a thousand was late.
    pub fn is_overloaded(&self) -> bool {
        self.overflowed > 0 || self.late * 1_000 > self.lateness.count
    }

    /// Returns a line for each kind of problem, if possible with a remedy.
    pub fn complaints(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut add = |count: u64, line: &dyn Fn(u64) -> String| {
            if count > 0 {
                lines.push(line(count));
            }
        };
        let (departures, sources) = (self.lateness.count, self.sources);
        // A few late departures hardly change results, so the line says on which side of the bound they are.
        add(self.late, &|late| {
            let worst = Duration::from_micros(self.lateness.max_us);
            let judged = if self.is_overloaded() {
                "overload: these results do not describe the scenario; give the emulator a processor of its own, or run it with chrt -f 50"
            } else {
                "less than one in a thousand"
            };
            format!(
                "{late} of {departures} departures were more than 5 ms late, at worst {worst:.1?} ({judged})"
            )
        });
        // The system dropped these before the emulator saw them. So they are not losses of the scenario.
        add(self.overflowed, &|lost| {
            format!(
                "overload: {lost} packets were lost before they were read; send less, or raise net.core.rmem_max"
            )
        });
        // Each source has a socket of its own towards the server, so the limit on open files bounds their number.
        add(self.without_socket, &|times| {
            let reason = self.without_socket_reason.as_deref().unwrap_or("no reason");
            format!(
                "{times} times no socket could be opened ({reason}): the emulator has room for {sources} sources; raise ulimit -n"
            )
        });
        add(self.replaced, &|replaced| {
            format!(
                "{replaced} sources were replaced by new ones: the emulator has room for {sources}, as --sources and ulimit -n allow"
            )
        });
        add(self.refused, &|refused| {
            format!("{refused} packets of new sources were refused: every known source has packets in flight")
        });
        add(self.oversized, &|oversized| {
            format!(
                "{oversized} packets were longer than the scenario's network.mtu; they were forwarded whole"
            )
        });
        add(self.unreachable, &|unreachable| {
            format!("nobody listens at the server's address: {unreachable} datagrams were refused there")
        });
        add(self.unsent, &|unsent| {
            let reason = self.unsent_reason.as_deref().unwrap_or("no reason");
            format!("{unsent} packets could not be sent: {reason}")
        });
        lines
    }
}
