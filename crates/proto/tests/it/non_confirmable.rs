//! The limits of non-confirmable messages under every mechanism (RFC 7252 §4.7, RFC 7641 §4.5.1,
//! draft-ietf-core-cocoa-03 §5).

use crate::common::{CONTENT, Client, GET, ms, reply_to, secs};
use crate::end::End;
use crate::noting::{NotedCall, Noting};
use coapace_control::{Controller, Draw, Duration, Instant, Limits, REGISTRY};
use coapace_proto::{Config, Event, Failure, Kind, Request, Tail, Token};
use proptest::prelude::*;

/// Returns an NSTART that is large enough: a message without an answer keeps no other waiting.
fn roomy() -> Config {
    Config { nstart: Some(64), ..Config::default() }
}

/// The bytes of a GET of `x` with a token of one byte. PROBING_RATE allows one byte a second, so these are
/// seconds, too.
const SIZE: u64 = 7;

/// The seconds between two messages as long as no round-trip time was measured (RFC 7641 §4.5.1).
const GAP: u64 = 3;

fn is_confirmable(bytes: &[u8]) -> bool {
    bytes[0] >> 4 & 3 == Kind::Confirmable as u8
}

/// Sends all datagrams that are due.
fn drain<C: Controller>(client: &mut Client<C>, now: Instant) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| client.sent(now)).collect()
}

/// Calls the endpoint at each moment that `poll_timeout` names, up to `until`. Returns what departed when.
fn play<C: Controller>(client: &mut Client<C>, from: Instant, until: Instant) -> Vec<(Instant, Vec<u8>)> {
    let mut now = from;
    let mut departed = Vec::new();
    loop {
        departed.extend(drain(client, now).into_iter().map(|bytes| (now, bytes)));
        match client.endpoint.poll_timeout().filter(|&at| at <= until) {
            Some(at) => now = at,
            None => return departed,
        }
        client.endpoint.handle_timeout(now);
    }
}

fn moments(departed: &[(Instant, Vec<u8>)]) -> Vec<u64> {
    departed.iter().map(|(at, _)| at.as_micros() / 1_000_000).collect()
}

#[test]
fn the_next_non_confirmable_message_departs_after_the_gap_of_the_mechanism() {
    let mut client = Client::with(roomy());
    for token in ["a", "b", "c"] {
        client.ask(ms(0), token, false);
    }
    assert_eq!(drain(&mut client, ms(0)).len(), 1);
    assert_eq!(client.endpoint.poll_timeout(), Some(secs(GAP)), "what waits for a rate shows");
    assert_eq!(moments(&play(&mut client, ms(0), secs(100))), [GAP, 2 * GAP]);
}

#[test]
fn a_destination_that_leaves_confirmable_messages_unanswered_gets_no_more_than_probing_rate() {
    for rate in [1, 3, 50] {
        let config = Config { probing_rate: rate, confirmable_every: 0, ..roomy() };
        let mut client = Client::set_up(&Noting::set_up(Noting::LIMITS, config));
        client.get(ms(0), "a");
        assert_eq!(play(&mut client, ms(0), secs(100)).len(), 5);
        assert!(matches!(client.endpoint.poll_event(), Some(Event::Failed { .. })));
        for len in 0..40 {
            let tail = Tail::default().payload(&vec![b'.'; len * 37 % 150]).into_bytes();
            let request = Request {
                confirmable: false,
                code: GET,
                token: Token::EMPTY,
                tail: &tail,
                repeatable: false,
            };
            client.endpoint.request(secs(100), 9, request).unwrap();
        }
        let departed = play(&mut client, secs(100), secs(100_000));
        assert_eq!(departed.len(), 40, "none is left behind");
        let mut paid = 0;
        for (at, bytes) in departed {
            let allowed = at.since(secs(100)).as_micros() * u64::from(rate);
            assert!(paid * 1_000_000 <= allowed, "{paid} bytes by {at:?} at {rate} bytes/s");
            paid += bytes.len() as u64;
        }
        let timed_out = std::iter::from_fn(|| client.endpoint.poll_event());
        assert_eq!(timed_out.count(), 40, "none is answered");
        assert_eq!((client.endpoint.exchanges(), client.endpoint.poll_timeout()), (0, None));
    }
}

