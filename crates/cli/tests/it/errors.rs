//! Errors: one line, and the exit code 2 for wrong arguments or 1 for input that cannot be used.

use std::fs;
use std::io::pipe;

use crate::common::{Scratch, coapace, command};
use crate::device::refused;

#[test]
fn an_unknown_mechanism_is_reported_with_the_nearest_name_and_all_names() {
    for arguments in [&["run", "nb-iot", "--mechanism", "coca"][..], &["trace", "coca"]] {
        let line = refused(2, arguments);
        assert!(line.starts_with("no mechanism is called \"coca\"; did you mean cocoa?"), "{line}");
        assert!(coapace_control::REGISTRY.iter().all(|entry| line.contains(entry.name)), "{line}");
    }
}

#[test]
fn an_unknown_parameter_or_preset_is_reported_with_the_nearest_name() {
    let line = refused(2, &["run", "nb-iot", "--mechanism", "cocoa:max-rto=3s"]);
    assert!(line.contains("no parameter of cocoa is called \"max-rto\"; did you mean max_rto?"), "{line}");
    let line = refused(2, &["run", "nb-iot", "--mechanism", "fasor:preset=fastslow"]);
    assert!(line.contains("did you mean fast-slow?"), "{line}");
}

#[test]
fn a_bad_value_is_reported_with_the_accepted_values() {
    let line = refused(2, &["run", "nb-iot", "--mechanism", "cocoa:max_rto=abc"]);
    assert!(
        line.starts_with("max_rto of cocoa is a time above zero with its unit, such as ")
            && line.ends_with("not \"abc\""),
        "{line}"
    );
    let line = refused(2, &["run", "nb-iot", "--mechanism", "cocoa:max_rto"]);
    assert!(line.contains("is not parameter=value"), "{line}");
}

#[test]
fn an_unknown_scenario_or_paper_is_reported_with_the_known_names() {
    let line = refused(2, &["run", "nbiot"]);
    assert!(line.contains("did you mean `nb-iot`?"), "{line}");
    let line = refused(2, &["run", "wire"]);
    assert!(line.contains("; built in are aqm, ") && line.contains(", nb-iot, "), "{line}");
    let line = refused(2, &["reproduce", "raitahila"]);
    assert!(line.contains("raitahila2019, meng2017, betzler2015, ancillotti2018, rathod2022"), "{line}");
}

#[test]
fn options_that_do_not_apply_to_a_reproduction_are_refused_before_the_runs() {
    let line = refused(2, &["reproduce", "meng2017", "-m", "coca"]);
    assert!(line.contains("did you mean cocoa?"), "{line}");
    let line = refused(2, &["reproduce", "meng2017", "-m", "cocoa*100+default"]);
    assert!(line.contains("clients, so that each mechanism has one"), "{line}");
    let line = refused(2, &["reproduce", "meng2017", "--orders"]);
    assert_eq!(line, "--orders needs --format csv or --format json");
}

#[test]
fn an_invalid_setting_is_reported_as_it_was_typed() {
    for (setting, part) in [
        ("clints=3", "unknown key `clints`; did you mean `clients`?"),
        ("clients=abc", "must be a whole number from 1 to 1000000, not `abc`"),
        ("clients=0", "must be a whole number from 1"),
        ("errors=meduim", "did you mean `medium`?"),
        ("buffer=10", "must hold one message"),
        ("network.up.radio.rate=fast", "network.up.radio.rate"),
    ] {
        let line = refused(2, &["run", "nb-iot", "--set", setting]);
        assert!(line.starts_with(&format!("--set {setting}: ")) && line.contains(part), "{line}");
    }
}

#[test]
fn an_error_caused_by_a_setting_names_the_setting_and_not_the_line_of_the_file() {
    for (setting, problem) in [
        (
            "duration=30 s",
            "`workload.warm_up` of \"1 min\" must be shorter than `duration`, which is \"30 s\"",
        ),
        ("nodes=37", "`network.mesh.topology.kind` cannot be: a grid needs a number of columns"),
    ] {
        let line =
            refused(2, &["run", "mesh-grid", "--set", "spacing=9 m", "--set", setting, "--set", "retries=4"]);
        assert!(line.starts_with(&format!("--set {setting}: {problem}")), "{line}");
    }
}

#[test]
fn an_unknown_knob_is_reported_with_the_knobs_of_the_scenario() {
    let line = refused(2, &["run", "nb-iot", "--set", "loss=5%"]);
    let knobs = "the knobs are `workload`, `clients`, `buffer`, `errors`; a scenario has `title`, ";
    assert!(line.starts_with(&format!("--set loss=5%: unknown key `loss`; {knobs}")), "{line}");
}

