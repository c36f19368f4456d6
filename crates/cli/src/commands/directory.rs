//! The files that `coapace serve --directory` serves.

mod audit;
mod listing;
mod pace;
mod quota;
mod shelf;
mod temporary;
mod walk;
mod writer;
mod writing;

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileExt as _, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use coap_numbers::option;
use coapace_net::{Bounds, Code, Rejection, Request, Response, Router};
use nix::libc::O_NONBLOCK;
use tokio::sync::Semaphore;

use self::shelf::{FilePart, Shelf, Version};
use self::temporary::TemporaryFile;
use self::writer::WritingClient;
pub(super) use self::writing::WriteRules;
use crate::Failure;

/// The largest file that can be read or written, in bytes.
const MAX_FILE: usize = 8 << 20;

/// The maximum number of bytes of a file that are read for one response: as many as the payload of a message over TCP
/// may have.
const MAX_PART: usize = 64 << 10;

/// The Max-Age of the answer to a write if the disk is full, in seconds.
const FULL_DISK: u32 = 60;

/// The maximum number of files read or written at the same time, over all transports.
const MAX_AT_ONCE: usize = 4;

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

/// The Content-Format application/octet-stream.
const BYTES: u16 = 42;

type FileAnswer = Result<Response, Rejection>;

/// A directory and everything below it. Nothing outside can be reached: `cap-std` opens every path relative to the directory
/// and follows no symbolic link that leads out.
pub(crate) struct Directory {
    top: Dir,
    /// The rules for writes. `None` if clients may not write.
    writing: Option<WriteRules>,
    turns: Semaphore,
    shelf: Shelf,
}

impl Directory {
    /// Opens a directory to serve it. If clients may write, temporary files left by an earlier server are removed, and
    /// `writing` returns the rules.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be opened.
    pub(super) fn open(
        path: &Path,
        writing: Option<impl FnOnce(&Dir) -> WriteRules>,
    ) -> Result<Self, Failure> {
        let top = Dir::open_ambient_dir(path, ambient_authority())
            .map_err(|error| Failure::Io(format!("cannot serve {}", path.display()), error))?;
        let writing = writing.map(|writing| {
            // Remains are removed before the quota counts the files.
            temporary::sweep(&top);
            writing(&top)
        });
        Ok(Self { top, writing, turns: Semaphore::new(MAX_AT_ONCE), shelf: Shelf::default() })
    }

    /// Returns the limits on request and response bodies for a server of files.
    pub(super) fn bodies() -> Bounds {
        // Four bodies of the largest size may be under way at a time.
        Bounds { max_body: MAX_FILE, max_bytes: 4 * MAX_FILE, ..coapace_net::ServerConfig::default().bodies }
    }

    /// Adds the files to a router: files answer every request that no route handles, and discovery lists links to them.
    pub(super) fn behind(self: &Arc<Self>, router: Router, transport: &'static str) -> Router {
        // `core` adds the files to these links, which do not change.
        let (files, links): (_, Arc<str>) = (self.clone(), router.links().into());
        let listed = files.clone();
        router
            .get("/.well-known/core", move |request| {
                let (files, links) = (listed.clone(), links.clone());
                aside(files, move |files| Ok(files.core(&links, &request)))
            })
            .fallback(move |request| {
                let files = files.clone();
                async move {
                    // A part that was read a moment ago needs no disk, and so no thread.
                    let path = (request.method() == Code::GET).then(|| path(&request)).flatten();
                    match path.and_then(|path| files.shelved(&path, &request)) {
                        Some(answer) => answer,
                        None => aside(files, move |files| files.act(transport, &request)).await,
                    }
                }
            })
            // `check` and `answer` look at If-Match and If-None-Match. Without this line a request with either is refused.
            .conditional_fallback()
    }

    /// Returns the metrics of writes in the text format of Prometheus.
    pub(super) fn exposition(&self) -> String {
        self.writing.as_ref().map_or(String::new(), WriteRules::exposition)
    }

