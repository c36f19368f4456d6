//! The choice of the handler for a request.

use std::collections::BTreeMap;

use coap_numbers::option;
use coapace_proto::link_format::Writer;
use coapace_proto::{Code, Message, is_critical, link_format};
use smallvec::SmallVec;

use crate::handler::{Called, ChosenHandler, Function, Handler, HandlerFunction, Routed};
use crate::identity::IdentifiedPeer;
use crate::request::{Names, SegmentRange};
use crate::{Resource, Response};

/// The routes of a server: its handlers, by path and method.
///
/// A path is a sequence of segments, each after a slash, as in Uri-Path options (RFC 7252 §5.10.1). `{name}` matches any
/// segment, and [`Request::parameter`](crate::Request::parameter) returns its value. If two routes match, the one whose earlier segments are literal is
/// taken. A request that matches no path goes to the [`fallback`](Self::fallback), or is answered 4.04. A method without a
/// handler is answered 4.05. An unknown critical option is answered 4.02 (RFC 7252 §5.4.1), or 5.05 if it asks for a proxy
/// (§5.7.2). An invalid Hop-Limit is answered 4.00 (RFC 8768 §3). A GET or FETCH that accepts another Content-Format than the
/// one of the handler's 2.05 is answered 4.06 (RFC 7252 §5.10.4); a handler with several formats reads Accept. If-Match and
/// If-None-Match are supported by [`conditional`](Self::conditional) handlers. A GET of `/.well-known/core` is answered with
/// links to the paths (RFC 6690), see [`describe`](Self::describe).
///
/// Handlers do not see block-wise transfers (RFC 7959): they get and return complete bodies.
///
/// A handler is a function of a [`Request`](crate::Request) that returns a future of a [`Response`] or of an error that converts into a
/// [`Rejection`](crate::Rejection). It may be called on several threads at once. The result of a handler that does not wait is sent with the
/// acknowledgement. A handler that waits continues as a task. If a handler panics, the response is 5.00.
///
/// ```
/// use coapace_net::{Rejection, Request, Response, Router};
///
/// async fn greet(request: Request) -> Result<Response, Rejection> {
///     let name = request.parameter("name").unwrap_or("nobody");
///     Ok(Response::content(format!("Hello, {name}!")))
/// }
///
/// let router = Router::new().get("/greetings/{name}", greet);
/// ```
#[derive(Clone)]
pub struct Router {
    /// The nodes of the path tree; the first is the root.
    nodes: Vec<PathRoutes>,
    fallback: Option<HandlerRoute>,
    /// Whether the fallback checks the conditions of requests (If-Match and If-None-Match).
    conditional_fallback: bool,
    /// The critical options that this crate or a handler understands.
    understood: Vec<u16>,
}

/// The routes of one path.
#[derive(Clone, Default)]
struct PathRoutes {
    children: BTreeMap<Box<[u8]>, usize>,
    parameter: Option<usize>,
    /// The routes by method, GET (0.01) first.
    methods: [Option<HandlerRoute>; METHODS],
    /// The resource, if it can be observed.
    resource: Option<Resource>,
    /// The path, percent-encoded. `None` if it has parameters.
    path: Option<String>,
    /// The attributes of the path's link (RFC 6690 §3).
    attributes: Vec<(String, String)>,
    /// Whether the handlers check the conditions of requests (If-Match and If-None-Match).
    conditional: bool,
}

#[derive(Clone)]
struct HandlerRoute {
    names: Option<Names>,
    handler: Box<dyn Handler>,
}

/// The critical options that this crate understands. The options for conditions (RFC 7252 §5.10.8) come first, and are left to
/// handlers that declare them.
const UNDERSTOOD: [u16; 11] = [
    option::IF_MATCH,
    option::IF_NONE_MATCH,
    option::URI_HOST,
    option::URI_PORT,
    option::URI_PATH,
    option::URI_QUERY,
    option::ACCEPT,
    option::BLOCK1,
    option::Q_BLOCK1,
    option::BLOCK2,
    option::Q_BLOCK2,
];

/// The number of options for conditions in [`UNDERSTOOD`].
const CONDITIONS: usize = 2;

/// The path of the links to a server's resources (RFC 6690 §4).
const WELL_KNOWN_CORE: [&[u8]; 2] = [b".well-known", b"core"];

/// The Content-Format of links (RFC 7252 §12.3).
const LINK_FORMAT: u16 = 40;

/// The resource number of all requests handled by the fallback.
const FALLBACK: usize = usize::MAX;

/// The methods of RFC 7252 §12.1.1 and RFC 8132 §7.1.
const METHODS: usize = 7;

