//! Tests of whole runs: their ends, their counts, and the servers of clients.

use std::io::Read;
use std::ops::RangeInclusive;

use coapace_run::capture;
use coapace_run::contender::Contender;
use coapace_run::measured::RunResult;
use coapace_run::{Observe, run};
use coapace_scenario::Scenario;

/// Makes a scenario of twenty clients in front of a narrow link. The last setting of a key counts.
fn scenario(set: &[(&str, &str)]) -> Scenario {
    let base = [("clients", "20"), ("buffer", "400")];
    let settings = base.iter().chain(set).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Scenario::load("nb-iot", &settings.collect::<Vec<_>>()).unwrap()
}

fn measured(mechanism: &str, set: &[(&str, &str)]) -> RunResult {
    run(&scenario(set), &Contender::parse(mechanism).unwrap(), 1, Observe::Totals)
}

/// Runs like [`measured`], for `duration` with `warm_up`.
fn lasting(mechanism: &str, duration: &str, warm_up: &str) -> RunResult {
    measured(
        mechanism,
        &[
            ("errors", "low"),
            ("workload.exchanges", "none"),
            ("workload.duration", duration),
            ("workload.warm_up", warm_up),
        ],
    )
}

fn assert_within(value: f64, range: RangeInclusive<f64>) {
    assert!(range.contains(&value), "{value} is not in {range:?}");
}

#[test]
fn a_run_of_fixed_duration_has_no_completion_times() {
    for mechanism in ["default", "tcp"] {
        let run = lasting(mechanism, "60 s", "0 s");
        assert!((run.duration_s - 60.0).abs() < 1e-9, "{mechanism}: {}", run.duration_s);
        assert_eq!((run.fct_s.len(), run.exchanges.len()), (0, 20), "{mechanism}");
        assert_eq!(run.given_up, 0, "{mechanism}: an exchange that is open at the end has not failed");
        assert!((run.throughput - run.completed() as f64 / 60.0).abs() < 1e-9, "{mechanism}");
        assert!((run.goodput_bps - run.throughput * 480.0).abs() < 1e-6, "{mechanism}");
        assert!(run.requests_sent >= run.completed(), "{mechanism}");
    }
}

#[test]
fn only_exchanges_before_the_end_of_the_warm_up_are_left_out() {
    for mechanism in ["default", "tcp"] {
        let (early, late) = (lasting(mechanism, "20 s", "0 s"), lasting(mechanism, "60 s", "20 s"));
        let whole = lasting(mechanism, "60 s", "0 s");
        assert_eq!(late.trace_hash, whole.trace_hash, "{mechanism}: the same happens");
        let counts = |run: &RunResult| {
            let RunResult { retransmissions, drops, losses, requests_sent, responses_sent, .. } = *run;
            let armed = run.timeouts.first.0;
            [run.completed(), retransmissions, drops, losses, requests_sent, responses_sent, armed]
        };
        let summed: Vec<_> = counts(&early).iter().zip(counts(&late)).map(|(a, b)| a + b).collect();
        assert_eq!(summed, counts(&whole), "{mechanism}");
        let something = |run: &RunResult| run.completed() > 0 && run.retransmissions > 0 && run.losses > 0;
        assert!(something(&early) && something(&late), "{mechanism}");
        assert!((late.duration_s - 40.0).abs() < 1e-9, "{mechanism}: {}", late.duration_s);
        assert!((late.throughput - late.completed() as f64 / 40.0).abs() < 1e-9, "{mechanism}");
    }
}

#[test]
fn clients_send_at_multiples_of_their_interval_after_their_start() {
    // A single client has its response after 0.66 s.
    let alone = |set: &[(&str, &str)]| measured("default", &[&[("clients", "1")], set].concat());
    for (interval, fct_s) in [("0 s", 50.0 * 0.66), ("400 ms", 49.0 * 0.8 + 0.66), ("1 s", 49.66)] {
        let [at_once, late] =
            ["0 s", "10 s"].map(|start| alone(&[("clients.start", start), ("workload.interval", interval)]));
        assert_within(at_once.fct_s[0].unwrap(), fct_s - 0.2..=fct_s + 0.2);
        assert_within(late.fct_s[0].unwrap(), fct_s - 0.2..=fct_s + 0.2);
        // Jitter has other random numbers.
        assert_within(late.duration_s - at_once.duration_s, 9.8..=10.2);
    }
}

#[test]
fn every_first_transmission_of_a_client_counts_one_armed_timeout() {
    let run = measured("default", &[("errors", "low")]);
    assert!(run.retransmissions > 0);
    assert_eq!(run.timeouts.first.0, 20 * 50);
    assert_within(run.timeouts.initial_s().unwrap(), 2.4..=2.6);
    assert!(run.timeouts.max_s() > Some(2.9) && run.timeouts.max_s() <= Some(3.0), "{:?}", run.timeouts);
    assert_eq!(measured("tcp", &[]).timeouts.first.0, 0);
}

#[test]
fn the_throughput_of_finishing_clients_is_over_the_time_until_the_last_finishes() {
    let run = measured("default", &[]);
    let last = run.fct_s.iter().map(|fct| fct.unwrap()).fold(0.0, f64::max);
    assert!((run.throughput - 1000.0 / last).abs() < 1e-9);
}

