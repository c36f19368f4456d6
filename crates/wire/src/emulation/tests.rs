use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use coapace_run::contender::Contender;
use coapace_run::{Observe, run_tapped};
use coapace_scenario::Scenario;
use coapace_sim::{Event, NodeId, Record, Tap};

use super::*;

const ANY: &str = "127.0.0.1:0";

fn scenario(set: &[(&str, &str)]) -> Scenario {
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Scenario::load("lossy-lan", &set).expect("a scenario")
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(ANY).expect("a port");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    socket
}

fn any() -> SocketAddr {
    ANY.parse().expect("an address")
}

/// Waits until an emulation has counted enough.
fn until(relay: &RunningRelay<impl Send>, enough: impl Fn(&EmulationCounts) -> bool) -> EmulationCounts {
    for _ in 0..1_000 {
        let counts = relay.counts();
        if enough(&counts) {
            return counts;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{:?} after ten seconds", relay.counts());
}

/// A tap that keeps the packets that were lost.
#[derive(Default)]
struct LostPackets(Vec<Vec<u8>>);

impl Tap for LostPackets {
    fn record(&mut self, record: &Record<'_>) {
        if record.event == Event::Lost {
            self.0.push(record.bytes.to_vec());
        }
    }
}

#[test]
fn emulate_refuses_a_mesh_and_a_target_equal_to_its_own_address() {
    let mesh = Scenario::load("mesh-grid", &[]).expect("a scenario");
    let error = Emulation::new(&mesh, 1).relay(any(), any(), ()).unwrap_err().to_string();
    assert!(error.starts_with("a mesh cannot be emulated"), "{error}");
    let here: SocketAddr = "127.0.0.1:5683".parse().expect("an address");
    let error = Emulation::new(&scenario(&[]), 1).relay(here, here, ()).unwrap_err().to_string();
    assert!(error.contains("send to itself"), "{error}");
    let taken = socket();
    let taken = taken.local_addr().expect("an address");
    let error = Emulation::new(&scenario(&[]), 1).relay(taken, here, ()).unwrap_err().to_string();
    assert!(error.starts_with("cannot listen at 127.0.0.1:"), "{error}");
}

#[test]
fn every_emulated_source_has_its_own_port_and_gets_its_own_answers() {
    let (server, clients) = (socket(), [socket(), socket(), socket()]);
    let lossless = scenario(&[("loss", "0 %")]);
    let relay = Emulation::new(&lossless, 1).relay(any(), server.local_addr().unwrap(), ()).unwrap();
    let mut ports = Vec::new();
    let mut buffer = [0; 16];
    for round in 0..3u8 {
        for (number, client) in (0u8..).zip(&clients) {
            client.send_to(&[round, number], relay.local_addr()).unwrap();
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(buffer[..length], [round, number]);
            ports.push(from);
            server.send_to(&[number, round, 7], from).unwrap();
            let (length, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..length], from), (&[number, round, 7][..], relay.local_addr()));
        }
    }
    assert_eq!((&ports[..3], &ports[3..6]), (&ports[3..6], &ports[6..]), "ports stay");
    assert!(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2]);
    let (counts, ()) = relay.stop().unwrap();
    assert_eq!((counts.entered, counts.arrived, counts.sources), (18, 18, 3));
    assert_eq!(counts.lateness.count, 18);
}

#[test]
fn the_emulator_loses_the_same_transmissions_with_equal_seeds() {
    let lossy = scenario(&[("loss", "40 %")]);
    let lost = |seed| {
        let (server, client) = (socket(), socket());
        let to = server.local_addr().unwrap();
        let relay = Emulation::new(&lossy, seed).relay(any(), to, LostPackets::default()).unwrap();
        for id in 0..60u8 {
            // Each message and a copy of it.
            client.send_to(&[0x40, 1, 0, id / 2], relay.local_addr()).unwrap();
        }
        until(&relay, |counts| counts.arrived + counts.lost == 60);
        relay.stop().unwrap().1.0
    };
    let (mut once, mut again, mut other) = (lost(1), lost(1), lost(2));
    assert!((10..40).contains(&once.len()), "{} lost", once.len());
    // The order in which packets are lost follows their arrival, which jitter of the machine may change.
    for list in [&mut once, &mut again, &mut other] {
        list.sort();
    }
    assert_eq!(once, again);
    assert_ne!(once, other);
}

