//! Tests of `--set` and of knobs.

use coapace_scenario::Loss;
use coapace_sim::Span;

use crate::{SMALLEST, load, parse, refused};

#[test]
fn settings_are_checked_like_keys_of_the_file() {
    assert_eq!(
        load("nb-iot", &[("clients", "many")]).unwrap_err(),
        "--set clients=many: `clients.count` must be a whole number from 1 to 1000000, not `many`"
    );
    assert_eq!(
        load("nb-iot", &[("clients", "5"), ("bufer", "2500")]).unwrap_err(),
        "--set bufer=2500: unknown key `bufer`; did you mean `buffer`?"
    );
    assert_eq!(
        load("nb-iot", &[("speed", "5")]).unwrap_err(),
        "--set speed=5: unknown key `speed`; the knobs are `workload`, `clients`, `buffer`, `errors`; a scenario has `title`, \
         `summary`, `source`, `clients`, `server`, `workload`, `network`, `tcp`, `defaults`, `knobs`"
    );
    assert_eq!(
        load("nb-iot", &[("payload_bytes", "10")]).unwrap_err(),
        "--set payload_bytes=10: unknown key `payload_bytes`; did you mean `server.payload_bytes`?"
    );
    assert_eq!(
        load("nb-iot", &[("network.up.raido.delay", "1 s")]).unwrap_err(),
        "--set network.up.raido.delay=1 s: no key `raido` in `network.up`; did you mean `radio`?"
    );
    assert_eq!(
        load("nb-iot", &[("network.up.radio.dealy", "1 s")]).unwrap_err(),
        "--set network.up.radio.dealy=1 s: unknown key `network.up.radio.dealy`; did you mean `network.up.radio.delay`?"
    );
    assert_eq!(
        load("nb-iot", &[("errors", "meduim")]).unwrap_err(),
        "--set errors=meduim: `errors` must be \"none\" or \"low\" or \"medium\" or \"high\", not `meduim`; did you mean \
         `medium`?"
    );
    assert_eq!(
        load("nb-iot", &[("network.up.radio.loss.mean_bad_packets", "8")]).unwrap_err(),
        "--set network.up.radio.loss.mean_bad_packets=8: `network.up.radio.loss` is `0 %` and has no key \
         `mean_bad_packets`"
    );
}

#[test]
fn an_error_caused_by_a_setting_names_the_setting_instead_of_the_line() {
    assert_eq!(
        load("mesh-grid", &[("nodes", "25"), ("duration", "30 s"), ("clients.count", "7")]).unwrap_err(),
        "--set duration=30 s: `workload.warm_up` of \"1 min\" must be shorter than `duration`, which is \"30 s\""
    );
    assert_eq!(
        load("mesh-grid", &[("workload.warm_up", "0 s"), ("duration", "30 s"), ("retries", "4")])
            .unwrap_err(),
        "--set duration=30 s: `workload.flows.primary.start` of \"1 min\" must be before the end of `workload.duration`, \
         which is \"30 s\""
    );
    let error = load("mesh-grid", &[("retries", "4"), ("nodes", "37")]).unwrap_err();
    assert!(error.starts_with("--set nodes=37: `network.mesh.topology.kind` cannot be: "), "{error}");
}

#[test]
fn settings_create_tables_missing_in_the_file_and_need_no_quotes() {
    let set = [
        ("tcp.delayed_ack", "40 ms"),
        ("server.deduplication", "false"),
        ("network.up.wire.jitter", "[\"1 ms\", \"2 ms\"]"),
        ("network.down.wire.rate", "1.5 Mbit/s"),
        ("title", "Another wire"),
    ];
    let scenario = parse(SMALLEST, &set).unwrap();
    assert_eq!(scenario.tcp.delayed_ack, Span::from_millis(40));
    assert!(!scenario.server.deduplication);
    assert_eq!(scenario.network.up[0].jitter.max, Span::from_millis(2));
    assert_eq!(scenario.network.down[0].rate, Some(1_500_000));
    assert_eq!(scenario.title, "Another wire");
}

#[test]
fn later_settings_override_earlier_ones() {
    let set = [
        ("errors", "high"),
        ("network.up.radio.loss.mean_bad_packets", "8"),
        ("clients", "1"),
        ("clients", "2"),
    ];
    let scenario = load("nb-iot", &set).unwrap();
    assert_eq!(scenario.clients.count, 2);
    let Loss::Burst(burst) = &scenario.network.up[1 - 1].loss else { panic!("no burst") };
    assert_eq!(burst.mean_bad_packets, 8);
    assert_eq!(scenario.knob("errors"), Some("custom"), "no choice has bursts of 8 packets");
}

#[test]
fn a_knob_for_a_nonexistent_key_is_refused_with_its_line() {
    let knobs = |text: &str| refused("[clients]", &format!("[knobs]\n{text}\n[clients]"));
    assert_eq!(
        knobs("n = \"clients.coutn\""),
        "scenarios/x.toml:6: `knobs.n`: unknown key `clients.coutn`; did you mean `clients.count`?"
    );
    assert_eq!(
        knobs("delay = [\"network.up.wire.delay\", \"network.down.wir.delay\"]"),
        "scenarios/x.toml:6: no key `wir` in `network.down`; did you mean `wire`?"
    );
    assert_eq!(
        knobs("n = 3"),
        "scenarios/x.toml:6: `knobs.n` must be a path, a list of paths, or a table of choices, not `3`"
    );
    assert_eq!(
        knobs("n.few = { \"clients.count\" = 0 }"),
        "scenarios/x.toml:6: `clients.count` must be a whole number from 1 to 1000000, not `0`"
    );
    assert_eq!(
        knobs("\"a.b\" = \"clients.count\""),
        "scenarios/x.toml:6: `knobs.a.b` must be a name of at most 32 lower-case letters, digits, `-` and `_`, a letter \
         first"
    );
}

#[test]
fn a_knob_for_several_keys_with_different_values_shows_all_values() {
    let scenario = load("nb-iot", &[("network.up.radio.buffer_bytes", "14.1 kB")]).unwrap();
    assert_eq!(scenario.knob("buffer"), Some("14100/1410000"));
}
