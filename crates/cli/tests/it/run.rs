//! `coapace run`: rows, captures, traces, reports.

use std::fs;

use crate::common::{Scratch, coapace, column, csv};

/// The first columns, whose order is fixed. Others may be added after them.
const FIRST_COLUMNS: &str = "workload,clients,buffer_bytes,link_errors,mechanism,median_fct_s,p10,p25,p75,p90,\
                             retransmissions_per_client,spurious_per_client,drops";

/// A short run.
const SHORT: [&str; 7] = ["run", "nb-iot", "--set", "clients=3", "--seeds", "2", "--quiet"];

/// Fifteen clients behind a buffer of 400 bytes: packets are dropped, so there are retransmissions.
const CONGESTED: [&str; 14] = [
    "run",
    "nb-iot",
    "--set",
    "clients=15",
    "--set",
    "buffer=400",
    "--mechanism",
    "default",
    "--mechanism",
    "fasor-token",
    "--mechanism",
    "tcp",
    "--seeds",
    "3",
];

pub(crate) fn with<'a>(base: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [base, more].concat()
}

#[test]
fn the_first_columns_of_results_are_those_of_published_tables() {
    let out = coapace(&with(&SHORT, &["--mechanism", "default", "--format", "csv"])).success();
    assert!(out.starts_with(&format!("{FIRST_COLUMNS},")), "{out}");
    let (_, rows) = csv(&out);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0][..5], ["continuous", "3", "1410000", "none", "default"]);
    let quantiles: Vec<f64> = ["p10", "p25", "median_fct_s", "p75", "p90"]
        .map(|name| column(&out, name)[0].parse().expect("seconds"))
        .into();
    assert!(quantiles.is_sorted(), "{quantiles:?}");
    // 50 exchanges take at least 600 ms of delay and 20 ms of jitter each.
    assert!(quantiles[0] > 31.0 && quantiles[4] < 40.0, "{quantiles:?}");
}

#[test]
fn a_key_with_several_values_becomes_a_column_even_if_it_is_not_a_knob() {
    let grid = with(&SHORT, &["-m", "default", "--set", "server.sluice=false,true"]);
    let rows = coapace(&with(&grid, &["--format", "csv"])).success();
    assert_eq!(column(&rows, "knob.server.sluice"), ["false", "true"]);
    let table = coapace(&grid).success();
    assert!(table.contains("\nserver.sluice ") && table.contains("\ntrue "), "{table}");
    let one = coapace(&with(&SHORT, &["--set", "server.sluice=true", "--format", "csv"])).success();
    assert!(!one.contains("server.sluice"), "{one}");
    let rank =
        ["rank", "nb-iot", "--set", "clients=2,3", "--set", "clients.max_retransmit=4,8", "-m", "default"];
    let ranking = coapace(&with(&rank, &["-m", "cocoa", "--seeds", "1", "--quiet"])).success();
    assert!(ranking.contains("clients.max_retransmit 8"), "{ranking}");
}

#[test]
fn the_column_mechanism_has_the_text_of_the_command_line() {
    let named = ["cocoa:preset=libcoap-2019", "default:ack_timeout=2.5s", "tcp"];
    let options = named.iter().flat_map(|name| ["--mechanism", name]).collect::<Vec<_>>();
    let out = coapace(&with(&with(&SHORT, &options), &["--format", "csv"])).success();
    assert_eq!(column(&out, "mechanism"), named);
}

#[test]
fn a_mechanism_with_two_parameters_is_one_csv_field() {
    let name = "cocoa:max_rto=20s,k_weak=2";
    let out = coapace(&with(&SHORT, &["--mechanism", name, "--format", "csv"])).success();
    let row = out.lines().nth(1).expect("a row");
    assert!(row.contains(&format!(",\"{name}\",")), "{row}");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for form in [&["--format", "csv"][..], &["--format", "csv", "--each"], &["--format", "json", "--each"]] {
        let on = |jobs| coapace(&with(&with(&CONGESTED, form), &["--jobs", jobs, "--quiet"])).success();
        let (one, two) = (on("1"), on("2"));
        assert!(one.contains("trace_hash"), "{form:?}");
        assert_eq!(one, two, "{form:?}");
    }
}

