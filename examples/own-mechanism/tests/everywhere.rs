//! A mechanism of another crate runs everywhere that a built-in one does, and gives equal results.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A small network with losses, so that there are retransmissions.
const RUN: [&str; 9] =
    ["run", "nb-iot", "--set", "clients=20", "--set", "errors=high", "--seeds", "2", "--quiet"];

/// Returns the command of this example, not yet started.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_own-mechanism"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it with `input` on standard input. Returns the exit code, standard output and standard error.
fn call(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = command(arguments).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Returns the standard output of a call that succeeds.
fn succeed(arguments: &[&str]) -> String {
    let (code, stdout, stderr) = call(arguments, "");
    assert_eq!(code, 0, "{arguments:?}: {stderr}");
    stdout
}

/// Returns a column of a CSV. The fields before it must have no quotes.
fn column<'a>(csv: &'a str, name: &str) -> Vec<&'a str> {
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let place = rows.next().unwrap().iter().position(|field| *field == name).unwrap();
    rows.map(|row| row[place]).collect()
}

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn the_simulator_has_the_same_events_as_with_the_built_in_mechanism() {
    let csv = succeed(&[&RUN[..], &["-m", "twin", "-m", "default", "--each", "--format", "csv"]].concat());
    let hashes = column(&csv, "trace_hash");
    assert_eq!(column(&csv, "mechanism"), ["twin", "twin", "default", "default"]);
    assert_eq!(hashes[..2], hashes[2..], "{csv}");
    assert_ne!(hashes[0], hashes[1], "each seed is a run of its own");

    let parameters = ["-m", "twin:preset=erbium", "-m", "default:ack_timeout=3s", "--format", "csv"];
    let csv = succeed(&[&RUN[..], &parameters].concat());
    let hashes = column(&csv, "trace_hash");
    assert!(hashes[0] == hashes[1] && !hashes[0].is_empty(), "{csv}");
}

#[test]
fn a_trace_arms_the_same_timeouts() {
    let script = "at_ms,event,draw,answered\n0,start,0.25,\n2500,timeout,,\n7500,timeout,,\n8000,ack,,\n9000,start,0.75,\n";
    let trace = |mechanism| call(&["trace", mechanism], script);
    let (code, twin, _) = trace("twin:ack_timeout=2200ms");
    assert_eq!((code, &twin), (0, &trace("default:ack_timeout=2200ms").1));
    assert!(twin.contains("2475"), "{twin}");
}

#[test]
fn lists_pairs_papers_and_reports_have_it() {
    let list = succeed(&["list", "mechanisms"]);
    assert!(list.lines().any(|line| line.starts_with("twin ") && line.ends_with("written again")), "{list}");
    assert!(list.contains("\ntwin  (RFC 7252 §4.2)\n  ack_timeout          2s "), "{list}");

    let report = scratch("report.html");
    let page = ["-m", "twin", "-m", "cocoa", "--report", report.to_str().unwrap()];
    let table = succeed(&[&RUN[..], &page].concat());
    assert!(table.contains("twin"), "{table}");
    let html = fs::read_to_string(&report).unwrap();
    assert!(html.matches("twin").count() > 1, "tables and charts name it");

    let pairs = [
        "run",
        "coexistence",
        "--pairs",
        "--set",
        "clients=10",
        "--set",
        "duration=20 s",
        "--set",
        "workload.warm_up=2 s",
        "--seeds",
        "1",
        "--quiet",
    ];
    let csv = succeed(&[&pairs[..], &["-m", "twin", "-m", "fasor", "--format", "csv"]].concat());
    assert_eq!(column(&csv, "mechanism"), ["twin", "twin", "fasor", "fasor"]);

    let mix = succeed(&[&RUN[..], &["-m", "twin*3+fasor", "--format", "csv"]].concat());
    assert!(column(&mix, "mechanism").contains(&"twin*3+fasor"), "{mix}");

    let paper = ["reproduce", "rathod2022", "-m", "twin", "--seeds", "1", "--quiet", "--format", "csv"];
    let csv = succeed(&paper);
    assert!(column(&csv, "mechanism").contains(&"twin"), "{csv}");
}

#[test]
fn a_client_and_a_server_use_it_over_sockets() {
    let serve =
        ["serve", "--bind", "127.0.0.1:0", "--threads", "1", "--cc", "twin", "--resource", "/hello=Hi"];
    let mut server = command(&serve).spawn().unwrap();
    let mut uri = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut uri).unwrap();
    let answer = call(&["get", &format!("{}/hello", uri.trim()), "--cc", "twin:ack_timeout=1s"], "");
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!((answer.0, answer.1.trim()), (0, "Hi"), "{}", answer.2);
}

#[test]
fn a_peer_that_is_silent_gets_as_many_copies_as_under_the_built_in_mechanism() {
    let copies = |mechanism: &str| {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let uri = format!("coap://{}/x", silent.local_addr().unwrap());
        let cc = format!("{mechanism}:ack_timeout=20ms");
        let (code, _, told) =
            call(&["get", &uri, "--cc", &cc, "--max-retransmit", "2", "--timeout", "2"], "");
        assert_eq!(code, 1, "{told}");
        silent.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        std::iter::from_fn(|| silent.recv(&mut [0; 64]).ok()).count()
    };
    let (twin, built_in) = (copies("twin"), copies("default"));
    assert!(twin == built_in && twin >= 3, "{twin} and {built_in}");
}

#[test]
fn a_name_that_nobody_has_is_told_with_it_among_the_others() {
    let (code, _, told) = call(&["run", "nb-iot", "-m", "twim"], "");
    assert!(code == 2 && told.contains("did you mean twin?"), "{told}");
    let mut all = String::new();
    command(&["list", "mechanisms"]).spawn().unwrap().stdout.unwrap().read_to_string(&mut all).unwrap();
    assert!(all.find("\nrtt-coap ").unwrap() < all.find("\ntwin ").unwrap(), "own ones are last");
}

#[test]
fn a_mechanism_that_learns_waits_for_twice_the_smoothed_round_trip_time() {
    // Round-trip times of 400 ms and, an eighth of the way further, 1,200 ms: an SRTT of 500 ms.
    let events =
        "at_ms,event,draw\n0,start,0\n400,ack,\n1000,start,0\n2200,ack,\n3000,start,0\n4000,timeout,0\n";
    let (code, csv, stderr) = call(&["trace", "smooth"], events);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(column(&csv, "timeout_ms"), ["2000.000", "", "800.000", "", "1000.000", "2000.000"], "{csv}");
}
