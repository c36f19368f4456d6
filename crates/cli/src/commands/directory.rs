//! The files that `coapace serve --directory` serves.

mod temporary;

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileExt as _, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use coap_numbers::option;
use coapace_net::link_format::{self, Writer};
use coapace_net::{Bounds, Code, Rejection, Request, Response, Router};
use nix::libc::O_NONBLOCK;
use tokio::sync::Semaphore;

use self::temporary::Temporary;
use crate::Failure;

/// The largest file that can be read or written, in bytes.
const MAX_FILE: usize = 8 << 20;

/// The most bytes of a file read for one response: the payload of a message over TCP.
const MAX_PART: usize = 64 << 10;

/// Files read or written at the same time, over all transports.
const MAX_AT_ONCE: usize = 4;

/// Limits of the search for links in `/.well-known/core`: links, directories visited, and their depth.
const MAX_LINKS: usize = 1_000;
const MAX_DIRECTORIES: usize = 1_000;
const MAX_DEPTH: usize = 16;

/// The Content-Format of a file (RFC 7252 §12.3), by the extension of its name.
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

type FileAnswer = Result<Response, Rejection>;

/// A directory and everything below it. Nothing outside can be reached: `cap-std` opens every path relative to the
/// directory and follows no link that leads out.
pub(super) struct Directory {
    top: Dir,
    writable: bool,
    turns: Semaphore,
    /// Locked from the check of a file to its replacement or removal, so that no client of any transport comes
    /// between. One lock serves all files, because links can give a file several paths. The slow part, writing the
    /// new content, happens before the lock is taken.
    replacing: Mutex<()>,
}

impl Directory {
    /// Opens a directory to serve it, and removes temporary files that an earlier server left in it if it is `writable`.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be opened.
    pub(super) fn open(path: &Path, writable: bool) -> Result<Self, Failure> {
        let top = Dir::open_ambient_dir(path, ambient_authority())
            .map_err(|error| Failure::Io(format!("cannot serve {}", path.display()), error))?;
        if writable {
            temporary::sweep(&top);
        }
        Ok(Self { top, writable, turns: Semaphore::new(MAX_AT_ONCE), replacing: Mutex::new(()) })
    }

    /// Returns the limits on request and response bodies for a server of files.
    pub(super) fn bodies() -> Bounds {
        Bounds { max_body: MAX_FILE, max_bytes: 4 * MAX_FILE, ..coapace_net::ServerConfig::default().bodies }
    }

    /// Answers the requests that no route of `router` handles, and adds the files to the router's links.
    pub(super) fn behind(self, router: Router) -> Router {
        let (files, links): (_, Arc<str>) = (Arc::new(self), router.links().into());
        let listed = files.clone();
        router
            .get("/.well-known/core", move |request| {
                let (files, links) = (listed.clone(), links.clone());
                aside(files, move |files| Ok(files.core(&links, &request)))
            })
            .fallback(move |request| aside(files.clone(), move |files| files.act(&request)))
            .conditional_fallback()
    }

    fn act(&self, request: &Request) -> FileAnswer {
        let path = path(request).ok_or(Rejection::not_found())?;
        match request.method() {
            Code::GET => self.get(&path, request),
            Code::PUT if self.writable => self.put(&path, request),
            Code::DELETE if self.writable => self.delete(&path, request),
            _ => Err(Code::METHOD_NOT_ALLOWED.into()),
        }
    }

    fn get(&self, path: &Path, request: &Request) -> FileAnswer {
        let (file, metadata) = self.file(path)?;
        let format = format(path);
        if request.uint(option::ACCEPT).is_some_and(|wanted| wanted != u64::from(format)) {
            return Err(Code::NOT_ACCEPTABLE.into());
        }
        let tag = tag(&metadata);
        request.precondition(Some(&tag))?;
        let response = if has(request, option::ETAG, &tag) {
            Response::new(Code::VALID)
        } else {
            content(&file, &metadata, request)?.content_format(format)
        };
        Ok(response.option(option::ETAG, &tag))
    }

    /// Opens a file for reading.
    fn file(&self, path: &Path) -> Result<(File, Metadata), Rejection> {
        // Opening a pipe would block until somebody writes to it.
        let mut options = OpenOptions::new();
        let file = self.top.open_with(path, options.read(true).custom_flags(O_NONBLOCK)).map_err(told)?;
        let metadata = file.metadata().map_err(told)?;
        if metadata.is_file() { Ok((file, metadata)) } else { Err(Rejection::not_found()) }
    }

