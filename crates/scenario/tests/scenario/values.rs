//! Tests of values that are refused, alone or beside others.

use crate::{load, refused};

#[test]
fn the_error_of_a_bad_value_names_the_key_the_value_and_the_accepted_values() {
    for (value, shown) in [
        ("0", "`0`"),
        ("1_000_001", "`1000001`"),
        ("-1", "`-1`"),
        ("\"3\"", "`3`; leave out the quotes: 3"),
        ("\"0\"", "`0`"),
        ("3.0", "`3.0`"),
        ("[3]", "a list"),
    ] {
        assert_eq!(
            refused("count = 3", &format!("count = {value}")),
            format!(
                "scenarios/x.toml:6: `clients.count` must be a whole number from 1 to 1000000, not {shown}"
            )
        );
    }
    assert_eq!(
        refused("continuous", "randon"),
        "scenarios/x.toml:9: `workload.kind` must be \"continuous\" or \"random\" or \"flows\" or \"transfer\", not `randon`; did you mean `random`?"
    );
    assert_eq!(
        refused("[clients]", "[server]\npayload_bytes = 9223372036854775808\n[clients]"),
        "scenarios/x.toml:6: `server.payload_bytes` must be a whole number from 0 to 65000, not `9223372036854775808`"
    );
    assert_eq!(
        refused("[clients]\ncount = 3", "[[clients]]\ncount = 3"),
        "scenarios/x.toml:5: `clients` must be a table of `count`, `nstart`, `max_retransmit`, `patience`, `uri_path`, \
         `start`, `start_spread`, `probing_rate`, `confirmable_every`, not a list"
    );
}

#[test]
fn a_quantity_without_its_unit_or_outside_its_range_is_refused() {
    let hop = |line: &str| refused("name = \"wire\"\n", &format!("name = \"wire\"\n{line}\n"));
    let error =
        |key: &str, rest: &str| format!("scenarios/x.toml:13: `network.up.wire.{key}` must be {rest}");
    assert_eq!(
        hop("delay = \"200 parsecs\""),
        error("delay", "a time up to 24 h in us, ms, s, min or h, such as \"200 ms\", not `200 parsecs`")
    );
    assert_eq!(
        hop("rate = \"0 kbit/s\""),
        error(
            "rate",
            "a rate from 1 bit/s to 1000 Gbit/s, such as \"60 kbit/s\", or \"unlimited\", not `0 kbit/s`"
        )
    );
    assert_eq!(
        hop("jitter = [\"20 ms\", \"10 ms\"]"),
        error(
            "jitter",
            "two times, the shorter first, such as [\"10 ms\", \"20 ms\"], not a list; the longer one is first: did you mean \
             [\"10 ms\", \"20 ms\"]?"
        )
    );
    let kinds = "\"drop-tail\" or \"codel\" or \"fq-codel\" or \"pie\" or \"red\"";
    assert_eq!(
        hop("queue = \"codl\""),
        error(
            "queue",
            &format!(
                "{kinds}, or a table of that `kind` and its parameters, not `codl`; did you mean `codel`?"
            )
        )
    );
    assert_eq!(
        hop("queue = { kind = \"pie\", interval = \"1 s\" }"),
        "scenarios/x.toml:13: unknown key `network.up.wire.queue.interval`; it needs the kind \"codel\" or \"fq-codel\""
    );
    assert_eq!(
        hop("rate = \"60 kbit/s\"\nqueue = { kind = \"codel\", target = \"1 s\" }"),
        "scenarios/x.toml:14: `network.up.wire.queue.interval` must be longer than `target`"
    );
    assert_eq!(
        hop("queue = \"red\""),
        "scenarios/x.toml:13: `network.up.wire.queue` needs a `rate`: on an unlimited link nothing waits"
    );
    assert_eq!(
        hop("loss = \"101 %\""),
        error(
            "loss",
            "a percentage from 0 % to 100 %, such as \"2 %\", or a table of `good`, `bad`, `average`, \
             `mean_bad_packets`, not `101 %`"
        )
    );
    assert_eq!(
        hop("loss = { bad = \"50 %\", average = \"60 %\" }"),
        "scenarios/x.toml:13: `network.up.wire.loss.average` must lie between `good` and `bad` and equal neither"
    );
    assert_eq!(
        hop("loss = { bad = \"50 %\", average = \"49 %\" }"),
        "scenarios/x.toml:13: `network.up.wire.loss.mean_bad_packets` is too small: the good state would last less than \
         one packet"
    );
    assert_eq!(
        hop("reordering = { probability = \"1 %\" }"),
        "scenarios/x.toml:13: `network.up.wire.reordering.delay` is missing: it must be a time up to 24 h in us, ms, s, \
         min or h, such as \"200 ms\""
    );
    assert_eq!(
        hop("buffer_bytes = 2500"),
        "scenarios/x.toml:13: `network.up.wire.buffer_bytes` needs a `rate`: on an unlimited link nothing waits"
    );
}

