//! Computes the version for results: a hash of every source file that affects a run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates whose sources affect a run.
const CRATES: [&str; 6] = ["control", "lab", "proto", "run", "scenario", "sim"];

fn main() {
    let mut parts: Vec<(String, Vec<u8>)> =
        locked().into_iter().map(|package| (package, Vec::new())).collect();
    let mut files = Vec::new();
    for name in CRATES {
        gather(&Path::new("..").join(name).join("src"), &mut files);
    }
    files.sort();
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        // A package from a registry comes without the other crates. Its own version then replaces their hash.
        let Ok(content) = fs::read(&file) else { continue };
        parts.push((file.to_string_lossy().into_owned(), content));
    }
    // FNV-1a over names and contents.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (name, content) in parts {
        for byte in name.into_bytes().into_iter().chain(content) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=COAPACE_SOURCES={hash:016x}");
}

/// Adds the files of a folder and its subfolders. Cargo also watches the folder itself for new files.
fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo:rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { gather(&path, files) } else { files.push(path) }
    }
}

/// Returns the packages from registries that these crates depend on, as sorted lines `NAME VERSION CHECKSUM`. Other lines of
/// Cargo.lock are left out, because cargo writes different ones in a checkout and in a source distribution of the Python
/// package.
fn locked() -> BTreeSet<String> {
    println!("cargo:rerun-if-changed=../../Cargo.lock");
    let lock = fs::read_to_string("../../Cargo.lock").unwrap_or_default();
    let packages: Vec<&str> = lock.split("[[package]]\n").skip(1).collect();
    let field = |package: &str, key: &str| {
        let value = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        value.and_then(|value| value.strip_suffix('"')).map(str::to_owned)
    };
    let mut found = BTreeSet::new();
    for name in CRATES {
        let imports = imports(name);
        let own = packages.iter().filter(|package| field(package, "name") == Some(format!("coapace-{name}")));
        for line in own.flat_map(|package| package.lines()) {
            let Some(import) = line.strip_prefix(" \"").and_then(|line| line.strip_suffix("\",")) else {
                continue;
            };
            // Cargo writes the version only where the lock has several of a package.
            let (import, version) = import.split_once(' ').unwrap_or((import, ""));
            for package in packages.iter().filter(|_| imports.contains(import)) {
                let (Some(own), Some(checksum)) = (field(package, "version"), field(package, "checksum"))
                else {
                    continue;
                };
                if field(package, "name").as_deref() == Some(import) && (version.is_empty() || version == own)
                {
                    found.insert(format!("{import} {own} {checksum}"));
                }
            }
        }
    }
    found
}

/// Returns the names in the table `[dependencies]` of one of these crates.
fn imports(name: &str) -> BTreeSet<String> {
    let manifest = Path::new("..").join(name).join("Cargo.toml");
    println!("cargo:rerun-if-changed={}", manifest.display());
    let text = fs::read_to_string(manifest).unwrap_or_default();
    let table = text.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let keys = table.take_while(|line| !line.starts_with('['));
    keys.filter_map(|line| line.split(['.', ' ', '=']).next()).map(str::to_owned).collect()
}
