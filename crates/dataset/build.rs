//! Gives results the version of what made them: a hash of every source that shapes a run.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates whose sources shape a run.
const CRATES: [&str; 6] = ["control", "lab", "proto", "run", "scenario", "sim"];

fn main() {
    let mut files = vec![PathBuf::from("../../Cargo.lock")];
    for name in CRATES {
        gather(&Path::new("..").join(name).join("src"), &mut files);
    }
    files.sort();
    // FNV-1a over names and contents.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        // A package from a registry comes without the others. Its version then stands for them.
        let Ok(content) = fs::read(&file) else { continue };
        for byte in file.to_string_lossy().bytes().chain(content) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=COAPACE_SOURCES={hash:016x}");
}

/// Adds the files of a folder and of those within it. The folder itself is watched for new files.
fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo:rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { gather(&path, files) } else { files.push(path) }
    }
}