#[test]
fn a_population_that_finishes_sooner_has_a_larger_share_of_throughput() {
    let run = measured("cocoa+default", &[("errors", "high"), ("clients", "40")]);
    let [cocoa, default] = run.populations.as_slice() else { panic!("{run:?}") };
    assert_eq!((cocoa.exchanges, default.exchanges), (1000, 1000), "all clients finish");
    let rates =
        |first: usize| run.fct_s.iter().skip(first).step_by(2).map(|fct| 50.0 / fct.unwrap()).sum::<f64>();
    assert!((cocoa.throughput - rates(0)).abs() < 1e-9 && (default.throughput - rates(1)).abs() < 1e-9);
    assert!(cocoa.throughput > 1.02 * default.throughput, "{} {}", cocoa.throughput, default.throughput);
    assert!(cocoa.exchange_time_us < default.exchange_time_us);
}

#[test]
fn in_runs_of_fixed_duration_the_throughputs_of_populations_add_up_to_the_total() {
    let run = lasting("cocoa+default+fasor*2", "60 s", "10 s");
    let clients: Vec<u32> = run.populations.iter().map(|own| own.clients).collect();
    assert_eq!(clients, [5, 5, 10]);
    let sum: f64 = run.populations.iter().map(|own| own.throughput).sum();
    assert!((sum - run.throughput).abs() < 1e-9);
    for own in &run.populations {
        assert!((own.throughput - own.exchanges as f64 / 50.0).abs() < 1e-9);
        // An exchange takes at least the delay, and a client has one at a time.
        let mean_s = own.exchange_time_us as f64 / 1e6 / own.exchanges as f64;
        assert_within(mean_s, 0.62..=f64::from(own.clients) / own.throughput * 1.1);
    }
}

#[test]
fn the_number_of_servers_behind_one_bottleneck_does_not_change_the_results() {
    for mechanism in ["default", "tcp"] {
        let of = |count| lasting_with_servers(mechanism, count);
        let (one, five) = (of("1"), of("5"));
        // Nothing is lost and all servers are equally far away, so the results are nearly equal.
        assert_within(five.throughput / one.throughput, 0.97..=1.03);
        assert_ne!(one.trace_hash, five.trace_hash, "{mechanism}");
    }
}

fn lasting_with_servers(mechanism: &str, count: &str) -> RunResult {
    let set = [("buffer", "1410000"), ("server.count", count)];
    measured(mechanism, &set)
}

#[test]
fn clients_are_assigned_to_servers_in_turn() {
    let trace = std::env::temp_dir().join(format!("coapace-servers-{}.csv", std::process::id()));
    let file = std::fs::File::create(&trace).unwrap();
    let set = [("clients", "7"), ("buffer", "1410000"), ("server.count", "3"), ("workload.exchanges", "2")];
    let contender = Contender::parse("default").unwrap();
    capture::write(&scenario(&set), &contender, 1, None, Some(file)).unwrap();
    let mut text = String::new();
    std::fs::File::open(&trace).unwrap().read_to_string(&mut text).unwrap();
    std::fs::remove_file(&trace).unwrap();

    // Nodes 0 to 2 are the servers, 3 to 9 the clients.
    let mut pairs: Vec<(u32, u32)> = (text.lines().skip(1))
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|row| row[1] == "delivered")
        .map(|row| (row[3].parse().unwrap(), row[4].parse().unwrap()))
        .filter(|(from, _)| *from >= 3)
        .collect();
    assert_eq!(pairs.len(), 14);
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs, [(3, 0), (4, 1), (5, 2), (6, 0), (7, 1), (8, 2), (9, 0)]);
}

#[test]
fn a_retransmission_is_spurious_once_at_most_even_if_the_answer_comes_after_giving_up() {
    let late = [("network.up.radio.delay", "100 s"), ("clients.max_retransmit", "4"), ("buffer", "1410000")];
    // Every message arrives, after the client has given up its exchange. Each exchange has five answers to five transmissions.
    let all = measured("default", &late);
    assert!(all.completed() == 0 && all.given_up == 20 * 50 && all.losses + all.drops == 0, "{all:?}");
    assert_eq!((all.retransmissions, all.spurious), (4_000, 4_000));
    // The first answer to an exchange shows no spurious retransmission, and others are lost.
    let some = measured("default", &[&late[..], &[("errors", "high")]].concat());
    assert!((1..some.retransmissions / 2 + some.retransmissions / 4).contains(&some.spurious), "{some:?}");
}

#[test]
fn spurious_retransmissions_never_exceed_retransmissions() {
    let separate = |response| ("separate", vec![("loss", "20 %"), ("server.response", response)]);
    let endless =
        [("workload.exchanges", "none"), ("workload.duration", "300 s"), ("workload.warm_up", "30 s")];
    let cut = ("nb-iot", [&endless[..], &[("clients", "100")]].concat());
    for (name, set) in [separate("separate"), separate("separate-non"), cut] {
        for mechanism in ["default", "cocoa", "linux-rto"] {
            let set: Vec<_> =
                set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let scenario = Scenario::load(name, &set).unwrap();
            let run = run(&scenario, &Contender::parse(mechanism).unwrap(), 1, Observe::Totals);
            assert!(run.spurious <= run.retransmissions, "{name} {mechanism}: {run:?}");
        }
    }
}
