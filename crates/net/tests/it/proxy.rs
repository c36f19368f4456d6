//! Requests through a forward proxy, which is a server of this crate that asks with a client of this crate.

use coapace_net::uri::BadUri;
use coapace_net::{
    BadOption, Client, Code, Error, Rejection, Request, Response, Router, Server, TransferError,
};

use crate::common::{Running, run, serve};

const HOST: u16 = 3;
const PORT: u16 = 7;
const PATH: u16 = 11;
const QUERY: u16 = 15;
const PROXY_URI: u16 = 35;
const PROXY_SCHEME: u16 = 39;

/// Returns the URI that a request to a proxy is for (RFC 7252 §6.5). These tests have no percent-encoding.
fn wanted(request: &Request) -> String {
    let text = |number| request.option(number).map(|text| String::from_utf8_lossy(text).into_owned());
    if let Some(uri) = text(PROXY_URI) {
        assert_eq!([HOST, PORT, PATH, QUERY].map(|number| request.option(number)), [None; 4]);
        return uri;
    }
    let (scheme, host, port) = (text(PROXY_SCHEME), text(HOST), request.uint(PORT));
    let mut uri = format!("{}://{}:{}", scheme.unwrap(), host.unwrap(), port.unwrap());
    for (number, value) in request.options().filter(|&(number, _)| matches!(number, PATH | QUERY)) {
        uri.push(if number == PATH { '/' } else { '?' });
        uri.push_str(std::str::from_utf8(value).unwrap());
    }
    uri
}

/// Asks the server of a resource of CoAP. Of others it answers the URI.
async fn forward(client: Client, request: Request) -> Result<Response, Rejection> {
    let uri = wanted(&request);
    if uri.starts_with("http") {
        return Ok(Response::content(uri));
    }
    let call = client.request(request.method(), &uri).payload(request.payload().to_vec());
    call.await.map_err(|_| Rejection::new(Code::BAD_GATEWAY))
}

fn proxy(scheme: &'static str) -> Running {
    let client = Client::new();
    let router = Router::new().fallback(move |request| forward(client.clone(), request));
    let router = router.understands(PROXY_URI).understands(PROXY_SCHEME);
    let config = crate::common::one_core();
    let bound = match scheme {
        "coap" => Server::bind_with("127.0.0.1:0", config),
        _ => Server::bind_tcp("127.0.0.1:0", config),
    };
    run(scheme, bound, router)
}

fn target() -> Running {
    let echo = |request: Request| async move {
        let query: Vec<&str> = request.query().collect();
        let text = format!("{} {} {}", request.path(), query.join("&"), request.payload().len());
        Ok::<_, Rejection>(Response::content(text))
    };
    serve(Router::new().get("/a/b", echo).post("/a/b", echo))
}

#[tokio::test]
async fn a_proxy_requests_the_resource_from_the_server_in_the_uri() {
    let target = target();
    for scheme in ["coap", "coap+tcp"] {
        let proxy = proxy(scheme);
        let client = Client::builder().proxy(&proxy.uri("")).unwrap().build();
        assert_eq!(client.get(&target.uri("/a/b?c")).await.unwrap().text(), "/a/b c 0");
        let response = client.post(&target.uri("/a/b")).payload(vec![7; 5_000]).await.unwrap();
        assert_eq!(response.text(), "/a/b  5000", "in blocks, over {scheme}");
        assert_eq!(client.get(&target.uri("/none")).await.unwrap().code, Code::NOT_FOUND);
        let observed = client.observe(&target.uri("/a/b")).await.unwrap();
        assert_eq!(observed.first().text(), "/a/b  0");
        let other = client.get("http://example.org/a?b").await.unwrap();
        assert_eq!(other.text(), "http://example.org/a?b");
        client.ping(&target.uri("/")).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_not_a_proxy_answers_5_05() {
    let target = target();
    let client = Client::builder().proxy(&target.uri("")).unwrap().build();
    let response = client.get("coap://192.0.2.1/a/b").await.unwrap();
    assert_eq!(response.code, Code::PROXYING_NOT_SUPPORTED);
}

#[tokio::test]
async fn options_not_allowed_in_requests_are_not_sent() {
    let target = target();
    let client = Client::new();
    let error = client.get(&target.uri("/a")).option(PROXY_URI, b"coap://h/x").await.unwrap_err();
    let beside = TransferError::Option(BadOption::BesideProxyUri { number: PATH });
    assert!(matches!(&error, Error::Transfer(bad) if *bad == beside), "{error:?}");
    assert_eq!(error.to_string(), "Uri-Path must not be there beside Proxy-Uri");
    for (uri, dots) in [("/a/%2e%2e/b", None), ("/", Some("..")), ("/a", Some("."))] {
        let call = client.get(&target.uri(uri));
        let call = dots.into_iter().fold(call, |call, dots| call.option(PATH, dots.as_bytes()));
        let error = call.await.unwrap_err();
        let refused = match &error {
            Error::Uri(BadUri::Dots) => dots.is_none(),
            Error::Transfer(TransferError::Option(BadOption::Dots { number })) => *number == PATH,
            _ => false,
        };
        assert!(refused, "{error:?}");
    }
    assert_eq!(target.handle.stats().endpoint.received, 0);
    for uri in ["coap://h/x", "coap://h?x"] {
        assert_eq!(Client::builder().proxy(uri).map(drop).unwrap_err(), BadUri::PathOfProxy);
    }
}
