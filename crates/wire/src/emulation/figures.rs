//! The counters of an emulation, and complaints about what went wrong.

use std::time::Duration;

use coapace_run::measured::Delays;
use coapace_sim::HopCounters;

/// The counters of an emulation so far.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The time since the start.
    pub elapsed: Duration,
    /// Packets that entered the network.
    pub entered: u64,
    /// Packets that came through it.
    pub arrived: u64,
    /// Packets that found a buffer full or that queue management dropped.
    pub dropped: u64,
    /// Packets lost on links.
    pub lost: u64,
    /// Packets marked by queue management (RFC 3168).
    pub marked: u64,
    /// The names of the hops with their counters, the hops up to the server first.
    pub hops: Vec<(String, HopCounters)>,
    /// Sources that have a place now.
    pub sources: u64,
    /// Sources that left because a new one needed their place.
    pub replaced: u64,
    /// Packets of new sources that found no place, because packets of all others were under way.
    pub refused: u64,
    /// How often the system had no socket for a new source.
    pub without_socket: u64,
    /// The last reason why the system had no socket.
    pub without_socket_reason: Option<String>,
    /// Packets longer than the scenario's `network.mtu`. They are carried whole.
    pub oversized: u64,
    /// Packets that are not IP, or do not go from one host to another (TUN mode only). They are not carried.
    pub ignored: u64,
    /// Packets that the system dropped before they were received, because its buffer was full.
    pub overflowed: u64,
    /// Packets that the system refused to send.
    pub unsent: u64,
    /// The last reason why the system refused to send.
    pub unsent_reason: Option<String>,
    /// Reports of the server's host that nobody listens there (ICMP).
    pub unreachable: u64,
    /// The time from when a packet had to leave to when it had left, of all packets that arrived.
    pub lateness: Delays,
    /// Packets that left more than [`LATE`](Self::LATE) after they had to.
    pub late: u64,
}

impl Figures {
    /// The lateness from which a departure counts as late: the emulator had too little of the processor.
    pub const LATE: Duration = Duration::from_millis(5);

    /// Notes a departure.
    pub(super) fn depart(&mut self, lateness: Duration) {
        self.lateness.add(lateness.as_micros() as u64);
        self.late += u64::from(lateness > Self::LATE);
    }

    /// Notes a source for which the system has no socket.
    pub(super) fn refuse_socket(&mut self, error: &std::io::Error) {
        self.without_socket += 1;
        self.without_socket_reason = Some(error.to_string());
    }

    /// Notes a packet that the system refused to send.
    pub(super) fn refuse(&mut self, error: &std::io::Error) {
        self.unsent += 1;
        self.unsent_reason = Some(error.to_string());
    }

    /// Returns the lateness that this share of all departures did not exceed; zero without departures.
    pub fn lateness(&self, share: f64) -> Duration {
        Duration::from_secs_f64(self.lateness.quantile_s(share).unwrap_or(0.0))
    }

    /// Returns what happened, in a line each: sources and packets, hops, lateness.
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
        let mut add = |count: u64, line: &dyn Fn() -> String| {
            if count > 0 {
                lines.push(line());
            }
        };
        let departures = self.lateness.count;
        add(self.late, &|| {
            let late = self.late;
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
        add(self.overflowed, &|| {
            let lost = self.overflowed;
            format!(
                "overload: {lost} packets were lost before they were read; send less, or raise net.core.rmem_max"
            )
        });
        add(self.without_socket, &|| {
            let (times, sources) = (self.without_socket, self.sources);
            let reason = self.without_socket_reason.as_deref().unwrap_or("no reason");
            format!(
                "{times} times no socket ({reason}): there are places for {sources} sources; raise ulimit -n"
            )
        });
        add(self.replaced, &|| {
            let (replaced, sources) = (self.replaced, self.sources);
            format!(
                "{replaced} sources lost their place to new ones: there are places for {sources}, as --sources and ulimit -n allow"
            )
        });
        add(self.refused, &|| {
            let refused = self.refused;
            format!("{refused} packets of new sources were refused: packets of all known ones are under way")
        });
        add(self.oversized, &|| {
            let oversized = self.oversized;
            format!(
                "{oversized} packets were longer than the scenario's network.mtu; they were carried whole"
            )
        });
        add(self.unreachable, &|| {
            let unreachable = self.unreachable;
            format!("nobody listens at the server's address: {unreachable} datagrams were refused there")
        });
        add(self.unsent, &|| {
            let (unsent, reason) = (self.unsent, self.unsent_reason.as_deref().unwrap_or("no reason"));
            format!("{unsent} packets could not be sent: {reason}")
        });
        lines
    }
}
