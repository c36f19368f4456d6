//! Tests of meshes that scenarios describe.

use coapace_run::contender::Contender;
use coapace_run::measured::{FlowResult, RunResult};
use coapace_run::{Observe, run};
use coapace_scenario::Scenario;

fn load(set: &[(&str, &str)]) -> Result<Scenario, String> {
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Scenario::load("mesh-grid", &set).map_err(|error| error.to_string())
}

/// Runs two minutes of the grid, the first of which does not count.
fn measured(mechanism: &str, set: &[(&str, &str)]) -> RunResult {
    let set = [&[("duration", "120 s")], set].concat();
    run(&load(&set).unwrap(), &Contender::parse(mechanism).unwrap(), 1, Observe::Totals)
}

/// Returns the share of messages that arrived.
fn pdr(flow: &FlowResult) -> f64 {
    flow.reached as f64 / flow.offered as f64
}

#[test]
fn at_low_load_a_mesh_delivers_over_shortest_paths_and_energy_follows_from_radio_states() {
    let run = measured("default", &[("routing", "shortest"), ("ldr", "static"), ("load", "500 bit/s")]);
    let (flow, mesh) = (&run.flows[0], run.mesh.unwrap());
    assert!(flow.offered > 30 && pdr(flow) > 0.9, "{flow:?}");
    assert!((0.005..1.0).contains(&flow.delays.mean_s().unwrap()), "{flow:?}");
    assert!(mesh.counters.frames > 4 * flow.reached && mesh.counters.acks > 0, "{mesh:?}");
    // There are 36 radios that are always on, for 60 s at 3 V, with a current between the least and the most of a working
    // radio.
    let (least, most) = (36.0 * 60.0 * 3.0 * 17.4, 36.0 * 60.0 * 3.0 * 18.8);
    assert!((least..=most).contains(&mesh.energy_mj()), "{mesh:?}");
    let [transmit, receive, listen, _] = mesh.energies_mj;
    assert!(transmit > 0.0 && receive > transmit && listen > receive);
    assert!(run.timeouts.initial_s().is_some());
}

#[test]
fn an_overloaded_mesh_loses_and_delays_messages() {
    let of = |load| measured("default", &[("routing", "shortest"), ("load", load)]);
    let (little, much) = (of("1 kbit/s"), of("20 kbit/s"));
    assert!(pdr(&much.flows[0]) < pdr(&little.flows[0]));
    assert!(much.flows[0].delays.mean_s() > little.flows[0].delays.mean_s());
    assert!(much.mesh.unwrap().counters.collided > little.mesh.unwrap().counters.collided);
}

#[test]
fn rpl_carries_messages_and_sends_control_frames() {
    let run = measured("cocoa", &[("ldr", "static"), ("load", "1 kbit/s")]);
    assert!(pdr(&run.flows[0]) > 0.7, "{:?}", run.flows[0]);
    assert!(run.mesh.unwrap().counters.control_frames > 0);
}

#[test]
fn the_same_seed_gives_the_same_mesh_run() {
    let twice = [1, 2].map(|_| measured("cocoa", &[]));
    assert_eq!(twice[0], twice[1]);
}

#[test]
fn clients_that_wait_for_responses_also_run_over_a_mesh() {
    let text = "title = 'm'\nsummary = 'm'\nsource = 'm'\n[workload]\nkind = 'continuous'\nexchanges = 5\n\
                [network.mesh.topology]\nnodes = 9\n";
    let scenario = Scenario::parse("m", "m.toml", text, &[]).unwrap();
    assert_eq!(scenario.clients.count, 7, "the sink and the border router are no clients");
    let run = run(&scenario, &Contender::parse("default").unwrap(), 1, Observe::Totals);
    assert_eq!(run.completed() + run.given_up, 35);
    assert!(run.completed() >= 33 && run.fct_s.iter().flatten().all(|fct| *fct < 60.0), "{:?}", run.fct_s);
}

#[test]
fn a_preset_of_a_mac_sets_the_keys_left_out() {
    let mac = |set: &[(&str, &str)]| load(set).unwrap().network.mesh.clone().unwrap().mac;
    let (contiki, own) = (mac(&[("mac", "contiki-3")]), mac(&[("mac", "contiki-3"), ("retries", "0")]));
    assert_eq!(contiki.preset, "contiki-3");
    assert_eq!((contiki.config.max_frame_retries, own.config.max_frame_retries), (7, 0));
    assert_eq!(contiki.config.min_be, own.config.min_be);
    let spelt_out = load(&[("mac", "contiki-2"), ("network.mesh.mac.queue_frames", "4")]).unwrap();
    assert_eq!(spelt_out.hash(), load(&[]).unwrap().hash(), "the setting equals the preset");
    assert_ne!(load(&[("mac", "standard")]).unwrap().hash(), spelt_out.hash());
    assert_eq!(load(&[("mac", "standard")]).unwrap().knob("mac"), Some("standard"));
}

