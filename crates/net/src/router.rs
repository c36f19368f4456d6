//! The way of a request to its handler.

use std::collections::BTreeMap;
use std::future::Future;

use coap_numbers::option;
use coapace_proto::link_format::Writer;
use coapace_proto::{Code, Message, is_critical, link_format};
use smallvec::SmallVec;

use crate::handler::{Called, Function, Handler};
use crate::identity::Peer;
use crate::request::Names;
use crate::{Rejection, Request, Resource, Response};

/// Handlers by path and method.
///
/// A path is a row of segments, each behind a slash, as Uri-Path options have them (RFC 7252 §5.10.1); `{name}` stands
/// for any segment, and [`Request::parameter`] has its value. If two routes match, the one whose earlier segments are
/// literal is taken. A request that matches no path goes to the [`fallback`](Self::fallback), or is answered 4.04. A method
/// without a handler is answered 4.05; an option that must be understood and is not, 4.02 (RFC 7252 §5.4.1), or 5.05
/// where a proxy is asked for (§5.7.2). If-Match and If-None-Match count as understood where handlers are
/// [`conditional`](Self::conditional). A GET of `/.well-known/core` is answered with links to the paths (RFC 6690), see
/// [`describe`](Self::describe).
///
/// Bodies come and go whole: a handler sees all of a payload that arrived in blocks, and what it returns leaves in as many
/// as it takes (RFC 7959).
///
/// A handler is a function of a [`Request`] that returns a future of a [`Response`] or of an error that converts into a
/// [`Rejection`]. It may be called on several threads at once. One that never waits is called where the datagram
/// arrived and answered on the acknowledgement; of one that waits the rest becomes a task. One that panics is answered
/// 5.00.
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
    /// The root first.
    nodes: Vec<Node>,
    fallback: Option<Box<dyn Handler>>,
    /// Set if the fallback keeps to the conditions of requests.
    conditional_fallback: bool,
    /// Critical options that are understood, here or by a handler.
    understood: Vec<u16>,
}

/// The routes behind a row of segments.
#[derive(Clone, Default)]
struct Node {
    children: BTreeMap<Box<[u8]>, usize>,
    parameter: Option<usize>,
    /// The routes by method, GET (0.01) first.
    methods: [Option<Route>; METHODS],
    /// The resource, if it can be observed.
    resource: Option<Resource>,
    /// The path, percent-encoded. `None` where it has parameters.
    path: Option<String>,
    /// The attributes of its link (RFC 6690 §3).
    attributes: Vec<(String, String)>,
    /// Set if the handlers keep to the conditions of requests.
    conditional: bool,
}

#[derive(Clone)]
struct Route {
    names: Option<Names>,
    handler: Box<dyn Handler>,
}

/// Critical options that this crate understands, or leaves to handlers; the conditions of a request (RFC 7252 §5.10.8) are
/// first, and left to handlers that declare so.
const UNDERSTOOD: [u16; 9] = [
    option::IF_MATCH,
    option::IF_NONE_MATCH,
    option::URI_HOST,
    option::URI_PORT,
    option::URI_PATH,
    option::URI_QUERY,
    option::ACCEPT,
    option::BLOCK1,
    option::BLOCK2,
];

/// The number of conditions among these.
const CONDITIONS: usize = 2;

/// The path of RFC 6690 §4.
const WELL_KNOWN_CORE: [&[u8]; 2] = [b".well-known", b"core"];

/// The Content-Format of links (RFC 7252 §12.3).
const LINK_FORMAT: u16 = 40;

/// The methods of RFC 7252 §12.1.1 and RFC 8132 §7.1.
const METHODS: usize = 7;

/// The place of a segment in the options and payload of a message: start and length.
type Segment = (u16, u16);

macro_rules! methods {
    ($($name:ident = $code:ident, $what:literal;)+) => {
        $(
            #[doc = concat!("Routes ", $what, " of `path` to `handler`.")]
            #[must_use]
            pub fn $name<F, Fut, E>(self, path: &str, handler: F) -> Self
            where
                F: Fn(Request) -> Fut + Clone + Send + 'static,
                Fut: Future<Output = Result<Response, E>> + Send + 'static,
                E: Into<Rejection>,
            {
                self.route(Code::$code, path, handler)
            }
        )+
    };
}

impl Default for Router {
    fn default() -> Self {
        let root = Node { path: Some(String::new()), ..Node::default() };
        Self { nodes: vec![root], fallback: None, conditional_fallback: false, understood: UNDERSTOOD.into() }
    }
}

