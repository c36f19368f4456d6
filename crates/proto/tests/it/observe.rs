//! The observers of a server (RFC 7641 §4). The clients are spoken to in bytes.

use std::collections::{BTreeMap, BTreeSet};

use crate::end::{CONTENT, End, GET, NOT_FOUND, bytes, kind, ms, plain, secs, text, token};
use coapace_control::Duration;
use coapace_proto::{
    Allowance, Code, Config, Event, Failure, Kind, Message, Observer, Options, SendError, Token,
};
use proptest::prelude::*;

#[test]
fn observers_are_notified_in_sequence_of_registration() {
    let mut server = End::new(plain());
    for (peer, name) in [(3, "c"), (1, "a"), (2, "b"), (9, "x")] {
        server.register(ms(0), peer, name, u64::from(peer == 9));
    }
    server.0.deregister(ms(0), 1, token("a"));
    assert_eq!(server.notify(0, true, "v1"), 2);
    let sent = server.sent(ms(1));
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [3, 2]);
    for (to, bytes) in sent {
        let message = Message::parse(&bytes).unwrap();
        assert_eq!((message.kind, message.code), (Kind::Confirmable, CONTENT));
        assert_eq!(message.token, token(if to == 3 { "c" } else { "b" }), "the token of the registration");
        assert_eq!((message.observe(), message.payload()), (Some(2), &b"v1"[..]));
    }
}

#[test]
fn a_registration_of_the_same_peer_and_token_replaces_the_previous_one() {
    let mut server = End::new(plain());
    server.register(ms(0), 1, "a", 7);
    server.register(secs(300), 1, "a", 8);
    assert_eq!(server.0.observer_count(), 1);
    assert_eq!((server.0.is_observed(7), server.0.is_observed(8)), (false, true));
    assert_eq!((server.notify(7, true, "x"), server.notify(8, true, "y")), (0, 1));
}

#[test]
fn a_reset_of_an_outdated_notification_ends_the_observation() {
    let mut server = End::new(plain());
    server.register(ms(0), 1, "a", 7);
    server.notify(7, true, "v0");
    let first = server.sent(ms(0)).remove(0).1;
    server.notify(7, true, "v1");
    let again = server.play(ms(0), secs(3)).remove(0).2;
    assert_ne!(first[2..4], again[2..4], "the second has left under an ID of its own");
    let gone = server.answer(secs(3), 1, Kind::Reset, &first);
    assert!(matches!(gone, Some(Event::ObserverGone { failure: Failure::Reset, .. })));
    assert_eq!((server.0.observer_count(), server.0.exchanges()), (0, 0));
    assert_eq!(server.play(secs(3), secs(100)), []);
}

#[test]
fn a_retransmitted_notification_carries_the_newest_representation() {
    let mut server = End::new(plain());
    server.register(ms(0), 1, "a", 7);
    server.notify(7, true, "v0");
    let first = server.sent(ms(0)).remove(0).1;
    for version in ["v1", "v2"] {
        server.notify(7, true, version);
        assert!(server.sent(ms(0)).is_empty(), "one is outstanding");
    }
    let departed = server.play(ms(0), secs(1000));
    let moments: Vec<_> = departed.iter().map(|(at, ..)| at.as_micros() / 1_000_000).collect();
    assert_eq!(moments, [2, 6, 14, 30], "as one exchange");
    assert!(departed.iter().all(|(_, _, bytes)| text(bytes) == "v2"));
    let id = |bytes: &[u8]| Message::parse(bytes).unwrap().message_id;
    assert_ne!(id(&departed[0].2), id(&first), "another message");
    assert!(departed.iter().all(|(_, _, bytes)| bytes == &departed[0].2), "then the same");
    let Some(Event::ObserverGone { observer, failure }) = server.0.poll_event() else { panic!("no event") };
    assert_eq!(observer, Observer { to: 1, token: token("a"), resource: 7 });
    assert_eq!(failure, Failure::GivenUp);
    assert_eq!((server.0.observer_count(), server.0.exchanges()), (0, 0));
    assert!(server.0.poll_event().is_none());
    let counters = server.0.counters();
    assert_eq!((counters.notifications, counters.notifications_replaced), (2, 1), "v0 and v2 departed");
    assert_eq!((counters.observers_given_up, counters.observers_rejected), (1, 0));
}