#[test]
fn the_shorter_of_the_gaps_of_probing_rate_and_the_mechanism_applies() {
    let gap = |non_gap, probing_rate| {
        let limits = Limits { non_gap: Duration::from_secs(non_gap), ..Noting::LIMITS };
        let mut client = Client::set_up(&Noting::set_up(limits, Config { probing_rate, ..roomy() }));
        client.ask(ms(0), "a", false);
        client.ask(ms(0), "b", false);
        moments(&play(&mut client, ms(0), secs(100)))[1]
    };
    assert_eq!(gap(5, 1), 5);
    assert_eq!(gap(9, 1), SIZE, "1 byte/s is always allowed");
    assert_eq!(gap(5, 0), 5, "without PROBING_RATE the gap is left");
    assert_eq!(gap(0, 0), 0, "and without both nothing");
}

#[test]
fn non_confirmable_messages_are_3_s_apart_with_every_mechanism_before_the_first_sample() {
    // rtt-coap allows one outstanding request until a round-trip time was measured, whatever NSTART is.
    for entry in REGISTRY.iter().filter(|entry| entry.name != "rtt-coap") {
        let mut client = Client::running(entry.name, Config { probing_rate: 0, ..roomy() });
        for token in ["a", "b", "c"] {
            client.ask(ms(0), token, false);
        }
        assert_eq!(moments(&play(&mut client, ms(0), secs(100))), [0, 3, 6], "{}", entry.name);
    }
}

#[test]
fn after_the_first_sample_non_confirmable_messages_are_an_rto_apart() {
    let mut client = Client::running("linux-rto", Config { probing_rate: 0, ..roomy() });
    client.get(ms(0), "m");
    let request = client.sent(ms(0)).unwrap();
    client.receive(ms(100), &reply_to(&request, Kind::Acknowledgement, CONTENT, b"")).unwrap();
    client.ask(secs(1), "a", false);
    client.ask(secs(1), "b", false);
    assert_eq!(moments(&play(&mut client, secs(1), secs(100))), [1, 2], "Linux has an RTO of 1 s at least");
}

#[test]
fn only_the_response_to_a_non_confirmable_request_ends_the_wait_after_it() {
    let lets_go = |datagram: &dyn Fn(&[u8]) -> Vec<u8>| {
        let mut client = Client::with(roomy());
        client.ask(ms(0), "a", false);
        client.ask(ms(0), "b", false);
        let first = client.sent(ms(0)).unwrap();
        client.receive(secs(1), &datagram(&first));
        let goes = drain(&mut client, secs(1)).iter().any(|bytes| bytes.get(4) == Some(&b'b'));
        if !goes {
            let at = client.endpoint.poll_timeout();
            assert_eq!(at, Some(secs(GAP)));
        }
        goes
    };
    assert!(lets_go(&|request| reply_to(request, Kind::NonConfirmable, CONTENT, b"")));
    assert!(!lets_go(&|_| b"\x41\x01\x12\x34t".to_vec()), "a request of its own");
    assert!(!lets_go(&|_| b"\x40\x00\x12\x34".to_vec()), "a ping");
    assert!(!lets_go(&|_| b"\x60\x00\x12\x34".to_vec()), "an acknowledgement that comes late");
    assert!(!lets_go(&|_| b"\x51\x45\x12\x34z".to_vec()), "a response to something else");
}

#[test]
fn a_non_confirmable_notification_counts_as_outstanding_until_its_gap_ends() {
    let mut server = End::new(Config { nstart: None, ..roomy() });
    server.register(ms(0), 9, "a", 1);
    server.register(ms(0), 9, "b", 2);
    server.notify(1, false, "1");
    assert_eq!(server.sent(ms(0)).len(), 1);
    server.notify(2, true, "2");
    assert_eq!(server.sent(ms(0)), [], "NSTART is 1, confirmable or not");
    let departed = server.play(ms(0), secs(GAP));
    assert_eq!(departed.iter().map(|(at, ..)| *at).collect::<Vec<_>>(), [secs(GAP)]);
}

