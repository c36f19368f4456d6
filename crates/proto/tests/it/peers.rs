//! Exchanges that wait for their place with a peer, and the state that is kept of peers.

use crate::common::{CONTENT, Client, GET, ms, reply_to, secs};
use coapace_control::{Draw, Duration, Instant};
use coapace_proto::{Code, Config, Kind, Request, SendError, Token};

#[test]
fn nstart_exchanges_are_outstanding_and_each_answer_releases_one_more() {
    let mut client = Client::with(Config { nstart: Some(2), ..Config::default() });
    for token in ["a", "b", "c", "d"] {
        client.get(ms(0), token);
    }
    let sent: Vec<_> = std::iter::from_fn(|| client.sent(ms(0))).collect();
    assert_eq!(sent.iter().map(|bytes| bytes[4]).collect::<Vec<_>>(), b"ab");
    assert_ne!(sent[0][2..4], sent[1][2..4]);

    let response = reply_to(&sent[1], Kind::Acknowledgement, CONTENT, b"");
    assert!(client.receive(ms(50), &response).is_some());
    assert_eq!(client.sent(ms(50)).unwrap()[4], b'c');
    assert_eq!(client.sent(ms(50)), None);
    client.receive(ms(60), &[0x60, 0, sent[0][2], sent[0][3]]).unwrap();
    assert_eq!(client.sent(ms(60)).unwrap()[4], b'd', "an empty acknowledgement frees a place too");
    assert_eq!(client.endpoint.exchanges(), 3, "a awaits its response, c and d are outstanding");
}

#[test]
fn nstart_is_counted_for_each_destination() {
    let mut client = Client::default();
    let mut buffer = Vec::new();
    let mut departed = Vec::new();
    for to in [1, 2, 1, 2, 3] {
        let request =
            Request { confirmable: true, code: GET, token: Token::EMPTY, tail: b"", repeatable: false };
        client.endpoint.request(ms(0), to, request).unwrap();
    }
    while let Some(transmit) = client.endpoint.poll_transmit(ms(0), |_| Draw::ZERO, &mut buffer) {
        departed.push(transmit.to);
    }
    assert_eq!(departed, [1, 2, 3]);
}

/// Runs an exchange with `peer` at `at`, which is answered 100 ms later.
fn exchange_with(client: &mut Client, at: Instant, peer: u32) -> u16 {
    let request =
        Request { confirmable: true, code: Code(1), token: Token::EMPTY, tail: b"", repeatable: false };
    client.endpoint.request(at, peer, request).unwrap();
    let mut bytes = Vec::new();
    assert!(client.endpoint.poll_transmit(at, |_| Draw::ZERO, &mut bytes).is_some());
    let response = reply_to(&bytes, Kind::Acknowledgement, CONTENT, b"");
    let now = at + Duration::from_millis(100);
    assert!(client.endpoint.handle_datagram(now, peer, &response).is_some());
    u16::from_be_bytes([bytes[2], bytes[3]])
}

#[test]
fn the_rto_estimate_of_the_least_recently_used_peer_is_dropped() {
    let mut client = Client::running("fasor", Config { max_peers: 2, ..Config::default() });
    for (at, peer) in [(0, 1), (1, 2), (2, 1), (3, 3)] {
        exchange_with(&mut client, secs(at), peer);
    }
    let srtt = |peer| client.endpoint.gauges(peer).map(|gauges| gauges.srtt);
    assert_eq!(srtt(1), Some(Some(Duration::from_millis(100))));
    assert_eq!(srtt(2), None);
    assert_eq!(srtt(3), Some(Some(Duration::from_millis(100))));
    assert_eq!(client.endpoint.peers(), 2);
}

#[test]
fn a_refused_request_does_not_displace_a_peer() {
    let config = Config { max_peers: 1, max_exchanges: 0, ..Config::default() };
    let mut full = Client::with(config);
    let request = Request { confirmable: true, code: GET, token: Token::EMPTY, tail: b"", repeatable: false };
    assert_eq!(full.endpoint.request(ms(0), 1, request), Err(SendError::ExchangesFull));
    assert_eq!(full.endpoint.peers(), 0);

    let mut client = Client::running("fasor-token", Config { max_peers: 1, ..Config::default() });
    exchange_with(&mut client, ms(0), 1);
    let request = Request { token: Token::new(b"12345678").unwrap(), ..request };
    assert_eq!(client.endpoint.request(secs(1), 2, request), Err(SendError::TokenTooLong));
    assert!(client.endpoint.gauges(1).unwrap().srtt.is_some());
}

#[test]
fn a_dropped_peer_has_no_rto_estimate_and_an_unknown_peer_no_gauges() {
    let mut client = Client::running("fasor", Config::default());
    assert_eq!(client.endpoint.gauges(1), None);
    exchange_with(&mut client, ms(0), 1);
    client.endpoint.forget(1);
    assert_eq!(client.endpoint.gauges(1).unwrap().srtt, None);
}

#[test]
fn message_ids_continue_until_the_peer_is_dropped() {
    let mut client = Client::running("fasor", Config::default());
    let first = exchange_with(&mut client, ms(0), 1);
    assert_eq!(exchange_with(&mut client, secs(1), 1), first.wrapping_add(1));
    let mut starts = vec![first];
    for second in 2..100 {
        client.endpoint.forget(1);
        let start = exchange_with(&mut client, secs(second), 1);
        assert!(starts.iter().all(|other| other.abs_diff(start) > 200), "{start} after {starts:?}");
        starts.push(start);
    }
}