macro_rules! methods {
    ($($name:ident = $code:ident, $what:literal;)+) => {
        $(
            #[doc = concat!("Routes ", $what, " of `path` to `handler`.")]
            #[must_use]
            pub fn $name(self, path: &str, handler: impl HandlerFunction) -> Self {
                self.route(Code::$code, path, handler)
            }
        )+
    };
}

impl Default for Router {
    fn default() -> Self {
        let root = PathRoutes { path: Some(String::new()), ..PathRoutes::default() };
        Self { nodes: vec![root], fallback: None, conditional_fallback: false, understood: UNDERSTOOD.into() }
    }
}

impl std::fmt::Debug for Router {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Router").field("nodes", &self.nodes.len()).finish_non_exhaustive()
    }
}

impl Router {
    /// Returns a router without routes, which answers every request 4.04.
    pub fn new() -> Self {
        Self::default()
    }

    methods! {
        get = GET, "GET";
        post = POST, "POST";
        put = PUT, "PUT";
        delete = DELETE, "DELETE";
        fetch = FETCH, "FETCH (RFC 8132 §2)";
        patch = PATCH, "PATCH (RFC 8132 §3)";
        ipatch = IPATCH, "iPATCH (RFC 8132 §3)";
    }

    /// Routes a method of `path` to `handler`, and replaces an earlier handler. A code other than one of the seven methods has
    /// no effect.
    #[must_use]
    pub fn route(mut self, method: Code, path: &str, handler: impl HandlerFunction) -> Self {
        let (node, names) = self.reach(path);
        // Most paths have no parameters, so their requests need no list of names.
        let names = (!names.is_empty()).then(|| names.into());
        if let Some(method) = index(method) {
            self.nodes[node].methods[method] =
                Some(HandlerRoute { names, handler: Box::new(Function::new(handler)) });
        }
        self
    }

    /// Routes GET of `path` to `handler`, and lets clients observe the result (RFC 7641). The handler is called again for them
    /// whenever the [`Resource`] has [changed](Resource::changed). Observers over datagrams with equal requests share one call,
    /// with the request of the first of them.
    #[must_use]
    pub fn observe(self, path: &str, resource: &Resource, handler: impl HandlerFunction) -> Self {
        let mut router = self.get(path, handler);
        let (node, _) = router.reach(path);
        router.nodes[node].resource = Some(resource.clone());
        router
    }

    /// Sets the attributes of the link to `path` in `/.well-known/core` (RFC 6690 §3), such as `("rt", "temperature")`. The
    /// values of `ct` and `sz` are numbers. An attribute with an empty value is a flag. Invalid attributes are left out.
    /// `obs` is added for resources that can be observed.
    ///
    /// Every path with routes and without parameters has a link. A route of `/.well-known/core` replaces them all.
    #[must_use]
    pub fn describe(mut self, path: &str, attributes: &[(&str, &str)]) -> Self {
        let (node, _) = self.reach(path);
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        self.nodes[node].attributes = attributes.iter().map(owned).collect();
        self
    }