#[test]
fn different_seeds_make_different_runs_and_equal_seeds_equal_runs() {
    let out = coapace(&with(&CONGESTED, &["--format", "csv", "--each", "--quiet"])).success();
    assert_eq!(column(&out, "seed"), ["1", "2", "3"].repeat(3));
    let mut hashes = column(&out, "trace_hash");
    assert!(
        hashes.iter().all(|hash| hash.len() == 16 && u64::from_str_radix(hash, 16).is_ok()),
        "{hashes:?}"
    );
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 9, "three mechanisms and three seeds are nine different runs");
    assert!(column(&out, "drops").iter().all(|drops| *drops != "0"), "the buffer overflows");
}

#[test]
fn json_results_are_one_object_a_line_with_the_names_of_the_csv_columns() {
    let rows = coapace(&with(&CONGESTED, &["--format", "csv", "--quiet"])).success();
    let lines = coapace(&with(&CONGESTED, &["--format", "json", "--quiet"])).success();
    assert_eq!(lines.lines().count(), 3);
    for (line, mechanism) in lines.lines().zip(column(&rows, "mechanism")) {
        let object: serde_json::Value = serde_json::from_str(line).expect("a JSON object");
        assert_eq!(object["mechanism"], mechanism);
        for name in FIRST_COLUMNS.split(',') {
            assert!(object.get(name).is_some_and(|value| !value.is_null()), "{name}: {line}");
        }
    }
    for (line, hash) in lines.lines().zip(column(&rows, "trace_hash")) {
        let object: serde_json::Value = serde_json::from_str(line).expect("a JSON object");
        assert_eq!(object["trace_hash"], hash);
    }
}

#[test]
fn with_each_a_run_is_one_json_line_with_the_completion_time_of_every_client() {
    let lines = coapace(&with(&SHORT, &["--mechanism", "default", "--format", "json", "--each"])).success();
    assert_eq!(lines.lines().count(), 2);
    for line in lines.lines() {
        let object: serde_json::Value = serde_json::from_str(line).expect("a JSON object");
        assert_eq!(object["fct_s"].as_array().map(Vec::len), Some(3), "{line}");
    }
}

#[test]
fn the_table_of_results_names_the_conditions_once_and_every_mechanism() {
    let out = coapace(&with(&SHORT, &["--mechanism", "default", "--mechanism", "linux-rto"])).success();
    assert!(out.starts_with("nb-iot · continuous workload · 3 clients · "), "{out}");
    assert_eq!(out.matches("3 clients").count(), 1);
    for name in ["default", "linux-rto", "median FCT"] {
        assert!(out.contains(name), "{name}: {out}");
    }
}

#[test]
fn a_capture_is_pcapng_with_a_packet_for_each_event_of_the_trace() {
    let scratch = Scratch::new();
    let (pcap, trace) = (scratch.file("run.pcapng"), scratch.file("run.csv"));
    coapace(&with(&CONGESTED, &["--quiet", "--pcap", &pcap, "--trace", &trace])).success();

    let trace = fs::read_to_string(trace).expect("the trace");
    let events = column(&trace, "event");
    let of = |name| events.iter().filter(|event| **event == name).count();
    let written = of("sent") + of("delivered") + of("dropped") + of("lost");
    assert!(of("dropped") > 0);
    assert_eq!(packets(&fs::read(pcap).expect("the capture")), written);
}

#[test]
fn the_server_of_a_transfer_has_the_port_of_coap_in_a_capture() {
    let scratch = Scratch::new();
    let pcap = scratch.file("run.pcapng");
    coapace(&["run", "fota-lte-m", "--set", "bytes=4096", "--seeds", "1", "--quiet", "--pcap", &pcap])
        .success();
    let capture = fs::read(pcap).expect("the capture");
    // Ports of a request: the client is node 2, after a server of requests and one of transfers.
    let ports = [40_002_u16.to_be_bytes(), 5_683_u16.to_be_bytes()].concat();
    assert!(capture.windows(4).any(|bytes| bytes == ports));
}