#[test]
fn with_a_marking_each_transmission_of_a_notification_has_its_own_message_id() {
    for answered in 0..=2 {
        let mut server = End::running("rtt-coap", plain());
        server.register(ms(0), 1, "a", 7);
        server.notify(7, true, "v0");
        let departed = server.play(ms(0), secs(7));
        assert_eq!(departed.len(), 3);
        assert!(departed.iter().all(|(_, _, bytes)| text(bytes) == "v0"));
        let ids: BTreeSet<_> =
            departed.iter().map(|(_, _, bytes)| Message::parse(bytes).unwrap().message_id).collect();
        assert_eq!(ids.len(), 3);
        let (at, _, sent) = &departed[answered];
        assert!(server.answer(secs(7), 1, Kind::Acknowledgement, sent).is_none());
        let srtt = server.0.gauges(1).unwrap().srtt;
        assert_eq!(srtt, Some(secs(7).since(*at)), "a sample of transmission {answered}");
        assert_eq!((server.0.exchanges(), server.0.counters().completed), (0, 1));
    }
}

#[test]
fn an_acknowledgement_of_an_old_representation_does_not_acknowledge_the_newest() {
    let mut server = End::running("rtt-coap", plain());
    server.register(ms(0), 1, "a", 7);
    server.notify(7, true, "v0");
    let old = server.sent(ms(0)).remove(0).1;
    server.notify(7, true, "v1");
    let (at, _, new) = server.play(ms(0), secs(2)).remove(0);
    assert_eq!(text(&new), "v1");
    assert!(server.answer(secs(3), 1, Kind::Acknowledgement, &old).is_none());
    assert_eq!(server.0.exchanges(), 1, "v1 is under way still");
    assert!(server.answer(secs(3), 1, Kind::Acknowledgement, &new).is_none());
    assert_eq!(server.0.exchanges(), 0);
    assert_eq!(server.0.gauges(1).unwrap().srtt, Some(secs(3).since(at)));
}

#[test]
fn a_change_during_an_outstanding_notification_is_sent_after_its_acknowledgement() {
    let mut server = End::new(plain());
    server.register(ms(0), 1, "a", 7);
    server.notify(7, true, "v1");
    let first = server.sent(ms(0)).remove(0).1;
    server.notify(7, true, "v2");
    server.notify(7, true, "v3");
    assert!(server.answer(ms(100), 1, Kind::Acknowledgement, &first).is_none());
    let next = server.sent(ms(100));
    assert_eq!(next.len(), 1);
    assert_eq!(text(&next[0].1), "v3");
    server.answer(ms(200), 1, Kind::Acknowledgement, &next[0].1);
    assert_eq!((server.sent(ms(200)).len(), server.0.exchanges()), (0, 0), "nothing is left to say");
    let counters = server.0.counters();
    assert_eq!((counters.notifications, counters.notifications_replaced), (2, 1));
}

#[test]
fn a_reset_of_any_notification_removes_the_observer() {
    for confirmable in [true, false] {
        let mut server = End::new(plain());
        server.register(ms(0), 1, "a", 7);
        server.register(ms(0), 1, "b", 7);
        server.notify(7, confirmable, "v1");
        let sent = server.sent(ms(0)).remove(0).1;
        let Some(Event::ObserverGone { observer, failure }) = server.answer(ms(9), 1, Kind::Reset, &sent)
        else {
            panic!("no event")
        };
        assert_eq!((observer.token, failure), (token("a"), Failure::Reset));
        assert_eq!(server.0.observer_count(), 1);
        assert!(server.answer(ms(9), 1, Kind::Reset, &sent).is_none(), "it is gone");
        let counters = server.0.counters();
        assert_eq!((counters.observers_rejected, counters.observers_given_up), (1, 0));
    }
}

