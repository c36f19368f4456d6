//! Tables that pin the behaviour of a run, as text files in `tests/snapshots`.
//!
//! A change that alters the simulator on purpose rewrites them: `BLESS=1 cargo test -p coapace-sim`. Their diff
//! shows the change.

use std::path::Path;

/// Checks that `table` is the content of the file `name`, or writes it there with BLESS=1.
pub(crate) fn check(name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, table).unwrap();
        return;
    }
    let pinned = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = pinned.lines().zip(table.lines());
    if let Some((number, (before, now))) = lines.enumerate().find(|(_, (before, now))| before != now) {
        panic!(
            "{name}:{}\nbefore {before}\n   now {now}\nIf it is meant: BLESS=1 cargo test -p coapace-sim",
            number + 1
        );
    }
    assert!(pinned == table, "{name} has another number of lines: BLESS=1 cargo test -p coapace-sim");
}