/// Returns the number of Enhanced Packet Blocks in a little-endian pcapng file, and checks that its blocks have no
/// gaps.
fn packets(mut file: &[u8]) -> usize {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
    assert_eq!((word(file), word(&file[8..])), (0x0a0d_0d0a, 0x1a2b_3c4d), "a section header comes first");
    let mut packets = 0;
    while !file.is_empty() {
        let length = word(&file[4..]) as usize;
        assert!(
            length >= 12 && length.is_multiple_of(4) && length <= file.len(),
            "a block of {length} bytes"
        );
        assert_eq!(word(&file[length - 4..]) as usize, length, "a block ends with its length");
        packets += usize::from(word(file) == 6);
        file = &file[length..];
    }
    packets
}

#[test]
fn a_trace_has_all_events_of_every_packet_in_order_of_time() {
    let scratch = Scratch::new();
    let file = scratch.file("run.csv");
    coapace(&with(&CONGESTED, &["--quiet", "--trace", &file])).success();
    let trace = fs::read_to_string(file).expect("the trace");
    assert_eq!(
        trace.lines().next(),
        Some("time_s,event,hop,from,to,bytes,queue_bytes,exchange,transmission,rank,rto_s")
    );

    let times: Vec<f64> =
        column(&trace, "time_s").iter().map(|time| time.parse().expect("seconds")).collect();
    assert!(times.is_sorted());
    let events = column(&trace, "event");
    let of = |name| events.iter().filter(|event| **event == name).count();
    assert!(of("rto") >= 15, "each client's RTO as it changes: {}", of("rto"));
    assert_eq!(of("sent"), of("delivered") + of("dropped") + of("lost"), "nothing vanishes");
    // Fifteen clients make 50 exchanges of at least a request and a response.
    assert!(of("delivered") >= 1500, "{}", of("delivered"));
    let nodes = column(&trace, "from");
    assert!(
        (0..=15).all(|node: u32| nodes.contains(&node.to_string().as_str())),
        "the server is 0, the clients 1 to 15"
    );
}

#[test]
fn the_trace_of_a_mesh_has_events_of_rpl_and_of_timers() {
    let scratch = Scratch::new();
    let trace = scratch.file("mesh.csv");
    let run = ["run", "mesh-grid", "--set", "routing=rpl", "--set", "duration=120 s", "-m", "cocoa"];
    coapace(&[&run[..], &["--seeds", "1", "--quiet", "--trace", &trace]].concat()).success();
    let trace = fs::read_to_string(trace).expect("the trace");
    let events = column(&trace, "event");
    for event in ["rpl dis", "rpl dio", "rpl dao", "rpl parent", "rpl rank", "rto", "frame sent"] {
        assert!(events.contains(&event), "{event}");
    }
}

#[test]
fn the_film_of_a_mesh_is_a_gif() {
    let scratch = Scratch::new();
    let film = scratch.file("mesh.gif");
    let short =
        ["warm_up=0 s", "flows.primary.start=0 s", "duration=2 s"].map(|set| format!("--set=workload.{set}"));
    // RPL has no routes yet after two seconds.
    let run = ["run", "mesh-grid", "--set=routing=shortest", "-m", "cocoa", "--seeds", "1", "--quiet"];
    let run = [&run[..], &["--film", &film]].concat();
    let short = short.iter().map(String::as_str);
    coapace(&run.into_iter().chain(short).collect::<Vec<_>>()).success();
    let film = fs::read(film).expect("the film");
    assert!(film.starts_with(b"GIF89a") && film.len() > 10_000, "{} bytes", film.len());
}

#[test]
fn a_film_is_refused_for_a_scenario_without_a_mesh() {
    let scratch = Scratch::new();
    let outcome = coapace(&with(&SHORT, &["--film", &scratch.file("film.gif")]));
    let line = outcome.failure(2);
    assert!(line.contains("--film needs a scenario with a mesh"), "{line}");
}

