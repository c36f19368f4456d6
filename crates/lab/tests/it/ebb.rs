//! Tests of the promises of `ebb`: spurious retransmissions, and its share beside `default` (docs/ebb.md). Tests in coapace-proto
//! check for every mechanism how a dead peer is treated, and when an exchange is given up.

use coapace_lab::search::evaluation::{FAIR, Set};
use coapace_lab::search::networks::Networks;
use coapace_run::contender::Contender;
use coapace_run::measured::RunResult;
use coapace_run::{Observe, run};
use coapace_scenario::Scenario;

fn measured(mechanism: &str, set: &[(&str, &str)]) -> RunResult {
    let settings: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let scenario = Scenario::load("nb-iot", &settings).unwrap();
    run(&scenario, &Contender::parse(mechanism).unwrap(), 1, Observe::Totals)
}

#[test]
fn with_an_unlimited_buffer_a_thousand_ebb_clients_have_fewer_spurious_retransmissions_than_linux() {
    let spurious = |mechanism| {
        let run = measured(mechanism, &[("clients", "1000"), ("workload.exchanges", "20")]);
        assert_eq!(run.completed(), 20_000, "{mechanism}");
        run.spurious as f64 / run.requests_sent as f64
    };
    let (ebb, tcp) = (spurious("ebb"), spurious("linux-rto"));
    assert!(ebb <= tcp, "{ebb} of the requests were spurious with ebb, {tcp} with linux-rto");
}

#[test]
fn from_one_to_ten_thousand_clients_less_than_a_twentieth_of_requests_is_spurious_in_steady_state() {
    for clients in ["1", "10", "100", "1000", "10000"] {
        let run = measured(
            "ebb",
            &[
                ("clients", clients),
                // Ten thousand responses take 7.4 s.
                ("network.up.radio.rate", "1 Mbit/s"),
                ("network.down.radio.rate", "1 Mbit/s"),
                ("workload.exchanges", "none"),
                ("workload.duration", "160 s"),
                ("workload.warm_up", "100 s"),
            ],
        );
        let share = run.spurious as f64 / run.requests_sent as f64;
        assert!(run.completed() > 0 && share < 0.05, "{clients} clients: {share} spurious");
    }
}

#[test]
fn beside_default_ebb_has_a_fair_share_on_nine_of_ten_random_bottlenecks() {
    let set = Set { scenarios: Vec::new(), ..Set::draw(Networks::Mixed, 2, 48).unwrap() };
    let evaluation = set.evaluate("ebb", &[], 0).unwrap();
    let fair = evaluation.shares.iter().filter(|share| (FAIR[0]..=FAIR[1]).contains(*share)).count();
    assert_eq!(evaluation.shares.len(), 24);
    assert!(fair * 10 >= 24 * 9, "{fair} of 24: {:?}", evaluation.shares);
    let [least, greatest] = evaluation.shares().unwrap();
    assert!(least >= FAIR[0] && greatest <= 1.25, "from {least} to {greatest}");
}
