//! Scenario files: what is read, what is refused and how, and that every published cell can be reached.

use std::fs;
use std::path::Path;

use coapace_control::Duration;
use coapace_lab::scenario::{Ip, Loss, Scenario, WorkloadKind, reference};

/// The smallest scenario there is; line numbers in the tests count from its first line.
const SMALLEST: &str = r#"title = "A wire"
summary = "Two hosts."
source = "illustrative"

[clients]
count = 3

[workload]
kind = "continuous"

[[network.up]]
name = "wire"

[[network.down]]
name = "wire"
"#;

fn settings(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn load(name: &str, set: &[(&str, &str)]) -> Result<Scenario, String> {
    Scenario::load(name, &settings(set)).map_err(|error| error.to_string())
}

fn parse(text: &str, set: &[(&str, &str)]) -> Result<Scenario, String> {
    Scenario::parse("x", "scenarios/x.toml", text, &settings(set)).map_err(|error| error.to_string())
}

/// The error of the smallest scenario with `from` replaced by `to`.
fn refused(from: &str, to: &str) -> String {
    assert!(SMALLEST.contains(from), "{from:?}");
    parse(&SMALLEST.replacen(from, to, 1), &[]).unwrap_err()
}

fn repository(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn the_smallest_scenario_has_the_documented_defaults() {
    let scenario = parse(SMALLEST, &[]).unwrap();
    assert_eq!(scenario.clients.nstart, 1);
    assert_eq!(scenario.clients.max_retransmit, 4);
    assert_eq!(scenario.server.payload_bytes, 60);
    assert!(scenario.server.deduplication);
    assert_eq!((scenario.workload.exchanges, scenario.workload.duration), (Some(50), None));
    assert_eq!(scenario.server.count, 1);
    assert_eq!(scenario.network.ip, Ip::V6);
    let wire = &scenario.network.up[0];
    assert_eq!((wire.rate, wire.buffer_bytes, &wire.loss), (None, None, &Loss::Random(0.0)));
    assert_eq!(wire.jitter.max, Duration::ZERO);
    assert!(wire.reordering.is_none());
    assert!(scenario.knob_values().is_empty());
}

#[test]
fn an_unknown_key_is_an_error_with_the_line_and_a_suggestion() {
    assert_eq!(
        refused("[clients]", "[clinets]"),
        "scenarios/x.toml:5: unknown key `clinets`; did you mean `clients`?"
    );
    assert_eq!(
        refused("count = 3", "count = 3\nmax_retransmits = 4"),
        "scenarios/x.toml:7: unknown key `clients.max_retransmits`; did you mean `clients.max_retransmit`?"
    );
    assert_eq!(
        refused("name = \"wire\"\n", "name = \"wire\"\ndelya = \"1 ms\"\n"),
        "scenarios/x.toml:13: unknown key `network.up.wire.delya`; did you mean `network.up.wire.delay`?"
    );
}

#[test]
fn a_key_in_the_wrong_table_is_sent_to_its_own() {
    assert_eq!(
        refused("count = 3", "count = 3\nmtu = 296"),
        "scenarios/x.toml:7: unknown key `clients.mtu`; did you mean `network.mtu`?"
    );
}

#[test]
fn a_key_like_no_other_is_answered_with_what_there_is() {
    assert_eq!(
        refused("[workload]", "[workload]\nzzz = 1"),
        "scenarios/x.toml:9: unknown key `workload.zzz`; `workload` has `kind`, `exchanges`, `duration`, `warm_up`, \
         `batch_min`, `batch_max`, `think_time`, `interval`, `flows`"
    );
}

#[test]
fn a_missing_key_names_its_table_and_what_it_takes() {
    assert_eq!(
        refused("kind = \"continuous\"", ""),
        "scenarios/x.toml:8: `workload.kind` is missing: it must be \"continuous\" or \"random\" or \"flows\""
    );
    assert_eq!(
        refused("[workload]\nkind = \"continuous\"", ""),
        "scenarios/x.toml:1: `workload.kind` is missing: it must be \"continuous\" or \"random\" or \"flows\""
    );
    assert_eq!(
        refused("[[network.down]]\nname = \"wire\"", ""),
        "scenarios/x.toml:11: `network.down` is missing: it must be 1 to 16 tables, each with a `name` of its own"
    );
}

#[test]
fn a_bad_value_names_the_key_the_value_and_what_is_accepted() {
    for (value, shown) in [
        ("0", "`0`"),
        ("1_000_001", "`1000001`"),
        ("-1", "`-1`"),
        ("\"3\"", "`3`"),
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
        "scenarios/x.toml:9: `workload.kind` must be \"continuous\" or \"random\" or \"flows\", not `randon`; did you mean `random`?"
    );
    assert_eq!(
        refused("[clients]", "[server]\npayload_bytes = 9223372036854775808\n[clients]"),
        "scenarios/x.toml:6: `server.payload_bytes` must be a whole number from 0 to 65000, not `9223372036854775808`"
    );
    assert_eq!(
        refused("[clients]\ncount = 3", "[[clients]]\ncount = 3"),
        "scenarios/x.toml:5: `clients` must be a table of `count`, `nstart`, `max_retransmit`, `uri_path`, \
         `start`, `start_spread`, `probing_rate`, `confirmable_every`, not a list"
    );
}

#[test]
fn a_quantity_without_its_unit_or_outside_its_range_is_refused() {
    let hop = |line: &str| refused("name = \"wire\"\n", &format!("name = \"wire\"\n{line}\n"));
    let error =
        |key: &str, rest: &str| format!("scenarios/x.toml:13: `network.up.wire.{key}` must be {rest}");
    assert_eq!(
        hop("delay = 200"),
        error("delay", "a time up to 24 h in us, ms, s, min or h, such as \"200 ms\", not `200`")
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
        error("jitter", "two times, the shorter first, such as [\"10 ms\", \"20 ms\"], not a list")
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
fn values_that_do_not_go_together_are_refused() {
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
        "scenarios/x.toml:15: `network.up` has two of the name `wire`"
    );
}

#[test]
fn a_workload_ends_after_its_exchanges_or_after_its_duration() {
    let lasting = SMALLEST.replace("[workload]", "[workload]\nduration = \"60 s\"\nwarm_up = \"10 s\"");
    let workload = parse(&lasting, &[]).unwrap().workload;
    assert_eq!((workload.exchanges, workload.duration), (None, Some(Duration::from_secs(60))));
    assert_eq!(workload.warm_up, Duration::from_secs(10));

    let set = [("workload.exchanges", "none"), ("workload.duration", "5 min")];
    assert_eq!(load("nb-iot", &set).unwrap().workload.duration, Some(Duration::from_secs(300)));
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
        "scenarios/x.toml:9: `workload.warm_up` must be shorter than `duration`"
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
        load("nb-iot", &[("workload.duration", "60")]).unwrap_err(),
        "--set workload.duration=60: `workload.duration` must be a time up to 24 h in us, ms, s, min or h, such as \
         \"200 ms\", or \"none\", not `60`"
    );
}

#[test]
fn what_is_not_toml_is_an_error_with_its_line() {
    assert!(refused("count = 3", "count = ").starts_with("scenarios/x.toml:6: not TOML: "));
    assert!(
        refused("count = 3", "count = 3\ncount = 4")
            .starts_with("scenarios/x.toml:7: not TOML: duplicate key")
    );
}

#[test]
fn a_setting_is_judged_like_the_file() {
    assert_eq!(
        load("nb-iot", &[("clients", "many")]).unwrap_err(),
        "--set clients=many: `clients.count` must be a whole number from 1 to 1000000, not `many`"
    );
    assert_eq!(
        load("nb-iot", &[("clients", "5"), ("bufer", "2500")]).unwrap_err(),
        "--set bufer=2500: unknown key `bufer`; did you mean `buffer`?"
    );
    assert_eq!(
        load("nb-iot", &[("payload_bytes", "10")]).unwrap_err(),
        "--set payload_bytes=10: unknown key `payload_bytes`; did you mean `server.payload_bytes`?"
    );
    assert_eq!(
        load("nb-iot", &[("network.up.raido.delay", "1 s")]).unwrap_err(),
        "--set network.up.raido.delay=1 s: `network.up` has nothing of the name `raido`; did you mean `radio`?"
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
fn settings_reach_tables_that_the_file_leaves_out_and_need_no_quotes() {
    let set = [
        ("tcp.delayed_ack", "40 ms"),
        ("server.deduplication", "false"),
        ("network.up.wire.jitter", "[\"1 ms\", \"2 ms\"]"),
        ("network.down.wire.rate", "1.5 Mbit/s"),
        ("title", "Another wire"),
    ];
    let scenario = parse(SMALLEST, &set).unwrap();
    assert_eq!(scenario.tcp.delayed_ack, Duration::from_millis(40));
    assert!(!scenario.server.deduplication);
    assert_eq!(scenario.network.up[0].jitter.max, Duration::from_millis(2));
    assert_eq!(scenario.network.down[0].rate, Some(1_500_000));
    assert_eq!(scenario.title, "Another wire");
}

#[test]
fn later_settings_win_over_earlier_ones() {
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
fn a_knob_that_leads_nowhere_is_refused_at_its_line() {
    let knobs = |text: &str| refused("[clients]", &format!("[knobs]\n{text}\n[clients]"));
    assert_eq!(
        knobs("n = \"clients.coutn\""),
        "scenarios/x.toml:6: `knobs.n`: unknown key `clients.coutn`; did you mean `clients.count`?"
    );
    assert_eq!(
        knobs("delay = [\"network.up.wire.delay\", \"network.down.wir.delay\"]"),
        "scenarios/x.toml:6: `network.down` has nothing of the name `wir`; did you mean `wire`?"
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
fn a_scenario_that_does_not_exist_is_an_error() {
    assert_eq!(
        load("nb-iott", &[]).unwrap_err(),
        "nb-iott: neither a built-in scenario nor a file; did you mean `nb-iot`?"
    );
    assert!(load("nowhere/x.toml", &[]).unwrap_err().starts_with("nowhere/x.toml: "));
}

#[test]
fn a_file_and_its_built_in_copy_are_the_same_scenario() {
    for builtin in Scenario::builtins() {
        let path = repository("scenarios").join(format!("{}.toml", builtin.name));
        let from_file = load(path.to_str().unwrap(), &[]).unwrap();
        assert_eq!(from_file, load(builtin.name, &[]).unwrap());
    }
}

#[test]
fn every_scenario_file_is_built_in() {
    let mut files: Vec<_> = fs::read_dir(repository("scenarios"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut builtins: Vec<_> = Scenario::builtins().map(|builtin| builtin.name.to_owned()).collect();
    files.sort();
    builtins.sort();
    assert_eq!(files, builtins);
}

#[test]
fn the_built_in_testbed_is_that_of_the_thesis() {
    let scenario = load("nb-iot", &[]).unwrap();
    assert_eq!(scenario.clients.uri_path_bytes(), 6);
    assert_eq!(scenario.clients.max_retransmit, 20);
    assert!(!scenario.server.deduplication);
    assert_eq!((scenario.workload.batch_min, scenario.workload.batch_max), (1, 10));
    assert_eq!((scenario.network.ip, scenario.network.mtu), (Ip::V4, 296));

    let [radio, backhaul] = scenario.network.up.as_slice() else { panic!("up has two hops") };
    assert_eq!((radio.name.as_str(), backhaul.name.as_str()), ("radio", "backhaul"));
    assert_eq!((radio.rate, radio.delay), (Some(60_000), Duration::from_millis(200)));
    assert_eq!((backhaul.rate, backhaul.jitter.min), (None, Duration::from_millis(10)));

    let [backhaul, radio] = scenario.network.down.as_slice() else { panic!("down has two hops") };
    assert_eq!((radio.name.as_str(), backhaul.name.as_str()), ("radio", "backhaul"));
    assert_eq!((radio.rate, radio.delay), (Some(30_000), Duration::from_millis(400)));
    assert_eq!(backhaul.jitter.max, Duration::from_millis(20));

    // 50 clients, 50 responses of 93 bytes each, are what was measured: 62.0 s.
    let response = scenario.network.ip.header_bytes() + 8 + 4 + 1 + scenario.server.payload_bytes;
    assert_eq!(response, 93);
}

#[test]
fn every_published_cell_of_the_thesis_is_reached_by_knobs() {
    let published = fs::read_to_string(repository("papers/raitahila2019/published.csv")).unwrap();
    let mut lines = published.lines();
    assert!(lines.next().unwrap().starts_with("workload,clients,buffer_bytes,link_errors,"));
    let mut cells = 0;
    for line in lines {
        let cell: Vec<_> = line.split(',').collect();
        let [workload, clients, buffer, errors] = cell[..4] else { panic!("{line}") };
        let set = [("workload", workload), ("clients", clients), ("buffer", buffer), ("errors", errors)];
        let scenario = load("nb-iot", &set).unwrap();

        let values: Vec<_> = scenario.knob_values().iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(values, set, "what was set is what is reported");
        assert_eq!(scenario.clients.count.to_string(), clients);
        assert_eq!(scenario.workload.kind == WorkloadKind::Random, workload == "random");
        let average = match errors {
            "none" => 0.0,
            "low" => 0.02,
            "medium" => 0.1,
            _ => 0.18,
        };
        for radio in [&scenario.network.up[0], &scenario.network.down[1]] {
            assert_eq!(radio.buffer_bytes.unwrap().to_string(), buffer);
            assert!((average_loss(&radio.loss) - average).abs() < 1e-12, "{line}");
        }
        assert_eq!(scenario.defaults.seeds, if errors == "none" { 20 } else { 40 });
        cells += 1;
    }
    assert!(cells > 70, "{cells} cells");
}

/// From the two states and their lengths, not from the average that the file states.
fn average_loss(loss: &Loss) -> f64 {
    match loss {
        Loss::Random(share) => *share,
        Loss::Burst(burst) => {
            let (good, bad) = (burst.mean_good_packets(), f64::from(burst.mean_bad_packets));
            (good * burst.good + bad * burst.bad) / (good + bad)
        }
    }
}

#[test]
fn bursts_of_the_medium_level_leave_twelve_good_packets_between_three_bad_ones() {
    let scenario = load("nb-iot", &[("errors", "medium")]).unwrap();
    let Loss::Burst(burst) = &scenario.network.down[1].loss else { panic!("no burst") };
    assert!((burst.mean_good_packets() - 12.0).abs() < 1e-9);
}

#[test]
fn a_knob_over_keys_that_differ_shows_all_their_values() {
    let scenario = load("nb-iot", &[("network.up.radio.buffer_bytes", "14.1 kB")]).unwrap();
    assert_eq!(scenario.knob("buffer"), Some("14100/1410000"));
}

#[test]
fn the_hash_is_of_what_is_run_and_not_of_how_it_is_written() {
    let hash = |set: &[(&str, &str)]| load("nb-iot", set).unwrap().hash();
    assert_eq!(hash(&[]).len(), 16);
    for same in [
        ("title", "Another title"),
        ("defaults.seeds", "3"),
        ("buffer", "1.41 MB"),
        ("network.up.radio.delay", "0.2 s"),
        ("errors", "none"),
        ("server.processing_delay", "0 ms"),
        ("server.count", "1"),
        ("workload.duration", "none"),
    ] {
        assert_eq!(hash(&[]), hash(&[same]), "{same:?}");
    }
    let mut all = vec![hash(&[])];
    for other in [
        ("clients", "11"),
        ("buffer", "2500"),
        ("errors", "low"),
        ("errors", "medium"),
        ("workload", "random"),
        ("tcp.nagle", "false"),
        ("server.count", "2"),
        ("network.down.backhaul.name", "wire"),
        ("network.down.radio.reordering", "{ probability = \"1 %\", delay = \"1 ms\" }"),
    ] {
        all.push(hash(&[other]));
    }
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "each of them is another scenario");
}

#[test]
fn an_interval_of_the_clients_is_refused_beside_flows() {
    let scenario = |set: &[(&str, &str)]| load("mesh-grid", set);
    assert!(scenario(&[("clients.start", "1 s")]).is_ok());
    let error = scenario(&[("workload.interval", "1 s")]).unwrap_err();
    assert!(error.contains("`workload.interval` does not go with the kind \"flows\""), "{error}");
}

#[test]
fn the_hash_is_the_same_on_every_machine() {
    let scenario = parse(SMALLEST, &[]).unwrap();
    let canonical = "\
clients.count = 3
clients.nstart = 1
clients.max_retransmit = 4
clients.uri_path = \"coap\"
clients.start_spread = \"0 s\"
server.payload_bytes = 60
server.deduplication = true
server.processing_delay = \"0 s\"
workload.kind = \"continuous\"
workload.exchanges = 50
workload.batch_min = 1
workload.batch_max = 10
workload.think_time = \"0 s\"
network.ip = \"ipv6\"
network.mtu = 1280
network.up.wire.name = \"wire\"
network.up.wire.rate = \"unlimited\"
network.up.wire.buffer_bytes = \"unlimited\"
network.up.wire.delay = \"0 s\"
network.up.wire.jitter = [\"0 s\", \"0 s\"]
network.up.wire.loss = \"0 %\"
network.up.wire.reordering = \"none\"
network.down.wire.name = \"wire\"
network.down.wire.rate = \"unlimited\"
network.down.wire.buffer_bytes = \"unlimited\"
network.down.wire.delay = \"0 s\"
network.down.wire.jitter = [\"0 s\", \"0 s\"]
network.down.wire.loss = \"0 %\"
network.down.wire.reordering = \"none\"
tcp.connect_first = true
tcp.nagle = true
tcp.delayed_ack = \"200 ms\"
tcp.handshake_timeout_percent = 100
";
    assert_eq!(scenario.canonical(), canonical);
    assert_eq!(scenario.hash(), "85f879654bacad8b");
}

#[test]
fn the_canonical_form_read_as_settings_gives_the_same_scenario() {
    for builtin in Scenario::builtins() {
        for set in [&[][..], &[("errors", "high")], &[("sky", "rain")]] {
            let Ok(scenario) = load(builtin.name, set) else { continue };
            let canonical = scenario.canonical();
            let again: Vec<_> = canonical.lines().map(|line| line.split_once(" = ").unwrap()).collect();
            let again: Vec<_> = [set, &again].concat();
            assert_eq!(load(builtin.name, &again).unwrap().canonical(), canonical, "{}", builtin.name);
        }
    }
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = repository("docs/scenarios.md");
    let page = reference();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == page, "rewrite it: BLESS=1 cargo test -p coapace-lab --test scenario");
}

#[test]
fn the_reference_page_has_every_key_of_a_run() {
    let page = reference();
    for line in load("nb-iot", &[("errors", "high")]).unwrap().canonical().lines() {
        let path = line.split(" = ").next().unwrap();
        let path = path.replace(".down.", ".up.").replace(".radio.", ".HOP.").replace(".backhaul.", ".HOP.");
        assert!(page.contains(&format!("| `{path}` |")), "{path}");
    }
}

#[test]
fn the_smallest_scenario_of_the_reference_page_is_right() {
    let page = reference();
    let (_, example) = page.split_once("```toml\n").unwrap();
    assert_eq!(parse(example.split_once("```").unwrap().0, &[]).unwrap().clients.count, 3);
}

/// A generator good enough to spoil texts with (xorshift64).
struct Spoiler(u64);

impl Spoiler {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

const SHARDS: &[&str] = &[
    "[",
    "]",
    "[[",
    "{",
    "}",
    "=",
    ".",
    "\"",
    "'",
    ",",
    "\n",
    "#",
    "\0",
    "\u{1b}",
    "é",
    "\u{10ffff}",
    "-",
    "99999999999999999999",
    "0x",
    "[knobs]",
    "[[network.up]]",
    "loss",
    "name",
    "clients.count",
    "1979-05-27",
    "inf",
    "true",
    "%",
    " ms",
    "\"\"\"",
];

#[test]
fn spoilt_files_and_settings_never_panic_and_always_err_in_one_line() {
    let mut spoiler = Spoiler(0x9e37_79b9_7f4a_7c15);
    let texts: Vec<_> = Scenario::builtins().map(|builtin| builtin.text).chain([SMALLEST, ""]).collect();
    let mut accepted = 0;
    for _ in 0..3_000 {
        let mut text: Vec<char> = texts[spoiler.next(texts.len())].chars().collect();
        for _ in 0..=spoiler.next(4) {
            let place = spoiler.next(text.len() + 1);
            let end = (place + spoiler.next(12)).min(text.len());
            let shard = SHARDS[spoiler.next(SHARDS.len())];
            let keep = spoiler.next(3) == 0;
            text.splice(if keep { place..place } else { place..end }, shard.chars());
        }
        let text: String = text.into_iter().collect();
        let key: String = (0..spoiler.next(4)).map(|_| SHARDS[spoiler.next(SHARDS.len())]).collect();
        let value: String = (0..spoiler.next(4)).map(|_| SHARDS[spoiler.next(SHARDS.len())]).collect();
        for set in [&[][..], &[(key.as_str(), value.as_str())], &[("clients.count", value.as_str())]] {
            match parse(&text, set) {
                Ok(_) => accepted += 1,
                Err(error) => {
                    assert!(!error.contains(char::is_control), "{error:?}");
                    assert!(error.len() < 2_000, "{error:?}");
                }
            }
        }
    }
    assert!(accepted > 100, "only {accepted} survived: the test spoils too much to see anything");
}

#[test]
fn a_file_of_absurd_size_is_refused() {
    let text = format!("{SMALLEST}{}", "#".repeat(100_000));
    assert_eq!(parse(&text, &[]).unwrap_err(), "scenarios/x.toml:1: longer than 65536 bytes");
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for (open, close) in [("[", "]"), ("{a=", "}")] {
        let text = format!("title = {}1{}", open.repeat(10_000), close.repeat(10_000));
        assert!(parse(&text, &[]).unwrap_err().starts_with("scenarios/x.toml:1: not TOML: "));
    }
    let path = vec!["a"; 30_000].join(".");
    assert!(parse(&format!("{path} = 1"), &[]).is_err());
    assert!(parse(SMALLEST, &[(path.as_str(), "1")]).is_err());
    assert!(parse(SMALLEST, &[("title", &"[".repeat(100_000))]).is_err());
}

#[test]
fn what_a_terminal_would_obey_is_not_in_an_error() {
    let error = parse(SMALLEST, &[("clients.count", "\u{1b}[2J\n")]).unwrap_err();
    assert!(!error.contains(char::is_control), "{error:?}");
}
