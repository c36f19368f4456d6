//! What `coapace serve --directory` serves: the files of a directory.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use coap_numbers::{code, option};
use coapace_net::link_format::{self, Writer};
use coapace_net::{Bounds, Code, Rejection, Request, Response, Router};
use tokio::sync::Semaphore;

use crate::Failure;

/// The largest file that is served or written, in bytes.
const MAX_FILE: usize = 8 << 20;

/// Files that are read or written at once, over all transports: each is in memory.
const MAX_AT_ONCE: usize = 4;

/// Links of `/.well-known/core`, directories that are looked into for them, and how deep these may lie.
const MAX_LINKS: usize = 1_000;
const MAX_DIRECTORIES: usize = 1_000;
const MAX_DEPTH: usize = 16;

/// What the payload of a file is (RFC 7252 §12.3), by what its name ends with.
const FORMATS: [(&str, u16); 18] = [
    ("txt", 0),
    ("md", 0),
    ("csv", 0),
    ("log", 0),
    ("gif", 21),
    ("jpg", 22),
    ("jpeg", 22),
    ("png", 23),
    ("wlnk", 40),
    ("xml", 41),
    ("exi", 47),
    ("json", 50),
    ("cbor", 60),
    ("senml", 110),
    ("senmlc", 112),
    ("css", 20_000),
    ("js", 20_002),
    ("svg", 30_000),
];

/// application/octet-stream
const BYTES: u16 = 42;

/// application/link-format
const LINKS: u16 = 40;

type Answer = Result<Response, Rejection>;

/// A directory and what lies below it. Nothing outside can be named: `cap-std` opens every path from here and follows no
/// link that leads out.
pub(super) struct Directory {
    top: Dir,
    writable: bool,
    turns: Semaphore,
    /// Tells files in the making apart.
    written: AtomicU64,
}

impl Directory {
    /// # Errors
    /// A directory that cannot be opened.
    pub(super) fn open(path: &Path, writable: bool) -> Result<Self, Failure> {
        let top = Dir::open_ambient_dir(path, ambient_authority())
            .map_err(|error| Failure::Io(format!("cannot serve {}", path.display()), error))?;
        Ok(Self { top, writable, turns: Semaphore::new(MAX_AT_ONCE), written: AtomicU64::new(0) })
    }

    /// Bodies that a server of files takes and keeps.
    pub(super) fn bodies() -> Bounds {
        Bounds { max_body: MAX_FILE, max_bytes: 4 * MAX_FILE, ..coapace_net::ServerConfig::default().bodies }
    }

    /// Answers what no route of `router` is for, and adds the files to its links.
    pub(super) fn behind(self, router: Router) -> Router {
        let (files, links): (_, Arc<str>) = (Arc::new(self), router.links().into());
        let listed = files.clone();
        router
            .get("/.well-known/core", move |request| {
                let (files, links) = (listed.clone(), links.clone());
                aside(files, move |files| Ok(files.core(&links, &request)))
            })
            .fallback(move |request| aside(files.clone(), move |files| files.act(&request)))
    }

    fn act(&self, request: &Request) -> Answer {
        let path = path(request).ok_or(Rejection::not_found())?;
        match request.method().0 {
            code::GET => self.get(&path, request),
            code::PUT if self.writable => self.put(&path, request),
            code::DELETE if self.writable => self.delete(&path, request),
            _ => Err(Code(code::METHOD_NOT_ALLOWED).into()),
        }
    }

    fn get(&self, path: &Path, request: &Request) -> Answer {
        let format = format(path);
        if request.uint(option::ACCEPT).is_some_and(|wanted| wanted != u64::from(format)) {
            return Err(Code(code::NOT_ACCEPTABLE).into());
        }
        let bytes = self.read(path)?;
        let tag = tag(&bytes);
        let response = if has(request, option::ETAG, &tag) {
            Response::new(Code(code::VALID))
        } else {
            Response::content(bytes).content_format(format)
        };
        Ok(response.option(option::ETAG, &tag))
    }

