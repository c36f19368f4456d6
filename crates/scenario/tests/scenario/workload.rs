//! Tests of the end of a workload: after a number of exchanges or after a time.

use coapace_sim::Span;

use crate::{SMALLEST, load, parse, refused};

#[test]
fn a_workload_takes_a_number_of_exchanges_or_a_duration() {
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
fn a_workload_with_contradictory_ends_is_refused() {
    let workload = |lines: &str| refused("[workload]", &format!("[workload]\n{lines}"));
    assert_eq!(
        workload("duration = \"60 s\"\nexchanges = 7"),
        "scenarios/x.toml:9: `workload.duration` cannot be combined with `exchanges`, which is 7: make one of them \"none\""
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
fn an_interval_of_clients_is_refused_in_a_scenario_with_flows() {
    let scenario = |set: &[(&str, &str)]| load("mesh-grid", set);
    assert!(scenario(&[("clients.start", "1 s")]).is_ok());
    let error = scenario(&[("workload.interval", "1 s")]).unwrap_err();
    assert!(error.contains("`workload.interval` cannot be combined with the kind \"flows\""), "{error}");
}

/// Returns the smallest scenario with a transfer of these keys, or its error.
fn transferring(keys: &str) -> Result<coapace_scenario::Scenario, String> {
    let transfer = format!("kind = \"transfer\"\n[[workload.transfers]]\nname = \"image\"\n{keys}");
    parse(&SMALLEST.replace("kind = \"continuous\"", &transfer), &[])
}

#[test]
fn the_last_clients_make_the_transfers_and_the_others_single_exchanges() {
    let scenario = transferring("bytes = \"64 KiB\"\nclients = 2").unwrap();
    assert_eq!(scenario.workload.transferring(3).first(), Some(&(2..4)));
    assert_eq!((scenario.workload.asking(3), scenario.workload.asking(10)), (1, 8));
    let all = transferring("bytes = 70_000\nblock_bytes = \"64 B\"").unwrap();
    assert_eq!((all.workload.transferring(3).first(), all.workload.asking(3)), (Some(&(1..4)), 0));
    assert_eq!(all.workload.transfers[0].size_exponent(), 2);
}

#[test]
fn impossible_transfers_are_refused() {
    for (keys, problem) in [
        ("bytes = 9\nclients = 4", "clients` leaves this transfer no client: there are 3 in all"),
        ("bytes = 9\nblock_bytes = 100", "block_bytes` must be 16, 32, 64, 128, 256, 512 or 1024"),
        ("bytes = \"20 MiB\"\nblock_bytes = 16", "bytes` must be at most 16777216 with blocks of 16 bytes"),
        ("bytes = 9\ncount = \"none\"", "count` must not be \"none\" without a `workload.duration`"),
        (
            "bytes = 9\nbulk = \"ebb\"",
            "bulk` is wrong: ebb is a mechanism for single exchanges (--cc); bulk mechanisms: tide, newreno, rfc9177, rtt-coap",
        ),
        ("bytes = 9\nprotocol = \"udp\"", "protocol` must be \"block\" or \"q-block\" or \"tcp\", not `udp`"),
        (
            "bytes = 9\nprotocol = \"q-block\"",
            "protocol` \"q-block\" needs the direction \"up\" and a `bulk` mechanism",
        ),
    ] {
        let error = transferring(keys).unwrap_err();
        assert!(error.ends_with(&format!("`workload.transfers.image.{problem}")), "{error}");
    }
    let set = [("network.mtu", "1000")];
    let error = load("fota-wifi", &set).unwrap_err();
    assert!(
        error.contains("block_bytes` makes a packet of 1090 bytes, but `network.mtu` or a buffer holds 1000"),
        "{error}"
    );
    assert!(
        refused("kind = \"continuous\"", "kind = \"transfer\"").contains("`workload.transfers` is missing")
    );
    let set = [("workload.kind", "continuous")];
    assert!(
        load("fota-wifi", &set).unwrap_err().contains("`workload.transfers` needs the kind \"transfer\"")
    );
}