    fn act(&self, transport: &'static str, request: &Request) -> FileAnswer {
        let path = path(request).ok_or(Rejection::not_found());
        match (request.method(), &self.writing) {
            (Code::GET, _) => self.get(&path?, request),
            // A refused write is recorded like a successful one, so the response is made before.
            (Code::PUT | Code::DELETE, Some(writing)) => {
                let answer = path.and_then(|path| self.write(writing, &path, request));
                let response = answer.unwrap_or_else(Response::from);
                writing.audit.note(transport, request, &response);
                Ok(response)
            }
            // A path that cannot exist is answered 4.04 whatever the method.
            _ => path.and(Err(Code::METHOD_NOT_ALLOWED.into())),
        }
    }

    /// Writes or removes a file, if the client has permission.
    fn write(&self, writing: &WriteRules, path: &Path, request: &Request) -> FileAnswer {
        // The right comes before the pace: a client without a right must not use up the writes of others.
        writing.permit(request)?;
        let writer = WritingClient::from(request);
        writing.pace.take(Instant::now(), &writer, request.payload().len())?;
        match request.method() {
            Code::PUT => self.put(writing, writer, path, request),
            _ => self.delete(writing, path, request),
        }
    }

    fn get(&self, path: &Path, request: &Request) -> FileAnswer {
        // Another request may have read the part while this one waited for its turn.
        if let Some(answer) = self.shelved(path, request) {
            return answer;
        }
        // A change behind this line makes the part that is read now an old one.
        let changes = self.shelf.changes();
        let (file, metadata) = self.file(path)?;
        // A size that does not fit is far above MAX_FILE, so `read` refuses it.
        let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        let version = Version { tag: tag(&metadata), size };
        answer(path, version, request, |range| {
            let part = self.read(path, &file, version, range)?;
            let asked = part.slice(range);
            self.shelf.put(path, part, changes);
            Ok(asked)
        })
    }

    /// Answers a GET from the cache, if it has the requested bytes.
    fn shelved(&self, path: &Path, request: &Request) -> Option<FileAnswer> {
        let part = self.shelf.fresh(path).filter(|part| part.has(&range(request)))?;
        Some(answer(path, part.version, request, |range| Ok(part.slice(range))))
    }

    /// Reads these bytes of a file, and more bytes ahead if the file was read a moment ago.
    fn read(
        &self,
        path: &Path,
        file: &File,
        version: Version,
        range: &Range<usize>,
    ) -> Result<FilePart, Rejection> {
        let Version { size, .. } = version;
        if size > MAX_FILE {
            return Err(Rejection::internal(format!(
                "larger than {MAX_FILE} bytes, the limit for served files"
            )));
        }
        // A client may ask for a block behind the end, which is then empty.
        let start = range.start.min(size);
        // A second read within 100 ms is probably a transfer in blocks, which asks for the next bytes soon.
        let end = if self.shelf.fresh(path).is_some() { start + MAX_PART } else { range.end };
        let mut bytes = vec![0; end.min(size).saturating_sub(start)];
        // The file has just been shortened. The next request sees its new size.
        let cut = |_| Rejection::unavailable(1);
        file.read_exact_at(&mut bytes, start as u64).map_err(cut)?;
        Ok(FilePart { version, start, bytes: bytes.into() })
    }

    /// Opens a file for reading.
    fn file(&self, path: &Path) -> Result<(File, Metadata), Rejection> {
        // Opening a pipe would block until somebody writes to it.
        let mut options = OpenOptions::new();
        let file =
            self.top.open_with(path, options.read(true).custom_flags(O_NONBLOCK)).map_err(rejection)?;
        let metadata = file.metadata().map_err(rejection)?;
        // A pipe or a device could be opened, but its content has no size and no end.
        if metadata.is_file() { Ok((file, metadata)) } else { Err(Rejection::not_found()) }
    }

