//! Tests of the end of a workload: after a number of exchanges or after a time.

use coapace_sim::Span;

use crate::{SMALLEST, load, parse, refused};

#[test]
fn a_workload_ends_after_its_exchanges_or_after_its_duration() {
    let lasting = SMALLEST.replace("[workload]", "[workload]\nduration = \"60 s\"\nwarm_up = \"10 s\"");
    let workload = parse(&lasting, &[]).unwrap().workload.clone();
    assert_eq!((workload.exchanges, workload.duration), (None, Some(Span::from_secs(60))));
    assert_eq!(workload.warm_up, Span::from_secs(10));

    let set = [("workload.exchanges", "none"), ("workload.duration", "5 min")];
    assert_eq!(load("nb-iot", &set).unwrap().workload.duration, Some(Span::from_secs(300)));
    let set = [("workload.duration", "none"), ("workload.warm_up", "0 s"), ("workload.exchanges", "7")];
    assert_eq!(parse(&lasting, &set).unwrap().workload.exchanges, Some(7));
}

#[test]
fn ends_of_a_workload_that_do_not_go_together_are_refused() {
    let workload = |lines: &str| refused("[workload]", &format!("[workload]\n{lines}"));
    assert_eq!(
        workload("duration = \"60 s\"\nexchanges = 7"),
        "scenarios/x.toml:9: `workload.duration` does not go with `exchanges`, which is 7: make one of them \"none\""
    );
    assert_eq!(
        workload("exchanges = \"none\""),
        "scenarios/x.toml:9: `workload.exchanges` must not be \"none\" without a `duration`"
    );
    assert_eq!(
        workload("warm_up = \"60 s\"\nduration = \"60 s\""),
        "scenarios/x.toml:9: `workload.warm_up` of \"1 min\" must be shorter than `duration`, which is \"1 min\""
    );
    assert_eq!(workload("warm_up = \"1 s\""), "scenarios/x.toml:9: `workload.warm_up` needs a `duration`");
    assert_eq!(
        load(
            "nb-iot",
            &[("workload", "random"), ("workload.exchanges", "none"), ("workload.duration", "9 s")]
        )
        .unwrap_err(),
        "--set workload.duration=9 s: `workload.duration` needs the kind \"continuous\": batches are of `exchanges`"
    );
    assert_eq!(
        load("nb-iot", &[("workload.duration", "60 parsecs")]).unwrap_err(),
        "--set workload.duration=60 parsecs: `workload.duration` must be a time up to 24 h in us, ms, s, min or h, such as \
         \"200 ms\", or \"none\", not `60 parsecs`"
    );
}

#[test]
fn an_interval_of_the_clients_is_refused_beside_flows() {
    let scenario = |set: &[(&str, &str)]| load("mesh-grid", set);
    assert!(scenario(&[("clients.start", "1 s")]).is_ok());
    let error = scenario(&[("workload.interval", "1 s")]).unwrap_err();
    assert!(error.contains("`workload.interval` does not go with the kind \"flows\""), "{error}");
}
