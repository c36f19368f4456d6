//! A test of the reference page, `docs/results.md`.

use std::fs;
use std::path::Path;

use coapace_lab::output::reference;

#[test]
fn the_page_of_results_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results.md");
    let page = reference();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == page, "rewrite it: BLESS=1 cargo test -p coapace-lab --test it results::");
}