    /// Returns the node of a path, which is added if it is new, and the names of the path's parameters.
    fn reach(&mut self, path: &str) -> (usize, Vec<Box<str>>) {
        let mut names: Vec<Box<str>> = Vec::new();
        let mut node = 0;
        // The slash before the first segment may be missing.
        for segment in path.split('/').skip(usize::from(path.starts_with('/'))) {
            // `/` and the empty path have no segment. In any other path an empty segment counts.
            if segment.is_empty() && path.len() <= 1 {
                break;
            }
            let fresh = self.nodes.len();
            let parameter = segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}'));
            let next = if let Some(name) = parameter {
                names.push(name.into());
                *self.nodes[node].parameter.get_or_insert(fresh)
            } else {
                *self.nodes[node].children.entry(segment.as_bytes().into()).or_insert(fresh)
            };
            // The node is new. Its path is known only below nodes without parameters.
            if next == fresh {
                let path = self.nodes[node].path.as_ref().filter(|_| parameter.is_none());
                let path = path.map(|path| format!("{path}/{}", crate::uri::encoded(segment)));
                self.nodes.push(PathRoutes { path, ..PathRoutes::default() });
            }
            node = next;
        }
        (node, names)
    }

    /// Returns the resources that can be observed.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.nodes.iter().filter_map(|node| node.resource.as_ref())
    }

    /// Returns the resource of a request, if it can be observed.
    pub(crate) fn observable(&self, message: &Message<'_>) -> Option<&Resource> {
        let (path, _) = path_of(message);
        let node = self.find(0, message.tail, &path, &mut SmallVec::new())?;
        self.nodes[node].resource.as_ref()
    }

    /// Returns the links to all paths with routes and without parameters, in the form of `/.well-known/core` (RFC 6690 §4).
    pub fn links(&self) -> String {
        let mut links = Writer::default();
        let routed = |node: &&PathRoutes| node.methods.iter().any(Option::is_some);
        for node in self.nodes.iter().filter(routed) {
            let Some(path) = &node.path else { continue };
            // Invalid links and attributes are left out.
            let Ok(linked) = links.clone().link(if path.is_empty() { "/" } else { path }) else { continue };
            links = node.attributes.iter().fold(linked, |links, (name, value)| {
                let number = value.parse().ok().filter(|_| matches!(&**name, "ct" | "sz"));
                let before = links.clone();
                let attributed = match number {
                    Some(number) => links.number(name, number),
                    None if value.is_empty() => links.flag(name),
                    None => links.text(name, value),
                };
                attributed.unwrap_or(before)
            });
            if node.resource.is_some() {
                links = links.clone().flag("obs").unwrap_or(links);
            }
        }
        links.into_string()
    }

    /// Returns the links that match a query (RFC 6690 §4.1).
    fn discover(&self, message: &Message<'_>) -> Response {
        let arguments: Vec<&str> =
            message.uri_query().map_while(|text| std::str::from_utf8(text).ok()).collect();
        let links = link_format::filter(&self.links(), &arguments);
        Response::content(links).content_format(LINK_FORMAT).in_format(message.accept())
    }

    /// Routes requests of any method that match no path to `handler`.
    #[must_use]
    pub fn fallback(mut self, handler: impl HandlerFunction) -> Self {
        self.fallback = Some(HandlerRoute { names: None, handler: Box::new(Function::new(handler)) });
        self
    }

    /// Declares that the handlers of `path` check If-Match and If-None-Match (RFC 7252 §5.10.8) with
    /// [`Request::precondition`](crate::Request::precondition). On other paths, a request with one of these options is answered 4.02, because a condition
    /// must not be ignored (§5.4.1).
    ///
    /// Handlers run on several threads at once. A handler must check the condition and change the resource in one step.
    #[must_use]
    pub fn conditional(mut self, path: &str) -> Self {
        let (node, _) = self.reach(path);
        self.nodes[node].conditional = true;
        self
    }

    /// Declares that the [`fallback`](Self::fallback) checks If-Match and If-None-Match, like
    /// [`conditional`](Self::conditional) for a path.
    #[must_use]
    pub fn conditional_fallback(mut self) -> Self {
        self.conditional_fallback = true;
        self
    }

    /// Declares that the handlers understand the critical option of this number.
    #[must_use]
    pub fn understands(mut self, option: u16) -> Self {
        self.understood.push(option);
        self
    }

    /// Chooses the handler of a request. Returns the answer if the request has no handler or is refused.
    pub(crate) fn route_of(&mut self, message: &Message<'_>) -> Routed<'_> {
        let (path, exceptional) = path_of(message);
        let mut values = SmallVec::new();
        let found = self.find(0, message.tail, &path, &mut values);
        // Most requests have no such option, so they are not searched for one.
        if let Some(refusal) = exceptional.then(|| self.refusal(found, message)).flatten() {
            return Routed::Answer(refusal);
        }
        let method = index(message.code);
        let route = match found {
            Some(node) => {
                let route = method.and_then(|method| self.nodes[node].methods[method].as_mut());
                route.ok_or(Code::METHOD_NOT_ALLOWED)
            }
            // The links of RFC 6690 are made here, unless a route of its own answers.
            None if message.code == Code::GET && message.uri_path().eq(WELL_KNOWN_CORE) => {
                return Routed::Answer(self.discover(message));
            }
            // An unknown method is 4.05 for every path (RFC 7252 §5.8).
            None if method.is_none() => self.fallback.as_mut().ok_or(Code::METHOD_NOT_ALLOWED),
            None => self.fallback.as_mut().ok_or(Code::NOT_FOUND),
        };
        match route {
            Ok(HandlerRoute { names, handler }) => Routed::Handler(ChosenHandler {
                resource: found.unwrap_or(FALLBACK),
                handler: &mut **handler,
                names: names.clone(),
                values,
            }),
            Err(code) => Routed::Answer(Response::new(code)),
        }
    }

    /// Calls the handler of a request.
    pub(crate) fn call(&mut self, peer: IdentifiedPeer, message: &Message<'_>) -> Called {
        match self.route_of(message) {
            Routed::Answer(response) => response.into(),
            Routed::Handler(chosen) => chosen.call(peer, message),
        }
    }

    /// Returns whether a request has a critical option that would be answered 4.02. A non-confirmable request with one is
    /// rejected: it gets no response (RFC 7252 §5.4.1, §4.3).
    pub(crate) fn is_bad_option(&self, message: &Message<'_>) -> bool {
        let (path, exceptional) = path_of(message);
        let found = || self.find(0, message.tail, &path, &mut SmallVec::new());
        exceptional && self.not_understood(found(), message).is_some_and(|number| !is_for_proxies(number))
    }

    /// Returns the refusal of a request that brings a block of a body, if one of its options is refused. The caller
    /// then stores nothing of the body. Returns `None` for other requests.
    pub(crate) fn refuses_block(&self, message: &Message<'_>) -> Option<Response> {
        message.value(option::BLOCK1).or(message.value(option::Q_BLOCK1))?;
        let (path, exceptional) = path_of(message);
        let found = || self.find(0, message.tail, &path, &mut SmallVec::new());
        if exceptional { self.refusal(found(), message) } else { None }
    }

    /// Returns the refusal of a request for one of its options, or `None` if all are accepted. `found` is the node of
    /// the request's path.
    fn refusal(&self, found: Option<usize>, message: &Message<'_>) -> Option<Response> {
        if message.hop_limit().is_err() {
            return Some(Response::new(Code::BAD_REQUEST).payload("Hop-Limit is one byte from 1 to 255"));
        }
        self.not_understood(found, message).map(refused)
    }

    /// Returns the first critical option that neither this crate nor the handlers of a node understand, if there is
    /// one. If no node is `found`, the handler is the fallback.
    fn not_understood(&self, found: Option<usize>, message: &Message<'_>) -> Option<u16> {
        let conditional = found.map_or(self.conditional_fallback, |node| self.nodes[node].conditional);
        // A condition must not be ignored (RFC 7252 §5.4.1), so without a handler for it, it counts as unrecognised.
        message.first_unrecognised(if conditional {
            &self.understood
        } else {
            &self.understood[CONDITIONS..]
        })
    }

    /// Returns the node that has routes for `path`, which is the rest of a path below `node`. Appends the values of its
    /// parameters to `values`. Returns `None` if no route matches.
    fn find(
        &self,
        node: usize,
        tail: &[u8],
        path: &[SegmentRange],
        values: &mut SmallVec<[SegmentRange; 4]>,
    ) -> Option<usize> {
        let here = &self.nodes[node];
        // A path may have thousands of segments, but the recursion goes no deeper than the routes do.
        let [segment, rest @ ..] = path else {
            return here.methods.iter().any(Option::is_some).then_some(node);
        };
        let (start, len) = (usize::from(segment.0), usize::from(segment.1));
        let literal = here.children.get(tail.get(start..start + len)?);
        // A literal segment has precedence. If nothing matches below it, the parameter is tried.
        if let Some(found) = literal.and_then(|&child| self.find(child, tail, rest, values)) {
            return Some(found);
        }
        values.push(*segment);
        let found = here.parameter.and_then(|child| self.find(child, tail, rest, values));
        if found.is_none() {
            values.pop();
        }
        found
    }
}

