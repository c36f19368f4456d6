//! The scenario file with the clients of a capture and a fitted path.

use std::fmt::Write;

use coapace_scenario::{Scenario, ScenarioError};

use super::link::EstimatedLink;
use super::workload::ObservedWorkload;

/// A scenario file made from a capture.
#[derive(Clone, Debug)]
pub struct ScenarioFile<'a> {
    /// The clients and requests of the capture, which the scenario repeats.
    pub workload: &'a ObservedWorkload,
    /// The name of the capture, used in the title and the source.
    pub capture: &'a str,
    /// Keys of scenarios with values that replace the capture's numbers.
    pub settings: &'a [(String, String)],
}

/// The name of the scenario file in errors.
const NAME: &str = "the fitted scenario";

impl ScenarioFile<'_> {
    /// Returns the scenario with this path.
    ///
    /// # Errors
    /// Returns the error of an invalid setting.
    pub fn scenario(&self, link: &EstimatedLink) -> Result<Scenario, ScenarioError> {
        Scenario::parse("advised", NAME, &self.plain(link, &[]), self.settings)
    }

    /// Returns the text of the file with this path. `remarks` become comments.
    ///
    /// # Errors
    /// Returns the error of an invalid setting.
    pub fn text(&self, link: &EstimatedLink, remarks: &[String]) -> Result<String, ScenarioError> {
        // A wrong setting fails here with its own message. Below both of its forms would fail.
        self.scenario(link)?;
        let mut text = self.plain(link, remarks);
        for (key, value) in self.settings {
            let raw = with_setting(&text, key, value);
            // The value may be a number, a list or a text. Only the schema knows, so both forms are tried.
            let quoted = with_setting(&text, key, &format!("{value:?}"));
            text = if Scenario::parse("advised", NAME, &raw, &[]).is_ok() { raw } else { quoted };
        }
        Scenario::parse("advised", NAME, &text, &[]).map(|_| text)
    }

    fn plain(&self, link: &EstimatedLink, remarks: &[String]) -> String {
        let ObservedWorkload { clients, servers, exchanges, outstanding, retransmissions, .. } =
            *self.workload;
        let mut text = String::new();
        let mut write = |args: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{args}");
        };
        let title = shortened(&format!("The network of {}", self.capture), 200);
        let source = shortened(&format!("fitted to {} by coapace advise", self.capture), 1_000);
        write(format_args!("title = {title}"));
        write(format_args!("summary = \"Clients and a path on which a simulation looks like the capture.\""));
        write(format_args!("source = {source}\n"));
        for remark in remarks {
            write(format_args!("# {remark}"));
        }
        let (path, payload) = self.sizes();
        write(format_args!("\n[clients]\ncount = {}", clients.clamp(1, 1_000_000)));
        if outstanding > 1 {
            write(format_args!("nstart = {outstanding}"));
        }
        if let Some(retransmissions) = self.workload.max_retransmit {
            write(format_args!("max_retransmit = {}", retransmissions.min(100)));
        // No exchange was given up, so only a lower bound is known. Clients of the scenario should not give up either.
        } else if retransmissions > 4 {
            write(format_args!("max_retransmit = {}", retransmissions.clamp(20, 100)));
        }
        if self.workload.is_impatient() {
            write(format_args!("patience = \"published\""));
        }
        // Only the length of the path matters.
        write(format_args!("uri_path = \"{}\"", "x".repeat(path)));
        if self.workload.spread_s > 0.0 {
            write(format_args!("start_spread = {}", time(self.workload.spread_s)));
        }
        write(format_args!("\n[server]\ncount = {}\npayload_bytes = {payload}", servers.clamp(1, 10_000)));
        // Clients that restart after some exchanges lose their state, which is the workload "random".
        let kind = if self.workload.batch.is_some() { "random" } else { "continuous" };
        let exchanges = exchanges.clamp(1, 1_000_000);
        write(format_args!("\n[workload]\nkind = \"{kind}\"\nexchanges = {exchanges}"));
        if let Some([fewest, most]) = self.workload.batch {
            let fewest = fewest.clamp(1, 1_000_000);
            write(format_args!("batch_min = {fewest}\nbatch_max = {}", most.clamp(fewest, 1_000_000)));
        }
        if let Some(interval_s) = self.workload.interval_s {
            write(format_args!("interval = {}", time(interval_s)));
        } else if self.workload.pause_s > 1e-6 {
            write(format_args!("think_time = {}", time(self.workload.pause_s)));
        }
        let ip = if self.workload.is_ipv4 { "ipv4" } else { "ipv6" };
        // A simulated message may be longer than a captured one, and a buffer has to hold one.
        let longest =
            self.workload.packet_bytes[0].max(self.workload.packet_bytes[1]).saturating_add(64).min(65_535);
        let mtu = longest.max(1_280);
        write(format_args!("\n[network]\nip = \"{ip}\"\nmtu = {mtu}"));
        for way in ["up", "down"] {
            write(format_args!(
                "\n[[network.{way}]]\nname = \"path\"\nrate = \"{:.0} bit/s\"",
                link.rate_bps
            ));
            if let Some(bytes) = link.buffer_bytes.map(|bytes| bytes.max(f64::from(longest))) {
                write(format_args!("buffer_bytes = {bytes:.0}"));
            }
            // A capture shows round trips only, so each way gets half.
            write(format_args!("delay = {}", time(link.delay_s / 2.0)));
            if link.jitter_s > 0.0 {
                write(format_args!("jitter = [\"0 us\", {}]", time(link.jitter_s / 2.0)));
            }
            write(format_args!("loss = {}", link.loss_text(way == "up")));
        }
        text
    }

    /// Returns the lengths in bytes of a Uri-Path and of a payload that make packets as long as in the capture.
    fn sizes(&self) -> (usize, u32) {
        let [request, response] = self.workload.packet_bytes;
        // IP, UDP and the CoAP header.
        let headers = if self.workload.is_ipv4 { 20 } else { 40 } + 8 + 4;
        // A Uri-Path option of n bytes takes n + 1 bytes, or n + 2 from 13 on. A scenario has one, of a byte at least.
        let option = request.saturating_sub(headers).clamp(2, 200);
        let path = if option >= 15 { option - 2 } else { (option - 1).min(12) };
        // A payload comes behind a marker.
        let payload = response.saturating_sub(headers + u32::from(self.workload.token_bytes) + 1).min(60_000);
        (path as usize, payload)
    }
}

