//! The keys of the hosts: clients and servers.

use coapace_sim::Span;

use crate::schema::kind::Or;
use crate::schema::scalar::{OneLine, SWITCH, TIME, Whole, one_of};
use crate::schema::table::{Misfit, keys};
use crate::schema::words::words;
use crate::service::{ServiceTime, ServiceTimeKind};

keys! {
    /// The hosts that ask. Each has one destination: its server.
    pub struct Clients checked by segments_fit {
        /// The number of clients. In a mesh it is left out: all nodes but the border router and the sinks.
        count: u32, Whole(1, 1_000_000);
        /// NSTART: exchanges that a client may have outstanding (RFC 7252 §4.7). "none" leaves the bound to the mechanism, or to
        /// RFC 7252, which has 1.
        nstart: Option<u16>, Or("none", Whole(1, 1_000)) => None;
        /// MAX_RETRANSMIT: retransmissions before an exchange is given up (RFC 7252 §4.8).
        max_retransmit: u8, Whole(0, 100) => 4;
        /// Whether a client gives a server up no sooner than RFC 7252 would, and sends a silent one no more than RFC 7252 would,
        /// however short the timeouts of its mechanism are. "published" leaves that to the mechanism, as publications do.
        patience: Endurance, one_of() => Endurance::Rfc7252;
        /// The path of the request, without a slash in front; each segment becomes a Uri-Path option of its bytes and
        /// one to three more (RFC 7252 §3.1).
        uri_path: String, OneLine(1_000) => "coap".to_owned();
        /// The time in the run at which the clients start. Flows have their own.
        start: Span, TIME => Span::ZERO;
        /// The span after `start` in which each client starts at a random moment, uniformly; 0 s starts all of them at once.
        /// Flows have their own.
        start_spread: Span, TIME => Span::ZERO;
        /// PROBING_RATE in bytes per second: a rate of non-confirmable messages that is always allowed (RFC 7252 §4.7); above it
        /// they are an RTO apart. 0 allows no such rate.
        probing_rate: u32, Whole(0, 1_000_000) => 1;
        /// The number of messages in a row of which one is confirmable (draft-ietf-core-cocoa-03 §5); 0 leaves every message
        /// as it is.
        confirmable_every: u8, Whole(0, 255) => 8;
    }
}

keys! {
    /// The hosts that answer.
    pub struct Server {
        /// The number of servers, behind the same network. The clients are dealt out to them in turn: the first client asks
        /// the first server, the second the second.
        count: u32, Whole(1, 10_000) => 1;
        /// Bytes of the payload of a response, without the payload marker.
        payload_bytes: u32, Whole(0, 65_000) => 60;
        /// Whether a copy of a request is recognised by its Message ID and answered from memory (RFC 7252 §4.5). If not,
        /// the server answers every copy that reaches it again.
        deduplication: bool, SWITCH => true;
        /// Whether a copy of a request gets no answer while the last answer may still be under way, at most two in a row
        /// (docs/sluice.md). RFC 7252 §4.5 would answer every copy.
        sluice: bool, SWITCH => false;
        /// The time from a request to its response.
        processing_delay: Span, TIME => Span::ZERO;
        /// Further time from a request to its response, drawn for each request: constant, uniform between two times, or
        /// exponential. Requests do not wait for each other.
        service_time: ServiceTime, ServiceTimeKind => ServiceTime::default();
        /// How a response comes (RFC 7252 §5.2). A confirmable separate response is sent with the mechanism of the clients, the
        /// first if there are several, and counts as retransmitted like a request.
        response: Answering, one_of() => Answering::Piggybacked;
        /// The time from a request to the empty acknowledgement before a separate response. A response that is ready
        /// sooner is piggybacked.
        acknowledge_after: Span, TIME => Span::ZERO;
    }
}

words! {
    /// The way in which a server answers a confirmable request.
    pub enum Answering {
        /// On the acknowledgement (RFC 7252 §5.2.1).
        Piggybacked = "piggybacked",
        /// In a confirmable message, after an empty acknowledgement (RFC 7252 §5.2.2).
        Separate = "separate",
        /// In a non-confirmable message, after an empty acknowledgement. If it is lost, the client never has it.
        SeparateNon = "separate-non",
    }
}

words! {
    /// The lower bound on the time after which a client gives a server up.
    pub enum Endurance {
        /// MAX_TRANSMIT_WAIT of RFC 7252 §4.8.2, where the timeouts of the mechanism are shorter.
        Rfc7252 = "rfc7252",
        /// The timeouts of the mechanism alone.
        Published = "published",
    }
}

impl Server {
    /// Returns whether responses may come in messages of their own. A copy of a request that is worked on is acknowledged
    /// with an empty message, so a service time is enough.
    pub fn may_separate(&self) -> bool {
        self.response != Answering::Piggybacked || self.service_time != ServiceTime::default()
    }
}

impl Clients {
    /// Returns the segments of the path, which are the values of the Uri-Path options.
    pub fn uri_path_segments(&self) -> impl Iterator<Item = &str> {
        self.uri_path.split('/')
    }

    /// Returns the bytes of the Uri-Path options. The first has the option delta 11, the others 0 (RFC 7252 §3.1).
    pub fn uri_path_bytes(&self) -> u32 {
        let extended = |len| u32::from(len >= 13) + u32::from(len >= 269);
        self.uri_path_segments().map(|segment| 1 + extended(segment.len()) + segment.len() as u32).sum()
    }
}

fn segments_fit(clients: &Clients) -> Result<(), Misfit> {
    // A segment has 1 to 255 bytes (RFC 7252 §5.10).
    let fit = clients.uri_path_segments().all(|segment| (1..=255).contains(&segment.len()));
    let problem = "must have segments of 1 to 255 bytes with single slashes between them";
    Misfit::unless(fit, "uri_path", problem)
}
