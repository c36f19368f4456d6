//! Writes down for macros what was chosen from the registry: two lists, of the mechanisms and of the kinds they are of.

use std::path::Path;
use std::{env, fs};

use coapace_control::REGISTRY;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut kinds: Vec<&str> = REGISTRY.iter().map(|entry| entry.mechanism.kind()).collect();
    kinds.dedup();
    // Numbers and tags count from 1, for zero is what memory holds before anything was written.
    let tag = |kind| 1 + kinds.iter().position(|known| *known == kind).expect("every kind is listed");
    let built: Vec<_> = (0usize..).zip(REGISTRY).filter(|(_, entry)| is_built(entry.name)).collect();
    assert!(!built.is_empty(), "choose a mechanism at least: --features fasor");

    let mut entries = Vec::new();
    let mut built_kinds = Vec::new();
    for (place, entry) in built {
        let (kind, number) = (entry.mechanism.kind(), place + 1);
        let (name, summary, source) = (entry.name, entry.summary, entry.source);
        let tag = tag(kind);
        entries.push(format!("({place} {number}u8 {kind} {tag}u8 c{name:?} c{summary:?} c{source:?})\n"));
        built_kinds.push(format!("({kind} {tag}u8)\n"));
    }
    built_kinds.dedup();

    let text = list("entries", &entries.concat()) + &list("kinds", &built_kinds.concat());
    let out = env::var_os("OUT_DIR").expect("cargo says where to write");
    fs::write(Path::new(&out).join("registry.rs"), text).expect("what is for writing can be written");
}

/// Whether the feature of this mechanism is on. It has the mechanism's name; `default`, which means something else to
/// Cargo, is `default-timer`.
fn is_built(name: &str) -> bool {
    let feature = if name == "default" { "default-timer" } else { name };
    env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase().replace('-', "_"))).is_some()
}

/// A macro that hands a list on to another macro, with what else it is given.
fn list(name: &str, items: &str) -> String {
    format!(
        "#[allow(unused_macros)]\nmacro_rules! {name} {{ ($callback:ident $($rest:tt)*) => {{ $callback! {{ [\n{items}] $($rest)* }} }}; }}\n"
    )
}