/// Returns the text of a scenario file in which `key` has the value `value`; the key is added if it is missing. Hops have
/// names: `network.up.path.rate` is the key `rate` in the table `[[network.up]]` with the name `path`.
fn with_setting(text: &str, key: &str, value: &str) -> String {
    let (table, key) = key.rsplit_once('.').unwrap_or(("", key));
    let hops = table.strip_suffix(".path").unwrap_or(table);
    let headers = [format!("[{table}]"), format!("[[{hops}]]")];
    let assigns = |line: &str| line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(start) = lines.iter().position(|line| headers.contains(line)) else {
        if table.is_empty() {
            // A key without a table has to come before all tables.
            lines.insert(0, format!("{key} = {value}"));
        } else {
            lines.push(format!("\n[{table}]\n{key} = {value}"));
        }
        return lines.join("\n") + "\n";
    };
    let end = lines[start + 1..]
        .iter()
        .position(|line| line.starts_with('['))
        .map_or(lines.len(), |it| start + 1 + it);
    match lines[start + 1..end].iter().position(|line| assigns(line)) {
        Some(place) => lines[start + 1 + place] = format!("{key} = {value}"),
        None => lines.insert(start + 1, format!("{key} = {value}")),
    }
    lines.join("\n") + "\n"
}

fn time(seconds: f64) -> String {
    format!("\"{:.0} us\"", (seconds * 1e6).clamp(0.0, 86_400e6))
}

/// Returns text in quotes, on one line, shortened to at most `bytes` bytes.
fn shortened(text: &str, bytes: usize) -> String {
    // TOML would need escapes for these characters. Whole characters are removed, so that none is cut.
    let mut line: String =
        text.chars().map(|it| if it.is_control() || it == '"' || it == '\\' { ' ' } else { it }).collect();
    while line.len() > bytes {
        line.pop();
    }
    format!("\"{line}\"")
}