#[test]
fn an_unverified_observer_is_removed_with_an_error_if_its_notification_is_too_large() {
    let mut server = End::new(plain());
    server.register(ms(0), 1, "a", 7);
    server.register_stranger(ms(0), 2, "b", 7);
    server.register_stranger(ms(0), 2, "z", 8);

    let unauthorized = Code(coap_numbers::code::UNAUTHORIZED);
    let farewell = |_| Options::default().echo(b"e").tail(b"").unwrap();
    assert_eq!(server.0.dismiss_strangers(ms(10), 7, 20, unauthorized, farewell), 0, "it is small");
    assert_eq!(server.0.dismiss_strangers(ms(10), 7, 100, unauthorized, farewell), 1);
    let last = server.sent(ms(10));
    let message = Message::parse(&last[0].1).unwrap();
    assert_eq!(
        (last.len(), last[0].0, message.kind, message.code),
        (1, 2, Kind::NonConfirmable, unauthorized)
    );
    assert_eq!(message.token, token("b"));
    assert_eq!(server.0.observer_count(), 2, "the observer of another resource stays, too");
}

#[test]
fn an_unverified_observer_is_sent_at_most_three_times_its_request_until_it_acknowledges() {
    let mut server = End::new(plain());
    // 6 bytes, of which 102 follow with headers: a response of 7, and a notification of 10, each with 28.
    server.register_stranger(ms(0), 1, "a", 7);
    server.register_stranger(ms(0), 2, "b", 7);
    server.notify(7, false, "v1");
    let sent = server.sent(ms(0));
    assert!(sent.iter().all(|(_, bytes)| Message::parse(bytes).unwrap().kind == Kind::Confirmable));
    server.answer(ms(9), 2, Kind::Acknowledgement, &sent[1].1);
    let mut later = Vec::new();
    for number in 0..20 {
        server.notify(7, false, "v2, which is longer");
        later.extend(server.play(secs(20 * number), secs(20 * (number + 1))));
        while server.0.poll_event().is_some() {}
    }
    let to = |peer| later.iter().filter(|(_, to, _)| *to == peer).count();
    assert_eq!(to(1), 0, "no copy of the first, and nothing else");
    assert!(to(2) >= 15, "{} to the one that is verified", to(2));
    assert_eq!((server.0.observer_count(), server.0.counters().observers_given_up), (1, 1));
}

#[test]
fn retransmissions_of_a_separate_response_stay_within_three_times_the_request() {
    let get = [0x40, 1, 0, 1];
    // With 28 bytes of headers each: the request 32, the acknowledgement 32, the response 33.
    for (allowance, transmissions) in
        [(Allowance::ipv4(4), 1), (Allowance::ipv4(20), 3), (Allowance::UNLIMITED, 5)]
    {
        let mut server = End::new(Config::default());
        let Some(Event::Request { responder, .. }) = server.0.handle_datagram(ms(0), 1, &get) else {
            panic!()
        };
        let responder = server.0.acknowledge(ms(0), responder.limited(allowance));
        server.sent(ms(0));
        assert!(server.0.respond(ms(1), responder, CONTENT, b"\xff").unwrap().is_some());
        let departed = server.play(ms(1), secs(300));
        assert_eq!(departed.len(), transmissions, "{allowance:?}");
        assert!(matches!(server.0.poll_event(), Some(Event::Failed { failure: Failure::GivenUp, .. })));
    }
}

#[test]
fn a_reset_from_another_address_does_not_remove_an_observer() {
    let mut server = End::new(plain());
    server.register(ms(0), 1, "a", 7);
    server.notify(7, false, "v1");
    let sent = server.sent(ms(0)).remove(0).1;
    assert!(server.answer(ms(9), 2, Kind::Reset, &sent).is_none());
    assert_eq!(server.0.observer_count(), 1);
}

