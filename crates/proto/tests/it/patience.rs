//! The time for which an endpoint waits for a peer that does not answer, and the datagrams that such a peer
//! gets, under every mechanism.

use crate::common::{CONTENT, Client, reply_to, secs};
use coapace_control::{Duration, Instant, Mechanism, REGISTRY};
use coapace_proto::{Config, Event, Failure, Kind};

/// The round-trip time of the path: 1 ms.
const RTT: Duration = Duration::from_millis(1);

/// Runs a hundred exchanges over a path of 1 ms under a mechanism. Returns the client and the moment.
fn settled(mechanism: &str, config: Config) -> (Client<Mechanism>, Instant) {
    let mut client = Client::running(mechanism, config);
    let mut now = secs(1);
    for _ in 0..100 {
        client.get(now, "t");
        let request = std::iter::from_fn(|| {
            let at = client.endpoint.poll_timeout();
            client.sent(now).or_else(|| {
                now = at?;
                client.endpoint.handle_timeout(now);
                client.sent(now)
            })
        })
        .next()
        .unwrap();
        now = now + RTT;
        client.receive(now, &reply_to(&request, Kind::Acknowledgement, CONTENT, b"")).unwrap();
    }
    (client, now)
}

/// Sends a new request as soon as one has failed, for the time `span`, to a peer that never answers. Returns
/// when each datagram departed, and when each request failed.
fn dead(client: &mut Client<Mechanism>, from: Instant, span: Duration) -> (Vec<Instant>, Vec<Instant>) {
    let (mut departed, mut failed, mut now) = (Vec::new(), Vec::new(), from);
    client.get(now, "t");
    while now <= from + span {
        while client.sent(now).is_some() {
            departed.push(now);
        }
        while let Some(event) = client.endpoint.poll_event() {
            assert!(matches!(event, Event::Failed { failure: Failure::GivenUp, .. }));
            failed.push(now);
            client.get(now, "t");
        }
        match client.endpoint.poll_timeout() {
            Some(at) if at > now => now = at,
            _ => {}
        }
        client.endpoint.handle_timeout(now);
    }
    (departed, failed)
}

/// Returns the most moments that fell within any `window`.
fn most_within(moments: &[Instant], window: Duration) -> usize {
    let from = |first: usize| moments[first..].iter().take_while(|&&at| at < moments[first] + window).count();
    (0..moments.len()).map(from).max().unwrap_or(0)
}

#[test]
fn with_patience_a_dead_peer_gets_no_more_copies_than_with_rfc_7252_in_any_45_s() {
    for entry in REGISTRY {
        let (mut client, now) = settled(entry.name, Config { nstart: Some(1), ..Config::default() });
        let (departed, _) = dead(&mut client, now, Duration::from_secs(600));
        let most = most_within(&departed, Duration::from_secs(45));
        assert!(most <= 5, "{}: {most} in 45 s, {departed:?}", entry.name);
        assert!(departed.len() >= 12, "{} goes on trying: {}", entry.name, departed.len());
    }
}

#[test]
fn without_patience_a_fast_mechanism_floods_a_dead_peer() {
    let config = Config { patience: false, nstart: Some(1), ..Config::default() };
    let (mut client, now) = settled("fasor", config);
    let (departed, failed) = dead(&mut client, now, Duration::from_secs(3));
    assert!(departed.len() > 5 && !failed.is_empty(), "what patience is for");
}

#[test]
fn with_patience_no_request_fails_sooner_than_with_rfc_7252() {
    for entry in REGISTRY {
        let (mut client, now) = settled(entry.name, Config { nstart: Some(1), ..Config::default() });
        let (_, failed) = dead(&mut client, now, Duration::from_secs(600));
        for (earlier, later) in [now].iter().chain(&failed).zip(&failed) {
            let span = later.since(*earlier);
            assert!(span >= Duration::from_secs(62), "{} gave up after {span}", entry.name);
        }
    }
}

