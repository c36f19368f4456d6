//! Generates two macros: the list of mechanisms whose feature is on, and the list of their kinds.

use std::path::Path;
use std::{env, fs};

use coapace_control::{BULK, REGISTRY};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let entries = REGISTRY.iter().chain(BULK);
    let mut kinds: Vec<&str> = entries.clone().map(|entry| entry.mechanism.kind()).collect();
    kinds.dedup();
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
        built_kinds.push(format!("({kind} {tag}u8)\n"));
    }
    built_kinds.dedup();

    let text = list("entries", &entries.concat()) + &list("kinds", &built_kinds.concat());
    let out = env::var_os("OUT_DIR").expect("cargo says where to write");
    fs::write(Path::new(&out).join("registry.rs"), text).expect("what is for writing can be written");
}

/// Returns whether the feature of this mechanism is on. It has the name of the mechanism, except for `default-timer`: the name
/// `default` means something else to Cargo.
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