    fn put(&self, writing: &WriteRules, writer: WritingClient, path: &Path, request: &Request) -> FileAnswer {
        let payload = request.payload();
        if payload.len() > MAX_FILE {
            return Err(Code::REQUEST_ENTITY_TOO_LARGE.into());
        }
        let admit = |before: &Option<Metadata>| {
            let before = before.as_ref().map(Metadata::len);
            writing.quota.admit(&writer, path, before, payload.len() as u64, &self.top).map(|()| before)
        };
        // Checked first, so that nothing is written needlessly.
        admit(&self.check(path, request)?)?;
        // A client that reads at this moment gets the old file or the new one, never a part of each.
        let temporary = TemporaryFile::write(&self.top, path, payload).map_err(rejection)?;
        let tag = tag(&temporary.metadata().map_err(rejection)?);
        let _replacing = writing.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        // The file may have changed while the content was written, so everything is checked again under the lock.
        let before = self.check(path, request)?;
        let size = admit(&before)?;
        let placed = match &before {
            // A link fails if another process has created the file since the check. A rename would replace it.
            None if request.option(option::IF_NONE_MATCH).is_some() => temporary.link(path),
            // The mode and the owner of a file survive a PUT.
            Some(before) => temporary.replace(path, before),
            None => temporary.rename(path),
        };
        placed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Code::PRECONDITION_FAILED.into(),
            io::ErrorKind::PermissionDenied => forbidden("the file is another user's"),
            _ => rejection(error),
        })?;
        // Later reads must not get the old content, so the cache is cleared before the answer is sent.
        self.shelf.remove(path);
        writing.quota.written(writer, path, size, payload.len() as u64);
        let response = if before.is_some() { Response::changed() } else { Response::created() };
        Ok(response.option(option::ETAG, &tag))
    }

    /// Removes a file. The answer is 2.02 whether it existed or not (RFC 7252 §5.8.4).
    fn delete(&self, writing: &WriteRules, path: &Path, request: &Request) -> FileAnswer {
        let _replacing = writing.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.check(path, request)?;
        match self.top.remove_file(path) {
            // The file may never have existed, or another process may have removed it since the check.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(rejection(error)),
            _ => {
                self.shelf.remove(path);
                writing.quota.removed(path, before.as_ref().map(Metadata::len));
                Ok(Response::deleted())
            }
        }
    }

    /// Returns the metadata of the file at a path, if a file exists.
    ///
    /// # Errors
    /// 4.12 if the conditions of the request do not hold (RFC 7252 §5.10.8), 4.03 for a read-only file and for a
    /// symbolic link, and 4.05 for a directory and for anything else that is not a file.
    fn check(&self, path: &Path, request: &Request) -> Result<Option<Metadata>, Rejection> {
        // The directory itself can be neither written nor removed.
        if path.as_os_str().is_empty() {
            return Err(Code::METHOD_NOT_ALLOWED.into());
        }
        let there = match self.top.symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return request.precondition(None).map(|()| None);
            }
            Err(error) => return Err(rejection(error)),
        };
        // Clients make no links. This one is the operator's, and may be a switch between versions.
        if there.is_symlink() {
            return Err(forbidden("it is a symbolic link"));
        }
        // A directory exists, so If-None-Match is answered 4.12 before the kind of file counts.
        request.precondition(Some(&tag(&there)))?;
        if !there.is_file() {
            return Err(Code::METHOD_NOT_ALLOWED.into());
        }
        self.check_writable(path, &there)?;
        Ok(Some(there))
    }

    /// Refuses a file that this process may not write. The operating system would not: it lets everybody who may write
    /// the directory replace a file in it.
    fn check_writable(&self, path: &Path, there: &Metadata) -> Result<(), Rejection> {
        let mut options = OpenOptions::new();
        // A process of root may open a read-only file, so the mode is looked at, too.
        let writable = there.mode() & 0o222 != 0
            && match self.top.open_with(path, options.write(true).custom_flags(O_NONBLOCK)) {
                Err(error) => error.kind() != io::ErrorKind::PermissionDenied,
                Ok(_) => true,
            };
        if writable { Ok(()) } else { Err(forbidden("the file is read-only")) }
    }
}

