//! `coapace run --pairs`, and mixes of mechanisms in `coapace run`.

use std::fs;

use crate::common::{Scratch, coapace, column, csv};
use crate::run::with;
use coapace_control::REGISTRY;

/// Sixty clients behind a small buffer, for forty seconds.
const SHORT: [&str; 14] = [
    "run",
    "coexistence",
    "--pairs",
    "--set",
    "clients=60",
    "--set",
    "buffer=2500",
    "--set",
    "duration=40 s",
    "--set",
    "workload.warm_up=5 s",
    "--seeds",
    "2",
    "--quiet",
];

#[test]
fn every_mechanism_is_paired_with_every_other_and_the_two_shares_add_up_to_one() {
    let out = coapace(&with(&SHORT, &["--format", "csv"])).success();
    let (mechanisms, rivals) = (column(&out, "mechanism"), column(&out, "rival"));
    let shares: Vec<f64> =
        column(&out, "relative_share").iter().map(|share| share.parse().unwrap()).collect();
    let size = REGISTRY.len();
    assert_eq!(mechanisms.len(), size * size);
    for (row, entry) in REGISTRY.iter().enumerate() {
        for (place, other) in REGISTRY.iter().enumerate() {
            let cell = row * size + place;
            assert_eq!((mechanisms[cell], rivals[cell]), (entry.name, other.name));
            let sum = shares[cell] + shares[place * size + row];
            assert!((sum - 2.0).abs() < 1e-5, "{} and {}: {sum}", entry.name, other.name);
        }
    }
    let off = shares.iter().map(|share| (share - 1.0).abs()).fold(0.0, f64::max);
    assert!(off > 0.02, "they are not all alike: {off}");
}

#[test]
fn the_matrix_of_pairs_does_not_depend_on_the_number_of_threads() {
    for form in [&["--format", "csv"][..], &["--format", "json"], &[]] {
        let on = |jobs| {
            let named = ["--mechanism", "default", "--mechanism", "cocoa:ageing=off", "--jobs", jobs];
            coapace(&with(&with(&SHORT, &named), form)).success()
        };
        assert_eq!(on("1"), on("2"), "{form:?}");
    }
}

#[test]
fn the_table_of_pairs_numbers_the_mechanisms_and_names_the_one_with_the_largest_share() {
    let out = coapace(&with(&SHORT, &["--mechanism", "default", "--mechanism", "fasor"])).success();
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.iter().any(|row| row.starts_with(&["1", "default", "·"])), "{out}");
    assert!(rows.iter().any(|row| row.starts_with(&["2", "fasor"]) && row[3] == "·"), "{out}");
    for start in ["Takes the most: ", "Takes the least: ", "Starves: ", "Fair: ", "Together: "] {
        assert_eq!(out.lines().filter(|line| line.starts_with(start)).count(), 1, "{start}: {out}");
    }
}

#[test]
fn json_rows_of_pairs_have_the_names_of_the_csv_columns() {
    let named = ["--mechanism", "default", "--mechanism", "fasor"];
    let rows = coapace(&with(&with(&SHORT, &named), &["--format", "csv"])).success();
    let lines = coapace(&with(&with(&SHORT, &named), &["--format", "json"])).success();
    assert_eq!(lines.lines().count(), 4);
    let (header, _) = csv(&rows);
    for (line, hash) in lines.lines().zip(column(&rows, "trace_hash")) {
        let object: serde_json::Value = serde_json::from_str(line).expect("a JSON object");
        assert!(header.iter().all(|name| object.get(name).is_some()), "{line}");
        assert_eq!(object["trace_hash"], hash);
    }
}

#[test]
fn the_report_of_pairs_has_a_section_for_them_and_opens_offline() {
    let scratch = Scratch::new();
    let file = scratch.file("report.html");
    coapace(&with(&SHORT, &["--mechanism", "default", "--mechanism", "fasor", "--report", &file])).success();
    let html = fs::read_to_string(file).expect("the report");
    for part in
        ["Who takes how much from whom", "\"kind\":\"squares\"", "coapace run coexistence --pairs --set"]
    {
        assert!(html.contains(part), "{part}");
    }
    let foreign = ["<script src", "<link ", "<img "].map(|tag| html.matches(tag).count());
    assert_eq!(foreign, [0; 3]);
}

#[test]
fn bulk_mechanisms_are_paired_if_there_are_enough_transfers_or_refused_with_a_remedy() {
    let pairs = [
        "run",
        "fota-lte-m",
        "--pairs",
        "--set",
        "bytes=50000",
        "--seeds",
        "1",
        "--quiet",
        "--format",
        "csv",
    ];
    let refused = coapace(&with(&pairs, &["-m", "tide", "-m", "newreno"]));
    let (line, advice) = refused.failure(2).trim_end().split_once(" has 1: ").expect("advice");
    assert!(
        line.ends_with("\"tide+newreno\" needs at least 2 clients that transfer over UDP, and fota-lte-m"),
        "{line}"
    );
    let advised: Vec<&str> = advice.split(' ').collect();
    // Without names, all mechanisms for bodies are paired.
    let out = coapace(&with(&pairs, &advised)).success();
    let (mechanisms, rivals) = (column(&out, "mechanism"), column(&out, "rival"));
    assert_eq!((mechanisms.len(), mechanisms[1], rivals[1]), (9, "tide", "newreno"));
    for name in ["goodput_per_client_bps", "kept", "transfer_time_s", "link_share"] {
        assert!(column(&out, name).iter().all(|value| value.parse::<f64>().unwrap() > 0.0), "{name}: {out}");
    }
    let mix = [
        "run",
        "fota-lte-m",
        "-m",
        "tide+newreno",
        "--set",
        "clients=2",
        "--set",
        "transfers=2",
        "--set",
        "bytes=50000",
    ];
    let table = coapace(&with(&mix, &["--seeds", "1", "--quiet"])).success();
    assert!(table.contains("of which") && table.contains("kbit/s: goodput of a client"), "{table}");
}

