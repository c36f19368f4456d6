//! Generates the parts of the header and of `Cargo.toml` that list the mechanisms of the registry, and checks that they are up
//! to date.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::listed::{COUNT, entries, entry};
use crate::{EXCHANGE_SIZE, MECHANISM_SIZE, state_size};

const BLESS: &str = "rewrite it: BLESS=1 cargo test -p coapace-ffi header::";

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the name of the C constant for a mechanism.
fn constant(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}

/// Returns the feature of a mechanism. It has the mechanism's name, except for `default`, which has another meaning for Cargo.
fn feature(name: &str) -> &str {
    if name == "default" { "default-timer" } else { name }
}

/// Returns the version as a number.
fn version_number() -> u32 {
    let parts = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse::<u32>().unwrap());
    parts.fold(0, |number, part| 100 * number + part)
}

/// Returns the part of the header between its marks.
fn declarations() -> String {
    let mut text = String::from(
        "\n/* The mechanisms. A number keeps its mechanism in every version. */\nenum coapace_name {\n",
    );
    for (place, entry) in entries().enumerate() {
        // C90 allows no comma after the last constant.
        let comma = if place + 1 < COUNT { "," } else { "" };
        writeln!(text, "    /* {}: {}\n     * ({}) */", entry.name, entry.summary, entry.source).unwrap();
        writeln!(text, "    COAPACE_{} = {place}{comma}", constant(entry.name)).unwrap();
    }
    let sizes = entries().map(|entry| state_size(&entry.mechanism));
    // A program that chooses its mechanism at run time needs room for any of them.
    let largest = sizes.clone().max().unwrap();
    text += "};\n\n/* The number of mechanisms, one more than the highest enum coapace_name. */\n";
    writeln!(text, "#define COAPACE_NAMES {COUNT}\n").unwrap();
    text += "/* The size of a state in bytes. There is one for each destination. */\n";
    for (entry, size) in entries().zip(sizes) {
        writeln!(text, "#define COAPACE_STATE_SIZE_{} {size}", constant(entry.name)).unwrap();
    }
    text += "/* The largest of these sizes. */\n";
    writeln!(text, "#define COAPACE_STATE_SIZE_MAX {largest}").unwrap();
    text +=
        "/* The size of a struct coapace_exchange in bytes. There is one for each exchange under way. */\n";
    writeln!(text, "#define COAPACE_EXCHANGE_SIZE {EXCHANGE_SIZE}").unwrap();
    text += "/* The size of a struct coapace_mechanism in bytes. A program has one. */\n";
    writeln!(text, "#define COAPACE_MECHANISM_SIZE {MECHANISM_SIZE}\n").unwrap();
    text += "/* The version of this header: as text, and as a number for #if, 10000 * major + 100 * minor + patch. */\n";
    writeln!(text, "#define COAPACE_VERSION \"{}\"", env!("CARGO_PKG_VERSION")).unwrap();
    writeln!(text, "#define COAPACE_VERSION_NUMBER {}\n", version_number()).unwrap();
    text
}

/// Returns the table of features, one for each mechanism.
fn features() -> String {
    let names: Vec<_> = entries().map(|entry| feature(entry.name)).collect();
    let mut text = String::from("every-mechanism = [\n");
    for name in &names {
        writeln!(text, "    \"{name}\",").unwrap();
    }
    text += "]\n";
    for name in names {
        writeln!(text, "{name} = []").unwrap();
    }
    text
}

/// Checks that a file has `expected` between two markers, or writes it there with BLESS=1.
fn check(path: &str, begin: &str, end: &str, expected: &str) {
    let path = file(path);
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(begin).expect("the first mark");
    let (kept, after) = rest.split_once(end).expect("the last mark");
    if kept != expected && std::env::var_os("BLESS").is_some() {
        fs::write(&path, [before, begin, expected, end, after].concat()).unwrap();
    } else {
        assert!(kept == expected, "{} is stale. {BLESS}", path.display());
    }
}

#[test]
fn the_header_has_every_mechanism_of_the_registry_and_their_sizes() {
    let begin = "/* From the registry of mechanisms: BLESS=1 cargo test -p coapace-ffi header:: */\n";
    check("include/coapace.h", begin, "/* The end of the part from the registry. */", &declarations());
}

#[test]
fn every_mechanism_of_the_registry_is_a_feature_of_the_c_library() {
    check("Cargo.toml", "parameters = []\n", "\n[dependencies]", &features());
}

/// c/coapace.h has the version of this library, and the same numbers for the mechanisms of both.
#[test]
fn the_header_of_the_c_source_has_the_same_numbers_and_version() {
    let text = fs::read_to_string(file("../../c/coapace.h")).unwrap();
    let (_, names) = text.split_once("enum coapace_name {\n").unwrap();
    let (names, _) = names.split_once("};").unwrap();
    let numbered: Vec<_> = names.lines().filter_map(|line| line.trim().split_once(" = ")).collect();
    for (name, rest) in &numbered {
        let number: usize = rest.split([',', ' ']).next().unwrap().parse().unwrap();
        assert_eq!(*name, format!("COAPACE_{}", constant(entry(number).name)));
    }
    assert_eq!(numbered.len(), 9, "{numbered:?}");
    for line in [
        format!("#define COAPACE_NAMES {COUNT}\n"),
        format!("#define COAPACE_VERSION \"{}\"\n", env!("CARGO_PKG_VERSION")),
        format!("#define COAPACE_VERSION_NUMBER {}\n", version_number()),
    ] {
        assert!(text.contains(&line), "c/coapace.h lacks {line}");
    }
}