/// Runs `act` on a thread of its own, where waiting for a disk blocks no other request. At most [`MAX_AT_ONCE`] such
/// threads run at a time.
async fn aside(
    files: Arc<Directory>,
    act: impl FnOnce(&Directory) -> FileAnswer + Send + 'static,
) -> FileAnswer {
    // The semaphore fails only when it is closed, which nobody does.
    let busy = |_| Rejection::unavailable(1);
    // Dropped at the end of this function, so the next request gets its turn only after the work is done.
    let _turn = files.turns.acquire().await.map_err(busy)?;
    let acting = files.clone();
    let acted = tokio::task::spawn_blocking(move || act(&acting)).await;
    // The task fails if it panics, or if the runtime ends before it begins.
    acted.unwrap_or(Err(Code::INTERNAL_SERVER_ERROR.into()))
}

/// Returns the path that a request names, relative to the directory; `None` if a segment is not a file name or begins with a
/// dot.
fn path(request: &Request) -> Option<PathBuf> {
    let segments = request.options().filter(|&(number, _)| number == option::URI_PATH);
    // `..` begins with a dot, too, so no path leads upwards.
    let is_name =
        |name: &[u8]| !name.is_empty() && name[0] != b'.' && !name.iter().any(|b| matches!(b, b'/' | 0));
    segments.map(|(_, name)| is_name(name).then(|| OsStr::from_bytes(name))).collect()
}

fn format(path: &Path) -> u16 {
    let end = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let known = FORMATS.iter().find(|(known, _)| known.eq_ignore_ascii_case(end));
    known.map_or(BYTES, |&(_, format)| format)
}

/// Returns the range of bytes to read for the response to a request.
fn range(request: &Request) -> Range<usize> {
    let range = request.range();
    // A request without a block size has no upper end, and a message has no room for more.
    range.start..range.end.min(range.start.saturating_add(MAX_PART))
}

/// Answers a GET of a version of a file. `bytes` reads the requested bytes; it is not called if the client already has this
/// version.
fn answer(
    path: &Path,
    Version { tag, size }: Version,
    request: &Request,
    bytes: impl FnOnce(&Range<usize>) -> Result<Bytes, Rejection>,
) -> FileAnswer {
    let format = format(path);
    // RFC 7252 §5.10.4 asks for 4.06 if the format of Accept is not available.
    if request.uint(option::ACCEPT).is_some_and(|wanted| wanted != u64::from(format)) {
        return Err(Code::NOT_ACCEPTABLE.into());
    }
    // Conditions are checked before the disk is read (RFC 7252 §5.10.8).
    request.precondition(Some(&tag))?;
    // 2.03 without payload (RFC 7252 §5.9.1.3).
    let response = if has(request, option::ETAG, &tag) {
        Response::new(Code::VALID)
    } else {
        let range = range(request);
        let bytes = bytes(&range)?;
        // A whole file needs no Block2.
        let is_whole = bytes.len() == size;
        let response = if is_whole {
            Response::content(bytes)
        } else {
            // The size of the whole file lets a client show its progress (Size2, RFC 7959 §4).
            Response::part(bytes, range.start.min(size), size)
        };
        response.content_format(format)
    };
    Ok(response.option(option::ETAG, &tag))
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

/// Converts an error of the file system to a response. A path that leads out of the directory is answered like a missing file.
fn rejection(error: io::Error) -> Rejection {
    match error.kind() {
        // One answer for all of these, so that a client cannot find out what exists outside its reach.
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::PermissionDenied => Rejection::not_found(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Rejection::unavailable(FULL_DISK).because("the disk is full")
        }
        _ => error.into(),
    }
}
