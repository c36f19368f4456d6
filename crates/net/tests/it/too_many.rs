//! 4.29 Too Many Requests (RFC 8516), between a server that limits its clients and clients that honour it.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use coapace_net::{Client, Code, Error, Rejection, Request, Response, Router, ServerConfig};

use crate::common::{Running, serve_with};

fn limited(rate: u32) -> Running {
    let answer = async |_: Request| Ok::<_, Rejection>(Response::content("21.5"));
    let router = Router::new().get("/a", answer).get("/b", answer).put("/a", answer);
    serve_with(router, ServerConfig { cores: 1, max_rate: NonZeroU32::new(rate), ..ServerConfig::default() })
}

#[tokio::test]
async fn a_client_that_gets_4_29_sends_nothing_until_max_age_has_passed() {
    let server = limited(2);
    let client = Client::new();
    for _ in 0..2 {
        assert_eq!(client.get(&server.uri("/a")).await.unwrap().code, Code::CONTENT);
    }
    let refused = client.get(&server.uri("/a")).await.unwrap();
    assert_eq!((refused.code, refused.options.value(14)), (Code::TOO_MANY_REQUESTS, Some(&[1][..])));
    let received = server.handle.stats().endpoint.received;
    let error = client.get(&server.uri("/a?again")).await.unwrap_err();
    assert!(matches!(error, Error::TooManyRequests { wait } if wait <= Duration::from_secs(1)), "{error}");
    let stats = server.handle.stats();
    assert_eq!((stats.endpoint.received, stats.net.limited), (received, 1), "nothing was sent");
}

#[tokio::test]
async fn after_4_29_a_request_with_a_long_timeout_waits_and_is_sent_again() {
    let server = limited(1);
    let client = Client::new();
    client.get(&server.uri("/a")).await.unwrap();
    let began = Instant::now();
    let response = client.get(&server.uri("/a")).timeout(Duration::from_secs(20)).await.unwrap();
    assert_eq!(response.code, Code::CONTENT);
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(server.handle.stats().net.limited, 1);
}

#[tokio::test]
async fn after_4_29_a_request_fails_at_once_if_the_pause_exceeds_its_timeout() {
    let server = limited(1);
    let client = Client::new();
    client.get(&server.uri("/a")).await.unwrap();
    let hurried = || client.get(&server.uri("/a")).timeout(Duration::from_millis(900)).into_future();
    assert_eq!(hurried().await.unwrap().code, Code::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_4_29_does_not_hold_back_other_paths_methods_or_clients() {
    let server = limited(1);
    let client = Client::new();
    client.get(&server.uri("/a")).await.unwrap();
    for call in [client.get(&server.uri("/a")), client.get(&server.uri("/b")), client.put(&server.uri("/a"))]
    {
        assert_eq!(call.await.unwrap().code, Code::TOO_MANY_REQUESTS);
    }
    assert_eq!(server.handle.stats().net.limited, 3);
    assert_eq!(Client::new().get(&server.uri("/a")).await.unwrap().code, Code::CONTENT);
}

#[tokio::test]
async fn a_registration_is_held_back_after_4_29_like_a_request() {
    let server = limited(1);
    let client = Client::new();
    client.get(&server.uri("/b")).await.unwrap();
    let refused = client.observe(&server.uri("/a")).await;
    assert!(matches!(refused, Err(Error::NotObserved(response)) if response.code == Code::TOO_MANY_REQUESTS));
    assert!(matches!(client.get(&server.uri("/a")).await, Err(Error::TooManyRequests { .. })));
}

#[tokio::test]
async fn the_blocking_client_waits_after_4_29() {
    let server = limited(1);
    let uri = server.uri("/a");
    let codes = tokio::task::spawn_blocking(move || {
        let mut client = Client::builder().build_blocking();
        let timeout = Duration::from_secs(20);
        let ask = |client: &mut coapace_net::blocking::Client, timeout: Option<Duration>| {
            let set = |call: coapace_net::Call| match timeout {
                Some(timeout) => call.timeout(timeout),
                None => call,
            };
            client.request(Code::GET, &uri, set).map(|response| response.code)
        };
        [ask(&mut client, None), ask(&mut client, Some(timeout))].map(Result::unwrap)
    });
    assert_eq!(codes.await.unwrap(), [Code::CONTENT; 2]);
    assert_eq!(server.handle.stats().net.limited, 1);
}
