//! `coapace playground`.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::device::runtime;
use crate::arguments::Playground;
use crate::http::{HttpResponse, HttpServer, Site};
use crate::shown::remark;
use crate::{Failure, arguments::Arguments, interrupt};

/// The page that a browser loads first.
const START: &str = "index.html";

/// The files of the playground by name. They are read at the start, so requests cannot reach the file system.
struct Folder(HashMap<String, (&'static str, Vec<u8>)>);

/// Serves the playground until interrupted.
pub(super) fn playground(arguments: &Arguments, options: &Playground) -> Result<(), Failure> {
    let folder = Folder::read(&found(options.directory.as_deref())?)?;
    let server = HttpServer::bind("--bind", "127.0.0.1:8080 or [::1]:8080", &options.bind)?;
    runtime()?.block_on(async {
        let interrupted = interrupt::interrupted()?;
        writeln!(io::stdout(), "{}", server.uri("/"))?;
        remark(arguments, "open this in a browser; Ctrl-C ends it");
        tokio::select! {
            () = server.run(folder) => {}
            () = interrupted => {}
        }
        Ok(())
    })
}

/// Returns the folder of the playground: the one given, or one beside the program.
fn found(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::Io("cannot find the path of this executable".to_owned(), error))?;
    let beside = program.parent().unwrap_or(Path::new("."));
    // Where packages install it, where an archive has it, and where a build puts it beside its programs.
    let places = ["../share/coapace/playground", "share/coapace/playground", "../playground"];
    let places = places.map(|place| beside.join(place));
    places.iter().find(|place| place.join(START).is_file()).cloned().ok_or_else(|| {
        let [first, second, third] = places.each_ref().map(|place| place.display());
        Failure::Input(format!(
            "the playground is not in {first}, {second} or {third}: build it with crates/web/build, or name its folder with --directory"
        ))
    })
}

impl Folder {
    fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let failed = |error| Failure::Io(format!("cannot read {shown}"), error);
        let mut files = HashMap::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            // Other files in the folder, such as sources, are not served.
            if let Some((name, kind)) = name.and_then(|name| Some((name, kind(name)?))) {
                files.insert(name.to_owned(), (kind, fs::read(&path).map_err(failed)?));
            }
        }
        if !files.contains_key(START) {
            return Err(Failure::Input(format!(
                "{shown} has no {START}: it is not the playground, which crates/web/build makes"
            )));
        }
        Ok(Self(files))
    }
}

/// Returns the media type of a file of the playground; `None` for any other file.
fn kind(name: &str) -> Option<&'static str> {
    Some(match Path::new(name).extension()?.to_str()? {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        // Browsers compile a module while it arrives only with this type.
        "wasm" => "application/wasm",
        _ => return None,
    })
}

impl Site for Folder {
    fn get(&self, path: &str) -> HttpResponse<'_> {
        let name = path.strip_prefix('/').unwrap_or(path);
        // Names are looked up in a table, so `..` in a path leads nowhere.
        match self.0.get(if name.is_empty() { START } else { name }) {
            Some((kind, body)) => HttpResponse {
                status: "200 OK",
                kind,
                // A new build is seen at once.
                more: "Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\n",
                body: body.as_slice().into(),
            },
            None => HttpResponse::plain("404 Not Found", "the playground has no such file\n"),
        }
    }
}
