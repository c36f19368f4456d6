//! Tests of servers: separate responses, service times, and answers that are withheld.

use coapace_run::contender::Contender;
use coapace_run::measured::RunResult;
use coapace_run::{Observe, run};
use coapace_scenario::Scenario;

fn measured(scenario: &str, mechanism: &str, set: &[(&str, &str)]) -> RunResult {
    let settings: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let scenario = Scenario::load(scenario, &settings).unwrap();
    run(&scenario, &Contender::parse(mechanism).unwrap(), 1, Observe::Totals)
}

/// Runs the clients of `separate` without losses.
fn lossless(mechanism: &str, set: &[(&str, &str)]) -> RunResult {
    measured("separate", mechanism, &[&[("loss", "0 %")], set].concat())
}

#[test]
fn with_separate_responses_the_round_trip_time_ends_with_the_acknowledgement() {
    for mechanism in ["linux-rto", "cocoa", "fasor"] {
        let of = |response| lossless(mechanism, &[("response", response), ("server.service_time", "5 s")]);
        let (separate, piggybacked) = (of("separate"), of("piggybacked"));
        assert_eq!((separate.retransmissions, separate.completed()), (0, 1000), "{mechanism}");
        assert!(separate.timeouts.initial_s().unwrap() < 2.5, "{mechanism}: {:?}", separate.timeouts);
        assert!(piggybacked.retransmissions > 0, "{mechanism}: the first timeout is below 5 s");
        assert!(piggybacked.timeouts.initial_s().unwrap() > 5.0, "{mechanism}: {:?}", piggybacked.timeouts);
    }
}

#[test]
fn an_exchange_takes_the_path_delay_and_the_service_time() {
    for (service, s) in [("5 s", 5.0), ("[\"2 s\", \"4 s\"]", 3.0), ("{ mean = \"3 s\" }", 3.0)] {
        let one = lossless(
            "default",
            &[("clients", "1"), ("workload.exchanges", "1000"), ("server.service_time", service)],
        );
        // The path takes 0.66 s.
        let mean = one.fct_s[0].unwrap() / 1000.0;
        assert!((mean - s - 0.66).abs() < 0.3, "{service}: {mean}");
    }
}

#[test]
fn an_exchange_over_tcp_takes_the_path_delay_and_the_service_time() {
    for (key, value, s) in [
        ("server.service_time", "{ mean = \"3 s\" }", 3.0),
        ("server.service_time", "0 s", 0.0),
        // Beside the service time of 3 s.
        ("server.processing_delay", "5 s", 8.0),
    ] {
        let set = [("clients", "1"), ("workload.exchanges", "1000"), ("service", "constant"), (key, value)];
        let mean = lossless("tcp", &set).fct_s[0].unwrap() / 1000.0;
        assert!((mean - s - 0.66).abs() < 0.3, "{key} {value}: {mean}");
    }
}

#[test]
fn all_mechanisms_get_the_same_random_service_times() {
    let [default, linux] = ["default", "linux-rto"].map(|mechanism| lossless(mechanism, &[("clients", "5")]));
    assert_eq!(default.retransmissions + linux.retransmissions, 0);
    assert_eq!(default.trace_hash, linux.trace_hash);
}

#[test]
fn a_lost_separate_response_is_sent_again_and_a_non_confirmable_one_is_not() {
    let of = |response| measured("separate", "default", &[("loss", "20 %"), ("response", response)]);
    let (confirmable, non) = (of("separate"), of("separate-non"));
    // All five transmissions of a request, or of a response, are lost once in 3,000 exchanges.
    assert!(confirmable.given_up <= 3, "{}", confirmable.given_up);
    assert!(confirmable.responses_sent > 1_200, "{}", confirmable.responses_sent);
    // One response in five is lost: 200, with a standard deviation of 13.
    assert!((150..250).contains(&non.given_up), "{}", non.given_up);
    assert_eq!(non.completed() + non.given_up, 1000);
    assert!((997..=1000).contains(&non.responses_sent), "all but those whose request never came");
    assert!(non.fct_s.iter().all(Option::is_none), "no client has all of its responses");
}

#[test]
fn a_response_ready_before_the_acknowledgement_delay_is_piggybacked() {
    let of = |set: &[(&str, &str)]| {
        measured("separate", "default", &[&[("server.service_time", "1 s")], set].concat())
    };
    let after = |span| of(&[("server.acknowledge_after", span)]);
    assert_eq!(after("2 s").trace_hash, after("20 s").trace_hash);
    assert_ne!(after("2 s").trace_hash, after("500 ms").trace_hash);
}

#[test]
fn withholding_answers_to_copies_relieves_the_downlink_and_does_no_harm_without_a_queue() {
    let of = |sluice, set: &[(&str, &str)]| {
        let set = [&[("workload", "random"), ("server.sluice", sluice)], set].concat();
        measured("nb-iot", "linux-rto", &set)
    };
    let crowd = [("clients", "200"), ("buffer", "1410000")];
    let (all, some) = (of("false", &crowd), of("true", &crowd));
    assert_eq!((all.completed(), some.completed()), (10_000, 10_000));
    assert_eq!(all.responses_sent, all.requests_sent, "every copy is answered");
    assert!(some.responses_sent < some.requests_sent);
    assert!(some.spurious * 2 < all.spurious, "{} {}", some.spurious, all.spurious);
    assert!(some.duration_s < 0.9 * all.duration_s, "{} {}", some.duration_s, all.duration_s);
    let few = [("clients", "5")];
    assert_eq!(of("true", &few).trace_hash, of("false", &few).trace_hash);
}
