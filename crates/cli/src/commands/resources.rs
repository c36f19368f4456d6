//! What `coapace serve` serves.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use coap_numbers::{code, option};
use coapace_net::{Code, Rejection, Request, Response, Router};

use crate::Failure;

/// The longest payload, in bytes: what RFC 7252 §4.6 has for a message of which nothing else is known.
const MAX_PAYLOAD: usize = 1024;

/// Entries of the store, and its longest name is that of an option.
const MAX_STORED: usize = 1024;

const LINK_FORMAT: u16 = 40;

/// Resources in the making: routes, and a link for each (RFC 6690).
#[derive(Default)]
pub(super) struct Resources {
    router: Router,
    /// By path; what each is.
    links: BTreeMap<String, &'static str>,
}

type Answer = Result<Response, Rejection>;

impl Resources {
    /// A resource whose GET is answered with `text`.
    pub(super) fn fixed(&mut self, path: &str, text: &str) -> Result<(), Failure> {
        let wrong = |what: String| Err(Failure::Usage(format!("--resource {path}={text}: {what}")));
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if path.contains(['{', '}']) || path == "/.well-known/core" {
            return wrong("this path is the server's own; choose another".to_owned());
        }
        if path.split('/').any(|segment| segment.len() > 255) {
            return wrong("a segment of a path has 255 bytes at most".to_owned());
        }
        if text.len() > MAX_PAYLOAD {
            return wrong(format!("a text has {MAX_PAYLOAD} bytes at most"));
        }
        if self.links.contains_key(&path) {
            return wrong("this path has a text already".to_owned());
        }
        let response = Response::content(text.to_owned()).content_format(0);
        self.add(&path, "text", |router| {
            router.get(&path, move |_| {
                let response = response.clone();
                async move { Answer::Ok(response) }
            })
        });
        Ok(())
    }

    /// Resources for trying things out.
    pub(super) fn demo(&mut self) -> Result<(), Failure> {
        for path in ["/clock", "/counter", "/delayed", "/echo", "/store"] {
            if self.links.contains_key(path) {
                return Err(Failure::Usage(format!("--resource {path}=…: {path} is one of --demo")));
            }
        }
        self.add("/clock", "seconds since 1970", |router| router.get("/clock", clock));
        let counter = Arc::new(AtomicU64::new(0));
        let read = counter.clone();
        self.add("/counter", "how often it was asked with POST", |router| {
            router
                .get("/counter", move |_| {
                    let count = read.load(Ordering::Relaxed);
                    async move { Answer::Ok(text(count.to_string())) }
                })
                .post("/counter", move |_| {
                    let count = counter.fetch_add(1, Ordering::Relaxed) + 1;
                    async move { Answer::Ok(Response::changed().payload(count.to_string()).content_format(0)) }
                })
        });
        self.add("/delayed", "a separate response, 5 s later or after ?s=N", |router| {
            router.get("/delayed", delayed)
        });
        self.add("/echo", "the payload, whatever the method", |router| {
            let methods = [code::POST, code::PUT, code::FETCH, code::PATCH, code::IPATCH];
            methods.into_iter().fold(router, |router, method| router.route(Code(method), "/echo", echo))
        });
        self.add("/store", "names in use; PUT, GET and DELETE of /store/NAME", store);
        Ok(())
    }

    fn add(&mut self, path: &str, what: &'static str, routes: impl FnOnce(Router) -> Router) {
        self.router = routes(std::mem::take(&mut self.router));
        self.links.insert(path.to_owned(), what);
    }

    /// The routes, with `/.well-known/core`.
    pub(super) fn router(self) -> Result<Router, Failure> {
        let links: Vec<String> = self.links.iter().map(|(path, what)| link(path, what)).collect();
        let links = links.join(",");
        if links.len() > MAX_PAYLOAD {
            let told = format!("too many --resource: their links have more than {MAX_PAYLOAD} bytes");
            return Err(Failure::Usage(told));
        }
        Ok(self.router.get("/.well-known/core", move |_| {
            let links = Response::content(links.clone()).content_format(LINK_FORMAT);
            async move { Answer::Ok(links) }
        }))
    }
}

/// A link with a title (RFC 6690 §2).
fn link(path: &str, what: &str) -> String {
    let encoded = path.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    });
    format!("<{encoded}>;title=\"{what}\"")
}

fn text(text: String) -> Response {
    Response::content(text).content_format(0)
}

async fn clock(_: Request) -> Answer {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since.map_err(|_| Rejection::internal("the clock is before 1970"))?.as_secs();
    Ok(text(seconds.to_string()).max_age(1))
}

async fn delayed(request: Request) -> Answer {
    let seconds: u64 = request.argument("s").unwrap_or("5").parse()?;
    if seconds > 3_600 {
        return Err(Rejection::bad_request("an hour at most"));
    }
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(text(format!("{seconds} s later")))
}

async fn echo(request: Request) -> Answer {
    let response = match request.method().0 {
        code::FETCH => Response::content(request.payload().to_vec()),
        _ => Response::changed().payload(request.payload().to_vec()),
    };
    Ok(match request.option(option::CONTENT_FORMAT) {
        Some(format) => response.option(option::CONTENT_FORMAT, format),
        None => response,
    })
}

/// What was put, with its Content-Format.
type Stored = BTreeMap<String, (Option<Vec<u8>>, Vec<u8>)>;

/// A store of values by name, as long as the server runs.
fn store(router: Router) -> Router {
    let shared: Arc<Mutex<Stored>> = Arc::default();
    let on = |action: fn(&mut Stored, &Request) -> Answer| {
        let shared = shared.clone();
        move |request: Request| {
            let answer = action(&mut shared.lock().unwrap_or_else(PoisonError::into_inner), &request);
            async move { answer }
        }
    };
    router
        .get("/store", on(|all, _| Ok(names(all))))
        .get("/store/{name}", on(stored))
        .put("/store/{name}", on(put))
        .delete("/store/{name}", on(delete))
}

/// The names, as far as they fit.
fn names(all: &Stored) -> Response {
    let mut names = String::new();
    for name in all.keys() {
        if names.len() + name.len() >= MAX_PAYLOAD {
            break;
        }
        let _ = writeln!(names, "{name}");
    }
    text(names)
}

fn name(request: &Request) -> Result<&str, Rejection> {
    request.parameter("name").ok_or_else(|| Rejection::bad_request("the name is no text"))
}

fn stored(all: &mut Stored, request: &Request) -> Answer {
    let (format, payload) = all.get(name(request)?).ok_or(Rejection::not_found())?;
    let response = Response::content(payload.clone());
    Ok(match format {
        Some(format) => response.option(option::CONTENT_FORMAT, format),
        None => response,
    })
}

fn put(all: &mut Stored, request: &Request) -> Answer {
    let name = name(request)?;
    let known = all.contains_key(name);
    if !known && all.len() >= MAX_STORED {
        return Err(Rejection::internal("the store is full; DELETE something"));
    }
    let format = request.option(option::CONTENT_FORMAT).map(<[u8]>::to_vec);
    all.insert(name.to_owned(), (format, request.payload().to_vec()));
    Ok(if known { Response::changed() } else { Response::created() })
}

/// 2.02 whether it was there or not (RFC 7252 §5.8.4).
fn delete(all: &mut Stored, request: &Request) -> Answer {
    all.remove(name(request)?);
    Ok(Response::deleted())
}
