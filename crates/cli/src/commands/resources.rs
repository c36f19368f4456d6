//! The resources of `coapace serve` other than files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use coap_numbers::option;
use coapace_net::{Code, Rejection, Request, Resource, Response, Router};

use crate::Failure;

/// The maximum number of entries of `/store`. The next constant limits the bytes of all values. Names are at most as
/// long as a Uri-Path option.
const MAX_STORED: usize = 1024;
const MAX_STORED_BYTES: usize = 16 << 20;

/// The maximum and the default length of `/large`, in bytes.
const MAX_LARGE: usize = 1 << 20;
const LARGE: usize = 8 << 10;

/// A builder of the routes of a server.
#[derive(Default)]
pub(super) struct Resources {
    router: Router,
    paths: BTreeSet<String>,
    /// The resource `/clock`, which changes every second, if it is served.
    clock: Option<Resource>,
}

type ResponseResult = Result<Response, Rejection>;

impl Resources {
    /// Adds a resource that answers GET with `text`.
    pub(super) fn fixed(&mut self, path: &str, text: &str) -> Result<(), Failure> {
        let wrong = |what: String| Err(Failure::Usage(format!("--resource {path}={text}: {what}")));
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        // Braces name a parameter in a route.
        if path.contains(['{', '}']) || path == "/.well-known/core" {
            return wrong("this path is the server's own; choose another".to_owned());
        }
        // Uri-Path has 255 bytes at most (RFC 7252 §5.10).
        if path.split('/').any(|segment| segment.len() > 255) {
            return wrong("a segment of a path has 255 bytes at most".to_owned());
        }
        if self.paths.contains(&path) {
            return wrong("this path has a text already".to_owned());
        }
        let response = Response::content(text.to_owned()).content_format(0);
        self.add(&path, "text", |router| {
            router.get(&path, move |_| {
                let response = response.clone();
                async move { ResponseResult::Ok(response) }
            })
        });
        Ok(())
    }

    /// Adds the demonstration resources.
    pub(super) fn demo(&mut self) -> Result<(), Failure> {
        for path in ["/clock", "/counter", "/delayed", "/echo", "/large", "/store"] {
            if self.paths.contains(path) {
                return Err(Failure::Usage(format!(
                    "--resource {path}=…: {path} is already a resource of --demo"
                )));
            }
        }
        // A resource is a handle of its observers. The clock's is returned, because the server ticks it.
        let (second, changes) = (Resource::new(), Resource::new());
        self.add("/clock", "seconds since 1970", |router| router.observe("/clock", &second, clock));
        self.clock = Some(second);
        // GET and POST are handlers of their own, so they share the counter.
        let counter = Arc::new(AtomicU64::new(0));
        let read = counter.clone();
        self.add("/counter", "how often it was asked with POST", |router| {
            router
                .observe("/counter", &changes.clone(), move |_| {
                    let count = read.load(Ordering::Relaxed);
                    async move { ResponseResult::Ok(text(count.to_string())) }
                })
                .post("/counter", move |_| {
                    let count = counter.fetch_add(1, Ordering::Relaxed) + 1;
                    changes.changed();
                    async move {
                        ResponseResult::Ok(Response::changed().payload(count.to_string()).content_format(0))
                    }
                })
        });
        self.add("/delayed", "a separate response, 5 s later or after ?s=N", |router| {
            router.get("/delayed", delayed)
        });
        self.add("/echo", "the payload, whatever the method", |router| {
            let methods = [Code::POST, Code::PUT, Code::FETCH, Code::PATCH, Code::IPATCH];
            methods.into_iter().fold(router, |router, method| router.route(method, "/echo", echo))
        });
        self.add("/large", "8 KiB of text, or ?bytes=N", |router| router.get("/large", large));
        self.add("/store", "names in use; PUT, GET and DELETE of /store/NAME", store);
        Ok(())
    }

    fn add(&mut self, path: &str, title: &str, routes: impl FnOnce(Router) -> Router) {
        self.router = routes(std::mem::take(&mut self.router)).describe(path, &[("title", title)]);
        self.paths.insert(path.to_owned());
    }

    /// Returns the routes, and `/clock` if it is served.
    pub(super) fn finish(self) -> (Router, Option<Resource>) {
        (self.router, self.clock)
    }
}

fn text(text: String) -> Response {
    Response::content(text).content_format(0)
}

async fn clock(_: Request) -> ResponseResult {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since.map_err(|_| Rejection::internal("the system clock is set before 1970"))?.as_secs();
    // The value is stale after a second.
    Ok(text(seconds.to_string()).max_age(1))
}

async fn delayed(request: Request) -> ResponseResult {
    let seconds: u64 = request.argument("s").unwrap_or("5").parse()?;
    // Each request that waits takes memory, so the time has a bound.
    if seconds > 3_600 {
        return Err(Rejection::bad_request("an hour at most"));
    }
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(text(format!("{seconds} s later")))
}