#[test]
fn non_confirmable_messages_queued_at_once_keep_the_rate_for_each_destination() {
    let mut client = Client::with(roomy());
    let request =
        Request { confirmable: false, code: GET, token: Token::EMPTY, tail: b"", repeatable: false };
    for to in [1, 2, 1, 2, 1] {
        client.endpoint.request(ms(0), to, request).unwrap();
        client.endpoint.handle_timeout(ms(0));
    }
    let mut departed = Vec::new();
    while let Some(transmit) = client.endpoint.poll_transmit(ms(0), |_| Draw::ZERO, &mut Vec::new()) {
        departed.push(transmit.to);
    }
    assert_eq!(departed, [1, 2]);
}

#[test]
fn paced_confirmable_messages_queued_at_once_depart_one_by_one() {
    let limits = Limits { next_confirmable: secs(1), ..Noting::LIMITS };
    let mut client = Client::set_up(&Noting::set_up(limits, roomy()));
    for token in ["a", "b", "c"] {
        client.get(secs(9), token);
    }
    assert_eq!(moments(&play(&mut client, secs(9), ms(10_999))), [9, 10]);
}

#[test]
fn cancelling_a_message_that_has_departed_does_not_lift_the_rate() {
    let mut client = Client::with(Config { nstart: Some(1), ..roomy() });
    let first = client.ask(ms(0), "a", false);
    client.ask(ms(0), "b", false);
    client.sent(ms(0)).unwrap();
    assert_eq!(client.endpoint.poll_timeout(), Some(secs(247)), "it has the only place");
    client.endpoint.cancel(secs(1), first);
    assert_eq!(moments(&play(&mut client, secs(1), secs(100))), [GAP]);
}

#[test]
fn cancelling_a_paced_message_removes_its_deadline() {
    let mut client = Client::with(roomy());
    let ids = ["a", "b", "c"].map(|token| client.ask(ms(0), token, false));
    client.sent(ms(0)).unwrap();
    client.endpoint.cancel(secs(1), ids[1]);
    assert_eq!(client.endpoint.poll_timeout(), Some(secs(GAP)), "c still waits");
    client.endpoint.cancel(secs(1), ids[2]);
    client.endpoint.cancel(secs(1), ids[0]);
    assert_eq!((client.endpoint.poll_timeout(), client.endpoint.exchanges()), (None, 0));
}

#[test]
fn a_confirmable_message_overtakes_a_rate_limited_non_confirmable_one() {
    let mut client = Client::with(roomy());
    for (token, confirmable) in [("a", false), ("b", false), ("c", true), ("d", false), ("e", true)] {
        client.ask(ms(0), token, confirmable);
    }
    let tokens = |sent: Vec<Vec<u8>>| sent.iter().map(|bytes| bytes[4]).collect::<Vec<_>>();
    assert_eq!(tokens(drain(&mut client, ms(0))), b"ace");
    let later = play(&mut client, ms(0), secs(2 * GAP));
    let first = |token| later.iter().find(|(_, bytes)| bytes[4] == token).map(|(at, _)| *at);
    assert_eq!((first(b'b'), first(b'd')), (Some(secs(GAP)), Some(secs(2 * GAP))));
}

/// Returns which of `asked` depart as confirmable, if each is answered at once and long before the next.
fn answered(config: Config, mechanism: &str, asked: &[bool]) -> (Vec<bool>, u64) {
    let mut client = Client::running(mechanism, config);
    let mut departed = Vec::new();
    for (ordinal, &confirmable) in asked.iter().enumerate() {
        // No mechanism has a slower pace.
        let at = secs(100 * ordinal as u64);
        let token = Token::new(&[ordinal as u8]).unwrap();
        let request = Request { confirmable, code: GET, token, tail: b"", repeatable: false };
        client.endpoint.request(at, 9, request).unwrap();
        let request = client.sent(at).unwrap();
        departed.push(is_confirmable(&request));
        let kind = if departed[ordinal] { Kind::Acknowledgement } else { Kind::NonConfirmable };
        let response = reply_to(&request, kind, CONTENT, b"");
        let event = client.receive(at, &response);
        assert!(matches!(event, Some(Event::Response { .. })));
    }
    (departed, client.endpoint.counters().converted)
}

