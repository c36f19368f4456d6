//! `coapace run --live` and `coapace reproduce --live`.

use crate::common::coapace;

/// The settings of a link on which ten exchanges take a fraction of a second.
const FAST: [&str; 12] = [
    "--set",
    "clients=3",
    "--set",
    "workload.exchanges=4",
    "--set",
    "network.up.radio.delay=2 ms",
    "--set",
    "network.down.radio.delay=2 ms",
    "--set",
    "network.down.radio.rate=1 Mbit/s",
    "--seeds",
    "1",
];

#[test]
fn live_runs_have_rows_beside_the_simulated_ones_and_are_marked_as_live() {
    let run = ["run", "nb-iot", "--live", "-m", "cocoa", "-m", "default", "--format", "csv"];
    let out = coapace(&[&run[..], &FAST].concat()).success();
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split(',').collect()).collect();
    let column = |name| rows[0].iter().position(|column| *column == name).expect("the column is there");
    let (mechanism, mode, exchanges) = (column("mechanism"), column("mode"), column("exchanges"));
    let cells: Vec<_> = rows[1..].iter().map(|row| [row[mechanism], row[mode], row[exchanges]]).collect();
    assert_eq!(
        cells,
        [
            ["cocoa", "simulated", "12"],
            ["cocoa", "live", "12"],
            ["default", "simulated", "12"],
            ["default", "live", "12"]
        ]
    );
}

#[test]
fn a_live_run_can_use_a_server_in_another_process() {
    let peer = format!("{} serve -q --bind {{address}}:{{port}} --demo", env!("CARGO_BIN_EXE_coapace"));
    let run = [
        "run",
        "nb-iot",
        "--live",
        "-m",
        "default",
        "--set",
        "clients.uri_path=store/hello",
        "--peer",
        &peer,
    ];
    let outcome = coapace(&[&run[..], &FAST].concat());
    let report = outcome.stderr.clone();
    assert!(report.contains("live: 1 runs, 4 at a time, about") && report.contains("timers"), "{report}");
    let out = outcome.success();
    assert!(
        out.contains("default live with coapace") && out.contains("live with coapace/simulated"),
        "{out}"
    );
}

#[test]
fn a_live_run_can_use_client_programs_in_place_of_our_clients() {
    let asks = format!("{} get -q {{uri}}", env!("CARGO_BIN_EXE_coapace"));
    let run = ["run", "nb-iot", "--live", "-m", "default", "--format", "csv", "--peer-client", &asks];
    let outcome = coapace(&[&run[..], &FAST].concat());
    assert!(outcome.stderr.contains("from an answer to the next request"), "{outcome:?}");
    let out = outcome.success();
    let live = out.lines().find(|line| line.contains(",live with coapace,")).expect("a live row");
    let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let head = cells(out.lines().next().unwrap_or_default());
    let of =
        |name: &str| cells(live)[head.iter().position(|column| column == name).expect("the column")].clone();
    assert_eq!([of("exchanges"), of("requests_sent"), of("given_up")], ["12", "12", "0"]);
    assert!(of("median_fct_s").parse::<f64>().is_ok_and(|seconds| seconds > 0.1), "{live}");
}

#[test]
fn an_unusable_client_command_is_reported_in_one_line() {
    let with = |client: &str, more: &[&str]| {
        coapace(&[&["run", "nb-iot", "--live", "-q", "--peer-client", client][..], &FAST, more].concat())
    };
    assert!(with("client", &[]).failure(2).contains("{uri}"));
    assert!(with("ask {uri}", &["-m", "default+cocoa"]).failure(2).contains("one mechanism at a time"));
    assert!(with("ask {uri}", &["--set", "workload=random"]).failure(2).contains("workload.kind=continuous"));
    let ended = with("false {uri}", &["-m", "default"]);
    assert!(ended.failure(1).contains("`false {uri}` ends without a request"), "{ended:?}");
    assert!(with("ask {uri}", &["--peer", "serve {port}"]).failure(2).contains("--peer"));
}

#[test]
fn an_unusable_server_command_is_reported_in_one_line() {
    let with =
        |peer: &str| coapace(&[&["run", "nb-iot", "--live", "-q", "--peer", peer][..], &FAST].concat());
    assert!(with("server").failure(2).contains("{port}"));
    let ended = with("false {port}");
    assert!(ended.failure(1).contains("`false {port}` ended at once"), "{ended:?}");
    let run = ["run", "nb-iot", "--live", "--peer", "false {port}", "-m", "default"];
    let report = coapace(&[&run[..], &FAST].concat()).stderr;
    assert_eq!(report.matches("ended at once").count(), 1, "{report}");
    let mesh = coapace(&["run", "mesh-grid", "--live"]);
    assert!(mesh.failure(2).contains("because it has a mesh"), "{mesh:?}");
    assert!(coapace(&["run", "nb-iot", "--live-jobs", "2"]).failure(2).contains("--live"));
    assert!(
        coapace(&["reproduce", "meng2017", "--live"]).failure(2).contains("no experiments that can run live")
    );
}
