//! Tests of the mechanisms against `vectors/`. The vectors come from a second implementation in exact fractions.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use coapace_control::{BULK, Mechanism, Mechanisms, REGISTRY};
use coapace_lab::replay::replay;

/// A run in a file of vectors: its mechanism, and the lines from its header on.
struct Run {
    file: String,
    mechanism: String,
    lines: Vec<String>,
}

/// Reads a mechanism for single exchanges, or a bulk mechanism.
fn parse(text: &str) -> Mechanism {
    let known = Mechanisms::BUILT_IN;
    known.parse(text).or(known.parse_bulk(text)).unwrap_or_else(|problem| panic!("{text}: {problem}"))
}

/// Returns the runs of every file, in their order.
fn files() -> BTreeMap<String, Vec<Run>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let entries =
        [folder.join("bulk"), folder].map(|folder| fs::read_dir(folder).expect("a folder of vectors"));
    let mut files = BTreeMap::new();
    for entry in entries.into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "csv") {
            continue;
        }
        let file = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut runs: Vec<Run> = Vec::new();
        for line in fs::read_to_string(&path).unwrap().lines() {
            match line.strip_prefix("# mechanism ") {
                Some(name) => {
                    runs.push(Run { file: file.clone(), mechanism: name.to_owned(), lines: Vec::new() });
                }
                None => {
                    runs.last_mut().expect("a mechanism before the first line").lines.push(line.to_owned());
                }
            }
        }
        files.insert(file, runs);
    }
    files
}

/// Returns the named columns of each line, as text.
fn columns<'a, const N: usize>(lines: impl Iterator<Item = &'a str>, names: [&str; N]) -> Vec<[&'a str; N]> {
    let mut lines = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let places = names.map(|name| header.iter().position(|title| *title == name).expect(name));
    lines.map(|line| places.map(|place| line[place])).collect()
}

/// Reads milliseconds with three decimal places as microseconds; `None` for an empty field.
fn micros(text: &str) -> Option<u64> {
    (!text.is_empty()).then(|| text.replace('.', "").parse().expect("three places"))
}

/// Returns whether the numbers agree within one microsecond: one implementation may round half a microsecond up where the
/// other rounds it down. A larger difference would be an error of the fixed-point arithmetic. The reciprocal of a rate may
/// also be off by `per_million`.
fn agree(expected: &str, replayed: &str, per_million: u64) -> bool {
    match (micros(expected), micros(replayed)) {
        (Some(expected), Some(replayed)) => {
            expected.abs_diff(replayed) <= 1 + expected * per_million / 1_000_000
        }
        (expected, replayed) => expected == replayed,
    }
}

fn check(run: &Run) {
    let Run { file, mechanism, lines } = run;
    let parsed = parse(mechanism);
    let mut out = Vec::new();
    replay(&parsed, lines.join("\n").as_bytes(), &mut out).unwrap_or_else(|error| panic!("{file}: {error}"));
    let out = String::from_utf8(out).unwrap();
    let names = ["at_ms", "event", "timeout_ms", "rto_ms", "next_ms"];
    let expected = columns(lines.iter().map(String::as_str), names);
    let replayed = columns(out.lines(), names);
    assert_eq!(expected.len(), replayed.len(), "{file}, {mechanism}");
    for (expected, replayed) in expected.iter().zip(&replayed) {
        assert_eq!(expected[..2], replayed[..2], "{file}, {mechanism}");
        let same =
            (2..5).all(|field| agree(expected[field], replayed[field], if field == 4 { 10 } else { 0 }));
        assert!(same, "{file}, {mechanism}: expected {}, got {}", expected.join(","), replayed.join(","));
    }
    if lines[0].contains(",window") {
        let windows = |lines: Vec<[&str; 2]>| lines.iter().map(|line| line.join(" ")).collect::<Vec<_>>();
        let names = ["at_ms", "window"];
        let expected = windows(columns(lines.iter().map(String::as_str), names));
        let replayed = windows(columns(out.lines(), names));
        assert_eq!(expected, replayed, "{file}, {mechanism}");
    }
}

#[test]
fn every_mechanism_reproduces_its_vectors_within_a_microsecond() {
    for run in files().values().flatten() {
        check(run);
    }
}

/// Checks that every file has a run of overlapping exchanges, which begin before anything was measured.
#[test]
fn every_mechanism_with_vectors_also_has_a_vector_of_overlapping_exchanges() {
    for (file, runs) in files().into_iter().filter(|(file, _)| file != "worked") {
        let most = |run: &Run| {
            let events = columns(run.lines.iter().map(String::as_str), ["event"]);
            let mut open = 0i32;
            let counts = events.iter().map(|[event]| {
                open += match *event {
                    "start" => 1,
                    "timeout" => 0,
                    _ => -1,
                };
                open
            });
            counts.max().unwrap_or(0)
        };
        assert!(runs.iter().any(|run| most(run) >= 4), "{file}");
    }
}

/// Checks every mechanism and preset. A preset that sets all parameters is equal for several mechanisms, so one vector serves
/// all.
#[test]
fn every_mechanism_and_preset_has_a_vector_of_forty_steps() {
    let runs: Vec<Run> = files().into_values().flatten().collect();
    let steps = |mechanism: Mechanism| {
        let of_it = |run: &&Run| parse(&run.mechanism) == mechanism;
        runs.iter().filter(of_it).map(|run| run.lines.len() - 1).max().unwrap_or(0)
    };
    for entry in REGISTRY.iter().chain(BULK) {
        let presets =
            entry.mechanism.presets().iter().map(|preset| format!("{}:preset={}", entry.name, preset.name));
        for name in std::iter::once(entry.name.to_owned()).chain(presets) {
            let steps = steps(parse(&name));
            assert!(steps >= 40, "{name} has a vector of {steps} steps");
        }
    }
}
