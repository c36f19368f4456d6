//! The counters of a relay.

use std::fmt::{self, Display, Formatter, Write};

use coapace_control::Mechanism;
use coapace_net::{DtlsCounters, Metrics, Profile};
use coapace_proto::{Counters, Measures};

/// Counters of the messages that pass from one side to the other, since the relay was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounts {
    /// Requests that arrived from clients, and requests that arrived from the server. Copies do not count.
    pub requests: [u64; 2],
    /// Requests answered 5.03 because a table was full.
    pub refused: u64,
    /// Requests answered with an Echo value, because their client's address was unverified.
    pub challenged: u64,
    /// Requests answered 5.08 because no hop was left, and datagrams of DTLS that came back. Both mean that relays point at each
    /// other.
    pub loops: u64,
    /// Requests that were given up, and answered 5.04 if they were confirmable.
    pub given_up: u64,
    /// Requests that were rejected with a Reset.
    pub rejected: u64,
    /// Non-confirmable requests that got no response.
    pub unanswered: u64,
    /// Datagrams of more than 2048 bytes. Requests are answered 4.13, responses become 5.02, and others are dropped.
    pub too_long: u64,
    /// Requests for blocks that the relay answered with a block it had read ahead.
    pub read_ahead: u64,
    /// Separate responses that were not acknowledged.
    pub undelivered: u64,
    /// Answers that were not sent, because a table of the endpoint was full.
    pub unanswerable: u64,
    /// Notifications that were not forwarded, because a newer one had overtaken them.
    pub stale: u64,
    /// Datagrams of DTLS that were forwarded unchanged.
    pub unseen: u64,
    /// Datagrams of DTLS that were dropped, because a table was full or their source is unknown.
    pub unseen_dropped: u64,
    /// Ports towards the server that the system refused to open.
    pub ports_refused: u64,
    /// Datagrams that the system did not send.
    pub unsent: u64,
    /// DTLS handshakes with the server that failed.
    pub handshakes_failed: u64,
}

/// A snapshot of the counters and tables of a relay.
#[derive(Clone, Debug)]
pub struct RelayReport {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The counters of the relay itself.
    pub relay: RelayCounts,
    /// The counters of the endpoint towards the clients.
    pub clients: Counters,
    /// The counters of the endpoint towards the server.
    pub server: Counters,
    /// The distributions of round-trip times, timeouts and waits towards the server; empty unless
    /// [`measure`](crate::Relay::measure) was called.
    pub measures: Measures,
    /// The number of requests that wait for their response, and of observations.
    pub lines: u64,
    /// The number of bodies that are read ahead.
    pub bodies: u64,
    /// The number of sources with a port.
    pub sources: u64,
    /// The number of sources that were ever given a port.
    pub sources_met: u64,
    /// The number of sources that were dropped so that another could take their port.
    pub sources_closed: u64,
    /// The counters of DTLS with the clients; zeros without DTLS.
    pub dtls: DtlsCounters,
    /// The number of DTLS sessions of clients, handshakes included.
    pub sessions: u64,
}