#[test]
fn capturing_or_tracing_a_run_does_not_change_its_results() {
    let scratch = Scratch::new();
    let (pcap, trace) = (scratch.file("run.pcapng"), scratch.file("run.csv"));
    let plain = coapace(&with(&CONGESTED, &["--format", "csv", "--quiet"])).success();
    let watched = with(&CONGESTED, &["--format", "csv", "--quiet", "--pcap", &pcap, "--trace", &trace]);
    assert_eq!(coapace(&watched).success(), plain);
}

#[test]
fn a_report_is_one_html_file_with_the_command_that_made_it() {
    let scratch = Scratch::new();
    let file = scratch.file("report.html");
    coapace(&with(&SHORT, &["--mechanism", "default", "--mechanism", "fasor", "--report", &file])).success();
    let html = fs::read_to_string(file).expect("the report");
    assert!(html.to_ascii_lowercase().starts_with("<!doctype html>"));
    assert!(html.trim_end().ends_with("</html>"));
    for part in ["fasor", "default", "coapace run nb-iot --set clients=3"] {
        assert!(html.contains(part), "{part}");
    }
    let foreign = ["<script src", "<link ", "<img "].map(|tag| html.matches(tag).count());
    assert_eq!(foreign, [0; 3], "it opens without a network");
}

#[test]
fn figures_are_written_as_svg_pdf_and_png_named_after_their_charts() {
    let scratch = Scratch::new();
    let dir = scratch.file("figures");
    let outcome = coapace(&with(&SHORT[..6], &["-m", "default", "-m", "fasor", "--figures", &dir]));
    let remarks = outcome.stderr.clone();
    outcome.success();
    assert!(remarks.contains(&format!("charts in {dir}, each as SVG, PDF and PNG")), "{remarks}");
    for (name, start) in [
        ("fct-median.svg", &b"<svg "[..]),
        ("fct-median.pdf", b"%PDF-"),
        ("fct-median.png", b"\x89PNG"),
        ("fct-cdf.svg", b"<svg "),
    ] {
        let file = fs::read(std::path::Path::new(&dir).join(name)).expect(name);
        assert!(file.starts_with(start), "{name}");
    }
    let svg = fs::read_to_string(std::path::Path::new(&dir).join("fct-cdf.svg")).expect("a figure");
    for text in ["Clients that are done", "FCT in seconds", ">default<", ">fasor<"] {
        assert!(svg.contains(text), "{text}");
    }
}

#[test]
fn a_copy_of_a_built_in_scenario_in_a_file_gives_equal_results() {
    let scratch = Scratch::new();
    let file = scratch.file("wire.toml");
    let wire = "title = \"A wire\"\nsummary = \"Nothing lost, nothing late.\"\nsource = \"illustrative\"\n\
                [clients]\ncount = 2\n[workload]\nkind = \"continuous\"\n\
                [[network.up]]\nname = \"wire\"\ndelay = \"10 ms\"\n[[network.down]]\nname = \"wire\"\ndelay = \"10 ms\"\n";
    fs::write(&file, wire).expect("the scenario");
    let out =
        coapace(&["run", &file, "--mechanism", "default", "--seeds", "1", "--quiet", "--format", "csv"])
            .success();
    // 50 exchanges of 20 ms.
    assert_eq!(column(&out, "median_fct_s"), ["1"]);
    assert_eq!(column(&out, "scenario"), ["wire"]);
}

