use super::*;

/// Returns exchanges of a client with this mechanism: every fourth one loses its first copy.
fn shown(name: &str, rtt_ms: u64) -> Vec<MeasuredExchange> {
    shown_with(name, rtt_ms, 1)
}

/// Returns what a client with this mechanism would show: every fourth exchange loses so many copies.
fn shown_with(name: &str, rtt_ms: u64, lost: usize) -> Vec<MeasuredExchange> {
    let mechanism: Mechanism = name.parse().unwrap();
    let mut state = mechanism.state();
    let mut now = Instant::ZERO;
    let rtt = Duration::from_millis(rtt_ms);
    (0..48u32)
        .map(|n| {
            let cue = |now, copy: u32| Cue {
                now,
                draw: Draw::from_bits((n + 29 * copy).wrapping_mul(2_654_435_769)),
                outstanding: 1,
            };
            let begun = now;
            let (mut exchange, mut timeout) = mechanism.on_start(&mut state, cue(now, 0));
            let mut timeouts = Vec::new();
            for copy in 1..=if n % 4 == 3 { lost as u32 } else { 0 } {
                timeouts.push(timeout);
                now = now + timeout;
                timeout = mechanism.on_retransmit(&mut state, &mut exchange, cue(now, copy));
            }
            now = now + rtt;
            let since = now.since(begun);
            let tells = matches!(marking_of(name), Marking::TokenOnRetransmit | Marking::FreshMessageId);
            let named = tells.then_some(timeouts.len() as u8);
            let measured =
                MeasuredExchange { begun, timeouts, answered: Some(since), named, is_named_again: false };
            let outcome = Outcome::Acked(measured.sample(since, false));
            mechanism.on_end(&mut state, exchange, outcome, cue(now, 0));
            measured
        })
        .collect()
}

fn marking_of(name: &str) -> Marking {
    let mechanism: Mechanism = name.parse().unwrap();
    mechanism.limits(&mechanism.state()).marking
}

#[test]
fn the_timeouts_of_a_mechanism_are_nearest_to_that_mechanism() {
    let names = [
        "default",
        "cocoa",
        "peak-hopper",
        "coap-eifel",
        "ebb",
        "ebb-plain",
        "fasor",
        "fasor-token",
        "cocoa-i",
    ];
    for name in names {
        let found = nearest(&[shown(name, 300)], marking_of(name)).unwrap();
        assert!(found.is_near() && found.names(name), "{name}: {found:?}");
        let own = distance(&name.parse().unwrap(), &[shown(name, 300)]).unwrap();
        assert!(own < FAR, "{name}: {own}");
    }
}

#[test]
fn the_timer_of_a_stack_is_nearest_to_itself() {
    for (stack, _) in stacks().filter(|(_, timer)| *timer != DefaultTimer::DEFAULT) {
        let name = format!("default:preset={stack}");
        let found = nearest(&[shown_with(&name, 100, 3)], Marking::None).unwrap();
        assert!(found.is_near() && found.names(&name), "{name}: {found:?}");
        assert!(!found.names("default") && !found.stacks.is_empty(), "{name}: {found:?}");
    }
}

#[test]
fn a_client_with_the_timer_of_the_rfc_is_no_special_stack_and_all_its_stacks_are_named() {
    for lost in [1, 3] {
        let found = nearest(&[shown_with("default", 100, lost)], Marking::None).unwrap();
        assert_eq!(found.mechanism, "default");
        assert!(!found.alike.iter().any(|other| other.starts_with("default")), "{found:?}");
        assert_eq!(found.stacks[..3], ["libcoap-4", "californium-3", "aiocoap"]);
        assert!(found.to_string().ends_with(
            "; the timer of libcoap-4, californium-3, aiocoap, openthread, node-coap, coap-rs, zephyr"
        ));
    }
    // A few timeouts show no stack, only their range does.
    let few = |lost| shown_with("default:preset=zephyr-3", 100, lost)[..8].to_vec();
    assert_eq!(nearest(&[few(1)], Marking::None).unwrap().mechanism, "default");
    let found = nearest(&[shown_with("default:preset=zephyr-3", 100, 1)], Marking::None).unwrap();
    assert_eq!(
        (found.mechanism.as_str(), found.stacks.join(" ")),
        ("default:preset=zephyr-3", "zephyr-3".to_owned())
    );
}

#[test]
fn default_and_cocoa_are_distinct() {
    let found = nearest(&[shown("default", 300)], Marking::None).unwrap();
    assert!(found.names("default") && !found.names("cocoa"), "{found:?}");
    assert!(found.to_string().contains("default"), "{found}");
}

#[test]
fn default_with_another_ack_timeout_is_recognised() {
    let found = nearest(&[shown("default:ack_timeout=5s", 300)], Marking::None).unwrap();
    assert!(found.mechanism.starts_with("default:ack_timeout=5") && found.is_near(), "{found:?}");
}

#[test]
fn without_timeouts_no_mechanism_is_named() {
    let quiet = MeasuredExchange {
        begun: Instant::ZERO,
        timeouts: Vec::new(),
        answered: None,
        named: None,
        is_named_again: false,
    };
    assert_eq!(nearest(&[vec![quiet]], Marking::None), None);
}

#[test]
fn the_nearest_mechanism_is_sought_among_those_with_the_same_marking() {
    let found = nearest(&[shown("ebb", 300)], Marking::TokenOnRetransmit).unwrap();
    let mut others = found.alike.iter().chain(found.next.iter().map(|(name, _)| name)).peekable();
    assert!(others.peek().is_some(), "{found:?}");
    assert!(others.all(|name| marking_of(name) == Marking::TokenOnRetransmit), "{found:?}");
    assert_eq!(nearest(&[shown("ebb", 300)], Marking::Token), None, "no mechanism has it by default");
}

#[test]
fn the_copy_named_by_an_answer_counts_if_the_peer_answers_each_copy() {
    let measured = MeasuredExchange {
        begun: Instant::ZERO,
        timeouts: vec![Duration::from_millis(50), Duration::from_millis(75)],
        answered: None,
        named: Some(0),
        is_named_again: true,
    };
    let since = Duration::from_millis(1_200);
    assert_eq!(measured.sample(since, false).answered, None);
    assert_eq!(measured.sample(since, true).answered, Some(Answer { ordinal: 0, since }));
    let last = MeasuredExchange { named: Some(2), ..measured };
    let answer = Answer { ordinal: 2, since: Duration::from_millis(1_075) };
    assert_eq!(last.sample(since, false).answered, Some(answer));
}
