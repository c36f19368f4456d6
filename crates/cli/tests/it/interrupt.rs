//! Ctrl-C in the middle of an experiment.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use crate::common::{Scratch, Serving, command, interrupt};

/// Hours of runs. The first are over at once.
const LONG: [&str; 10] =
    ["run", "nb-iot", "--set", "clients=2,100", "--seeds", "50000", "-m", "default", "--jobs", "1"];

fn start(arguments: &[&str]) -> Child {
    let mut command = command();
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Returns the exit code, the rest of standard output, and standard error.
fn end(mut child: Child, mut stdout: impl Read) -> (Option<i32>, String, String) {
    let (mut out, mut said) = (String::new(), String::new());
    stdout.read_to_string(&mut out).expect("text");
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    (child.wait().expect("it ends").code(), out, said)
}

#[test]
fn rows_are_printed_as_runs_finish_and_an_interruption_keeps_them() {
    let scratch = Scratch::new();
    let report = scratch.file("report.html");
    fs::write(&report, "an older report").expect("it is written");
    // Two conditions: the first is over soon, the second is not.
    let few = ["run", "nb-iot", "--set", "clients=2,20000", "--seeds", "2", "-m", "default", "--jobs", "1"];
    let mut child = start(&[&few[..], &["--format", "csv", "--report", &report]].concat());
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut lines = String::new();
    while lines.lines().count() < 2 {
        assert!(stdout.read_line(&mut lines).expect("a line") > 0, "it ended: {lines}");
    }
    interrupt(&child);
    let (code, _, said) = end(child, stdout);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("incomplete: interrupted after 2 of 4 runs"), "{said}");
    assert_eq!(fs::read_to_string(&report).expect("it is there"), "an older report");
    let beside = fs::read_to_string(scratch.file("report.incomplete.html")).expect("the report");
    assert!(beside.contains("interrupted after 2 of 4 runs") && beside.trim_end().ends_with("</html>"));
    assert_eq!(fs::read_dir(scratch.path()).expect("the folder").count(), 2, "no draft is left");
}

#[test]
fn an_interrupted_search_names_its_journal() {
    let mut child = start(&["search", "default", "cocoa", "--scenarios", "200", "--jobs", "1"]);
    let stdout = child.stdout.take().expect("a pipe");
    // By then it handles signals.
    std::thread::sleep(std::time::Duration::from_secs(3));
    interrupt(&child);
    let (code, _, said) = end(child, stdout);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.ends_with("coapace: interrupted: --journal FILE keeps measurements\n"), "{said}");
}

#[test]
fn an_interrupted_table_says_that_it_is_incomplete() {
    let child = &mut start(&LONG);
    let mut stdout = child.stdout.take().expect("a pipe");
    // By then it handles signals.
    std::thread::sleep(std::time::Duration::from_secs(3));
    interrupt(child);
    let mut out = String::new();
    stdout.read_to_string(&mut out).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(out.lines().any(|line| line.starts_with("incomplete: interrupted after ")), "{out}");
}

#[test]
fn an_interrupted_capture_does_not_replace_an_older_file() {
    let scratch = Scratch::new();
    let trace = scratch.file("run.csv");
    fs::write(&trace, "an older trace").expect("it is written");
    let run = ["run", "nb-iot", "--set", "clients=20000", "--seeds", "1", "-m", "default", "--trace", &trace];
    let mut child = start(&run);
    let stdout = child.stdout.take().expect("a pipe");
    // The run is under way when its temporary file is there.
    while fs::read_dir(scratch.path()).expect("the folder").count() < 2 {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    interrupt(&child);
    let (code, out, said) = end(child, stdout);
    assert_eq!((code, out.as_str()), (Some(130), ""), "{said}");
    assert_eq!(fs::read_to_string(&trace).expect("it is there"), "an older trace");
    assert_eq!(fs::read_dir(scratch.path()).expect("the folder").count(), 1, "no draft is left: {said}");
}

#[test]
fn an_interrupted_load_reports_what_was_answered() {
    let server = Serving::new(&["--demo"]);
    let uri = server.at("/clock");
    for more in [&["--clients", "2"][..], &["--rate", "50"]] {
        let load = [&["load", &uri, "--duration", "60", "--quiet"][..], more].concat();
        let mut child = start(&load);
        let stdout = child.stdout.take().expect("a pipe");
        // By then it handles signals.
        std::thread::sleep(std::time::Duration::from_secs(2));
        interrupt(&child);
        let (code, out, said) = end(child, stdout);
        assert_eq!(code, Some(130), "{said}");
        assert!(
            said.starts_with("coapace: incomplete: interrupted after ") && said.contains(" of 60"),
            "{said}"
        );
        assert!(out.contains(" answered in ") && !out.starts_with("0 answered"), "{out}");
    }
}
