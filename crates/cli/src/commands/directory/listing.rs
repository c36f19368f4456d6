//! The links to files in `/.well-known/core`.

use std::path::PathBuf;

use coapace_net::link_format::{self, Writer};
use coapace_net::{Request, Response};

use super::{Directory, format};

/// The maximum number of files for which discovery lists links. The next two constants limit the number of directories
/// that are searched for files, and their depth.
const MAX_LINKS: usize = 1_000;
const MAX_DIRECTORIES: usize = 1_000;
const MAX_DEPTH: usize = 16;

/// The Content-Format application/link-format.
const LINKS: u16 = 40;

impl Directory {
    /// Answers `/.well-known/core` with the router's links and links to the files.
    pub(super) fn core(&self, links: &str, request: &Request) -> Response {
        let mut found = Vec::new();
        self.list(&mut found);
        // The system lists entries in any order, and two answers about the same files should be equal.
        found.sort();
        let mut files = Writer::default();
        for (target, format, bytes) in found {
            let linked = files.clone().link(&target).and_then(|link| link.number("ct", format.into()));
            let linked = linked.and_then(|link| link.number("sz", bytes));
            // A name that no link can carry is left out, and the others stay.
            files = linked.unwrap_or(files);
        }
        // An empty list would leave a comma without a link before or after it.
        let all: Vec<_> = [links, files.as_str()].into_iter().filter(|links| !links.is_empty()).collect();
        let arguments: Vec<&str> = request.query().collect();
        Response::content(link_format::filter(&all.join(","), &arguments)).content_format(LINKS)
    }

    /// Appends each file's percent-encoded path, Content-Format and size in bytes to `found`. A file that cannot be
    /// read is left out; a GET of it is answered 4.04.
    fn list(&self, found: &mut Vec<(String, u16, u32)>) {
        let mut ahead = vec![(PathBuf::from("."), String::new(), 0)];
        let mut opened = 0;
        while let Some((path, target, depth)) = ahead.pop() {
            opened += 1;
            // A directory that this process may not read has no files for clients either.
            let Ok(entries) = self.top.read_dir(&path) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                // Hidden files are not served, and a name that is not UTF-8 fits into no URI.
                let Some(text) = name.to_str().filter(|text| !text.starts_with('.')) else { continue };
                let (path, target) =
                    (path.join(&name), format!("{target}/{}", coapace_net::uri::encoded(text)));
                // A link counts as the file it leads to, if that is inside. Directories are not entered through
                // links.
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                let Ok(metadata) = self.top.metadata(&path) else { continue };
                if metadata.is_file() {
                    if found.len() >= MAX_LINKS {
                        return;
                    }
                    // `sz` is only an estimate for the client (RFC 6690 §3.3), so it saturates.
                    found.push((target, format(&path), u32::try_from(metadata.len()).unwrap_or(u32::MAX)));
                } else if metadata.is_dir()
                    && !is_link
                    && depth < MAX_DEPTH
                    // Directories that wait count, too, so that the list of them stays bounded.
                    && opened + ahead.len() < MAX_DIRECTORIES
                {
                    ahead.push((path, target, depth + 1));
                }
            }
        }
    }
}
