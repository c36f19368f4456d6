//! Lists the files in `scenarios/`, which come with the program.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = fs::canonicalize("scenarios")?;
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    let mut files: Vec<_> =
        entries.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "toml")).collect();
    files.sort();
    let entry = |path: PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let path = path.to_string_lossy().into_owned();
        format!("({name:?}, include_str!({path:?})),\n")
    };
    let list = files.into_iter().map(entry).collect::<Vec<_>>().concat();
    let out = Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("builtins.rs");
    fs::write(out, format!("&[\n{list}]\n"))
}