    /// The bytes of a file.
    fn read(&self, path: &Path) -> Result<Vec<u8>, Rejection> {
        // To open a pipe would wait for whoever writes into it.
        if !self.top.metadata(path).map_err(told)?.is_file() {
            return Err(Rejection::not_found());
        }
        let file = self.top.open(path).map_err(told)?;
        let length = file.metadata().map_err(told)?.len();
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(MAX_FILE).min(MAX_FILE));
        file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes).map_err(told)?;
        if bytes.len() > MAX_FILE {
            return Err(Rejection::internal(format!("larger than the {MAX_FILE} bytes that are served")));
        }
        Ok(bytes)
    }

    fn put(&self, path: &Path, request: &Request) -> Answer {
        let there = self.check(path, request)?;
        let payload = request.payload();
        if payload.len() > MAX_FILE {
            return Err(Code(code::REQUEST_ENTITY_TOO_LARGE).into());
        }
        // Whoever reads meanwhile has the old file or the new one. No request can name what begins with a dot.
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let beside = path.with_file_name(format!(".coapace-{}-{number}", std::process::id()));
        let written = self.write(&beside, payload).and_then(|()| self.top.rename(&beside, &self.top, path));
        if let Err(error) = written {
            let _ = self.top.remove_file(&beside);
            return Err(told(error));
        }
        let response = if there { Response::changed() } else { Response::created() };
        Ok(response.option(option::ETAG, &tag(payload)))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut options = cap_std::fs::OpenOptions::new();
        self.top.open_with(path, options.write(true).create_new(true))?.write_all(bytes)
    }

    /// 2.02 whether it was there or not (RFC 7252 §5.8.4).
    fn delete(&self, path: &Path, request: &Request) -> Answer {
        self.check(path, request)?;
        match self.top.remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(told(error)),
            _ => Ok(Response::deleted()),
        }
    }

    /// Whether there is a file that may be replaced or removed, under the conditions of the request (RFC 7252 §5.10.8).
    fn check(&self, path: &Path, request: &Request) -> Result<bool, Rejection> {
        if path.as_os_str().is_empty() {
            return Err(Code(code::METHOD_NOT_ALLOWED).into());
        }
        let there = match self.top.symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err(Code(code::METHOD_NOT_ALLOWED).into()),
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(told(error)),
        };
        let conditions = request.options().filter(|&(number, _)| number == option::IF_MATCH);
        let mut conditions = conditions.map(|(_, wanted)| wanted).peekable();
        let matches = conditions.peek().is_none()
            || there && {
                let tag = self.read(path).map(|bytes| tag(&bytes))?;
                // One of nothing matches whatever is there.
                conditions.any(|wanted| wanted.is_empty() || wanted == tag)
            };
        let forbidden = there && request.option(option::IF_NONE_MATCH).is_some();
        if matches && !forbidden { Ok(there) } else { Err(Code(code::PRECONDITION_FAILED).into()) }
    }

    /// `/.well-known/core`: links to what else there is, and to the files.
    fn core(&self, links: &str, request: &Request) -> Response {
        let mut found = Vec::new();
        self.list(&mut found);
        found.sort();
        let mut files = Writer::default();
        for (target, format, bytes) in found {
            let linked = files.clone().link(&target).and_then(|link| link.number("ct", format.into()));
            let linked = linked.and_then(|link| link.number("sz", bytes));
            files = linked.unwrap_or(files);
        }
        let all: Vec<_> = [links, files.as_str()].into_iter().filter(|links| !links.is_empty()).collect();
        let arguments: Vec<&str> = request.query().collect();
        Response::content(link_format::filter(&all.join(","), &arguments)).content_format(LINKS)
    }

    /// Adds the files, percent-encoded, with Content-Format and size in bytes. What cannot be read is left out, as it is
    /// answered 4.04.
    fn list(&self, found: &mut Vec<(String, u16, u32)>) {
        let mut ahead = vec![(PathBuf::from("."), String::new(), 0)];
        let mut opened = 0;
        while let Some((path, target, depth)) = ahead.pop() {
            opened += 1;
            let Ok(entries) = self.top.read_dir(&path) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let Some(text) = name.to_str().filter(|text| !text.starts_with('.')) else { continue };
                let (path, target) =
                    (path.join(&name), format!("{target}/{}", coapace_net::uri::encoded(text)));
                // A link counts as what it leads to, if that is in here; directories are entered by their own name alone.
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                let Ok(metadata) = self.top.metadata(&path) else { continue };
                if metadata.is_file() {
                    if found.len() >= MAX_LINKS {
                        return;
                    }
                    found.push((target, format(&path), u32::try_from(metadata.len()).unwrap_or(u32::MAX)));
                } else if metadata.is_dir()
                    && !is_link
                    && depth < MAX_DEPTH
                    && opened + ahead.len() < MAX_DIRECTORIES
                {
                    ahead.push((path, target, depth + 1));
                }
            }
        }
    }
}

/// Acts on files where waiting for a disk holds nobody up, a few at once.
async fn aside(files: Arc<Directory>, act: impl FnOnce(&Directory) -> Answer + Send + 'static) -> Answer {
    let busy = |_| Rejection::unavailable(1);
    let _turn = files.turns.acquire().await.map_err(busy)?;
    let acting = files.clone();
    let acted = tokio::task::spawn_blocking(move || act(&acting)).await;
    acted.unwrap_or(Err(Code(code::INTERNAL_SERVER_ERROR).into()))
}

/// The path that a request names, below the top; nothing if a segment is no name of a file, or begins with a dot.
fn path(request: &Request) -> Option<PathBuf> {
    let segments = request.options().filter(|&(number, _)| number == option::URI_PATH);
    let is_name =
        |name: &[u8]| !name.is_empty() && name[0] != b'.' && !name.iter().any(|b| matches!(b, b'/' | 0));
    segments.map(|(_, name)| is_name(name).then(|| OsStr::from_bytes(name))).collect()
}

fn format(path: &Path) -> u16 {
    let end = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let known = FORMATS.iter().find(|(known, _)| known.eq_ignore_ascii_case(end));
    known.map_or(BYTES, |&(_, format)| format)
}

/// The entity tag of these bytes.
fn tag(bytes: &[u8]) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish().to_be_bytes()
}

/// Whether a request has this option with this value.
fn has(request: &Request, number: u16, value: &[u8]) -> bool {
    request.options().any(|option| option == (number, value))
}

/// What a client is told: that something lies outside is nothing for it to know.
fn told(error: io::Error) -> Rejection {
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::PermissionDenied => Rejection::not_found(),
        _ => error.into(),
    }
}
