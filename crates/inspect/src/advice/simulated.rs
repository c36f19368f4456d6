//! The traffic of a simulated run, captured at its clients.

use std::net::{Ipv4Addr, SocketAddr};

use coapace_run::contender::Contender;
use coapace_run::{Observe, run_tapped};
use coapace_scenario::Scenario;
use coapace_sim::{Event, NodeId, Record, Tap, Time, Transport};

use super::capture::{Ending, Point};
use super::datagram::CapturedDatagram;
use super::traffic::{COAP_PORT, Reading, Traffic, TrafficCollector};

/// A tap that collects what clients send and receive, like a capture beside them.
#[derive(Debug)]
struct SimulatedCapture {
    observer: TrafficCollector,
}

/// Runs a scenario and returns the traffic that a capture beside the clients would contain.
pub fn traffic(scenario: &Scenario, contender: &Contender, seed: u64) -> Traffic {
    let tap = SimulatedCapture { observer: TrafficCollector::new(Reading::default()) };
    let (_, tap) = run_tapped(scenario, contender, seed, Observe::Totals, tap);
    tap.observer.finish(Ending::Complete)
}

impl Tap for SimulatedCapture {
    fn record(&mut self, record: &Record<'_>) {
        if record.transport != Transport::Udp {
            return;
        }
        // The class of a request is 0, and its code is not.
        let is_request = record.bytes.get(1).is_some_and(|&code| code != 0 && code < 32);
        // Beside a client, requests are seen at their departure and answers at their arrival.
        let (from, to) = match (record.event, is_request) {
            (Event::Sent, true) => (address(record.from, 40_000), address(record.to, COAP_PORT)),
            (Event::Delivered, false) => (address(record.from, COAP_PORT), address(record.to, 40_000)),
            _ => return,
        };
        self.observer.at(record.time);
        let datagram = CapturedDatagram {
            from,
            to,
            payload: record.bytes,
            identification: 0,
            ip_bytes: record.wire_bytes,
            is_whole: true,
            point: Point::Interface,
        };
        self.observer.datagram(record.time, &datagram);
    }
}

/// Returns an address made from the number of a node. It only has to be unique.
fn address(node: NodeId, port: u16) -> SocketAddr {
    (Ipv4Addr::from(0x0a00_0000 | node.0 & 0x00ff_ffff), port).into()
}

impl TrafficCollector {
    /// Extends the span of the traffic to this time.
    fn at(&mut self, at: Time) {
        self.span = Some((self.span.map_or(at, |(first, _)| first), at));
    }
}