#[test]
fn a_grid_runs_every_combination_and_has_a_column_for_each_knob() {
    let run =
        ["run", "nb-iot", "--set", "clients=2,3", "--set", "errors=none,low", "--seeds", "2", "--quiet"];
    let with_mechanisms = with(&run, &["-m", "default", "-m", "cocoa", "--format", "csv"]);
    let out = coapace(&with_mechanisms).success();
    assert_eq!(column(&out, "knob.clients"), ["2", "2", "2", "2", "3", "3", "3", "3"]);
    assert_eq!(column(&out, "knob.errors"), ["none", "none", "low", "low", "none", "none", "low", "low"]);
    assert_eq!(column(&out, "mechanism"), ["default", "cocoa"].repeat(4));
    assert_eq!(column(&out, "compared_with"), ["", "default"].repeat(4));
    let table = coapace(&with(&run, &["-m", "default", "-m", "cocoa"])).success();
    for heading in [
        "2 clients · errors none",
        "2 clients · errors low",
        "3 clients · errors none",
        "3 clients · errors low",
    ] {
        assert!(table.lines().any(|line| line == heading), "{heading}: {table}");
    }
    assert_eq!(table.lines().filter(|line| line.contains('█')).count(), 8, "a bar for each: {table}");
    let outcome = coapace(&["run", "nb-iot", "--set", "clients=2,,3"]);
    assert!(outcome.failure(2).contains("a value is missing beside a comma"), "{outcome:?}");
}

#[test]
fn a_range_of_seeds_continues_an_earlier_range() {
    let run =
        ["run", "nb-iot", "--set", "clients=2", "-m", "default", "--quiet", "--format", "csv", "--each"];
    let all = coapace(&with(&run, &["--seeds", "4"])).success();
    let rest = coapace(&with(&run, &["--seeds", "3-4"])).success();
    assert_eq!(column(&rest, "seed"), ["3", "4"]);
    assert_eq!(column(&rest, "trace_hash"), column(&all, "trace_hash")[2..]);
    let cells = coapace(&with(&run[..run.len() - 1], &["--seeds", "3-4"])).success();
    assert_eq!((column(&cells, "seed_first"), column(&cells, "seed_last")), (vec!["3"], vec!["4"]));
    coapace(&with(&run, &["--seeds", "4-3"])).failure(2);
}

#[test]
fn times_and_shares_have_the_same_syntax_in_all_options() {
    let base = ["run", "nb-iot", "--set", "clients=2", "--seeds", "1", "--quiet", "--format", "csv"];
    let hash = |set: &str, mechanism: &str| {
        let out = coapace(&with(&base, &["--set", set, "-m", mechanism])).success();
        (column(&out, "scenario_hash")[0].to_owned(), column(&out, "trace_hash")[0].to_owned())
    };
    let delay = "network.up.radio.delay";
    let expected = hash(&format!("{delay}=300 ms"), "default:ack_timeout=1.5s");
    for (time, timeout) in [("300ms", "1500 ms"), ("0.3 s", "1.5 s"), ("300000us", "1500000us")] {
        let (scenario, trace) = hash(&format!("{delay}={time}"), &format!("default:ack_timeout={timeout}"));
        assert_eq!((scenario, trace), expected, "{time} {timeout}");
    }
    let loss = "network.up.radio.loss";
    assert_eq!(hash(&format!("{loss}=0.1"), "default"), hash(&format!("{loss}=10 %"), "default"));
}

#[test]
fn a_command_prints_its_results_and_fails_if_no_request_was_answered() {
    let late = ["network.up.radio.delay=100 s", "clients.max_retransmit=4", "workload.exchanges=1"];
    let late: Vec<&str> = late.iter().flat_map(|set| ["--set", *set]).collect();
    let run = [&SHORT[..], &late, &["-m", "default"]].concat();
    let outcome = coapace(&run);
    assert!(outcome.failure(1).starts_with("no request was answered in any of 2 runs: "), "{outcome:?}");
    assert!(outcome.stdout.contains("6 of 6 clients gave up: 6 with default (100\u{a0}%). "), "{outcome:?}");
    let rows = coapace(&with(&run, &["--format", "csv"]));
    rows.failure(1);
    assert_eq!(column(&rows.stdout, "clients_gave_up"), ["6"]);
    // Another mechanism waits long enough.
    let loud: Vec<&str> = run.iter().copied().filter(|word| *word != "--quiet").collect();
    let both = coapace(&with(&loud, &["-m", "default:ack_timeout=150s"]));
    assert!(both.stderr.contains("no request was answered: default with 3 clients\n"), "{both:?}");
    both.success();
}