/// Answers with lines of 64 bytes that each begin with their offset.
async fn large(request: Request) -> ResponseResult {
    let bytes: usize = request.argument("bytes").map_or(Ok(LARGE), str::parse)?;
    if bytes > MAX_LARGE {
        return Err(Rejection::bad_request(format!("{MAX_LARGE} bytes at most")));
    }
    let mut lines = String::with_capacity(bytes + 64);
    while lines.len() < bytes {
        let _ = writeln!(lines, "{:<63}", lines.len());
    }
    // The text is ASCII, so every length ends at a character.
    lines.truncate(bytes);
    Ok(text(lines))
}

async fn echo(request: Request) -> ResponseResult {
    let response = match request.method() {
        // FETCH reads, so its answer is 2.05 (RFC 8132 §2). The others are answered 2.04.
        Code::FETCH => Response::content(request.payload().to_vec()),
        _ => Response::changed().payload(request.payload().to_vec()),
    };
    Ok(match request.option(option::CONTENT_FORMAT) {
        Some(format) => response.option(option::CONTENT_FORMAT, format),
        None => response,
    })
}

/// The stored values by name.
type StoredValues = BTreeMap<String, StoredValue>;

/// A payload with its Content-Format.
struct StoredValue {
    format: Option<Vec<u8>>,
    payload: Vec<u8>,
}

impl StoredValue {
    fn etag(&self) -> [u8; 8] {
        // `DefaultHasher::new` has fixed keys, so equal values have equal ETags.
        let mut hasher = DefaultHasher::new();
        (&self.format, &self.payload).hash(&mut hasher);
        hasher.finish().to_be_bytes()
    }
}

/// Adds `/store`, where clients put values by name. Values are kept in memory.
fn store(router: Router) -> Router {
    let shared: Arc<Mutex<StoredValues>> = Arc::default();
    let on = |action: fn(&mut StoredValues, &Request) -> ResponseResult| {
        let shared = shared.clone();
        move |request: Request| {
            // No action waits, so the lock is held only for a moment.
            let answer = action(&mut shared.lock().unwrap_or_else(PoisonError::into_inner), &request);
            async move { answer }
        }
    };
    router
        .get("/store", on(|all, _| Ok(names(all))))
        .get("/store/{name}", on(stored))
        .put("/store/{name}", on(put))
        .delete("/store/{name}", on(delete))
        .conditional("/store/{name}")
}

/// Answers with the names, one per line.
fn names(all: &StoredValues) -> Response {
    let mut names = String::new();
    for name in all.keys() {
        let _ = writeln!(names, "{name}");
    }
    text(names)
}

fn name(request: &Request) -> Result<&str, Rejection> {
    request.parameter("name").ok_or_else(|| Rejection::bad_request("the name is not text (UTF-8)"))
}

fn stored(all: &mut StoredValues, request: &Request) -> ResponseResult {
    let value = all.get(name(request)?).ok_or(Rejection::not_found())?;
    let etag = value.etag();
    request.precondition(Some(&etag))?;
    let response = match &value.format {
        _ if request.options().any(|option| option == (option::ETAG, &etag)) => Response::new(Code::VALID),
        Some(format) => Response::content(value.payload.clone()).option(option::CONTENT_FORMAT, format),
        None => Response::content(value.payload.clone()),
    };
    Ok(response.option(option::ETAG, &etag))
}

/// Checks If-Match and If-None-Match of a request. The caller holds the lock, so nothing changes between check and action.
fn check(all: &StoredValues, name: &str, request: &Request) -> Result<(), Rejection> {
    let etag = all.get(name).map(StoredValue::etag);
    request.precondition(etag.as_ref().map(|etag| &etag[..]))
}

fn put(all: &mut StoredValues, request: &Request) -> ResponseResult {
    let name = name(request)?;
    check(all, name, request)?;
    let known = all.contains_key(name);
    // A value that is replaced gives its bytes back.
    let others: usize =
        all.iter().filter(|(other, _)| *other != name).map(|(_, value)| value.payload.len()).sum();
    let too_many = !known && all.len() >= MAX_STORED;
    if too_many || others + request.payload().len() > MAX_STORED_BYTES {
        return Err(Rejection::internal("the store is full; DELETE something"));
    }
    let format = request.option(option::CONTENT_FORMAT).map(<[u8]>::to_vec);
    let value = StoredValue { format, payload: request.payload().to_vec() };
    let response = if known { Response::changed() } else { Response::created() };
    let response = response.option(option::ETAG, &value.etag());
    all.insert(name.to_owned(), value);
    Ok(response)
}

/// Removes a value. The answer is 2.02 whether it existed or not (RFC 7252 §5.8.4).
fn delete(all: &mut StoredValues, request: &Request) -> ResponseResult {
    let name = name(request)?;
    check(all, name, request)?;
    all.remove(name);
    Ok(Response::deleted())
}