#[test]
fn a_request_survives_an_outage_of_40_s() {
    for entry in REGISTRY {
        let (mut client, begun) = settled(entry.name, Config { nstart: Some(1), ..Config::default() });
        client.get(begun, "t");
        let mut now = begun;
        let answered = loop {
            assert!(client.endpoint.poll_event().is_none(), "{} failed", entry.name);
            if let Some(request) = client.sent(now) {
                if now >= begun + Duration::from_secs(30) {
                    break client
                        .receive(now + RTT, &reply_to(&request, Kind::Acknowledgement, CONTENT, b""))
                        .is_some();
                }
                continue;
            }
            now = client.endpoint.poll_timeout().unwrap();
            client.endpoint.handle_timeout(now);
        };
        assert!(answered && now <= begun + Duration::from_secs(60), "{}: {now:?}", entry.name);
    }
}

#[test]
fn a_late_last_retransmission_still_waits_for_its_answer() {
    let (mut client, mut now) = settled("fasor", Config::default());
    client.get(now, "t");
    for _ in 0..5 {
        while client.sent(now).is_some() {}
        now = client.endpoint.poll_timeout().unwrap();
        client.endpoint.handle_timeout(now);
    }
    // The copy that the endpoint adds is due. The device sleeps until the exchange would be over.
    now = client.endpoint.poll_timeout().unwrap();
    client.endpoint.handle_timeout(now);
    now = now + Duration::from_secs(200);
    let copy = client.sent(now).unwrap();
    assert_eq!(client.endpoint.poll_timeout(), Some(now + Duration::from_secs(31)));
    now = now + Duration::from_secs(30);
    client.endpoint.handle_timeout(now);
    let answer = reply_to(&copy, Kind::Acknowledgement, CONTENT, b"");
    assert!(matches!(client.receive(now, &answer), Some(Event::Response { .. })));
}

#[test]
fn after_a_give_up_timeouts_follow_rfc_7252_until_the_peer_answers() {
    // The backoff of the mechanism may outlive the exchange, too, and be longer.
    let (mut client, now) = settled("fasor:give_up=keep", Config::default());
    let (departed, failed) = dead(&mut client, now, Duration::from_secs(150));
    let second: Vec<_> =
        departed.iter().filter(|&&at| at >= failed[0]).map(|at| at.since(failed[0])).collect();
    assert_eq!(second[..4], [0, 2, 6, 14].map(Duration::from_secs), "draws are 0");

    let mut now = now + Duration::from_secs(150);
    let request = loop {
        if let Some(request) = client.sent(now) {
            break request;
        }
        if client.endpoint.poll_event().is_some() {
            client.get(now, "t");
            continue;
        }
        now = client.endpoint.poll_timeout().unwrap();
        client.endpoint.handle_timeout(now);
    };
    now = now + RTT;
    client.receive(now, &reply_to(&request, Kind::Acknowledgement, CONTENT, b"")).unwrap();
    client.get(now, "t");
    client.sent(now).unwrap();
    assert!(client.endpoint.poll_timeout().unwrap() < now + Duration::from_secs(2), "it is its own again");
}

#[test]
fn patience_follows_the_parameters_of_the_endpoint() {
    let (mut client, now) =
        settled("fasor:initial_rto=100ms", Config { max_retransmit: 2, ..Config::default() });
    let (departed, failed) = dead(&mut client, now, Duration::from_millis(1_200));
    assert!(failed[0] >= now + Duration::from_millis(700) && failed[0] <= now + Duration::from_millis(1_050));
    assert!(most_within(&departed, Duration::from_millis(450)) <= 3, "{departed:?}");
}

#[test]
fn with_max_retransmit_0_patience_sends_no_probes() {
    let (mut client, now) = settled("fasor", Config { max_retransmit: 0, ..Config::default() });
    let (departed, failed) = dead(&mut client, now, Duration::from_secs(4));
    assert_eq!(departed, [now, now + Duration::from_secs(3)]);
    assert_eq!(failed, [now + Duration::from_secs(3)]);
}

#[test]
fn patience_does_not_change_the_default_mechanism() {
    let (mut with, now) = settled("default", Config::default());
    let (mut without, _) = settled("default", Config { patience: false, ..Config::default() });
    let span = Duration::from_secs(500);
    assert_eq!(dead(&mut with, now, span), dead(&mut without, now, span));
}
