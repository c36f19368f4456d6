//! Lists the files in `scenarios/`, which come with the program.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = fs::canonicalize("../../scenarios")?;
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    let mut files: Vec<_> =
        entries.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "toml")).collect();
    files.sort();
    let mut list = "&[\n".to_owned();
    for path in files {
        let name = path.file_stem().unwrap_or_default();
        list += &format!("({name:?}, include_str!({path:?})),\n");
    }
    fs::write(Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("builtins.rs"), list + "]\n")
}