#[test]
fn the_time_that_runs_took_goes_to_standard_error_and_not_into_the_results() {
    let named = ["--mechanism", "default", "--mechanism", "fasor"];
    let loud: Vec<&str> = with(&SHORT, &named).into_iter().filter(|word| *word != "--quiet").collect();
    let outcome = coapace(&loud);
    let last = outcome.stderr.lines().last().expect("a remark").to_owned();
    assert!(last.starts_with("6 runs, ") && last.ends_with(" s"), "{last}");
    assert!(!outcome.success().contains("6 runs"));
}

#[test]
fn mechanisms_that_cannot_be_paired_are_refused_in_one_line() {
    for (arguments, expected) in [
        (&["--mechanism", "cocoa"][..], "a pair needs two mechanisms"),
        (&["--mechanism", "cocoa", "--mechanism", "cocoa"], "\"cocoa\" is named twice"),
        (&["--mechanism", "cocoa", "--mechanism", "tcp"], "\"tcp\" cannot be paired"),
        (&["--mechanism", "cocoa", "--mechanism", "fasor+default"], "\"fasor+default\" cannot be paired"),
        (&["--mechanism", "cocoa", "--mechanism", "coca"], "did you mean cocoa?"),
        (&["--set", "clients=1"], "needs at least 2 clients"),
        (&["--set", "clients=60,120"], "--pairs needs one condition, and --set makes 2"),
    ] {
        let outcome = coapace(&with(&["run", "coexistence", "--pairs"], arguments));
        assert!(outcome.failure(2).contains(expected), "{outcome:?}");
        assert_eq!(outcome.stdout, "");
    }
    assert!(coapace(&["run", "coexistance", "--pairs"]).failure(2).contains("did you mean `coexistence`?"));
    assert!(
        coapace(&["run", "coexistence", "--pairs", "--report", "no-such-folder/x.html"])
            .failure(1)
            .starts_with("cannot write ")
    );
}

#[test]
fn a_mix_runs_like_a_mechanism_and_each_of_its_populations_has_results() {
    let run = [
        "run",
        "nb-iot",
        "--set",
        "clients=61",
        "--set",
        "buffer=1000",
        "--mechanism",
        "cocoa:ageing=off*2+default",
        "--seeds",
        "1",
        "--quiet",
    ];
    let out = coapace(&with(&run, &["--format", "csv"])).success();
    assert_eq!(column(&out, "mechanism"), ["cocoa:ageing=off*2+default"]);
    let share =
        |mechanism| -> f64 { column(&out, &format!("share.{mechanism}"))[0].parse().expect("a share") };
    assert!((share("cocoa:ageing=off") + share("default") - 1.0).abs() < 1e-5);

    let json = coapace(&with(&run, &["--format", "json", "--each"])).success();
    let object: serde_json::Value = serde_json::from_str(json.trim()).expect("a JSON object");
    let populations = object["populations"].as_array().expect("populations");
    let clients: Vec<_> = populations.iter().map(|own| own["clients"].as_u64().unwrap()).collect();
    assert_eq!(clients, [41, 20], "two of every three");
    for sum in ["exchanges", "retransmissions"] {
        let of_populations: u64 = populations.iter().map(|own| own[sum].as_u64().unwrap()).sum();
        let of_all = match &object[sum] {
            serde_json::Value::Array(clients) => clients.iter().map(|count| count.as_u64().unwrap()).sum(),
            number => number.as_u64().unwrap(),
        };
        assert_eq!(of_populations, of_all, "{sum}");
    }
    let table = coapace(&run).success();
    assert!(table.contains("of which") && table.contains("61 clients"), "{table}");
}

#[test]
fn an_impossible_mix_is_reported_in_one_line() {
    for (label, expected) in [
        ("cocoa+tcp", "`tcp` cannot be part of a mix"),
        ("cocoa+", "has a part without a name"),
        ("cocoa+coca", "did you mean cocoa?"),
        ("cocoa*0+default", "from 1 to 100"),
        ("cocoa*20+default", "needs at least 11 clients"),
    ] {
        let outcome = coapace(&["run", "nb-iot", "--set", "clients=10", "--mechanism", label]);
        assert!(outcome.failure(2).contains(expected), "{outcome:?}");
    }
}

#[test]
fn a_run_of_fixed_duration_has_a_throughput_and_no_completion_time() {
    let run = ["run", "nb-iot", "--set", "workload.exchanges=none", "--set", "workload.duration=60 s"];
    let rest = ["--set", "workload.warm_up=10 s", "--seeds", "2", "--quiet", "--mechanism", "default"];
    let out = coapace(&with(&with(&run, &rest), &["--format", "csv"])).success();
    assert_eq!(column(&out, "median_fct_s"), [""]);
    assert_eq!(column(&out, "clients_gave_up"), [""], "nobody has an end to reach");
    let throughput: f64 = column(&out, "throughput")[0].parse().expect("exchanges per second");
    let exchanges: f64 = column(&out, "exchanges")[0].parse().expect("exchanges");
    assert!((throughput - exchanges / 50.0).abs() < 1e-5, "{throughput}");
    assert!(coapace(&with(&run, &rest)).success().contains("throughput"));
}
