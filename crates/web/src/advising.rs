//! Advice that is derived from a packet capture.

use std::ops::ControlFlow;

use coapace_inspect::advice::fates::Fates;
use coapace_inspect::advice::findings::Findings;
use coapace_inspect::advice::replay::{Replay, Replayed};
use coapace_inspect::advice::report::AdviceReport;
use coapace_inspect::advice::traffic::{self, CaptureEnd, Reading};
use serde::{Deserialize, Serialize};

/// Facts that the reader of a capture knows, and the capture does not show.
#[derive(Deserialize)]
struct Options {
    /// Ports of servers in addition to the ports of CoAP.
    #[serde(default)]
    ports: Vec<u16>,
    /// Where the capture was made: `client`, `server` or `middle`; `None` if this is to be inferred.
    #[serde(default)]
    side: Option<String>,
}

/// The advice from a capture.
#[derive(Serialize)]
pub(crate) struct Advice {
    /// The tables of the advice, as the command `coapace advise` prints them.
    text: String,
    findings: Findings,
    /// The results of replaying each mechanism on the round trips of the capture, the fastest first; empty if the
    /// capture was made at a server.
    replays: Vec<Replayed>,
}

impl Advice {
    pub(crate) fn of(name: &str, bytes: &[u8], options: &str) -> Result<Self, String> {
        let options: Options =
            serde_json::from_str(options).map_err(|error| format!("the options cannot be read: {error}"))?;
        let side = match options.side.as_deref() {
            Some("client") => Some(CaptureEnd::Client),
            Some("server") => Some(CaptureEnd::Server),
            Some("middle") => Some(CaptureEnd::Middle),
            // The page sends null if the side is to be inferred.
            _ => None,
        };
        let reading = Reading { ports: options.ports, side };
        let traffic = traffic::read(bytes, &reading, None, &mut || ControlFlow::Continue(()))
            .map_err(|error| format!("{name}: {error}"))?;
        // A browser cannot start tshark.
        let advice = traffic.counts.needs_tshark().then_some(
            "some link types or tunnels are not known here: coapace advise reads them with tshark",
        );
        let fates = Fates::of(&traffic);
        let findings = Findings::of(&traffic, &fates, side);
        let report = AdviceReport { capture: name, findings: &findings, advice, replays: &[], remarks: &[] };
        if findings.exchanges == 0 {
            return Err(format!("{name}: {}", report.nothing()));
        }
        // A capture beside the server does not show round trips, which a replay needs.
        let mut replays = Vec::new();
        if findings.side != CaptureEnd::Server {
            let own = findings.timeouts.as_ref().and_then(|it| it.nearest.as_ref());
            replays = Replay::new(&traffic, &fates, findings.loss.map_or(0.0, |loss| loss.share)).all(own);
            replays.sort_by(|a, b| a.mean_s.total_cmp(&b.mean_s));
        }
        let mut text = Vec::new();
        AdviceReport { replays: &replays, ..report }.write(&mut text).map_err(|error| error.to_string())?;
        Ok(Self { text: String::from_utf8_lossy(&text).into_owned(), findings, replays })
    }
}

#[cfg(test)]
mod tests {
    use coapace_run::capture;
    use coapace_run::contender::Contender;
    use coapace_scenario::Scenario;

    use super::*;

    #[test]
    fn advise_in_the_playground_names_the_mechanism_of_a_capture() {
        let settings =
            [("clients", "5"), ("errors", "high")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Scenario::load("nb-iot", &settings).unwrap();
        let (contender, mut pcap) = (Contender::parse("cocoa").unwrap(), Vec::new());
        capture::write(&scenario, &contender, 1, Some(&mut pcap), None).unwrap();
        let advice = Advice::of("a.pcapng", &pcap, "{}").unwrap();
        assert!(advice.text.contains("Timeouts") && advice.text.contains("cocoa"), "{}", advice.text);
        assert!(advice.replays.len() > 20 && advice.findings.exchanges > 100);
        let none = Advice::of("a.pcapng", b"no capture at all", "{}").err().unwrap();
        assert!(none.starts_with("a.pcapng: "), "{none}");
    }
}
