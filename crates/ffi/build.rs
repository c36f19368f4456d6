//! Generates two macros: the list of mechanisms whose feature is enabled, and the list of their kinds.

use std::path::Path;
use std::{env, fs};

use coapace_control::{BULK, REGISTRY};

include!("src/numbers.rs");

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/numbers.rs");
    let all: Vec<_> = REGISTRY.iter().chain(BULK).collect();
    for entry in &all {
        assert!(NUMBERED.contains(&entry.name), "give {} a number: append it to src/numbers.rs", entry.name);
    }
    let of_name = |name| all.iter().find(|entry| entry.name == name).expect("every number has a mechanism");
    let entries = NUMBERED.iter().map(|name| of_name(*name));
    let mut kinds: Vec<&str> = Vec::new();
    for entry in entries.clone() {
        if !kinds.contains(&entry.mechanism.kind()) {
            kinds.push(entry.mechanism.kind());
        }
    }
    // Numbers and tags count from 1, for memory that was never written is zero.
    let tag = |kind| 1 + kinds.iter().position(|known| *known == kind).expect("every kind is listed");
    let built: Vec<_> = (0usize..).zip(entries).filter(|(_, entry)| is_built(entry.name)).collect();
    assert!(!built.is_empty(), "choose a mechanism at least: --features fasor");

    let mut entries = Vec::new();
    let mut built_kinds = Vec::new();
    for (place, entry) in built {
        let (kind, number) = (entry.mechanism.kind(), place + 1);
        let (name, summary, source) = (entry.name, entry.summary, entry.source);
        let tag = tag(kind);
        entries.push(format!("({place} {number}u8 {kind} {tag}u8 c{name:?} c{summary:?} c{source:?})\n"));
        let own = format!("({kind} {tag}u8)\n");
        if !built_kinds.contains(&own) {
            built_kinds.push(own);
        }
    }

    let text = list("entries", &entries.concat()) + &list("kinds", &built_kinds.concat());
    let out = env::var_os("OUT_DIR").expect("cargo says where to write");
    fs::write(Path::new(&out).join("registry.rs"), text).expect("the output directory can be written");
}

/// Returns whether the feature of this mechanism is enabled. It has the name of the mechanism, except for `default-timer`,
/// because `default` has another meaning for Cargo.
fn is_built(name: &str) -> bool {
    let feature = if name == "default" { "default-timer" } else { name };
    env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase().replace('-', "_"))).is_some()
}

/// Returns a macro that passes a list and its other arguments on to another macro.
fn list(name: &str, items: &str) -> String {
    format!(
        "#[allow(unused_macros)]\nmacro_rules! {name} {{ ($callback:ident $($rest:tt)*) => {{ $callback! {{ [\n{items}] $($rest)* }} }}; }}\n"
    )
}