#[test]
fn after_seven_non_confirmable_messages_in_a_row_the_eighth_is_sent_as_confirmable() {
    let (departed, converted) = answered(roomy(), "default", &[false; 24]);
    let eighth: Vec<_> = (1..=24).map(|ordinal| ordinal % 8 == 0).collect();
    assert_eq!((departed, converted), (eighth, 3));
}

#[test]
fn a_confirmable_message_restarts_the_count_of_non_confirmable_ones() {
    let mut asked = [false; 16];
    asked[5] = true;
    let (departed, converted) = answered(roomy(), "default", &asked);
    let confirmable: Vec<_> = (0..16).filter(|&place| departed[place]).collect();
    assert_eq!((confirmable, converted), (vec![5, 13], 1));
}

#[test]
fn the_limit_of_non_confirmable_messages_in_a_row_is_configurable_and_0_disables_it() {
    let converted =
        |confirmable_every| answered(Config { confirmable_every, ..roomy() }, "default", &[false; 240]).1;
    assert_eq!([0, 1, 2, 240, 241].map(converted), [0, 240, 120, 1, 0]);
    let (departed, _) = answered(Config { confirmable_every: 0, ..roomy() }, "default", &[false; 600]);
    assert!(!departed.contains(&true), "however many there are");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn of_any_sixteen_messages_at_least_two_are_confirmable(
        asked in proptest::collection::vec(proptest::bool::weighted(0.07), 16..120),
        mechanism in 0..REGISTRY.len(),
    ) {
        let (departed, converted) = answered(roomy(), REGISTRY[mechanism].name, &asked);
        for sixteen in departed.windows(16) {
            prop_assert!(sixteen.iter().filter(|&&confirmable| confirmable).count() >= 2, "{departed:?}");
        }
        let count = |all: &[bool]| all.iter().filter(|&&confirmable| confirmable).count() as u64;
        prop_assert_eq!(count(&departed) - count(&asked), converted);
    }
}

#[test]
fn a_message_converted_to_confirmable_uses_the_mechanism_and_counts_once() {
    let config = Config { confirmable_every: 3, probing_rate: 0, ..roomy() };
    let setup = Noting::set_up(Noting::LIMITS, config);
    let mut client = Client::set_up(&setup);
    let ids: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|token| client.ask(ms(0), token, false)).into();
    let sent = drain(&mut client, ms(0));
    assert_eq!(
        sent.iter().map(|bytes| is_confirmable(bytes)).collect::<Vec<_>>(),
        [false, false, true, false, false, true]
    );
    assert_eq!(*setup.controller.calls.lock().unwrap(), [NotedCall::Started; 2]);

    let ack = [0x60, 0, sent[2][2], sent[2][3]];
    let event = client.receive(secs(1), &ack);
    assert!(matches!(event, Some(Event::Acknowledged { exchange }) if exchange == ids[2]));
    assert_eq!(setup.controller.calls.lock().unwrap()[2..], [NotedCall::Acked]);

    let departed = play(&mut client, secs(1), secs(100));
    assert_eq!(moments(&departed), [2, 6, 14, 30]);
    assert!(departed.iter().all(|(_, bytes)| *bytes == sent[5]));
    let failed = client.endpoint.poll_event();
    assert!(
        matches!(failed, Some(Event::Failed { exchange, failure: Failure::GivenUp }) if exchange == ids[5])
    );
    assert_eq!(setup.controller.calls.lock().unwrap()[3..7], [NotedCall::Retransmitted; 4]);
    assert_eq!(setup.controller.calls.lock().unwrap()[7..], [NotedCall::GivenUp]);

    for token in ["g", "h"] {
        client.ask(secs(100), token, false);
        assert!(!is_confirmable(&client.sent(secs(100)).unwrap()));
    }
}

