//! `coapace run --to`.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::common::{Scratch, coapace, command, interrupt};

/// Twelve short runs.
const SHORT: [&str; 10] =
    ["run", "nb-iot", "--set", "clients=2,3", "-m", "default", "-m", "cocoa", "--seeds", "3"];

fn parts(directory: &str) -> Vec<String> {
    let names = fs::read_dir(directory).expect("the folder").map(|entry| entry.expect("a name").file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(".parquet")).collect()
}

#[test]
fn a_sweep_writes_a_dataset_and_prints_how_to_read_it() {
    let scratch = Scratch::new();
    let to = scratch.file("results");
    let first = coapace(&[&SHORT[..], &["--to", &to]].concat());
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(
        first.stderr.contains("12 runs in ") && first.stderr.contains("0 runs of earlier calls"),
        "{first:?}"
    );
    assert!(first.stderr.contains(&format!("polars.scan_parquet(\"{to}/part-*.parquet\")")), "{first:?}");
    let before = parts(&to);
    assert!(!before.is_empty() && Path::new(&to).join("sweep.json").exists());

    let again = coapace(&[&SHORT[..], &["--to", &to]].concat());
    assert!(
        again.stderr.contains("0 runs in ") && again.stderr.contains("12 runs of earlier calls"),
        "{again:?}"
    );
    assert_eq!(parts(&to), before);

    let more = coapace(&[&SHORT[..8], &["--seeds", "2-4", "--to", &to]].concat());
    assert!(
        more.stderr.contains("4 runs in ") && more.stderr.contains("8 runs of earlier calls"),
        "{more:?}"
    );
}

#[test]
fn shards_of_a_sweep_share_a_directory_and_cover_every_run() {
    let scratch = Scratch::new();
    let to = scratch.file("results");
    let shard = |shard: &str| coapace(&[&SHORT[..], &["--to", &to, "--shard", shard]].concat()).stderr;
    let runs = |said: &str| -> usize {
        said.split_once(" runs of shard ")
            .and_then(|(before, _)| before.rsplit(' ').next()?.parse().ok())
            .expect("runs")
    };
    assert_eq!(runs(&shard("1/2")) + runs(&shard("2/2")), 12);
    let all = coapace(&[&SHORT[..], &["--to", &to]].concat());
    assert!(all.stderr.contains("0 runs in "), "{all:?}");
}

#[test]
fn an_interrupted_sweep_keeps_its_runs_and_prints_how_to_continue() {
    let scratch = Scratch::new();
    let to = scratch.file("results");
    let long = ["run", "nb-iot", "--set", "clients=2", "-m", "default", "--seeds", "100000", "--jobs", "1"];
    let mut sweep = command();
    sweep.args(long).args(["--to", &to]).stdin(Stdio::null()).stderr(Stdio::piped());
    let child = sweep.spawn().expect("it starts");
    while !Path::new(&to).exists() || parts(&to).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{said}");
    let made: usize = said
        .split_once("interrupted after ")
        .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
        .expect("a number of runs");
    assert!(said.contains("the same command makes the others"), "{said}");
    let seeds = made.to_string();
    let few = coapace(&[&long[..7], &[&seeds, "--to", &to]].concat());
    assert_eq!(few.code, Some(0), "{few:?}");
    assert!(!few.stderr.contains(" 0 runs of earlier calls"), "{few:?}");
}

#[test]
fn an_impossible_sweep_is_refused_with_a_reason() {
    let scratch = Scratch::new();
    let to = scratch.file("results");
    let message = |arguments: &[&str], code| {
        let outcome = coapace(&[&["run"], arguments, &["--to", &to]].concat());
        outcome.failure(code).to_owned()
    };
    assert!(message(&["nb-iott"], 2).contains("did you mean `nb-iot`?"));
    assert!(message(&["nb-iot", "--set", "cleints=3"], 2).contains("did you mean `clients`?"));
    assert!(message(&["nb-iot", "-m", "cocoaa"], 2).contains("did you mean cocoa"));
    assert!(message(&["nb-iot", "--shard", "3/2"], 2).contains("such as 2/8"));
    assert!(!Path::new(&to).exists(), "nothing was begun");
    coapace(&[&SHORT[..], &["--to", &to]].concat()).success();
    let other = message(&["lossy-lan", "-m", "default", "--seeds", "1"], 1);
    assert!(other.contains("results: its sweep is of the scenario nb-iot, not of lossy-lan"), "{other}");
    fs::write(scratch.file("a-file"), "").expect("it is written");
    let outcome = coapace(&[&SHORT[..], &["--to", &scratch.file("a-file")]].concat());
    assert!(outcome.failure(1).contains("a-file: "), "{outcome:?}");
}