impl std::fmt::Debug for Router {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Router").field("nodes", &self.nodes.len()).finish_non_exhaustive()
    }
}

impl Router {
    /// Returns a router without routes, which answers everything 4.04.
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

    /// Routes a method of `path` to `handler`. It replaces one that was there; a code that is no method known here has
    /// no effect.
    #[must_use]
    pub fn route<F, Fut, E>(mut self, method: Code, path: &str, handler: F) -> Self
    where
        F: Fn(Request) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<Response, E>> + Send + 'static,
        E: Into<Rejection>,
    {
        let (node, names) = self.reach(path);
        let names = (!names.is_empty()).then(|| names.into());
        if let Some(route) = index(method).and_then(|method| self.nodes[node].methods.get_mut(method)) {
            *route = Some(Route { names, handler: Box::new(Function::new(handler)) });
        }
        self
    }

    /// Routes GET of `path` to `handler`, and lets clients observe what it says (RFC 7641). It is called again for them
    /// whenever the [`Resource`] has [changed](Resource::changed), with the request of the first who asked so; in such a
    /// call nobody waits for the response, and a handler that waits is not acknowledged.
    #[must_use]
    pub fn observe<F, Fut, E>(self, path: &str, resource: &Resource, handler: F) -> Self
    where
        F: Fn(Request) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<Response, E>> + Send + 'static,
        E: Into<Rejection>,
    {
        let mut router = self.get(path, handler);
        let (node, _) = router.reach(path);
        router.nodes[node].resource = Some(resource.clone());
        router
    }

    /// Sets what `/.well-known/core` says of `path` (RFC 6690 §3): attributes such as `("rt", "temperature")`. `ct` and
    /// `sz` are numbers, and one without a value is just there; one that no link may have is left out. `obs` is there by
    /// itself.
    ///
    /// Every path that has routes and no parameters is a link. A route of `/.well-known/core` replaces all of them.
    #[must_use]
    pub fn describe(mut self, path: &str, attributes: &[(&str, &str)]) -> Self {
        let (node, _) = self.reach(path);
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        self.nodes[node].attributes = attributes.iter().map(owned).collect();
        self
    }

    /// Returns the node behind a path, made if need be, and the names of the parameters on the way.
    fn reach(&mut self, path: &str) -> (usize, Vec<Box<str>>) {
        let mut names: Vec<Box<str>> = Vec::new();
        let mut node = 0;
        for segment in path.split('/').skip(usize::from(path.starts_with('/'))) {
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
            if next == fresh {
                let path = self.nodes[node].path.as_ref().filter(|_| parameter.is_none());
                let path = path.map(|path| format!("{path}/{}", crate::uri::encoded(segment)));
                self.nodes.push(Node { path, ..Node::default() });
            }
            node = next;
        }
        (node, names)
    }