#[test]
fn a_confirmable_message_restarts_the_count_only_at_its_first_transmission() {
    let mut client = Client::with(Config { confirmable_every: 3, probing_rate: 0, ..roomy() });
    for (token, confirmable) in [("a", true), ("b", false), ("c", false), ("d", false)] {
        client.ask(ms(0), token, confirmable);
    }
    let departed = play(&mut client, ms(0), secs(6));
    let seen: Vec<_> = departed.iter().map(|(_, bytes)| (bytes[4], is_confirmable(bytes))).collect();
    assert_eq!(seen[..3], [(b'a', true), (b'b', false), (b'a', true)], "retransmitted at 2 s");
    assert!(seen.contains(&(b'c', false)));
    assert_eq!(seen.last(), Some(&(b'd', true)));
}

#[test]
fn each_destination_has_its_own_count_of_non_confirmable_messages() {
    let mut client = Client::with(Config { confirmable_every: 2, ..roomy() });
    let request =
        Request { confirmable: false, code: GET, token: Token::EMPTY, tail: b"", repeatable: false };
    let mut confirmable = Vec::new();
    for to in [1, 2, 3, 1] {
        let at = secs(100 * (confirmable.len() as u64 + 1));
        client.endpoint.request(at, to, request).unwrap();
        let mut bytes = Vec::new();
        client.endpoint.poll_transmit(at, |_| Draw::ZERO, &mut bytes);
        confirmable.push(is_confirmable(&bytes));
    }
    assert_eq!(confirmable, [false, false, false, true]);
}

#[test]
fn a_message_converted_to_confirmable_waits_for_both_rates() {
    let limits = Limits { next_confirmable: secs(20), ..Noting::LIMITS };
    let mut client = Client::set_up(&Noting::set_up(limits, Config { confirmable_every: 2, ..roomy() }));
    for token in ["a", "b", "c", "d"] {
        client.ask(ms(0), token, false);
    }
    let departed = play(&mut client, ms(0), secs(21));
    assert_eq!(moments(&departed), [0, 20, 20], "b for the pace; c not for b, which is confirmable");
    let mut client = Client::with(Config { confirmable_every: 2, ..roomy() });
    client.ask(ms(0), "a", false);
    client.ask(ms(0), "b", false);
    assert_eq!(moments(&play(&mut client, ms(0), secs(4))), [0, GAP], "as the message that was asked for");
}

#[test]
fn a_message_converted_to_confirmable_is_not_marked_if_its_token_is_full() {
    for mechanism in ["fasor-token", "fasor-token:preset=libcoap-2019"] {
        let mut client = Client::running(mechanism, Config { confirmable_every: 1, ..roomy() });
        let token = Token::new(b"12345678").unwrap();
        let request = Request { confirmable: false, code: GET, token, tail: b"", repeatable: false };
        client.endpoint.request(ms(0), 9, request).unwrap();
        let first = client.sent(ms(0)).unwrap();
        assert!(is_confirmable(&first));
        let at = client.endpoint.poll_timeout().unwrap();
        client.endpoint.handle_timeout(at);
        assert_eq!(client.sent(at).unwrap(), first);
        let response = reply_to(&first, Kind::Acknowledgement, CONTENT, b"");
        let event = client.receive(at, &response);
        assert!(matches!(event, Some(Event::Response { message, .. }) if message.token == token));
    }
}

#[test]
fn separate_responses_do_not_count_towards_non_confirmable_messages_in_a_row() {
    let mut client = Client::with(Config { confirmable_every: 2, ..roomy() });
    client.ask(ms(0), "a", false);
    assert!(!is_confirmable(&client.sent(ms(0)).unwrap()));
    let Some(Event::Request { responder, .. }) = client.receive(ms(1), &[0x40, 1, 0, 1]) else { panic!() };
    let responder = client.endpoint.acknowledge(ms(1), responder);
    client.endpoint.respond(ms(1), responder, CONTENT, b"").unwrap().unwrap();
    assert_eq!(drain(&mut client, ms(1)).len(), 2, "acknowledgement and separate response");
    client.ask(secs(100), "b", false);
    assert!(
        is_confirmable(&client.sent(secs(100)).unwrap()),
        "two requests, of which one has to be confirmable"
    );
}