#[test]
fn the_error_of_a_value_with_a_missing_or_misspelt_unit_suggests_the_unit() {
    let hop = |line: &str| refused("name = \"wire\"\n", &format!("name = \"wire\"\n{line}\n"));
    for (line, key, hint) in [
        ("delay = 300", "delay", "`300`; did you mean \"300 ms\" or \"300 s\"?"),
        ("delay = \"0.3\"", "delay", "`0.3`; did you mean \"0.3 ms\" or \"0.3 s\"?"),
        ("delay = \"300 msec\"", "delay", "`300 msec`; did you mean \"300 ms\"?"),
        ("rate = \"62.5 kbps\"", "rate", "`62.5 kbps`; did you mean \"62.5 kbit/s\"?"),
        ("rate = 60", "rate", "`60`; did you mean \"60 bit/s\" or \"60 kbit/s\"?"),
        ("loss = 5", "loss", "`5`; did you mean \"5 %\"?"),
        ("buffer_bytes = \"14 kib\"", "buffer_bytes", "`14 kib`; did you mean \"14 KiB\"?"),
        ("buffer_bytes = \"2500\"", "buffer_bytes", "`2500`; leave out the quotes: 2500"),
        ("jitter = [5, \"1 s\"]", "jitter", "a list; `5` is not a time; did you mean \"5 ms\" or \"5 s\"?"),
        ("jitter = [\"1 s\"]", "jitter", "a list; there are 1"),
    ] {
        let error = hop(line);
        assert!(
            error.starts_with(&format!("scenarios/x.toml:13: `network.up.wire.{key}` must be ")),
            "{error}"
        );
        assert!(error.ends_with(&format!(", not {hint}")), "{error}");
    }
    assert!(load("nb-iot", &[("network.up.radio.delay", "0")]).is_ok(), "nothing at all needs no unit");
    assert!(
        load("nb-iot", &[("workload.think_time", "5")])
            .unwrap_err()
            .ends_with("did you mean \"5 ms\" or \"5 s\"?")
    );
    let error = hop("delay = 300 ms");
    assert!(error.ends_with("; put a value with a unit in quotes: \"300 ms\""), "{error}");
}

#[test]
fn the_error_of_a_duplicate_key_names_the_key() {
    assert_eq!(
        refused("count = 3", "count = 3\nnstart = 1\ncount = 4"),
        "scenarios/x.toml:8: the key `count` is there twice"
    );
    assert_eq!(
        refused("[workload]", "[clients]\n[workload]"),
        "scenarios/x.toml:8: the key `clients` is there twice"
    );
}

#[test]
fn contradictory_values_are_refused() {
    assert_eq!(
        refused("[workload]", "[workload]\nbatch_max = 5\nbatch_min = 6"),
        "scenarios/x.toml:9: `workload.batch_max` must not be below `batch_min`, which is 6"
    );
    assert_eq!(
        load("nb-iot", &[("server.payload_bytes", "500")]).unwrap_err(),
        "--set server.payload_bytes=500: `server.payload_bytes` makes a response of 534 bytes, but `network.mtu` is 296"
    );
    assert_eq!(
        load("nb-iot", &[("buffer", "50")]).unwrap_err(),
        "--set buffer=50: `network.down.radio.buffer_bytes` must hold one message of 94 bytes, not `50`"
    );
    assert_eq!(
        load("nb-iot", &[("clients.uri_path", "/hello")]).unwrap_err(),
        "--set clients.uri_path=/hello: `clients.uri_path` must have segments of 1 to 255 bytes with single slashes \
         between them"
    );
    assert_eq!(
        refused("[[network.down]]", "[[network.up]]\nname = \"wire\"\n[[network.down]]"),
        "scenarios/x.toml:15: `network.up` has two tables with the name `wire`"
    );
}

#[test]
fn the_error_of_a_key_of_another_kind_names_the_kinds_that_have_it() {
    assert_eq!(
        load("mesh-mobile", &[("network.mesh.mobility.block", "5 m")]).unwrap_err(),
        "--set network.mesh.mobility.block=5 m: unknown key `network.mesh.mobility.block`; it needs the kind \"manhattan\""
    );
    assert_eq!(
        load("mesh-mobile", &[("mobility", "none"), ("max_speed", "3 m/s")]).unwrap_err(),
        "--set max_speed=3 m/s: unknown key `network.mesh.mobility.max_speed`; it needs the kind \"random-waypoint\" or \"gauss-markov\" \
         or \"manhattan\" or \"pursue\""
    );
    assert_eq!(
        load("mesh-mobile", &[("network.mesh.radio.propagation.height", "2 m")]).unwrap_err(),
        "--set network.mesh.radio.propagation.height=2 m: unknown key `network.mesh.radio.propagation.height`; it needs the kind \"two-ray\""
    );
    let manhattan = [("mobility", "manhattan"), ("network.mesh.mobility.block", "5 m")];
    let canonical = load("mesh-mobile", &manhattan).unwrap().canonical();
    let lines: Vec<_> = canonical.lines().filter(|line| line.starts_with("network.mesh.mobility.")).collect();
    assert_eq!(
        lines,
        [
            "network.mesh.mobility.kind = \"manhattan\"",
            "network.mesh.mobility.min_speed = \"0.5 m/s\"",
            "network.mesh.mobility.max_speed = \"1.5 m/s\"",
            "network.mesh.mobility.margin = \"0 m\"",
            "network.mesh.mobility.step = \"1 s\"",
            "network.mesh.mobility.block = \"5 m\"",
            "network.mesh.mobility.turn_probability = \"50 %\"",
        ]
    );
}