    /// Returns the resources that can be observed.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.nodes.iter().filter_map(|node| node.resource.as_ref())
    }

    /// Returns the resource that a request names, if it can be observed.
    pub(crate) fn observable(&self, message: &Message<'_>) -> Option<&Resource> {
        self.nodes[self.node_of(message)?].resource.as_ref()
    }

    /// Returns a number for what a request names: another for each path with routes, one for all of the fallback.
    pub(crate) fn number_of(&self, message: &Message<'_>) -> usize {
        self.node_of(message).unwrap_or(usize::MAX)
    }

    fn node_of(&self, message: &Message<'_>) -> Option<usize> {
        let segments = message.uri_path().map(|segment| segment_of(message, segment));
        let path: SmallVec<[Segment; 8]> = segments.collect();
        self.find(0, message.tail, &path, &mut SmallVec::new())
    }

    /// Returns the links to all paths that have routes and no parameters, in the form of `/.well-known/core` (RFC 6690 §4).
    pub fn links(&self) -> String {
        let mut links = Writer::default();
        let routed = |node: &&Node| node.methods.iter().any(Option::is_some);
        for node in self.nodes.iter().filter(routed) {
            let Some(path) = &node.path else { continue };
            // Text that no link may have is left out.
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

    /// Returns the links that a query asks for (RFC 6690 §4.1).
    fn discover(&self, message: &Message<'_>) -> Response {
        let arguments: Vec<&str> =
            message.uri_query().map_while(|text| std::str::from_utf8(text).ok()).collect();
        Response::content(link_format::filter(&self.links(), &arguments)).content_format(LINK_FORMAT)
    }

    /// Routes requests of any method that match no path to `handler`.
    #[must_use]
    pub fn fallback<F, Fut, E>(mut self, handler: F) -> Self
    where
        F: Fn(Request) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<Response, E>> + Send + 'static,
        E: Into<Rejection>,
    {
        self.fallback = Some(Box::new(Function::new(handler)));
        self
    }

    /// Declares that the handlers of `path` keep to If-Match and If-None-Match (RFC 7252 §5.10.8), for which they have
    /// [`Request::precondition`]. Handlers of other paths are not called for a request with one of these options; it is
    /// answered 4.02, because a condition must not be ignored (§5.4.1).
    ///
    /// Check and change have to be one step for all who change the resource: handlers run on several threads at once.
    #[must_use]
    pub fn conditional(mut self, path: &str) -> Self {
        let (node, _) = self.reach(path);
        self.nodes[node].conditional = true;
        self
    }

    /// Declares that the [`fallback`](Self::fallback) keeps to If-Match and If-None-Match, as
    /// [`conditional`](Self::conditional) does for a path.
    #[must_use]
    pub fn conditional_fallback(mut self) -> Self {
        self.conditional_fallback = true;
        self
    }

    /// Declares that the handlers understand the option of this number. Requests that have it are handed to them.
    #[must_use]
    pub fn understands(mut self, option: u16) -> Self {
        self.understood.push(option);
        self
    }

    /// Calls the handler of a request.
    pub(crate) fn call(&mut self, peer: impl Into<Peer>, message: &Message<'_>) -> Called {
        let mut path: SmallVec<[Segment; 8]> = SmallVec::new();
        let mut critical = false;
        for (number, value) in message.options() {
            if number == option::URI_PATH {
                path.push(segment_of(message, value));
                critical |= value.len() > 255;
            } else {
                critical |= is_critical(number);
            }
        }
        let mut values = SmallVec::new();
        let found = self.find(0, message.tail, &path, &mut values);
        if let Some(number) = critical.then(|| self.not_understood(found, message)).flatten() {
            let proxy = matches!(number, option::PROXY_URI | option::PROXY_SCHEME);
            let code = if proxy { Code::PROXYING_NOT_SUPPORTED } else { Code::BAD_OPTION };
            return Response::new(code).into();
        }
        let request = Request::new(peer.into(), message);
        match (found, &mut self.fallback) {
            (Some(node), _) => {
                let methods = &mut self.nodes[node].methods;
                match index(message.code).and_then(|method| methods.get_mut(method)?.as_mut()) {
                    Some(Route { names, handler }) => {
                        handler.call(request.with_parameters(names.clone(), &values))
                    }
                    None => Response::new(Code::METHOD_NOT_ALLOWED).into(),
                }
            }
            (None, _) if message.code == Code::GET && message.uri_path().eq(WELL_KNOWN_CORE) => {
                self.discover(message).into()
            }
            (None, Some(fallback)) => fallback.call(request),
            (None, None) => Response::new(Code::NOT_FOUND).into(),
        }
    }

    /// Returns the first critical option that neither this crate nor the handlers of a node understand. Where there is no
    /// node, the handlers are the fallback.
    fn not_understood(&self, found: Option<usize>, message: &Message<'_>) -> Option<u16> {
        let conditional = found.map_or(self.conditional_fallback, |node| self.nodes[node].conditional);
        message.first_unrecognised(if conditional {
            &self.understood
        } else {
            &self.understood[CONDITIONS..]
        })
    }

    /// Returns the node behind `path`, seen from `node`, that has routes. Adds the values of parameters on the way.
    fn find(
        &self,
        node: usize,
        tail: &[u8],
        path: &[Segment],
        values: &mut SmallVec<[Segment; 4]>,
    ) -> Option<usize> {
        let here = &self.nodes[node];
        let [segment, rest @ ..] = path else {
            return here.methods.iter().any(Option::is_some).then_some(node);
        };
        let (start, len) = (usize::from(segment.0), usize::from(segment.1));
        let literal = here.children.get(tail.get(start..start + len)?);
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

/// Returns the place of a segment of a message's path.
fn segment_of(message: &Message<'_>, segment: &[u8]) -> Segment {
    let start = segment.as_ptr() as usize - message.tail.as_ptr() as usize;
    (start as u16, segment.len() as u16)
}

/// Returns the place of a method among the routes of a node.
fn index(method: Code) -> Option<usize> {
    usize::from(method.0).checked_sub(1)
}
