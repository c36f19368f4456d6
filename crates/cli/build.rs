//! Puts the commit into the binary, which prints it with results, and finds out whether this system can emulate links.

use std::path::Path;
use std::process::Command;

fn main() {
    let has = |variable: &str| std::env::var_os(variable).is_some();
    let root = Path::new("../..");
    for file in [".git/HEAD", ".git/index", ".git/refs/heads"] {
        if root.join(file).exists() {
            println!("cargo:rerun-if-changed={}", root.join(file).display());
        }
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).map_or_else(
        || "unknown".to_owned(),
        |commit| match git(&["status", "--porcelain", "--untracked-files=no"]) {
            Some(changes) if !changes.is_empty() => commit + "-modified",
            _ => commit,
        },
    );
    println!("cargo:rustc-env=COAPACE_COMMIT={commit}");
    // Emulated links and live runs take the feature, and network namespaces.
    println!("cargo:rustc-check-cfg=cfg(emulation)");
    if has("CARGO_FEATURE_TUN") && std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-cfg=emulation");
    }
}