#[test]
fn non_confirmable_notifications_are_3_s_apart_before_the_first_round_trip_time() {
    let mut server = End::new(plain());
    server.register(ms(0), 1, "a", 7);
    server.notify(7, false, "v0");
    assert_eq!(server.sent(ms(0)).len(), 1);
    server.notify(7, false, "v1");
    assert!(server.sent(ms(1)).is_empty());
    server.notify(7, false, "v2");
    let departed = server.play(ms(1), secs(100));
    assert_eq!(departed.len(), 1, "the newest alone");
    assert_eq!((departed[0].0, text(&departed[0].2)), (secs(3), "v2".to_owned()));
    assert_eq!((server.0.exchanges(), server.0.poll_timeout()), (0, None), "nothing is due for them");
}

#[test]
fn every_nth_notification_is_confirmable() {
    let mut server = End::new(Config { confirmable_every: 3, ..plain() });
    server.register(ms(0), 1, "a", 7);
    let mut kinds = Vec::new();
    for at in 0..6 {
        server.notify(7, false, "v");
        let (_, sent) = server.sent(secs(10 * at)).remove(0);
        kinds.push(kind(&sent) == Kind::Confirmable);
        server.answer(secs(10 * at), 1, Kind::Acknowledgement, &sent);
    }
    assert_eq!(kinds, [false, false, true, false, false, true]);
}

#[test]
fn after_a_day_a_notification_is_confirmable() {
    let hours = |hours: u64| secs(hours * 3600);
    let mut server = End::new(plain());
    server.register(ms(0), 1, "a", 7);
    let mut at = |moment| {
        server.notify(7, false, "v");
        let (_, sent) = server.sent(moment).remove(0);
        server.answer(moment, 1, Kind::Acknowledgement, &sent);
        kind(&sent)
    };
    assert_eq!(at(hours(23)), Kind::NonConfirmable);
    assert_eq!(at(hours(24)), Kind::Confirmable);
    assert_eq!(at(hours(47)), Kind::NonConfirmable);
    assert_eq!(at(hours(48)), Kind::Confirmable);
}

#[test]
fn an_error_response_is_the_last_notification_of_an_observer() {
    for confirmable in [true, false] {
        let mut server = End::new(plain());
        server.register(ms(0), 1, "a", 7);
        server.0.notify(7, confirmable, NOT_FOUND, &[]);
        let sent = server.sent(ms(0)).remove(0).1;
        assert_eq!(Message::parse(&sent).unwrap().code, NOT_FOUND);
        server.answer(ms(9), 1, Kind::Acknowledgement, &sent);
        assert_eq!((server.0.observer_count(), server.0.exchanges()), (0, 0));
        assert!(server.0.poll_event().is_none(), "the application knows");
    }
}

#[test]
fn an_observer_beyond_the_limit_is_refused() {
    let mut server = End::new(Config { max_observers: 1, ..plain() });
    server.register(ms(0), 1, "a", 7);
    let get = bytes(&Message { code: GET, token: token("b"), ..Message::empty(Kind::Confirmable, 1) });
    let Some(Event::Request { responder, .. }) = server.0.handle_datagram(ms(0), 2, &get) else {
        panic!("no request")
    };
    assert_eq!(server.0.register(ms(0), &responder, 7), Err(SendError::ObserversFull));
    server.0.deregister(ms(0), 1, token("a"));
    assert_eq!(server.0.register(ms(0), &responder, 7), Ok(()));
}

#[test]
fn an_observer_that_deregisters_gets_no_retransmission() {
    let mut server = End::new(plain());
    server.register(ms(0), 1, "a", 7);
    server.notify(7, true, "v1");
    server.sent(ms(0));
    server.notify(7, true, "v2");
    assert!(server.0.deregister(ms(1), 1, token("a")));
    assert!(!server.0.deregister(ms(1), 1, token("a")));
    assert!(server.play(ms(1), secs(1000)).is_empty());
    assert_eq!((server.0.observer_count(), server.0.exchanges()), (0, 0));
    assert!(server.0.poll_event().is_none());
}

