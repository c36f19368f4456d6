//! Results that a file or standard output cannot take, and the others that are not lost with them.

use std::fs;
use std::io::{PipeWriter, pipe};
use std::process::{Command, Output, Stdio};

use crate::artifact::PAPER;
use crate::common::{Scratch, coapace, command};

/// A short run, with the rows for programs.
const ROWS: [&str; 12] = [
    "run",
    "nb-iot",
    "--set",
    "clients=3",
    "--seeds",
    "2",
    "-m",
    "default",
    "-m",
    "cocoa",
    "--format",
    "csv",
];

/// Runs the command where no file may be longer than 2 KiB.
fn short_of_disk(arguments: &[&str]) -> Output {
    let limited = "trap '' XFSZ; ulimit -f 4; exec \"$@\"";
    let program = command().get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, "sh"]).arg(program).args(arguments);
    shell.stdin(Stdio::null()).output().expect("a shell")
}

/// Returns a pipe that nobody reads.
fn closed() -> PipeWriter {
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    writer
}

#[cfg(target_os = "linux")]
#[test]
fn the_table_is_printed_even_if_a_film_or_page_cannot_be_written() {
    let short =
        ["warm_up=0 s", "flows.primary.start=0 s", "duration=2 s"].map(|set| format!("--set=workload.{set}"));
    let mesh = ["run", "mesh-grid", "-m", "cocoa", "--seeds", "1", "--quiet", "--film", "/dev/full"];
    let film: Vec<_> = mesh.into_iter().chain(short.iter().map(String::as_str)).collect();
    let page = [&PAPER[..], &["--markdown", "/dev/full"]].concat();
    for arguments in [film, page] {
        let outcome = coapace(&arguments);
        assert!(outcome.failure(1).starts_with("cannot write /dev/full: "), "{outcome:?}");
        assert!(outcome.stdout.contains("mechanism") && outcome.stdout.contains("cocoa"), "{outcome:?}");
    }
}

#[test]
fn the_table_is_printed_even_if_an_artefact_or_report_cannot_be_written() {
    let scratch = Scratch::new();
    for (option, name) in [("--artifact", "artifact"), ("--report", "report.html")] {
        let path = scratch.file(name);
        let output = short_of_disk(&[&PAPER[..], &[option, &path]].concat());
        let (printed, said) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.starts_with(&format!("coapace: cannot write {path}: ")), "{said}");
        assert!(printed.contains("mechanism") && printed.contains("cocoa"), "{printed}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn counters_and_findings_are_printed_even_if_a_capture_cannot_be_written() {
    let full = ["--pcap", "/dev/full"];
    let relay =
        ["emulate", "nb-iot", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9", "--duration", "200ms"];
    let examine = ["examine", "--quick", "--quiet", "--only", "backoff", "--", "false", "{uri}"];
    let examine = [&examine[..1], &full, &examine[1..]].concat();
    for (arguments, part) in [([&relay[..], &full].concat(), "0 sources, 0 packets"), (examine, "1 cases: ")]
    {
        let outcome = coapace(&arguments);
        assert!(outcome.failure(1).starts_with("cannot write /dev/full: "), "{outcome:?}");
        assert!(outcome.stdout.contains(part), "{outcome:?}");
    }
}

#[test]
fn a_report_is_written_complete_even_if_the_reader_of_the_rows_has_gone() {
    let scratch = Scratch::new();
    for form in ["csv", "table"] {
        let report = scratch.file(&format!("{form}.html"));
        let run = [&ROWS[..11], &[form, "--report", &report]].concat();
        let output = command().args(run).stdout(closed()).output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let page = fs::read_to_string(report).expect("the report");
        assert!(page.contains("cocoa") && !page.contains("incomplete: "), "{form}");
    }
    let alone = command().args(ROWS).arg("--quiet").stdout(closed()).output().expect("it ends");
    assert_eq!((alone.status.code(), alone.stderr.is_empty()), (Some(0), true), "{alone:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn rows_that_cannot_be_printed_and_a_report_that_cannot_be_written_are_reported() {
    let scratch = Scratch::new();
    let report = scratch.file("report.html");
    let full = fs::File::options().write(true).open("/dev/full").expect("a device that is always full");
    let run = [&ROWS[..], &["--quiet", "--report", &report]].concat();
    let output = command().args(run).stdout(full).output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("coapace: standard output: ") && said.lines().count() == 1, "{said}");
    assert!(fs::read_to_string(report).expect("the report").contains("cocoa"));

    let run = [&ROWS[..11], &["table", "--quiet", "--report", "/dev/full"]].concat();
    let output = command().args(run).stdout(closed()).output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("coapace: cannot write /dev/full: ") && said.lines().count() == 1, "{said}");
}
