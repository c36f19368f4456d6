//! `coapace search`.

use std::fs;

use crate::common::{Scratch, coapace};

/// A search over nine networks that are small with this seed.
const SHORT: [&str; 9] = [
    "search",
    "default",
    "--vary",
    "ack_timeout=1s|2s|4s",
    "--scenarios",
    "9",
    "--generator-seed",
    "11",
    "--quiet",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SHORT[..], more].concat()
}

#[test]
fn a_killed_search_resumes_from_its_journal_and_finds_the_same_result_on_any_number_of_threads() {
    let scratch = Scratch::new();
    let journal = scratch.file("journal.jsonl");
    let whole = coapace(&with(&["--brackets", "2", "--jobs", "1", "--journal", &journal])).success();
    assert!(whole.contains("\n  loss "), "{whole}");
    let text = fs::read_to_string(&journal).unwrap();
    let lines = text.lines().count();
    // Killed while the last but two lines was written.
    let cut = text.match_indices('\n').nth(lines - 3).unwrap().0 - 7;
    fs::write(&journal, &text[..cut]).unwrap();
    let again = coapace(&with(&["--brackets", "2", "--jobs", "2", "--journal", &journal])).success();
    assert_eq!(again, whole);
    assert_eq!(fs::read_to_string(&journal).unwrap(), text, "only the cut end is measured again");
}

#[test]
fn search_refuses_a_journal_of_other_networks_and_an_unknown_parameter_in_one_line() {
    let scratch = Scratch::new();
    let journal = scratch.file("journal.jsonl");
    coapace(&[
        "search",
        "default",
        "--networks",
        "meshes",
        "--scenarios",
        "9",
        "--generator-seed",
        "11",
        "--quiet",
        "--journal",
        &journal,
    ])
    .success();
    assert!(coapace(&with(&["--journal", &journal])).failure(1).contains("networks: meshes"));
    let unknown = coapace(&["search", "default", "--networks", "mesh", "--quiet"]);
    assert!(unknown.failure(2).contains("\"mixed\" or \"meshes\""));
    fs::write(&journal, "no journal\n").unwrap();
    assert!(coapace(&with(&["--journal", &journal])).failure(1).contains("name another file"));
    let unknown = coapace(&["search", "default", "--vary", "zzz=1|2", "--scenarios", "9", "--quiet"]);
    assert!(unknown.failure(2).contains("zzz"), "{unknown:?}");
    let range = coapace(&["search", "default", "--vary", "ack_timeout=4s..1s", "--quiet"]);
    assert!(range.failure(2).contains("LOW..HIGH"), "{range:?}");
}