#[cfg(test)]
mod tests {
    use super::super::lives::Starts;
    use super::*;

    fn workload() -> ObservedWorkload {
        ObservedWorkload {
            clients: 7,
            servers: 2,
            starts: Starts::default(),
            batch: None,
            exchanges: 30,
            is_even: true,
            pause_s: 1.5,
            is_pause_constant: true,
            interval_s: None,
            spread_s: 0.25,
            outstanding: 1,
            retransmissions: 6,
            given_up: 0,
            max_retransmit: None,
            gives_up_after_s: None,
            packet_bytes: [38, 93],
            token_bytes: 0,
            is_ipv4: true,
            separate: 0.0,
        }
    }

    fn link(burst_packets: Option<f64>) -> EstimatedLink {
        let (rate_bps, buffer_bytes) = (50_000.0, Some(9_000.0));
        EstimatedLink {
            rate_bps,
            buffer_bytes,
            delay_s: 0.4,
            jitter_s: 0.02,
            loss: 0.19,
            up_share: 0.5,
            burst_packets,
        }
    }

    #[test]
    fn the_scenario_of_advise_has_the_fitted_numbers() {
        let workload = workload();
        let file = ScenarioFile { workload: &workload, capture: "a \"capture\"\n.pcap", settings: &[] };
        for burst in [None, Some(3.0), Some(150.0)] {
            let text = file.text(&link(burst), &["A remark.".to_owned()]).unwrap();
            let scenario = Scenario::parse("x", "x.toml", &text, &[]).unwrap();
            assert_eq!((scenario.clients.count, scenario.server.count), (7, 2));
            assert_eq!((scenario.clients.max_retransmit, scenario.workload.exchanges), (20, Some(30)));
            assert_eq!(scenario.clients.uri_path_bytes() + 32, 38);
            assert_eq!(scenario.server.payload_bytes + 33, 93);
            assert_eq!(scenario.network.up[0].rate, Some(50_000));
            assert!(text.contains("# A remark."));
        }
    }

    #[test]
    fn the_scenario_of_advise_contains_the_settings() {
        let workload = workload();
        let set = [
            ("workload.kind", "random"),
            ("clients.patience", "published"),
            ("network.up.path.rate", "9 kbit/s"),
            ("tcp.nagle", "false"),
        ];
        let settings = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let file = ScenarioFile { workload: &workload, capture: "x", settings: &settings };
        let text = file.text(&link(None), &[]).unwrap();
        let scenario = Scenario::parse("x", "x.toml", &text, &[]).unwrap();
        assert_eq!(scenario.workload.kind.word(), "random");
        assert_eq!(scenario.network.up[0].rate, Some(9_000));
        assert_eq!(scenario.network.down[0].rate, Some(50_000));
        assert!(!scenario.tcp.nagle);
        let wrong = [("network.up.rate".to_owned(), "1".to_owned())];
        let file = ScenarioFile { settings: &wrong, ..file };
        assert!(file.text(&link(None), &[]).is_err());
    }

    #[test]
    fn the_scenario_of_advise_has_the_behaviour_of_the_clients() {
        let seen = ObservedWorkload {
            batch: Some([1, 8]),
            max_retransmit: Some(2),
            gives_up_after_s: Some(3.0),
            ..workload()
        };
        let file = ScenarioFile { workload: &seen, capture: "x", settings: &[] };
        let scenario = Scenario::parse("x", "x.toml", &file.text(&link(None), &[]).unwrap(), &[]).unwrap();
        let workload = &scenario.workload;
        assert_eq!((workload.kind.word(), workload.batch_min, workload.batch_max), ("random", 1, 8));
        assert_eq!((scenario.clients.max_retransmit, scenario.clients.patience.word()), (2, "published"));
    }

    #[test]
    fn any_packet_size_makes_a_valid_scenario_of_advise() {
        for bytes in [0, 1, 33, 40, 47, 48, 300, 2_000, 70_000] {
            let workload = ObservedWorkload { packet_bytes: [bytes, bytes], is_ipv4: false, ..workload() };
            let file = ScenarioFile { workload: &workload, capture: "x", settings: &[] };
            file.text(&link(None), &[]).unwrap_or_else(|error| panic!("{bytes}: {error}"));
        }
    }
}
