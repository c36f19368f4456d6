//! The path between clients and servers that a scenario is made of.

use std::fmt::Write;

use super::workload::Workload;

/// The most that a buffer holds that is never full, in bytes.
const ENDLESS: f64 = 1e8;

/// The mean number of packets of a burst of losses that a scenario may have.
const BURST: [f64; 2] = [1.05, 200.0];

/// The share of packets that is lost in the bad state of a path with bursts.
pub const BAD: f64 = 0.8;

/// A path that delays, limits, queues and loses, alike in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Bits per second of IP packets, each way.
    pub rate_bps: f64,
    /// Bytes that may wait, each way; `None` if they are never too many.
    pub buffer_bytes: Option<f64>,
    /// The round-trip time without packets that wait and without jitter, but for the time that packets take to be sent, in
    /// seconds.
    pub delay_s: f64,
    /// The most that jitter adds to a round trip, in seconds.
    pub jitter_s: f64,
    /// The share of round trips that the path loses, without packets that find a full buffer.
    pub loss: f64,
    /// The mean length of a burst of losses in packets; `None` if losses are single.
    pub burst_packets: Option<f64>,
}

impl Link {
    /// Returns the link with every number in the range of a scenario.
    #[must_use]
    pub fn clamped(self) -> Self {
        Self {
            rate_bps: self.rate_bps.clamp(100.0, 1e9),
            buffer_bytes: self.buffer_bytes.map(|bytes| bytes.clamp(300.0, ENDLESS)),
            delay_s: self.delay_s.clamp(0.0, 600.0),
            jitter_s: self.jitter_s.clamp(0.0, 600.0),
            loss: self.loss.clamp(0.0, 0.95),
            burst_packets: self.burst_packets.map(|packets| packets.clamp(BURST[0], BURST[1])),
        }
    }

    /// Returns the share that one direction loses, if both lose as much.
    pub fn loss_each_way(&self) -> f64 {
        1.0 - (1.0 - self.loss).sqrt()
    }

    /// Returns the scenario file.
    pub fn scenario(&self, workload: &Workload, title: &str, source: &str, remarks: &[String]) -> String {
        let mut text = String::new();
        let mut line = |args: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{args}");
        };
        line(format_args!("title = {:?}", shortened(title, 200)));
        line(format_args!("summary = \"Clients and network fitted to a capture by coapace advise.\""));
        line(format_args!("source = {:?}\n", shortened(source, 1000)));
        for remark in remarks {
            line(format_args!("# {remark}"));
        }
        let [request, response] = workload.packet_bytes;
        let headers = if workload.is_ipv4 { 28 } else { 48 } + 4;
        let tokens = u32::from(workload.token_bytes);
        // A Uri-Path option of n bytes takes n + 1, or n + 2 from 13 on. A request without one has the shortest there is.
        let option = request.saturating_sub(headers).clamp(2, 200);
        let path = if option >= 15 { option - 2 } else { (option - 1).min(12) };
        let payload = response.saturating_sub(headers + tokens + 1).min(60_000);
        line(format_args!("\n[clients]\ncount = {}", workload.clients.min(1_000_000)));
        if workload.outstanding > 1 {
            line(format_args!("nstart = {}", workload.outstanding));
        }
        if workload.retransmissions > 4 {
            line(format_args!("max_retransmit = {}", workload.retransmissions.max(20).min(100)));
        }
        line(format_args!("uri_path = \"{}\"", "x".repeat(path as usize)));
        if workload.spread_s > 0.0 {
            line(format_args!("start_spread = \"{} us\"", micros(workload.spread_s.min(86_400.0))));
        }
        line(format_args!("\n[server]\ncount = {}\npayload_bytes = {payload}", workload.servers.clamp(1, 10_000)));
        line(format_args!("\n[workload]\nkind = \"continuous\"\nexchanges = {}", workload.exchanges.clamp(1, 1_000_000)));
        if let Some(interval) = workload.interval_s {
            line(format_args!("interval = \"{} us\"", micros(interval.min(86_400.0))));
        } else if workload.pause_s > 1e-6 {
            line(format_args!("think_time = \"{} us\"", micros(workload.pause_s.min(86_400.0))));
        }
        let mtu = request.max(response).max(1_280);
        line(format_args!("\n[network]\nip = \"{}\"\nmtu = {mtu}", if workload.is_ipv4 { "ipv4" } else { "ipv6" }));
        for way in ["up", "down"] {
            line(format_args!("\n[[network.{way}]]\nname = \"path\"\nrate = \"{:.0} bit/s\"", self.rate_bps));
            if let Some(bytes) = self.buffer_bytes {
                line(format_args!("buffer_bytes = {bytes:.0}"));
            }
            line(format_args!("delay = \"{} us\"", micros(self.delay_s / 2.0)));
            if self.jitter_s > 0.0 {
                line(format_args!("jitter = [\"0 us\", \"{} us\"]", micros(self.jitter_s / 2.0)));
            }
            line(format_args!("loss = {}", self.loss_text()));
        }
        text
    }

    fn loss_text(&self) -> String {
        let each = self.loss_each_way();
        match self.burst_packets {
            Some(packets) if each > 1e-4 => {
                // The bad state loses more than the average, and lasts for two packets at least.
                let bad = BAD.max(each + 0.05).min(1.0);
                let least = (each / (bad - each)).ceil().max(1.0);
                format!(
                    "{{ good = \"0 %\", bad = \"{:.2} %\", average = \"{:.3} %\", mean_bad_packets = {:.0} }}",
                    bad * 100.0,
                    each * 100.0,
                    packets.round().max(least)
                )
            }
            _ => format!("\"{:.3} %\"", each * 100.0),
        }
    }
}

fn micros(seconds: f64) -> String {
    format!("{:.0}", seconds * 1e6)
}

/// Returns text in one line of at most so many bytes.
fn shortened(text: &str, bytes: usize) -> String {
    let mut line: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    while line.len() > bytes {
        line.pop();
    }
    line
}