#[test]
fn a_negative_number_is_read_as_the_value_of_its_option() {
    for (arguments, expected) in [
        (
            &["get", "-B", "-1", "coap://[::1]"][..],
            "'-1' for '--timeout <TIME>': expected seconds, or a time",
        ),
        (&["get", "--ack-timeout", "-1s", "coap://[::1]"], "--ack-timeout is a time above zero"),
        (&["get", "--nstart", "-1", "coap://[::1]"], "-1 is not in 1..=65535"),
        (&["get", "-O", "-1,x", "coap://[::1]"], "expected NUMBER,VALUE"),
        (&["load", "--loss", "-5%", "coap://[::1]"], "expected a share such as 0.1"),
        (&["load", "--rate", "-1e3", "coap://[::1]"], "from 0.001 to 1000000"),
        (&["run", "nb-iot", "--seeds", "-3-5"], "expected a number from 1 to 100000"),
        (&["run", "nb-iot", "--jobs", "-1"], "-1 is not in 1..=65535"),
        (&["run", "nb-iot", "--to", "x", "--shard", "-1/2"], "expected I/N"),
        (&["run", "nb-iot", "--shard", "1/2"], "--to"),
        (&["get", "--jobs", "2", "coap://[::1]"], "unexpected argument '--jobs'"),
        (&["search", "default", "--seed", "-1"], "expected a whole number from 0 to 18446744073709551615"),
        (&["search", "default", "--scenarios", "-1"], "-1 is not in 0..="),
        (&["serve", "--memory", "-1"], "expected a number of bytes"),
    ] {
        let line = refused(2, arguments);
        assert!(line.contains(expected), "{line}");
    }
}

#[test]
fn a_mistake_in_a_scenario_file_is_reported_with_its_line() {
    let scratch = Scratch::new();
    let file = scratch.file("bad.toml");
    for (text, expected) in
        [("title = \"x\"\nclinets = 3\n", ":2: unknown key `clinets`"), ("title =\n", ":1: not TOML")]
    {
        fs::write(&file, text).expect("the scenario");
        let outcome = coapace(&["run", &file]);
        assert!(outcome.stderr.starts_with(&format!("coapace: {file}{expected}")), "{outcome:?}");
        assert_eq!((outcome.stderr.lines().count(), outcome.stdout.as_str()), (1, ""));
    }
}

#[test]
fn a_missing_file_is_reported_in_one_line() {
    let scratch = Scratch::new();
    let file = scratch.file("missing.toml");
    let outcome = coapace(&["run", &file]);
    assert!(outcome.stderr.starts_with(&format!("coapace: {file}: ")), "{outcome:?}");
    assert_eq!((outcome.stderr.lines().count(), outcome.stdout.as_str()), (1, ""));
}

#[test]
fn a_missing_or_invalid_scenario_file_has_the_exit_code_of_bad_input() {
    let scratch = Scratch::new();
    refused(1, &["run", &scratch.file("missing.toml")]);
    refused(1, &["rank", &scratch.file("missing.toml")]);
    let file = scratch.file("bad.toml");
    fs::write(&file, "clinets = 3\n").expect("the scenario");
    refused(1, &["run", &file]);
}

#[test]
fn wrong_usage_is_reported_in_one_line() {
    for arguments in [
        &["run"][..],
        &["frobnicate"],
        &["run", "nb-iot", "--set", "clients"],
        &["run", "nb-iot", "--seeds", "0"],
        &["run", "nb-iot", "--jobs", "0"],
        &["run", "nb-iot", "--format", "xml"],
        &["list", "everything"],
    ] {
        refused(2, arguments);
    }
}