/// Returns the segments of a path, and whether the request has other options for which it may be refused: critical ones, and
/// Hop-Limit.
fn path_of(message: &Message<'_>) -> (SmallVec<[SegmentRange; 8]>, bool) {
    let mut path = SmallVec::new();
    let mut exceptional = false;
    for (number, value) in message.options() {
        if number == option::URI_PATH {
            path.push(segment_of(message, value));
            // A Uri-Path of more than 255 bytes counts as unrecognised (RFC 7252 §5.4.3).
            exceptional |= value.len() > 255;
        } else {
            exceptional |= is_critical(number) || number == option::HOP_LIMIT;
        }
    }
    (path, exceptional)
}

/// Returns the answer to a request with a critical option of this number that is not understood (RFC 7252 §5.4.1,
/// §5.7.2). The payload names the option (§5.5.2).
pub(crate) fn refused(number: u16) -> Response {
    let code = if is_for_proxies(number) { Code::PROXYING_NOT_SUPPORTED } else { Code::BAD_OPTION };
    Response::new(code).payload(format!("option {number} is not understood"))
}

/// Returns whether an option asks for a proxy. A request with one is answered 5.05 (RFC 7252 §5.7.2).
fn is_for_proxies(number: u16) -> bool {
    matches!(number, option::PROXY_URI | option::PROXY_SCHEME)
}

/// Returns the range of a path segment in the options and payload of a message.
fn segment_of(message: &Message<'_>, segment: &[u8]) -> SegmentRange {
    let start = segment.as_ptr() as usize - message.tail.as_ptr() as usize;
    // Options end within the 65,535 bytes of the longest message, so both numbers have room.
    (start as u16, segment.len() as u16)
}

/// Returns the index of a method in [`PathRoutes::methods`], if it is known.
fn index(method: Code) -> Option<usize> {
    usize::from(method.0).checked_sub(1).filter(|&index| index < METHODS)
}