#[test]
fn an_observer_that_deregisters_after_a_give_up_causes_no_further_event() {
    let mut server = End::new(plain());
    server.register(ms(0), 1, "a", 7);
    server.notify(7, true, "v1");
    server.play(ms(0), secs(1000));
    server.0.deregister(secs(1000), 1, token("a"));
    assert!(server.0.poll_event().is_none());
    assert_eq!(server.0.exchanges(), 0);
}

#[test]
fn an_observer_that_leaves_while_its_next_notification_waits_is_no_longer_counted() {
    let mut server = End::new(plain());
    server.register(ms(0), 1, "a", 7);
    server.register(ms(0), 1, "b", 7);
    server.notify(7, true, "v1");
    server.0.deregister(ms(0), 1, token("b"));
    assert_eq!(server.0.observer_count(), 1);
    server.sent(ms(0));
    assert_eq!(server.0.observer_count(), 1);
}

#[test]
fn at_most_nstart_notifications_to_one_peer_are_outstanding() {
    let mut server = End::new(plain());
    for name in ["a", "b", "c"] {
        server.register(ms(0), 1, name, 7);
    }
    server.notify(7, true, "v1");
    for name in ["a", "b", "c"] {
        let sent = server.sent(ms(0));
        assert_eq!(sent.len(), 1);
        assert_eq!(Message::parse(&sent[0].1).unwrap().token, token(name));
        server.answer(ms(0), 1, Kind::Acknowledgement, &sent[0].1);
    }
}

#[test]
fn notifications_use_at_most_half_of_the_exchanges_and_are_all_sent_finally() {
    let mut server = End::new(Config { max_exchanges: 4, max_observers: 10, ..plain() });
    for peer in 0..10 {
        server.register(ms(0), peer, "a", 7);
    }
    server.notify(7, true, "v1");
    let mut notified = Vec::new();
    for round in 0..5 {
        let sent = server.sent(ms(round));
        assert_eq!((sent.len(), server.0.exchanges()), (2, 2));
        for (peer, bytes) in sent {
            notified.push(peer);
            server.answer(ms(round), peer, Kind::Acknowledgement, &bytes);
        }
    }
    assert_eq!(notified, (0..10).collect::<Vec<_>>());
}