/// A tap that keeps the transmissions of the first client to the server, and whether each was lost.
#[derive(Default)]
struct TransmissionFates(BTreeMap<(u32, u8), bool>);

impl Tap for TransmissionFates {
    fn record(&mut self, record: &Record<'_>) {
        if (record.from, record.to) == (NodeId(1), NodeId(0))
            && matches!(record.event, Event::Sent | Event::Lost)
        {
            self.0.insert((record.mark.exchange, record.mark.transmission), record.event == Event::Lost);
        }
    }
}

#[test]
fn emulation_and_simulation_lose_the_same_transmissions_with_equal_seeds() {
    let lossy = scenario(&[("loss", "40 %"), ("clients", "1"), ("workload.exchanges", "30")]);
    let contender = Contender::parse("default").expect("a mechanism");
    let (_, simulated) = run_tapped(&lossy, &contender, 5, Observe::Totals, TransmissionFates::default());
    let (server, client) = (socket(), socket());
    let relay = Emulation::new(&lossy, 5)
        .relay(any(), server.local_addr().unwrap(), TransmissionFates::default())
        .unwrap();
    for id in 0..90u8 {
        client.send_to(&[0x40, 1, 0x77, id / 3], relay.local_addr()).unwrap();
    }
    until(&relay, |counts| counts.arrived + counts.lost == 90);
    let (_, emulated) = relay.stop().unwrap();
    let both: Vec<_> = emulated.0.iter().filter(|(step, _)| simulated.0.contains_key(step)).collect();
    assert!(both.len() >= 40 && both.iter().any(|(_, lost)| **lost), "{} steps", both.len());
    for (step, lost) in both {
        assert_eq!(simulated.0[step], *lost, "exchange and transmission {step:?}");
    }
}

#[test]
fn the_least_recently_used_source_is_dropped_if_the_emulator_is_full() {
    let server = socket();
    let lossless = scenario(&[("loss", "0 %")]);
    let relay =
        Emulation::new(&lossless, 1).sources(4).relay(any(), server.local_addr().unwrap(), ()).unwrap();
    let clients: Vec<_> = (0..20).map(|_| socket()).collect();
    let mut buffer = [0; 16];
    for client in &clients {
        client.send_to(b"hello", relay.local_addr()).unwrap();
        let (_, from) = server.recv_from(&mut buffer).unwrap();
        server.send_to(b"world", from).unwrap();
        client.recv_from(&mut buffer).unwrap();
    }
    let (counts, ()) = relay.stop().unwrap();
    assert_eq!((counts.arrived, counts.sources, counts.replaced), (40, 4, 16));
    let complaints = counts.complaints().join("\n");
    assert!(complaints.contains("16 sources were replaced by new ones"), "{complaints}");
}

#[test]
fn datagrams_that_are_not_coap_pass_the_emulator_unchanged() {
    let (server, client) = (socket(), socket());
    let lossless = scenario(&[("loss", "0 %")]);
    let relay = Emulation::new(&lossless, 1).relay(any(), server.local_addr().unwrap(), ()).unwrap();
    let mut buffer = vec![0; 70_000];
    for length in [0, 1, 3, 4, 5, 100, 1_473, 20_000, 60_000] {
        let datagram: Vec<u8> = (0..length).map(|n: u32| (n * 7 % 251) as u8).collect();
        client.send_to(&datagram, relay.local_addr()).unwrap();
        let (received, _) = server.recv_from(&mut buffer).unwrap();
        assert!(buffer[..received] == datagram, "{length} bytes");
    }
    let (counts, ()) = relay.stop().unwrap();
    assert_eq!((counts.arrived, counts.oversized), (9, 3));
}

