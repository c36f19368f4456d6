//! Tells the linker where the scripts are: `memory.x` beside this file, `link.x` from cortex-m-rt.

fn main() {
    println!("cargo:rustc-link-search={}", env!("CARGO_MANIFEST_DIR"));
    println!("cargo:rustc-link-arg=-Tlink.x");
    println!("cargo:rustc-link-arg=--nmagic"); // no padding of the image to the pages of an operating system
    println!("cargo:rerun-if-changed=memory.x");
}