#[derive(Clone, Debug)]
enum Step {
    Register {
        peer: u32,
        name: u8,
        resource: u64,
    },
    Deregister {
        peer: u32,
        name: u8,
    },
    Notify {
        resource: u64,
        confirmable: bool,
    },
    /// Delivers some of the datagrams that are sent now.
    Send {
        arrives: u8,
    },
    /// Answers the datagrams that have arrived since the last call.
    Answer {
        reject: bool,
    },
    Wait {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u32..4, 0u8..3, 0u64..3).prop_map(|(peer, name, resource)| Step::Register { peer, name, resource }),
        (0u32..4, 0u8..3).prop_map(|(peer, name)| Step::Deregister { peer, name }),
        (0u64..3, any::<bool>()).prop_map(|(resource, confirmable)| Step::Notify { resource, confirmable }),
        any::<u8>().prop_map(|arrives| Step::Send { arrives }),
        (0u8..10).prop_map(|dice| Step::Answer { reject: dice == 0 }),
        (0u64..40_000).prop_map(|ms| Step::Wait { ms }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn every_remaining_observer_finally_has_the_newest_representation(
        steps in proptest::collection::vec(step(), 1..120), nstart in 1u16..3, max_exchanges in 2u32..10,
        mechanism in prop_oneof![Just("default"), Just("cocoa:marking=option")],
    ) {
        let config = Config { nstart: Some(nstart), max_exchanges, max_deduplicated: 0, ..Config::default() };
        let mut server = End::running(mechanism, config);
        // The resource that each observer is registered for, and the version that it has.
        let mut model: BTreeMap<(u32, Vec<u8>), (u64, u32)> = BTreeMap::new();
        let mut versions = [0u32; 3];
        let mut arrived: Vec<(u32, Vec<u8>)> = Vec::new();
        let mut now = ms(0);
        let mut id = 0;
        // In the end each resource changes once more, and every message arrives.
        let end = (0..3).map(|resource| Step::Notify { resource, confirmable: true })
            .chain((0..200).flat_map(|_| {
                [Step::Send { arrives: 255 }, Step::Answer { reject: false }, Step::Wait { ms: 30_000 }]
            }));
        for step in steps.into_iter().chain(end) {
            match step {
                Step::Register { peer, name, resource } => {
                    id += 1;
                    let token = Token::new(&[name]).unwrap();
                    let get = bytes(&Message { code: GET, token, ..Message::empty(Kind::Confirmable, id) });
                    let Some(Event::Request { responder, .. }) = server.0.handle_datagram(now, peer, &get) else {
                        panic!("no request")
                    };
                    if server.0.register(now, &responder, resource).is_ok() {
                        model.insert((peer, token.to_vec()), (resource, versions[resource as usize]));
                    } else {
                        model.remove(&(peer, token.to_vec()));
                    }
                    server.0.respond(now, responder, CONTENT, &[]).unwrap();
                }
                Step::Deregister { peer, name } => {
                    let token = Token::new(&[name]).unwrap();
                    prop_assert_eq!(server.0.deregister(now, peer, token), model.remove(&(peer, token.to_vec())).is_some());
                }
                Step::Notify { resource, confirmable } => {
                    let version = &mut versions[resource as usize];
                    *version += 1;
                    let tail = [&[0xff][..], &version.to_be_bytes()].concat();
                    let observers = model.values().filter(|(of, _)| *of == resource).count();
                    prop_assert_eq!(server.0.notify(resource, confirmable, CONTENT, &tail), observers);
                }
                Step::Send { arrives } => {
                    for (number, (to, sent)) in server.sent(now).into_iter().enumerate() {
                        let message = Message::parse(&sent).unwrap();
                        if message.kind == Kind::Acknowledgement || arrives >> (number % 8) & 1 == 0 {
                            continue;
                        }
                        let version = u32::from_be_bytes(message.payload().try_into().unwrap());
                        let known = model.get_mut(&(to, message.token.to_vec())).expect("nobody else is notified");
                        prop_assert!(version >= known.1, "nothing older comes after something newer");
                        known.1 = version;
                        arrived.push((to, sent));
                    }
                }
                Step::Answer { reject } => {
                    for (to, sent) in arrived.drain(..) {
                        let answer = if reject { Kind::Reset } else { Kind::Acknowledgement };
                        if (reject || kind(&sent) == Kind::Confirmable)
                            && let Some(event) = server.answer(now, to, answer, &sent)
                        {
                            let Event::ObserverGone { observer, .. } = event else { panic!("{event:?}") };
                            prop_assert!(model.remove(&(observer.to, observer.token.to_vec())).is_some());
                        }
                    }
                }
                Step::Wait { ms } => now = now + Duration::from_millis(ms),
            }
            server.0.handle_timeout(now);
            while let Some(event) = server.0.poll_event() {
                let Event::ObserverGone { observer, .. } = event else { panic!("{event:?}") };
                prop_assert!(model.remove(&(observer.to, observer.token.to_vec())).is_some());
            }
            prop_assert_eq!(server.0.observer_count() >= model.len(), true);
            prop_assert!(server.0.exchanges() <= max_exchanges as usize);
        }
        for ((peer, token), (resource, version)) in model {
            prop_assert_eq!(version, versions[resource as usize], "{} {:?}", peer, token);
        }
        prop_assert_eq!(server.0.exchanges(), 0);
    }
}