#[test]
fn wrong_usage_ends_with_exit_code_2_and_prints_no_results() {
    for arguments in [
        &["run"][..],
        &["frobnicate"],
        &["run", "nb-iot", "--set", "clients"],
        &["run", "nb-iot", "--seeds", "0"],
    ] {
        let outcome = coapace(arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{outcome:?}");
        assert!(!outcome.stderr.is_empty());
    }
}

#[test]
fn an_unwritable_output_path_is_reported_before_the_runs() {
    let scratch = Scratch::new();
    let path = scratch.file("no-such-folder/file");
    let file = scratch.file("file");
    fs::write(&file, "").expect("a file");
    let line = refused(1, &["run", "nb-iot", "--set", "clients=100000", "-m", "default", "--figures", &file]);
    assert!(line.starts_with(&format!("cannot write {file}: ")), "{line}");
    for option in ["--report", "--pcap", "--trace"] {
        // A run with this many clients would take minutes.
        let line = refused(
            1,
            &["run", "nb-iot", "--set", "clients=100000", "--mechanism", "default", option, &path],
        );
        assert!(line.starts_with(&format!("cannot write {path}: ")), "{line}");
    }
    let line = refused(1, &["reproduce", "raitahila2019", "--quiet", "--report", &path]);
    assert!(line.starts_with(&format!("cannot write {path}: ")), "{line}");
    #[cfg(target_os = "linux")]
    {
        // Nobody may create a file there.
        let line = refused(1, &["run", "nb-iot", "--report", "/proc/report.html"]);
        assert!(line.starts_with("cannot write /proc/report.html: ") && !line.contains(".part"), "{line}");
    }
}

#[test]
fn one_file_for_two_outputs_is_refused_even_under_two_names() {
    let scratch = Scratch::new();
    let (file, same) = (scratch.file("file"), scratch.file("./file"));
    let line = refused(2, &["run", "nb-iot", "--report", &file, "--pcap", &same]);
    assert_eq!(line, "--report, --film, --pcap and --trace need different files");
    let line = refused(2, &["reproduce", "meng2017", "--report", &file, "--markdown", &same]);
    assert_eq!(line, "--report and --markdown need different files");
}

#[test]
fn quiet_does_not_suppress_errors() {
    let line = refused(2, &["run", "nb-iot", "--quiet", "--mechanism", "coca"]);
    assert!(line.contains("coca"), "{line}");
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let run =
        ["run", "nb-iot", "--set", "clients=1", "--seeds", "1", "--mechanism", "default", "--format", "csv"];
    for arguments in [&["list", "mechanisms"][..], &run] {
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        let output = command().args(arguments).stdout(writer).output().expect("the command ends");
        assert_eq!(
            (output.status.code(), output.stderr.is_empty()),
            (Some(0), true),
            "{arguments:?}: {output:?}"
        );
    }
}

#[test]
fn a_closed_pipe_is_not_a_failure_while_a_completion_script_is_printed() {
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    let output = command().args(["completions", "bash"]).stdout(writer).output().expect("the command ends");
    assert_eq!((output.status.code(), output.stderr.is_empty()), (Some(0), true), "{output:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_as_an_error() {
    let full = || fs::File::options().write(true).open("/dev/full").expect("a device that is always full");
    for arguments in [&["list", "mechanisms"][..], &["--help"]] {
        let output = command().args(arguments).stdout(full()).output().expect("the command ends");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.starts_with("coapace: standard output: ") && stderr.lines().count() == 1, "{stderr}");
    }

    let run = ["run", "nb-iot", "--set", "clients=3", "--seeds", "1", "--mechanism", "default"];
    for option in ["--report", "--pcap", "--trace"] {
        let outcome = coapace(&[&run[..], &["--quiet", option, "/dev/full"]].concat());
        assert!(outcome.failure(1).starts_with("cannot write /dev/full: "), "{outcome:?}");
        assert_eq!(outcome.stdout.contains("default"), option == "--report", "the measurements are printed");
    }
}

#[test]
fn a_file_of_another_kind_is_refused_as_a_directory_or_journal() {
    let scratch = Scratch::new();
    let file = scratch.file("file");
    fs::write(&file, "").expect("a file");
    let few = ["--set", "clients=1", "--seeds", "1"];
    for option in ["--figures", "--to"] {
        let line = refused(1, &[&["run", "nb-iot", option, &file][..], &few].concat());
        assert!(line.ends_with(&format!("{file}: not a directory")), "{line}");
    }
    let line = refused(1, &["reproduce", "meng2017", "--artifact", &file]);
    assert_eq!(line, format!("cannot write {file}: not a directory"));
    let line = refused(1, &["search", "default", "--scenarios", "9", "--journal", "/dev/zero"]);
    assert_eq!(line, "/dev/zero: this is not a journal of a search: name another file");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_error_does_not_stop_the_runs() {
    let scratch = Scratch::new();
    let full = fs::File::options().write(true).open("/dev/full").expect("a device that is always full");
    let report = scratch.file("report.html");
    let run = [
        "run",
        "nb-iot",
        "--set",
        "clients=1",
        "--seeds",
        "1",
        "--mechanism",
        "default",
        "--report",
        &report,
    ];
    let output = command().args(run).stderr(full).output().expect("the command ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(!output.stdout.is_empty());
}

#[test]
fn options_for_datagrams_are_refused_over_tcp_and_tls() {
    for arguments in [
        &["get", "coap+tcp://[::1]/x", "--pcap", "x.pcapng"][..],
        &["observe", "coap+ws://[::1]/x", "--pcap", "x.pcapng"],
        &["load", "coap+tcp://[::1]/x", "--loss", "0.1"],
    ] {
        let line = refused(2, arguments);
        assert!(line.contains("needs datagrams"), "{line}");
    }
}
