//! The CoAP traffic of a capture: its client–server pairs and their exchanges.

use std::collections::HashMap;
use std::io::Read;
use std::net::SocketAddr;
use std::ops::ControlFlow;

use coapace_sim::Time;
use serde::Serialize;

use super::capture::{self, CaptureError, CapturedPacket, Ending, Point};
use super::clock::{CaptureClock, ClockStep};
use super::counts::Counts;
use super::datagram::{CapturedDatagram, Skipped};
use super::exchanges::{CapturedExchange, Exchanges, From};
use super::headers::datagram;
use super::lives::{self, Starts};
use super::lowpan::Lowpan;
use super::message::SeenMessage;
use super::pair::Pair;
use super::sightings::Sightings;
use super::tshark::Tshark;

/// CoAP's port (RFC 7252 §12.6).
pub const COAP_PORT: u16 = 5683;

/// The port of CoAP over DTLS (RFC 7252 §12.7).
const COAPS_PORT: u16 = 5684;

/// The maximum number of client–server pairs that are stored.
const MOST_PAIRS: usize = 100_000;

/// Where on the path a capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CaptureEnd {
    /// Beside the clients: it has all their copies, and the answers that reached them.
    Client,
    /// Beside the server: it has the copies that reached the server, and all its answers.
    Server,
    /// Between clients and server: copies and answers may be lost on either side of the capture point.
    Middle,
}

/// Options for reading a capture.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Ports of servers in addition to 5683.
    pub ports: Vec<u16>,
    /// Where the capture was taken, if known. A simulated capture has every packet at several points. Only the packets
    /// that a capture at this end would have are read from it; without a value, the packets at the clients.
    pub side: Option<CaptureEnd>,
}

/// The CoAP traffic read from a capture.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Client–server pairs; exchanges refer to them by number.
    pub pairs: Vec<Pair>,
    /// Exchanges, sorted by their first copies.
    pub exchanges: Vec<CapturedExchange>,
    /// The number of clients, and their restarts.
    pub starts: Starts,
    /// The numbers of packets.
    pub counts: Counts,
    /// The times of the first and last packet, with the steps of the clock removed; `None` without a packet.
    pub span: Option<(Time, Time)>,
    /// The steps of the clock, which are removed from all times.
    pub steps: Vec<ClockStep>,
    /// How the file ends.
    pub ending: Ending,
    /// Whether a simulation wrote the capture.
    pub is_simulated: bool,
}

