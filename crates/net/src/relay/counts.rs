//! The counts of a relay.

use std::fmt::{self, Display, Formatter, Write};

use crate::{DtlsCounters, Metrics, Profile};
use coapace_control::Mechanism;
use coapace_proto::{Counters, Measures};

/// Counts of the messages that pass from one face to the other, since the relay was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounts {
    /// Requests that arrived at the face towards the clients, and at the one towards the server. Copies do not count.
    pub requests: [u64; 2],
    /// Requests answered 5.03 because a table was full.
    pub refused: u64,
    /// Requests answered with an Echo value, because their client had not shown that its address is its own.
    pub challenged: u64,
    /// Requests without a hop left, answered 5.08, and datagrams of DTLS that came back: relays point at each other.
    pub loops: u64,
    /// Requests that were given up, and answered 5.04 if they were confirmable.
    pub given_up: u64,
    /// Requests that were rejected with a Reset.
    pub rejected: u64,
    /// Non-confirmable requests that nothing answered.
    pub unanswered: u64,
    /// Datagrams of more than 2048 bytes. Requests are answered 4.13, responses become 5.02, and others are dropped.
    pub too_long: u64,
    /// Requests for blocks that the relay answered with a block it had read ahead.
    pub read_ahead: u64,
    /// Separate responses that were not acknowledged.
    pub undelivered: u64,
    /// Answers for which there was no room.
    pub unanswerable: u64,
    /// Notifications that were overtaken by newer ones.
    pub stale: u64,
    /// Datagrams of DTLS that were passed on as they are.
    pub unseen: u64,
    /// Datagrams of DTLS for which there was no room.
    pub unseen_dropped: u64,
    /// Ports that the system had no room for.
    pub ports_refused: u64,
    /// Datagrams that the system did not send.
    pub unsent: u64,
    /// DTLS handshakes with the server that failed.
    pub handshakes_failed: u64,
}

/// The counts of a relay and what it keeps, at one moment.
#[derive(Clone, Debug)]
pub struct RelayReport {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The counts of the relay itself.
    pub relay: RelayCounts,
    /// The counts of the endpoint towards the clients.
    pub clients: Counters,
    /// The counts of the endpoint towards the server.
    pub server: Counters,
    /// The distributions towards the server.
    pub measures: Measures,
    /// Requests that wait for their response, and observations.
    pub lines: u64,
    /// Bodies that are read ahead.
    pub bodies: u64,
    /// Sources that have a port.
    pub sources: u64,
    /// Sources that were ever given a port.
    pub sources_met: u64,
    /// Sources that have left for others.
    pub sources_closed: u64,
    /// The counts of DTLS with the clients; zeros if they speak none.
    pub dtls: DtlsCounters,
    /// The DTLS sessions of clients, handshakes included.
    pub sessions: u64,
}

/// One line for people.
impl Display for RelayReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { relay, clients, server, sources_met, dtls, .. } = self;
        write!(
            f,
            "{} requests of {sources_met} sources, {} copies absorbed; towards the server {} exchanges with {} retransmissions, {} \
             given up, {} rejected; {} refused",
            relay.requests[0],
            clients.duplicates + clients.withheld,
            server.started,
            server.retransmissions,
            relay.given_up,
            relay.rejected,
            relay.refused,
        )?;
        for (count, what) in [
            (relay.requests[1], "requests of the server"),
            (relay.challenged, "asked for an Echo value"),
            (relay.loops, "came back from another relay"),
            (relay.read_ahead, "blocks read ahead"),
            (relay.unseen, "datagrams of DTLS passed on"),
            (dtls.handshakes, "DTLS sessions of clients"),
            (dtls.handshakes_failed, "handshakes of clients failed"),
            (relay.handshakes_failed, "handshakes with the server failed"),
            (relay.unanswered, "non-confirmable requests unanswered"),
            (relay.undelivered, "responses not acknowledged by clients"),
            (relay.unanswerable + relay.unseen_dropped, "dropped because a table is full"),
            (relay.too_long, "datagrams longer than is taken"),
            (relay.unsent, "not taken by the system"),
            (clients.malformed + server.malformed, "malformed"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

impl RelayReport {
    /// Returns the text format of Prometheus: `coap_*` are the exchanges with the server, in the metrics of a client (`docs/metrics.md`);
    /// `coap_relay_*` are the relay's own.
    pub fn exposition(&self) -> String {
        let mut metrics = Metrics::default();
        metrics.stats.endpoint = self.server;
        metrics.stats.dtls = self.dtls;
        metrics.measures = self.measures;
        metrics.profiles = vec![Profile::from(self.mechanism)];
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
                "Datagrams longer than is taken: requests answered 4.13, responses passed on as 5.02, others dropped.",
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
            ("sources_closed_total", "counter", "Sources that made room for others.", self.sources_closed),
        ] {
            let name = format!("coap_relay_{name}");
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        text
    }
}