#[test]
fn the_emulator_survives_a_flood_of_malformed_datagrams_from_many_sources() {
    let server = socket();
    let lossless = scenario(&[("loss", "0 %"), ("delay", "1 ms")]);
    let relay =
        Emulation::new(&lossless, 1).sources(16).relay(any(), server.local_addr().unwrap(), ()).unwrap();
    // The sockets stay open, for a port that is free again may be given to another source.
    let sockets: Vec<_> = (0..100).map(|_| socket()).collect();
    let mut sent = 0;
    for (source, socket) in (0..100u8).zip(&sockets) {
        for n in 0..30u8 {
            // Headers with every version, type and length of a token, cut off or not.
            let datagram = [source.wrapping_mul(31) ^ n, n, source, n, source];
            socket.send_to(&datagram[..usize::from(n % 6)], relay.local_addr()).unwrap();
            sent += 1;
        }
        if source % 10 == 9 {
            until(&relay, |counts| counts.entered + counts.refused + counts.overflowed >= sent);
        }
    }
    let last = socket();
    last.send_to(b"still here?", relay.local_addr()).unwrap();
    let mut buffer = [0; 32];
    while server.recv_from(&mut buffer).unwrap().0 != 11 {}
    let (counts, ()) = relay.stop().unwrap();
    assert!(counts.sources <= 16 && counts.replaced + counts.refused >= 85, "{counts:?}");
}

#[test]
fn the_emulator_reports_a_closed_port_of_the_server() {
    let (server, client) = (socket(), socket());
    let gone = server.local_addr().unwrap();
    drop(server);
    let lossless = scenario(&[("loss", "0 %")]);
    let relay = Emulation::new(&lossless, 1).relay(any(), gone, ()).unwrap();
    client.send_to(b"hello", relay.local_addr()).unwrap();
    let counts = until(&relay, |counts| counts.unreachable > 0);
    let complaints = counts.complaints().join("\n");
    assert!(complaints.contains("nobody listens"), "{complaints}");
    assert!(!relay.has_ended());
}

#[test]
fn a_capture_of_the_emulator_has_packets_before_and_after_the_network() {
    let (server, client) = (socket(), socket());
    let lossless = scenario(&[("loss", "0 %")]);
    let capture = Capture::new(Vec::new(), &lossless);
    let relay = Emulation::new(&lossless, 1).relay(any(), server.local_addr().unwrap(), capture).unwrap();
    client.send_to(b"before and behind", relay.local_addr()).unwrap();
    server.recv_from(&mut [0; 32]).unwrap();
    let (_, capture) = relay.stop().unwrap();
    let file = capture.finish().unwrap();
    assert_eq!(file.windows(17).filter(|bytes| bytes == b"before and behind").count(), 2);
}

#[test]
fn the_emulator_warns_only_if_a_counter_shows_a_problem() {
    let mut counts = EmulationCounts::default();
    (0..10_000).for_each(|_| counts.depart(Duration::from_micros(80)));
    assert_eq!((counts.complaints(), counts.is_overloaded()), (Vec::new(), false));
    counts.depart(Duration::from_millis(6));
    assert!(!counts.is_overloaded(), "one in ten thousand");
    assert!(counts.complaints()[0].contains("1 of 10001 departures"), "{:?}", counts.complaints());
    (0..100).for_each(|_| counts.depart(Duration::from_millis(6)));
    assert!(counts.is_overloaded() && counts.complaints()[0].contains("overload"));
    let counts = EmulationCounts { overflowed: 3, ..EmulationCounts::default() };
    assert!(counts.is_overloaded() && counts.complaints()[0].contains("3 packets"));
}