/// Reads a capture. `tshark` supplies the packets that this crate cannot read; it must have been started on the same file.
/// `progress` is called after each packet and may stop the reading.
///
/// # Errors
/// Returns a [`CaptureError`] if the file is not a capture.
pub fn read(
    reader: impl Read + Send,
    reading: &Reading,
    tshark: Option<Tshark>,
    progress: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Traffic, CaptureError> {
    let mut observer = TrafficCollector { tshark, ..TrafficCollector::new(reading.clone()) };
    let ending = capture::read(reader, &mut |packet| {
        match packet {
            Ok(packet) => observer.packet(packet),
            Err(skipped) => {
                observer.counts.packets += 1;
                observer.skip(skipped);
            }
        }
        progress()
    })?;
    Ok(observer.finish(ending))
}

/// Collects the traffic of packets, which are added one after the other.
#[derive(Debug)]
pub struct TrafficCollector {
    reading: Reading,
    lowpan: Lowpan,
    tshark: Option<Tshark>,
    sightings: Sightings,
    clock: CaptureClock,
    numbers: HashMap<(SocketAddr, SocketAddr), u32>,
    pairs: Vec<Pair>,
    /// The number of messages of each pair.
    messages: Vec<u64>,
    exchanges: Exchanges,
    counts: Counts,
    pub(super) span: Option<(Time, Time)>,
    is_simulated: bool,
}

impl TrafficCollector {
    /// Makes a collector without packets.
    pub fn new(reading: Reading) -> Self {
        Self {
            reading,
            lowpan: Lowpan::default(),
            tshark: None,
            sightings: Sightings::default(),
            clock: CaptureClock::default(),
            numbers: HashMap::new(),
            pairs: Vec::new(),
            messages: Vec::new(),
            exchanges: Exchanges::default(),
            counts: Counts::default(),
            span: None,
            is_simulated: false,
        }
    }

    /// Adds a packet of a capture.
    pub fn packet(&mut self, packet: &CapturedPacket<'_>) {
        self.counts.packets += 1;
        self.is_simulated |= packet.point != Point::Interface;
        let (first, last) = self.span.unwrap_or((packet.at, packet.at));
        self.span = Some((first.min(packet.at), last.max(packet.at)));
        // The clock of a simulation does not step.
        if packet.point == Point::Interface {
            self.exchanges.era = self.clock.tick(packet.at);
            self.exchanges.went_back = self.clock.went_back();
        }
        // A lost packet was already seen at its sender.
        if packet.point == Point::Loss {
            return;
        }
        match datagram(packet.link, packet.bytes, packet.is_whole, &mut self.lowpan) {
            Ok(mut datagram) => {
                // A radio frame keeps the point that `lowpan` has found.
                if packet.point != Point::Interface {
                    datagram.point = packet.point;
                }
                self.sighted(packet, &datagram);
            }
            Err(Skipped::Link(_) | Skipped::Tunnel) if self.is_read_by_tshark(packet) => {}
            Err(skipped) => self.skip(skipped),
        }
    }

    /// Counts a packet that is not read, by the reason.
    fn skip(&mut self, skipped: Skipped) {
        *self.counts.skipped.entry(skipped).or_default() += 1;
    }

    /// Adds the datagram of a packet, or counts it if it is repeated in the capture. Datagrams of a simulation are
    /// always added, because it writes each one once.
    fn sighted(&mut self, packet: &CapturedPacket<'_>, datagram: &CapturedDatagram<'_>) {
        if packet.point == Point::Interface && self.sightings.is_again(packet.at, datagram) {
            self.counts.again += 1;
        } else {
            self.datagram(packet.at, datagram);
        }
    }

    /// Adds the datagram that tshark finds in a packet. Returns whether there is one.
    fn is_read_by_tshark(&mut self, packet: &CapturedPacket<'_>) -> bool {
        let found = self.tshark.as_mut().and_then(|tshark| tshark.packet(packet.number));
        let Some(found) = found else { return false };
        self.counts.by_tshark += 1;
        self.sighted(packet, &found.datagram(packet.is_whole));
        true
    }

    /// Adds a datagram captured at the time `at`. If it has no CoAP message, it is only counted.
    pub fn datagram(&mut self, at: Time, datagram: &CapturedDatagram<'_>) {
        let ports = [datagram.from.port(), datagram.to.port()];
        let is_named = |port: u16| port == COAP_PORT || self.reading.ports.contains(&port);
        let is_certain = ports.iter().any(|&port| is_named(port));
        // The first byte of such a record has other upper bits than CoAP's version 1, so no message is taken for one.
        if looks_like_dtls(datagram.payload) {
            self.counts.dtls += 1;
            return;
        }
        let Some(seen) = SeenMessage::read(datagram.payload, datagram.is_whole) else {
            // Only its port shows an encrypted record of DTLS 1.3, which begins differently (RFC 9147 §4).
            match (is_certain, ports.contains(&COAPS_PORT)) {
                (true, _) => self.counts.malformed += 1,
                (false, true) => self.counts.dtls += 1,
                (false, false) => self.counts.others += 1,
            }
            return;
        };
        // At a port that nobody named, another protocol may look like CoAP by chance.
        if !is_certain && !seen.is_plausible() {
            self.counts.others += 1;
            return;
        }
        // Two servers that talk to each other may both have a known port.
        let by_port = match ports.map(is_named) {
            [false, true] => Some(From::Client),
            [true, false] => Some(From::Server),
            _ => None,
        };
        self.message(at, datagram, &seen, by_port);
    }

    fn message(
        &mut self,
        at: Time,
        datagram: &CapturedDatagram<'_>,
        seen: &SeenMessage,
        by_port: Option<From>,
    ) {
        let ends = (datagram.from, datagram.to);
        // An empty message of a client looks like one of the server by its code, so ports and known pairs decide first.
        let by_code = if seen.code.is_request() { From::Client } else { From::Server };
        let from = match by_port {
            Some(from) => from,
            None if self.numbers.contains_key(&ends) => From::Client,
            None if self.numbers.contains_key(&(ends.1, ends.0)) => From::Server,
            None => by_code,
        };
        // A simulation writes each packet at both ends. One end is chosen, as if somebody had captured there.
        if !self.is_seen_from_here(datagram.point, from) {
            return;
        }
        let (client, server) = if from == From::Client { ends } else { (ends.1, ends.0) };
        let number = match self.numbers.get(&(client, server)) {
            Some(number) => *number,
            None if self.pairs.len() >= MOST_PAIRS => {
                self.counts.left_out += 1;
                return;
            }
            None => {
                let number = self.pairs.len() as u32;
                self.numbers.insert((client, server), number);
                self.pairs.push(Pair { client, server, is_certain: by_port.is_some() });
                self.messages.push(0);
                number
            }
        };
        self.counts.messages += 1;
        self.messages[number as usize] += 1;
        let met = self.exchanges.message(at, number, from, seen, datagram.ip_bytes, &mut self.counts);
        // An answer that fits a message of the other end proves that the pair speaks CoAP.
        if met && let Some(pair) = self.pairs.get_mut(number as usize) {
            pair.is_certain = true;
        }
    }

    /// Returns whether a capture taken on the selected side would have a message that `from` sent and that was seen at
    /// `point`.
    fn is_seen_from_here(&self, point: Point, from: From) -> bool {
        let is_own = match self.reading.side {
            None | Some(CaptureEnd::Client | CaptureEnd::Middle) => from == From::Client,
            Some(CaptureEnd::Server) => from == From::Server,
        };
        match point {
            Point::Interface => true,
            Point::Sender => is_own,
            Point::Receiver => !is_own,
            Point::Loss => false,
        }
    }

    /// Returns the collected traffic.
    pub fn finish(mut self, ending: Ending) -> Traffic {
        let (mut exchanges, clock) = self.exchanges.finish(self.clock, &mut self.counts);
        let pairs = &self.pairs;
        // Without a known port and without an answer, it may be another protocol that looks like CoAP.
        exchanges.retain(|exchange| pairs[exchange.pair as usize].is_certain);
        let of_pairs = pairs.iter().zip(&self.messages);
        let others: u64 = of_pairs.filter(|(pair, _)| !pair.is_certain).map(|(_, messages)| messages).sum();
        self.counts.messages -= others;
        self.counts.others += others;
        let starts = lives::tell_apart(&mut exchanges, pairs);
        Traffic {
            pairs: self.pairs,
            exchanges,
            starts,
            counts: self.counts,
            span: self.span.map(|(first, last)| clock.span(first, last)),
            steps: clock.steps,
            ending,
            is_simulated: self.is_simulated,
        }
    }
}

impl Traffic {
    /// Returns the exchanges begun by clients, not the exchanges that servers begin with notifications or separate responses.
    pub fn of_clients(&self) -> impl Iterator<Item = &CapturedExchange> {
        self.exchanges.iter().filter(|exchange| exchange.from == From::Client)
    }

    /// Returns where the capture was taken, as the traffic shows it; `None` if the traffic does not show it.
    ///
    /// A client sends no copy once it has an answer, so copies after an answer mean that the answer was lost after the capture
    /// point. A server answers every copy, so copies without an answer mean that something was lost before the server's answer
    /// reached the capture.
    pub fn side(&self) -> Option<CaptureEnd> {
        let (mut copies, mut behind_answers, mut unanswered) = (0u64, 0u64, 0u64);
        for exchange in self.of_clients().filter(|exchange| exchange.copies.len() > 1) {
            let answered = exchange.answers.first().map(|answer| answer.at);
            let again = exchange.copies.iter().skip(1);
            copies += exchange.copies.len() as u64 - 1;
            behind_answers += again.filter(|copy| answered.is_some_and(|at| copy.at > at)).count() as u64;
            unanswered += exchange.copies.len().saturating_sub(exchange.answers.len()) as u64;
        }
        // One copy in fifty may be an answer that arrived while the timer fired.
        let is_rare = |count: u64| count * 50 <= copies;
        match (copies, is_rare(behind_answers), is_rare(unanswered)) {
            (0, ..) => None,
            (_, true, _) => Some(CaptureEnd::Client),
            (_, false, true) => Some(CaptureEnd::Server),
            (_, false, false) => Some(CaptureEnd::Middle),
        }
    }
}

/// Returns whether bytes begin like a record of DTLS 1.0 or 1.2 (RFC 6347 §4.1).
fn looks_like_dtls(bytes: &[u8]) -> bool {
    matches!(bytes, [20..=26, 0xfe, 0xfd | 0xff, ..])
}

#[cfg(test)]
mod tests {
    use super::super::capture::tests::pcap;
    use super::super::fates::Fates;
    use super::super::findings::Findings;
    use super::super::headers::tests::ip;
    use super::super::workload::ObservedWorkload;
    use super::*;

    const CLIENT: &str = "10.0.0.1:40000";
    const SERVER: &str = "10.0.0.2:5683";

    fn of(reading: &Reading, packets: &[(u64, &str, &str, &[u8])]) -> Traffic {
        let packets: Vec<_> =
            packets.iter().map(|&(us, from, to, bytes)| (us, ip(from, to, bytes))).collect();
        let packets: Vec<_> = packets.iter().map(|(us, bytes)| (*us, &bytes[..])).collect();
        read(&*pcap(101, &packets), reading, None, &mut || ControlFlow::Continue(())).unwrap()
    }

    const GET: [u8; 4] = [0x40, 1, 0, 7];
    const CONTENT: [u8; 4] = [0x60, 0x45, 0, 7];

    #[test]
    fn requests_and_their_answers_are_counted_as_exchanges() {
        let traffic = of(&Reading::default(), &[(0, CLIENT, SERVER, &GET), (9, SERVER, CLIENT, &CONTENT)]);
        assert_eq!((traffic.exchanges.len(), traffic.pairs.len()), (1, 1));
        assert_eq!(traffic.pairs[0].client.to_string(), CLIENT);
        assert_eq!(traffic.exchanges[0].answers[0].at, Time::from_nanos(9_000));
        assert_eq!(traffic.side(), None);
    }

    #[test]
    fn traffic_on_other_ports_counts_if_both_sides_speak_coap() {
        let other = "10.0.0.2:7000";
        let both = of(&Reading::default(), &[(0, CLIENT, other, &GET), (9, other, CLIENT, &CONTENT)]);
        assert_eq!((both.exchanges.len(), both.pairs[0].server.port()), (1, 7000));
        let one = of(&Reading::default(), &[(0, CLIENT, other, &GET)]);
        assert_eq!(one.exchanges.len(), 0);
        let silent = of(&Reading::default(), &[(0, CLIENT, other, &GET), (9_000_000, CLIENT, other, &GET)]);
        assert_eq!((silent.counts.messages, silent.counts.others), (0, 2), "each datagram counts once");
        let named = Reading { ports: vec![7000], side: None };
        assert_eq!(of(&named, &[(0, CLIENT, other, &GET)]).exchanges.len(), 1);
    }

    #[test]
    fn dtls_packets_of_a_capture_are_counted_and_not_read() {
        let hello = [22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0];
        let traffic =
            of(&Reading::default(), &[(0, CLIENT, "10.0.0.2:5684", &hello), (1, CLIENT, SERVER, &hello)]);
        assert_eq!((traffic.counts.dtls, traffic.counts.messages), (2, 0));
    }

    /// Returns a request with this Message ID and its answer after 50 ms: microseconds, addresses, bytes.
    fn answered(us: u64, id: u8) -> [(u64, &'static str, &'static str, Vec<u8>); 2] {
        [
            (us, CLIENT, SERVER, vec![0x40, 1, 0, id, 0xb1, b'a']),
            (us + 50_000, SERVER, CLIENT, vec![0x60, 0x45, 0, id]),
        ]
    }

    /// Reads packets, and returns the traffic and the findings. Steps of the clock must not cause a panic.
    fn found(packets: &[(u64, &'static str, &'static str, Vec<u8>)]) -> (Traffic, Findings) {
        let packets: Vec<_> =
            packets.iter().map(|(us, from, to, bytes)| (*us, *from, *to, &bytes[..])).collect();
        let traffic = of(&Reading::default(), &packets);
        let findings = Findings::of(&traffic, &Fates::of(&traffic), None);
        (traffic, findings)
    }

    #[test]
    fn a_capture_with_every_packet_twice_has_no_retransmissions() {
        let once = (0..90).flat_map(|id| answered(1_000_000 * u64::from(id), id));
        let twice: Vec<_> =
            once.flat_map(|packet| [packet.clone(), (packet.0 + 45, packet.1, packet.2, packet.3)]).collect();
        let (traffic, findings) = found(&twice);
        assert_eq!((findings.exchanges, findings.transmissions, findings.retransmissions), (90, 90, 0));
        assert_eq!((traffic.counts.again, findings.duplicates), (180, 0));
        assert!(findings.timeouts.is_none());
    }

    #[test]
    fn steps_of_the_capture_clock_do_not_cause_negative_or_absurd_times() {
        // It steps back by 5 s, forward by an hour, and by four years, each between a request and its answer.
        let mut packets = Vec::new();
        let mut clock_us = 1_600_000_000_000_000;
        for id in 0..120 {
            let [ask, answer] = answered(clock_us, id);
            packets.push(ask);
            match id {
                30 => clock_us -= 5_000_000,
                60 => clock_us += 3_600_000_000,
                90 => clock_us += 4 * 365 * 86_400_000_000,
                _ => {}
            }
            packets.push((clock_us + 50_000, answer.1, answer.2, answer.3));
            clock_us += 1_000_000;
        }
        let (traffic, findings) = found(&packets);
        let steps: Vec<_> = traffic.steps.iter().map(|step| step.by_s.round()).collect();
        assert_eq!(steps, [-5.0, 3_600.0, 126_144_000.0]);
        assert_eq!((findings.exchanges, findings.completed, traffic.counts.torn), (117, 117, 3));
        let rtt = findings.round_trips.unwrap();
        assert!((0.049..0.051).contains(&rtt.min_s) && (0.049..0.051).contains(&rtt.max_s), "{rtt:?}");
        assert!((100.0..125.0).contains(&findings.reading.seconds), "{}", findings.reading.seconds);
        let workload = ObservedWorkload::of(&traffic).unwrap();
        assert!((0.9..1.0).contains(&workload.pause_s) && workload.is_pause_constant, "{workload:?}");
    }

    #[test]
    fn a_duplicate_counts_as_a_retransmission_unless_the_clock_stepped_back() {
        let ask = |us| answered(us, 7)[0].clone();
        let (traffic, findings) =
            found(&[ask(10_000_000), ask(12_000_000), answered(12_000_000, 7)[1].clone()]);
        assert_eq!((findings.exchanges, findings.retransmissions, traffic.counts.torn), (1, 1, 0));
        let (traffic, findings) =
            found(&[ask(10_000_000), ask(7_000_000), answered(7_000_000, 7)[1].clone()]);
        assert_eq!((findings.exchanges, findings.retransmissions, traffic.counts.torn), (0, 0, 2));
    }

    #[test]
    fn copies_captured_after_answers_reveal_the_side_of_the_capture() {
        let copies = [(0, CLIENT, SERVER, &GET[..]), (2_000_000, CLIENT, SERVER, &GET)];
        let late = (2_000_900, SERVER, CLIENT, &CONTENT[..]);
        assert_eq!(of(&Reading::default(), &[copies[0], copies[1], late]).side(), Some(CaptureEnd::Client));
        let early = (100, SERVER, CLIENT, &CONTENT[..]);
        let all = of(&Reading::default(), &[copies[0], early, copies[1], late]);
        assert_eq!(all.side(), Some(CaptureEnd::Server));
        assert_eq!(of(&Reading::default(), &[copies[0], early, copies[1]]).side(), Some(CaptureEnd::Middle));
    }

    #[test]
    fn notifications_to_a_non_confirmable_request_are_not_doubled_answers() {
        // Each has its own Observe option (6), the Message ID and the payload.
        let notification = |n: u8| vec![0x51, 0x45, 1, n, 5, 0x61, n, 0xff, n];
        let register = (0, CLIENT, SERVER, vec![0x51, 1, 0, 7, 5, 0x60]);
        let notifications = (1..=250).map(|n| (1_000_000 * u64::from(n), SERVER, CLIENT, notification(n)));
        let (traffic, findings) = found(&[register].into_iter().chain(notifications).collect::<Vec<_>>());
        assert_eq!((traffic.exchanges[0].answers.len(), findings.duplicates), (1, 0));
    }
}
