//! Tests of the search for a table of actions. There is one program for them, because names of mechanisms are those of the whole
//! program.

use std::path::Path;

use coapace_lab::search::bound::Bench;
use coapace_lab::search::evaluation::Set;
use coapace_lab::search::journal::Conditions;
use coapace_lab::search::networks::Networks;
use coapace_lab::search::table::{ENTRY, Table};
use coapace_scenario::naming;

/// Searches over nine networks. Returns every table that was found, and its loss.
fn climb(journal: &Path, jobs: usize) -> Vec<(String, f64)> {
    let set = Set::draw(Networks::Mixed, 1, 9).unwrap();
    let conditions =
        Conditions { commit: "test".into(), networks: Networks::Mixed, generator_seed: 1, scenarios: 9 };
    let mut bench = Bench::open(set, Some(journal), &conditions, jobs).unwrap();
    let mut found = Vec::new();
    let best = bench.climb(4, 1, &mut |table, _, loss| found.push((table.label(), loss))).unwrap();
    assert_eq!(found.last().unwrap().0, best.label());
    found
}

#[test]
fn a_search_goes_on_from_its_journal_and_finds_the_same_on_any_number_of_threads() {
    naming::add(&ENTRY).unwrap();
    let path = std::env::temp_dir().join(format!("coapace-table-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let whole = climb(&path, 1);
    assert_eq!(whole[0].0, Table::DEFAULT.label());
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = text.lines().count();
    // Killed while the last but four lines was written.
    let cut = text.match_indices('\n').nth(lines - 5).unwrap().0 - 7;
    std::fs::write(&path, &text[..cut]).unwrap();
    assert_eq!(climb(&path, 2), whole);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "only what was cut off is measured again");
    std::fs::remove_file(&path).unwrap();
}
