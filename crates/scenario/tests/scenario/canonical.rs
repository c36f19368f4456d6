//! Tests of defaults, of the canonical form and of the hash.

use coapace_scenario::{Ip, Loss, Scenario};
use coapace_sim::Span;

use crate::{SMALLEST, load, parse};

#[test]
fn the_smallest_scenario_has_the_documented_defaults() {
    let scenario = parse(SMALLEST, &[]).unwrap();
    assert_eq!(scenario.clients.nstart, None);
    assert_eq!(scenario.clients.max_retransmit, 4);
    assert_eq!(scenario.server.payload_bytes, 60);
    assert!(scenario.server.deduplication);
    assert_eq!((scenario.workload.exchanges, scenario.workload.duration), (Some(50), None));
    assert_eq!(scenario.server.count, 1);
    assert_eq!(scenario.network.ip, Ip::V6);
    let wire = &scenario.network.up[0];
    assert_eq!((wire.rate, wire.buffer_bytes, &wire.loss), (None, None, &Loss::Random(0.0)));
    assert_eq!(wire.jitter.max, Span::ZERO);
    assert!(wire.reordering.is_none());
    assert!(scenario.knob_values().is_empty());
}

#[test]
fn the_scenario_hash_depends_on_the_run_and_not_on_the_layout_of_the_file() {
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
        ("server.sluice", "false"),
        ("server.response", "piggybacked"),
        ("server.service_time", "0 s"),
        ("server.acknowledge_after", "0 s"),
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
        ("server.sluice", "true"),
        ("server.response", "separate"),
        ("server.response", "separate-non"),
        ("server.service_time", "1 s"),
        ("server.service_time", "[\"1 s\", \"2 s\"]"),
        ("server.service_time", "{ mean = \"1 s\" }"),
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
fn keys_are_shown_beside_the_knobs_with_their_effective_values() {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let settings = [("clients", "5"), ("server.sluice", "false")].map(owned);
    let scenario = Scenario::load("nb-iot", &settings[..1]).unwrap();
    let keys = ["clients", "tcp.nagle", "server.sluice", "workload.flows"];
    let shown = scenario.clone().showing(&keys, &settings);
    assert_eq!(shown.knob_values()[..scenario.knob_values().len()], *scenario.knob_values());
    let nagle = scenario.effective("tcp.nagle").unwrap();
    let more = [("tcp.nagle", nagle.as_str()), ("server.sluice", "false")].map(owned);
    assert_eq!(
        shown.knob_values()[scenario.knob_values().len()..],
        more,
        "a key without a line has the value of the setting"
    );
    assert_eq!(shown.hash(), scenario.hash());
    let delay = |scenario: Scenario| scenario.effective("network.up.wire.delay");
    assert_eq!(delay(parse(SMALLEST, &[("network.up.wire.delay", "0.2s")]).unwrap()).unwrap(), "200 ms");
}

#[test]
fn the_scenario_hash_is_the_same_on_every_machine() {
    let scenario = parse(SMALLEST, &[]).unwrap();
    let canonical = "\
clients.count = 3
clients.nstart = \"none\"
clients.max_retransmit = 4
clients.patience = \"rfc7252\"
clients.uri_path = \"coap\"
clients.start = \"0 s\"
clients.start_spread = \"0 s\"
clients.probing_rate = 1
clients.confirmable_every = 8
server.count = 1
server.payload_bytes = 60
server.deduplication = true
server.sluice = false
server.processing_delay = \"0 s\"
server.service_time = \"0 s\"
server.response = \"piggybacked\"
server.acknowledge_after = \"0 s\"
workload.kind = \"continuous\"
workload.exchanges = 50
workload.duration = \"none\"
workload.warm_up = \"0 s\"
workload.batch_min = 1
workload.batch_max = 10
workload.think_time = \"0 s\"
workload.interval = \"0 s\"
network.ip = \"ipv6\"
network.mtu = 1280
network.ecn_capable = false
network.up.wire.name = \"wire\"
network.up.wire.rate = \"unlimited\"
network.up.wire.buffer_bytes = \"unlimited\"
network.up.wire.queue = \"drop-tail\"
network.up.wire.ecn = false
network.up.wire.delay = \"0 s\"
network.up.wire.jitter = [\"0 s\", \"0 s\"]
network.up.wire.loss = \"0 %\"
network.up.wire.reordering = \"none\"
network.down.wire.name = \"wire\"
network.down.wire.rate = \"unlimited\"
network.down.wire.buffer_bytes = \"unlimited\"
network.down.wire.queue = \"drop-tail\"
network.down.wire.ecn = false
network.down.wire.delay = \"0 s\"
network.down.wire.jitter = [\"0 s\", \"0 s\"]
network.down.wire.loss = \"0 %\"
network.down.wire.reordering = \"none\"
network.mesh = \"none\"
tcp.connect_first = true
tcp.nagle = true
tcp.delayed_ack = \"200 ms\"
tcp.handshake_timeout_percent = 100
tcp.timer_hz = \"none\"
";
    assert_eq!(scenario.canonical(), canonical);
    assert_eq!(scenario.hash(), "0e25846bb1bc8474");
}

#[test]
fn the_canonical_form_of_a_scenario_used_as_settings_gives_the_same_scenario() {
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