    fn put(&self, path: &Path, request: &Request) -> FileAnswer {
        let payload = request.payload();
        if payload.len() > MAX_FILE {
            return Err(Code::REQUEST_ENTITY_TOO_LARGE.into());
        }
        // Checked first, so that nothing is written in vain.
        self.check(path, request)?;
        // A client that reads at this moment gets the old file or the new one, never a part of each.
        let temporary = Temporary::write(&self.top, path, payload).map_err(told)?;
        let tag = tag(&temporary.metadata().map_err(told)?);
        let _replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.check(path, request)?;
        let placed = match &before {
            None if request.option(option::IF_NONE_MATCH).is_some() => temporary.link(path),
            Some(before) if before.is_file() => temporary.replace(path, before),
            _ => temporary.rename(path),
        };
        placed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Code::PRECONDITION_FAILED.into(),
            io::ErrorKind::PermissionDenied => forbidden("the file is another user's"),
            _ => told(error),
        })?;
        let response = if before.is_some() { Response::changed() } else { Response::created() };
        Ok(response.option(option::ETAG, &tag))
    }

    /// Removes a file. The answer is 2.02 whether it existed or not (RFC 7252 §5.8.4).
    fn delete(&self, path: &Path, request: &Request) -> FileAnswer {
        let _replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        self.check(path, request)?;
        match self.top.remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(told(error)),
            _ => Ok(Response::deleted()),
        }
    }

    /// Returns the metadata of the file at a path, if there is one.
    ///
    /// # Errors
    /// 4.12 if the conditions of the request do not hold (RFC 7252 §5.10.8), 4.03 for a read-only file, 4.05 for
    /// something that is not a file.
    fn check(&self, path: &Path, request: &Request) -> Result<Option<Metadata>, Rejection> {
        if path.as_os_str().is_empty() {
            return Err(Code::METHOD_NOT_ALLOWED.into());
        }
        let there = match self.top.symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return request.precondition(None).map(|()| None);
            }
            Err(error) => return Err(told(error)),
        };
        // GET reads the file that a link leads to, so If-Match is compared with that file.
        let read = if there.is_symlink() { self.top.metadata(path).ok() } else { None };
        request.precondition(Some(&tag(read.as_ref().unwrap_or(&there))))?;
        if there.is_file() {
            self.check_writable(path, &there)?;
        } else if !there.is_symlink() {
            return Err(Code::METHOD_NOT_ALLOWED.into());
        }
        Ok(Some(there))
    }

    /// Refuses a file that this process may not write. The system would allow the replacement to anybody who may
    /// write the directory.
    fn check_writable(&self, path: &Path, there: &Metadata) -> Result<(), Rejection> {
        let mut options = OpenOptions::new();
        let writable = there.mode() & 0o222 != 0
            && match self.top.open_with(path, options.write(true).custom_flags(O_NONBLOCK)) {
                Err(error) => error.kind() != io::ErrorKind::PermissionDenied,
                Ok(_) => true,
            };
        if writable { Ok(()) } else { Err(forbidden("the file is read-only")) }
    }

    /// Answers `/.well-known/core` with the router's links and links to the files.
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

    /// Adds the files: percent-encoded path, Content-Format, and size in bytes. A file that cannot be read is left
    /// out; a GET of it is answered 4.04.
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
                // A link counts as the file it leads to, if that is inside. Directories are not entered through
                // links.
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

/// Works on files in a thread where waiting for a disk blocks no other request. The number of such threads is
/// limited.
async fn aside(
    files: Arc<Directory>,
    act: impl FnOnce(&Directory) -> FileAnswer + Send + 'static,
) -> FileAnswer {
    let busy = |_| Rejection::unavailable(1);
    let _turn = files.turns.acquire().await.map_err(busy)?;
    let acting = files.clone();
    let acted = tokio::task::spawn_blocking(move || act(&acting)).await;
    acted.unwrap_or(Err(Code::INTERNAL_SERVER_ERROR.into()))
}

/// Returns the path that a request names, relative to the directory; `None` if a segment is no valid file name or
/// begins with a dot.
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

/// Reads only the bytes that a request asks for, so the cost of a block does not depend on the file's size.
fn content(file: &File, metadata: &Metadata, request: &Request) -> FileAnswer {
    let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    if size > MAX_FILE {
        return Err(Rejection::internal(format!("larger than the {MAX_FILE} bytes that are served")));
    }
    let range = request.range();
    let start = range.start.min(size);
    let mut bytes = vec![0; range.end.min(size).saturating_sub(start).min(MAX_PART)];
    // The file has just been shortened. The next request sees its new size.
    let cut = |_| Rejection::unavailable(1);
    file.read_exact_at(&mut bytes, start as u64).map_err(cut)?;
    Ok(if bytes.len() == size { Response::content(bytes) } else { Response::part(bytes, start, size) })
}

/// Returns the ETag of a version of a file: a hash of inode, size and modification time in nanoseconds. All blocks
/// of a version have the same ETag, and the content is not read for it (docs/decisions/0033).
fn tag(metadata: &Metadata) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    (metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
        .hash(&mut hasher);
    hasher.finish().to_be_bytes()
}

fn forbidden(why: &str) -> Rejection {
    Rejection::new(Code::FORBIDDEN).because(why)
}

/// Returns whether a request has this option with this value.
fn has(request: &Request, number: u16, value: &[u8]) -> bool {
    request.options().any(|option| option == (number, value))
}

/// Converts an error for the client. A path that leads out of the directory looks like one that does not exist.
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