#[test]
fn knobs_of_a_mesh_show_their_effective_values() {
    let scenario = load(&[]).unwrap();
    assert_eq!(scenario.clients.count, 33);
    let knobs = [
        ("load", "6 kbit/s"),
        ("ldr", "lossy"),
        ("routing", "rpl"),
        ("traffic", "constant"),
        ("retries", "3"),
    ];
    for (knob, value) in knobs {
        assert_eq!(scenario.knob(knob), Some(value), "{knob}");
    }
    let event = load(&[("traffic", "event"), ("ldr", "static")]).unwrap();
    assert_eq!((event.knob("traffic"), event.knob("ldr")), (Some("event"), Some("static")));
    assert_eq!(event.workload.flows.len(), 2);
}

#[test]
fn flows_go_across_the_mesh_or_to_the_nearest_sink() {
    let dumbbell = [("traffic", "mixed-dumbbell"), ("topology", "dumbbell"), ("nodes", "21")];
    let scenario = load(&dumbbell).unwrap();
    let layout = scenario.layout().unwrap();
    let east = |node: u32| layout.place(node).x - layout.place(layout.root).x;
    assert!(east(layout.sinks[0]) > 0.0 && east(layout.sinks[1]) < 0.0);
    let [primary, notification] = scenario.workload.flows.as_slice() else { panic!("two flows") };
    let sinks = |flow: &coapace_scenario::Flow| flow.sinks(scenario.clients.count, Some(layout));
    for (node, (primary, nearest)) in
        layout.clients().zip(sinks(primary).into_iter().zip(sinks(notification)))
    {
        assert_eq!(primary, (east(node) < 0.0).then_some(0), "{node}");
        assert_eq!(nearest, Some(u32::from(east(node) < 0.0)), "{node}");
    }
    // A share is a share of the clients on that side.
    let half = load(&[&dumbbell[..], &[("workload.flows.primary.share", "50 %")]].concat()).unwrap();
    let flow = &half.workload.flows[0];
    assert_eq!(flow.sinks(half.clients.count, half.layout()).iter().flatten().count(), 4, "of nine");
}

#[test]
fn the_delivery_of_links_is_a_share_a_range_or_quantiles() {
    let quantiles = |text: &str| {
        let scenario = load(&[("network.mesh.radio.delivery", text)]).unwrap();
        scenario.network.mesh.as_ref().unwrap().radio.delivery.quantiles().to_vec()
    };
    assert_eq!(quantiles("90 %"), [0.9]);
    assert_eq!(quantiles("[\"75 %\", \"100 %\"]"), [0.75, 1.0]);
    assert_eq!(quantiles("[\"75 %\", \"98 %\", \"98 %\"]"), [0.75, 0.98, 0.98]);
}