/// Writes a summary in one line.
impl Display for RelayReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { relay, clients, server, sources_met, dtls, .. } = self;
        write!(
            f,
            "{} requests of {sources_met} sources, {} copies absorbed; towards the server {} exchanges with {} retransmissions, {} \
             given up, {} rejected; {} refused",
            relay.requests[0],
            // Copies that were sent the answer again, and those that the sluice left without one.
            clients.duplicates + clients.withheld,
            server.started,
            server.retransmissions,
            relay.given_up,
            relay.rejected,
            relay.refused,
        )?;
        // Zeros are left out, so that a fault does not hide among them.
        for (count, what) in [
            (relay.requests[1], "requests of the server"),
            (relay.challenged, "requests answered with an Echo value"),
            (relay.loops, "requests and datagrams that came back from another relay"),
            (relay.read_ahead, "blocks read ahead"),
            (relay.unseen, "datagrams of DTLS passed on"),
            (dtls.handshakes, "DTLS sessions of clients"),
            (dtls.handshakes_failed, "handshakes of clients failed"),
            (relay.handshakes_failed, "handshakes with the server failed"),
            (relay.unanswered, "non-confirmable requests unanswered"),
            (relay.undelivered, "responses not acknowledged by clients"),
            (
                relay.unanswerable + relay.unseen_dropped,
                "answers and datagrams dropped because a table is full",
            ),
            (relay.too_long, "datagrams longer than accepted"),
            (relay.unsent, "datagrams that the system did not send"),
            (clients.malformed + server.malformed, "malformed datagrams"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

impl RelayReport {
    /// Returns the counters in the text format of Prometheus. `coap_*` are the exchanges with the server, as metrics of a client
    /// (`docs/metrics.md`). `coap_relay_*` are the counters of the relay itself.
    pub fn exposition(&self) -> String {
        // Towards the server the relay is a client. Dashboards and alerts of clients then work for it, too.
        let mut metrics = Metrics::default();
        metrics.stats.endpoint = self.server;
        metrics.stats.dtls = self.dtls;
        metrics.measures = self.measures;
        metrics.profiles = vec![Profile::from(self.mechanism)];
        // A line is an exchange with the server, or with a client for a request of the server.
        metrics.exchanges = self.lines;
        metrics.peers = self.sources;
        metrics.sessions = self.sessions;
        let mut text = metrics.to_string();
        let Self { relay, clients, .. } = self;
        for (name, kind, help, value) in [
            ("requests_total", "counter", "Requests of clients; copies do not count.", relay.requests[0]),
            ("server_requests_total", "counter", "Requests of the server to clients.", relay.requests[1]),
            (
                "copies_absorbed_total",
                "counter",
                "Copies of requests that went no further.",
                clients.duplicates,
            ),
            (
                "answers_withheld_total",
                "counter",
                "Copies that the sluice left unanswered.",
                clients.withheld,
            ),
            ("refused_total", "counter", "Requests answered 5.03 because a table is full.", relay.refused),
            ("challenges_total", "counter", "Requests answered with an Echo value.", relay.challenged),
            (
                "loops_total",
                "counter",
                "Requests and datagrams that came back from another relay.",
                relay.loops,
            ),
            ("given_up_total", "counter", "Requests without a response in time.", relay.given_up),
            ("rejected_total", "counter", "Requests that a Reset rejected.", relay.rejected),
            ("unanswered_total", "counter", "Non-confirmable requests without a response.", relay.unanswered),
            (
                "undelivered_total",
                "counter",
                "Responses that a client did not acknowledge.",
                relay.undelivered,
            ),
            (
                "dropped_total",
                "counter",
                "Answers and datagrams without room.",
                relay.unanswerable + relay.unseen_dropped,
            ),
            (
                "too_long_total",
                "counter",
                "Datagrams longer than accepted: requests answered 4.13, responses passed on as 5.02, others dropped.",
                relay.too_long,
            ),
            ("unsent_total", "counter", "Datagrams that the system did not send.", relay.unsent),
            ("ports_refused_total", "counter", "Ports that the system had no room for.", relay.ports_refused),
            ("stale_notifications_total", "counter", "Notifications that newer ones overtook.", relay.stale),
            ("dtls_datagrams_total", "counter", "Datagrams of DTLS passed on.", relay.unseen),
            (
                "server_handshakes_failed_total",
                "counter",
                "DTLS handshakes with the server that failed.",
                relay.handshakes_failed,
            ),
            (
                "blocks_read_ahead_total",
                "counter",
                "Requests for blocks that the relay answered with a block it had read ahead.",
                relay.read_ahead,
            ),
            ("bodies", "gauge", "Bodies that are read ahead.", self.bodies),
            ("sources", "gauge", "Sources that have a port.", self.sources),
            ("sources_closed_total", "counter", "Sources that left for others.", self.sources_closed),
        ] {
            let name = format!("coap_relay_{name}");
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        text
    }
}
