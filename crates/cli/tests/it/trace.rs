//! `coapace trace`.

use std::fmt::Write;
use std::io::Write as _;
use std::process::Stdio;

use crate::common::{coapace_reading, column, command, csv};

/// Mechanisms and their vectors: a CSV with the input columns and the columns that `trace` has to print.
const VECTORS: [(&str, &str); 3] = [
    ("default", include_str!("../../../../vectors/default.csv")),
    ("cocoa:preset=draft-03", include_str!("../../../../vectors/cocoa@draft-03.csv")),
    ("fasor-token:preset=libcoap-2019", include_str!("../../../../vectors/fasor-token@libcoap-2019.csv")),
];

#[test]
fn trace_reproduces_a_vector_to_the_microsecond() {
    let micros = |field: &str| field.replace('.', "").parse::<i64>().ok();
    for (mechanism, file) in VECTORS {
        let vector = file.split("# mechanism ").nth(1).expect("a first run");
        let (_, vector) = vector.split_once('\n').expect("lines behind its name");
        let out = coapace_reading(&["trace", mechanism], vector).success();
        assert_eq!(out.lines().next(), Some("at_ms,event,timeout_ms,rto_ms,next_ms"));
        let expected: String = vector.lines().fold(String::new(), |mut all, line| {
            let _ = writeln!(all, "{line}");
            all
        });
        assert_eq!(column(&out, "at_ms"), column(&expected, "at_ms"));
        assert_eq!(column(&out, "event"), column(&expected, "event"));
        for name in ["timeout_ms", "rto_ms"] {
            for (row, (ours, theirs)) in
                column(&out, name).into_iter().zip(column(&expected, name)).enumerate()
            {
                let near = match (micros(ours), micros(theirs)) {
                    (Some(ours), Some(theirs)) => ours.abs_diff(theirs) <= 1,
                    (ours, theirs) => ours == theirs,
                };
                assert!(near, "{mechanism}, row {row}: {name} is {ours}, not {theirs}");
            }
        }
        assert!(csv(&out).1.len() > 50, "{mechanism}: the vector is not empty");
    }
}

#[test]
fn a_parameter_on_the_command_line_changes_the_armed_timeouts_of_trace() {
    let script = "at_ms,event,draw\n0,start,0\n";
    let timeout = |mechanism| coapace_reading(&["trace", mechanism], script).success();
    assert_eq!(column(&timeout("default"), "timeout_ms"), ["2000.000"]);
    assert_eq!(column(&timeout("default:ack_timeout=3s"), "timeout_ms"), ["3000.000"]);
}

#[test]
fn trace_reports_an_impossible_event_by_its_line_number() {
    // Comments and blank lines count, like in an editor.
    for (script, expected) in [
        ("at_ms,event\n0,start\n5,bogus\n", "line 3: unknown event \"bogus\""),
        ("# a comment\n\nat_ms,event\n0,ack\n", "line 4: ack without an open exchange"),
        ("at_ms,event\n10,start\n5,ack\n", "line 3: time goes backwards"),
        ("at_ms,event,draw\n0,start,1.5\n", "line 2: draw is \"1.5\""),
        ("at_ms,event\nx,start\n", "line 2: at_ms is \"x\""),
    ] {
        let outcome = coapace_reading(&["trace", "fasor"], script);
        let line = outcome.failure(1);
        assert!(line.starts_with(&format!("standard input: {expected}")), "{line}");
    }
}

#[test]
fn trace_refuses_an_endless_line_before_it_fills_the_memory() {
    let endless = "at_ms,event\n# ".to_owned() + &"x".repeat(8 << 20);
    let refused = coapace_reading(&["trace", "default"], &endless);
    assert_eq!(refused.failure(1), "standard input: line 2: longer than 4096 bytes");
    let refused = coapace_reading(&["trace", "default"], &"x,".repeat(4 << 20));
    assert_eq!(refused.failure(1), "standard input: line 1: longer than 4096 bytes");
    let long = format!("at_ms,event\r\n# {}\r\n0,start", "x".repeat(4000));
    assert_eq!(csv(&coapace_reading(&["trace", "default"], &long).success()).1.len(), 1);
}

#[test]
fn trace_prints_the_rows_before_a_bad_line_and_none_after_it() {
    let outcome = coapace_reading(&["trace", "default"], "at_ms,event,draw\n0,start,0\n5,bogus,\n9,ack,\n");
    outcome.failure(1);
    assert_eq!(outcome.stdout, "at_ms,event,timeout_ms,rto_ms,next_ms\n0.000,start,2000.000,2000.000,\n");
}

#[test]
fn trace_refuses_a_script_without_a_header_and_names_the_columns() {
    for script in ["", "0,start\n", "at_ms\n0\n"] {
        let outcome = coapace_reading(&["trace", "default"], script);
        assert!(outcome.failure(1).contains("the header lacks"), "{outcome:?}");
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn trace_does_not_blame_the_script_for_a_full_output() {
    let script = "at_ms,event\n0,start\n".to_owned() + &"1,timeout\n".repeat(2);
    for (path, code) in [("/dev/full", 1), ("closed", 0)] {
        let mut trace = command();
        trace.args(["trace", "default"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        if code == 0 {
            trace.stdout(std::io::pipe().expect("a pipe").1);
        } else {
            trace.stdout(std::fs::File::options().write(true).open(path).expect("a device that is full"));
        }
        let mut child = trace.spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let _ = stdin.write_all(script.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(code == 0 && said.is_empty() || said.starts_with("coapace: standard output: "), "{said}");
    }
}