#[test]
fn an_impossible_mesh_is_refused_in_one_line() {
    for (set, expected) in [
        (
            vec![("clients.count", "7")],
            "`clients.count` must be left out in a mesh, which has 33 clients here",
        ),
        (
            vec![("network.mesh.topology.sinks", "[99]")],
            "`network.mesh.topology.sinks` must be different numbers",
        ),
        (vec![("network.mesh.topology.kind", "gird")], "did you mean `grid`?"),
        (vec![("network.mesh.topology.kind", "file")], "`network.mesh.topology.file` is missing"),
        (vec![("network.mesh.mac.preset", "contiki")], "`network.mesh.mac.preset` must be"),
        (vec![("network.mesh.routing.kind", "rlp")], "did you mean `rpl`?"),
        (vec![("network.mesh.radio.propagation.exponent", "3")], "unknown key"),
        (vec![("network.mesh.radio.delivery", "[\"90 %\", \"10 %\"]")], "or 2 to 101 in ascending order"),
        (
            vec![("traffic", "mixed-dumbbell"), ("network.mesh.topology.root", "6")],
            "`workload.flows.primary.from` leaves no client that sends the flow",
        ),
        (vec![("network.mesh.radio.propagation.range", "30 m")], "must not be below `range`"),
        (vec![("network.mesh", "none")], "is missing: it must be"),
    ] {
        let error = load(&set).unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn knobs_reach_every_topology_and_mobility_model() {
    for (topology, nodes) in
        [("chain", "17"), ("dumbbell", "21"), ("flower", "36"), ("concentric", "57"), ("grid", "49")]
    {
        let scenario = load(&[("topology", topology), ("nodes", nodes)]).unwrap();
        assert_eq!(scenario.layout().unwrap().places.len().to_string(), nodes, "{topology}");
        assert_eq!(scenario.knob("topology"), Some(topology));
    }
    let mobile = |mobility: &str| {
        let set = [
            ("routing".to_owned(), "shortest".to_owned()),
            ("mobility".to_owned(), mobility.to_owned()),
            ("workload.duration".to_owned(), "150 s".to_owned()),
        ];
        let scenario = Scenario::load("mesh-mobile", &set).unwrap();
        let run = run(&scenario, &Contender::parse("default").unwrap(), 1, Observe::Totals);
        // A client that pursues another one leaves the range of the sinks.
        assert!(run.flows[0].reached > 10 || mobility == "pursue", "{mobility}: {:?}", run.flows);
        run.trace_hash
    };
    let mut hashes = ["none", "random-waypoint", "gauss-markov", "manhattan", "pursue"].map(mobile);
    hashes.sort_unstable();
    assert!(hashes.windows(2).all(|pair| pair[0] != pair[1]), "each of them is another run");
}

#[test]
fn node_positions_come_from_a_file_whose_content_is_hashed() {
    let folder = std::env::temp_dir().join(format!("coapace-places-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("places.dat");
    let load = |text: &str| {
        std::fs::write(&file, text).unwrap();
        load(&[
            ("network.mesh.topology.file", file.to_str().unwrap()),
            ("network.mesh.topology.kind", "file"),
        ])
    };
    let three = "0 0 0 0\n1 0 10 0\n2 0 20 0\n3 0 30 0\n";
    let (one, other) = (load(three).unwrap(), load(&three.replace("30", "31")).unwrap());
    let wrong = load("0 0 0\n").unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((one.clients.count, one.layout().unwrap().places.len()), (2, 4));
    assert_ne!(one.hash(), other.hash());
    assert!(one.canonical().contains("network.mesh.radio.propagation.range = \"10 m\""));
    assert!(wrong.contains("places.dat` cannot be used: line 1: "), "{wrong}");
}

#[test]
fn a_mesh_that_is_too_large_or_contradictory_is_refused_in_one_line() {
    let nobody = std::env::temp_dir().join(format!("coapace-nobody-{}.dat", std::process::id()));
    std::fs::write(&nobody, "# node time x y\n").unwrap();
    let far = "{ kind = \"unit-disk\", range = \"9999 m\", interference = \"9999 m\" }";
    for (set, expected) in [
        (
            &[("nodes", "22500"), ("network.mesh.radio.propagation", far)][..],
            "`network.mesh.radio.propagation` reaches too far: more than 50 million pairs",
        ),
        (
            &[("network.mesh.mac.min_be", "4"), ("network.mesh.mac.max_be", "3")],
            "`network.mesh.mac.max_be` must not be below `min_be`, which is 4",
        ),
        (
            &[("mac", "contiki-3"), ("network.mesh.mac.duty_cycle", "contikimac")],
            "`network.mesh.mac.one_thread` is for radios that are always on",
        ),
        (
            &[("mac", "contiki-3"), ("network.mesh.mac.backoff_unit", "1 us")],
            "`network.mesh.mac.backoff_unit` must be 100 us or more with `one_thread`",
        ),
        (
            &[
                ("network.mesh.mobility.kind", "file"),
                ("network.mesh.mobility.file", nobody.to_str().unwrap()),
            ],
            "cannot be used: it has no line `node time x y`",
        ),
    ] {
        let error = load(set).unwrap_err();
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
    }
    std::fs::remove_file(&nobody).unwrap();
}

#[test]
fn setting_a_table_keeps_earlier_settings_of_its_keys() {
    let both = [("traffic", "homogeneous"), ("renew", "true")];
    let hash = |set: [(&str, &str); 2]| {
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Scenario::load("concentric", &set).unwrap();
        assert!(scenario.workload.flows[0].renew && scenario.workload.flows.len() == 1);
        scenario.hash()
    };
    assert_eq!(hash(both), hash([both[1], both[0]]));
}

#[test]
fn the_radio_medium_of_a_cooja_file_is_used_if_the_scenario_has_none() {
    let file = std::env::temp_dir().join(format!("coapace-{}.csc", std::process::id()));
    let mote = |id: u32| {
        format!(
            "<mote><interface_config>org.contikios.cooja.interfaces.Position<x>{id}</x><y>0</y><z>0</z></interface_config>\
                 <interface_config>org.contikios.cooja.contikimote.interfaces.ContikiMoteID<id>{id}</id></interface_config></mote>"
        )
    };
    let text = format!(
        "<simconf><simulation><radiomedium>org.contikios.cooja.radiomediums.UDGM<transmitting_range>30.0</transmitting_range>\
         <interference_range>60.0</interference_range><success_ratio_tx>0.9</success_ratio_tx>\
         <success_ratio_rx>0.8</success_ratio_rx></radiomedium>{}{}{}</simulation></simconf>",
        mote(1),
        mote(2),
        mote(3)
    );
    std::fs::write(&file, text).unwrap();
    let mesh = |radio: &str| {
        let text = format!(
            "title = 'm'\nsummary = 'm'\nsource = 'm'\n[workload]\nkind = 'continuous'\n\
             [network.mesh.topology]\nkind = 'file'\nfile = '{}'\n{radio}",
            file.display()
        );
        Scenario::parse("m", "m.toml", &text, &[]).map(|scenario| scenario.canonical())
    };
    let (own, said) = (mesh(""), mesh("[network.mesh.radio]\npropagation = { range = '7 m' }"));
    std::fs::remove_file(&file).unwrap();
    let (own, said) = (own.unwrap(), said.unwrap());
    for line in [
        "range = \"30 m\"",
        "interference = \"60 m\"",
        "success_ratio_tx = \"90 %\"",
        "success_ratio_rx = \"80 %\"",
    ] {
        assert!(own.contains(&format!("network.mesh.radio.propagation.{line}")), "{own}");
    }
    assert!(said.contains("range = \"7 m\""), "{said}");
}
