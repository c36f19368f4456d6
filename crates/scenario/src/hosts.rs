//! The keys of the hosts: clients and servers.

use coapace_sim::Span;

use crate::schema::kind::Or;
use crate::schema::scalar::{OneLine, SWITCH, TIME, Whole, one_of};
use crate::schema::table::{Misfit, keys};
use crate::schema::words::words;
use crate::service::{ServiceTime, ServiceTimeKind};

keys! {
    /// The hosts that send requests. Each sends to one server.
    pub struct Clients checked by segments_fit {
        /// The number of clients. Leave it out in a mesh, where the clients are all nodes except the border router and
        /// the sinks.
        count: u32, Whole(1, 1_000_000);
        /// NSTART: the most outstanding exchanges of a client with a server (RFC 7252 §4.7). "none" takes the
        /// mechanism's own limit, or the 1 of RFC 7252 if the mechanism has none.
        nstart: Option<u16>, Or("none", Whole(1, 1_000)) => None;
        /// MAX_RETRANSMIT: retransmissions before an exchange is given up (RFC 7252 §4.8).
        max_retransmit: u8, Whole(0, 100) => 4;
        /// The rule by which a client gives up on a server. "rfc7252": the client waits at least as long as
        /// RFC 7252 demands, and sends at most as many copies to a silent server as RFC 7252 allows, even if
        /// the timeouts of its mechanism are shorter. "published": only the mechanism decides, as in
        /// publications.
        patience: Endurance, one_of() => Endurance::Rfc7252;
        /// The path of the request, without a slash in front. Each segment becomes a Uri-Path option, which is one to
        /// three bytes longer than the segment (RFC 7252 §3.1).
        uri_path: String, OneLine(1_000) => "coap".to_owned();
        /// The time in the run at which the clients start. Flows and transfers have a `start` of their own.
        start: Span, TIME => Span::ZERO;
        /// The span after `start` in which each client starts at a random time, uniformly; 0 s starts all of them at
        /// once. Flows and transfers have a `spread` of their own.
        start_spread: Span, TIME => Span::ZERO;
        /// PROBING_RATE in bytes per second: non-confirmable messages up to this rate are always allowed (RFC 7252
        /// §4.7). Faster ones must be as far apart as the mechanism demands, usually one RTO. With 0 this applies to
        /// all of them.
        probing_rate: u32, Whole(0, 1_000_000) => 1;
        /// The number of consecutive messages from a client to a server of which at least one is sent as confirmable
        /// (draft-ietf-core-cocoa-03 §5). 0 sends every message as it is.
        confirmable_every: u8, Whole(0, 255) => 8;
    }
}

keys! {
    /// The hosts that answer requests.
    pub struct Server {
        /// The number of servers, all behind the same network. Clients are assigned to them in turn: the first client
        /// to the first server, the second to the second, and so on.
        count: u32, Whole(1, 10_000) => 1;
        /// Bytes of the payload of a response, without the payload marker.
        payload_bytes: u32, Whole(0, 65_000) => 60;
        /// Whether a server recognises a copy of a request by its Message ID, and sends the earlier response again (RFC
        /// 7252 §4.5). If not, it treats every copy as a new request.
        deduplication: bool, SWITCH => true;
        /// Whether a server leaves a copy of a request unanswered while its earlier answer may still be under way, for
        /// at most two copies in a row (docs/sluice.md). RFC 7252 §4.5 would answer every copy.
        sluice: bool, SWITCH => false;
        /// The time from a request to its response, the same for all requests.
        processing_delay: Span, TIME => Span::ZERO;
        /// Further time from a request to its response, added to `processing_delay`: the same for all requests, or
        /// drawn for each one, uniformly between two times or from an exponential distribution. Requests do not wait
        /// for each other.
        service_time: ServiceTime, ServiceTimeKind => ServiceTime::default();
        /// The way in which a server responds: on the acknowledgement, or in a separate message, which is confirmable
        /// or not (RFC 7252 §5.2). Confirmable separate responses use the mechanism of the clients, the first if there
        /// are several, and their retransmissions count like retransmissions of requests.
        response: Answering, one_of() => Answering::Piggybacked;
        /// The time from a request to the empty acknowledgement before a separate response. A response that is ready
        /// sooner is piggybacked.
        acknowledge_after: Span, TIME => Span::ZERO;
    }
}

words! {
    /// The way in which a server answers a confirmable request.
    pub enum Answering {
        /// The response is on the acknowledgement (RFC 7252 §5.2.1).
        Piggybacked = "piggybacked",
        /// The response is a confirmable message, after an empty acknowledgement (RFC 7252 §5.2.2).
        Separate = "separate",
        /// The response is a non-confirmable message, after an empty acknowledgement. If it is lost, the client never
        /// gets it.
        SeparateNon = "separate-non",
    }
}

words! {
    /// The rule by which a client gives up on a server.
    pub enum Endurance {
        /// A client gives up after MAX_TRANSMIT_WAIT (RFC 7252 §4.8.2) at the earliest, even if the timeouts of the
        /// mechanism end sooner.
        Rfc7252 = "rfc7252",
        /// A client gives up after the timeouts of the mechanism.
        Published = "published",
    }
}

impl Server {
    /// Returns whether the server may respond in a separate message. With a service time it may do so even if responses
    /// are piggybacked: a copy of a request that has no response yet is acknowledged with an empty message.
    pub fn may_separate(&self) -> bool {
        self.response != Answering::Piggybacked || self.service_time != ServiceTime::default()
    }
}

impl Clients {
    /// Returns the segments of the path, which are the values of the Uri-Path options.
    pub fn uri_path_segments(&self) -> impl Iterator<Item = &str> {
        self.uri_path.split('/')
    }

    /// Returns the length of the Uri-Path options in bytes. The first has the option delta 11, the others 0 (RFC 7252
    /// §3.1).
    pub fn uri_path_bytes(&self) -> u32 {
        // Lengths of 13 to 268 have one extended byte, longer ones two (RFC 7252 §3.1).
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
