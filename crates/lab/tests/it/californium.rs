//! Californium 3.14.0 and the presets `californium-3`, side by side through the same scripts.
//!
//! `tests/check-californium` builds the Java side and runs this; decision 0012 describes the comparison.

mod script;

use std::io::Write;
use std::process::{Command, Stdio};
use std::{env, thread};

use coapace_lab::replay::replay;
use coapace_scenario::naming::parse_mechanism;

/// Californium's name of each mechanism, and ours.
const PAIRS: [(&str, &str); 5] = [
    ("COCOA", "cocoa:preset=californium-3"),
    ("COCOA_STRONG", "cocoa-strong:preset=californium-3"),
    ("BASIC_RTO", "basic-rto:preset=californium-3"),
    ("LINUX_RTO", "linux-rto:preset=californium-3"),
    ("PEAKHOPPER_RTO", "peak-hopper:preset=californium-3"),
];

/// The greatest difference allowed. Californium counts in whole milliseconds.
const TOLERANCE_US: u64 = 1_000;

/// One line of a trace, with times in microseconds.
#[derive(Debug, PartialEq)]
struct Row {
    at: u64,
    event: String,
    timeout: Option<u64>,
    rto: u64,
}

#[test]
#[ignore = "needs Java and Californium: tests/check-californium runs it"]
fn californium_arms_the_timeouts_of_the_presets_named_after_it() {
    let classpath =
        env::var("CALIFORNIUM_CLASSPATH").expect("CALIFORNIUM_CLASSPATH, which check-californium sets");
    for (mode, name) in PAIRS {
        let mechanism = parse_mechanism(name).unwrap();
        let script = script::all(&mechanism);
        let theirs = rows(&californium(&classpath, mode, &script));
        // A header begins the next script, for an endpoint that knows nothing.
        let header = script.lines().next().unwrap();
        let mut ours = Vec::new();
        for script in script.split(header).skip(1) {
            replay(&mechanism, [header, script].concat().as_bytes(), &mut ours).unwrap();
        }
        let ours = rows(&String::from_utf8(ours).unwrap());
        assert_eq!(theirs.len(), ours.len(), "{mode}");
        let mut greatest = 0;
        for (place, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
            let difference = difference(mode, theirs, ours);
            let context = || format!("{mode}, step {place}:\nCalifornium {theirs:?}\n       ours {ours:?}");
            assert!(difference.is_some_and(|us| us <= TOLERANCE_US), "{}", context());
            greatest = greatest.max(difference.unwrap_or(0));
        }
        let exchanges = covered(mode, &theirs);
        let greatest = greatest as f64 / 1e3;
        println!("{name}: {exchanges} exchanges as Californium's {mode}, greatest difference {greatest} ms");
    }
}

/// Returns the greater difference of timeouts and RTOs in microseconds; `None` if the events differ, or if only one of them
/// arms a timer.
fn difference(mode: &str, theirs: &Row, ours: &Row) -> Option<u64> {
    // Californium bounds the timeout that it arms, and not its RTO. Here both are bounded.
    let least = if mode.starts_with("COCOA") { 0 } else { 500_000 };
    let timeouts = match (theirs.timeout, ours.timeout) {
        (Some(theirs), Some(ours)) => theirs.abs_diff(ours),
        (None, None) => 0,
        _ => return None,
    };
    let same = theirs.at == ours.at && theirs.event == ours.event;
    same.then(|| timeouts.max(theirs.rto.max(least).abs_diff(ours.rto)))
}

/// Counts the exchanges in the trace of Californium, and asserts that they cover the cases to be compared.
fn covered(mode: &str, rows: &[Row]) -> usize {
    let count = |event: &str| rows.iter().filter(|row| row.event == event).count();
    let exchanges = count("start");
    assert!(exchanges >= 1_000, "{mode}: {exchanges} exchanges");
    assert!(count("giveup") >= 50 && count("reset") >= 20, "{mode}: {} given up", count("giveup"));
    let (mut retransmits, mut answered) = (0, [0; 5]);
    for row in rows {
        match row.event.as_str() {
            "start" => retransmits = 0,
            "timeout" => retransmits += 1,
            "ack" => answered[retransmits] += 1,
            _ => {}
        }
    }
    assert!(
        answered.iter().all(|&answers| answers >= 50),
        "{mode}: answered after retransmissions {answered:?}"
    );
    let bounds =
        [500, 32_000, 60_000].map(|ms| rows.iter().filter(|row| row.timeout == Some(ms * 1_000)).count());
    assert!(bounds.iter().all(|&armed| armed > 0), "{mode}: armed at the bounds {bounds:?}");
    // Nothing but age changes an RTO as an exchange starts; time goes backwards where the next script begins.
    let is_older =
        |pair: &&[Row]| pair[1].event == "start" && pair[1].at >= pair[0].at && pair[0].rto != pair[1].rto;
    let aged = rows.windows(2).filter(is_older).count();
    let enough = if mode.starts_with("COCOA") { aged >= 50 } else { aged == 0 };
    assert!(enough, "{mode}: aged {aged} times");
    exchanges
}

/// Returns the trace that Californium makes of the scripts, as CSV. Its warnings go to standard error.
fn californium(classpath: &str, mode: &str, script: &str) -> String {
    let mut child = Command::new("java")
        .args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath])
        .args(["coapace.californium.Trace", mode])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("java starts");
    let mut stdin = child.stdin.take().unwrap();
    let output = thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(script.as_bytes()));
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{mode}: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the rows of a trace, or of several with a header each. Columns after the fourth are in our traces only.
fn rows(csv: &str) -> Vec<Row> {
    let micros = |text: &str| text.replace('.', "").parse().ok();
    csv.lines()
        .filter(|line| !line.starts_with("at_ms"))
        .map(|line| {
            let fields: Vec<_> = line.split(',').collect();
            let whole = |text| micros(text).unwrap_or_else(|| panic!("three places in {line}"));
            Row {
                at: whole(fields[0]),
                event: fields[1].to_owned(),
                timeout: micros(fields[2]),
                rto: whole(fields[3]),
            }
        })
        .collect()
}
