//! A test of the rows of papers in the README.

use std::fs;
use std::path::Path;

use coapace_lab::papers::PAPERS;

#[test]
fn the_readme_repeats_the_counts_of_every_page_on_reproductions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    for paper in PAPERS {
        let page = fs::read_to_string(root.join(format!("docs/reproductions/{}.md", paper.key))).unwrap();
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", paper.key)));
        let row = row.unwrap_or_else(|| panic!("docs/reproductions/{}.md has no row of counts", paper.key));
        assert!(readme.lines().any(|line| line == row), "README.md lacks this row:\n{row}");
    }
}
