//! Servers that are not there yet, or not any more: the network says so, and the client asks on.

use std::future::IntoFuture;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use coapace_net::{Client, ClientBuilder, Code, Config, Error, Rejection, Response, Router};
use tokio::time::timeout;

use crate::common::{one_core, serve_again, until};

const LONG: Duration = Duration::from_secs(60);

pub(crate) fn router() -> Router {
    Router::new().get("/x", async |_| Ok::<_, Rejection>(Response::content("here").max_age(60)))
}

/// Returns an address at which nobody listens.
pub(crate) fn vacant() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Returns the builder of a client that sends five times within 9 s.
fn quick() -> ClientBuilder {
    Client::builder().mechanism("default:ack_timeout=300ms".parse().unwrap())
}

#[tokio::test]
async fn a_request_is_answered_by_a_server_that_starts_meanwhile() {
    let address = vacant();
    let client = quick().build();
    let get = tokio::spawn(client.get(&format!("coap://{address}/x")).into_future());
    until(|| client.stats().endpoint.retransmissions > 0).await;
    let _server = serve_again(&address.to_string(), router(), one_core()).await;
    let response = timeout(LONG, get).await.unwrap().unwrap().unwrap();
    assert_eq!(response.text(), "here");
    assert!(response.transmissions > 1, "{}", response.transmissions);
    let [(_, there)] = client.destinations()[..] else { panic!("one destination") };
    assert_eq!((there.exchanges, there.failed), (1, 0));
}

#[tokio::test]
async fn after_the_last_retransmission_the_error_says_that_the_port_was_closed() {
    let client = Client::builder()
        .mechanism("default:ack_timeout=50ms".parse().unwrap())
        .config(Config { max_retransmit: 2, ..Config::default() })
        .build();
    let uri = format!("coap://{}/x", vacant());
    for call in [client.get(&uri), client.ping(&uri)] {
        let error = timeout(LONG, call.into_future()).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Unreachable(ErrorKind::ConnectionRefused)), "{error:?}");
    }
    let observed = timeout(LONG, client.observe(&uri)).await.unwrap();
    assert!(matches!(observed, Err(Error::Unreachable(_))), "{observed:?}");
    assert_eq!(client.stats().endpoint.retransmissions, 6, "as after silence");
}

#[tokio::test]
async fn a_timeout_of_the_application_reports_that_the_port_was_closed() {
    let (client, uri) = (Client::new(), format!("coap://{}/x", vacant()));
    let soon = Duration::from_millis(300);
    let error = client.get(&uri).timeout(soon).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(ErrorKind::ConnectionRefused)), "{error:?}");
    let error = client.get(&uri).timeout(soon).observe().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap://{}/x", silent.local_addr().unwrap());
    assert!(matches!(client.get(&uri).timeout(soon).await, Err(Error::TimedOut)));
}

#[tokio::test]
async fn a_server_that_restarts_during_a_request_is_not_reported_as_gone() {
    let mut server = crate::common::serve_with(router(), one_core());
    let client = quick().config(Config { max_retransmit: 1, ..Config::default() }).build();
    let (uri, address) = (server.uri("/x"), server.address);
    client.get(&uri).await.unwrap();
    server.crash().await;
    drop(server);
    until(|| UdpSocket::bind(address).is_ok()).await;
    let gone = client.get(&uri).await.unwrap_err();
    assert!(matches!(gone, Error::Unreachable(_)), "{gone:?}");
    let mut again = serve_again(&address.to_string(), router(), one_core()).await;
    client.get(&uri).await.unwrap();
    again.crash().await;
    drop(again);
    until(|| UdpSocket::bind(address).is_ok()).await;
    let _silent = UdpSocket::bind(address).unwrap();
    let silent = client.get(&uri).await.unwrap_err();
    assert!(
        matches!(silent, Error::GivenUp { transmissions: 2 }),
        "the earlier error of the network is over: {silent:?}"
    );
}

#[tokio::test]
async fn a_client_with_fail_fast_ends_a_request_at_an_icmp_error() {
    let client = Client::builder().fail_fast().build();
    let uri = format!("coap://{}/x", vacant());
    let error = timeout(Duration::from_secs(20), client.get(&uri).into_future()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unreachable(ErrorKind::ConnectionRefused)), "{error:?}");
    assert_eq!(client.stats().endpoint.retransmissions, 0);
}

#[test]
fn the_blocking_client_keeps_retransmitting_after_an_icmp_error() {
    let address = vacant();
    let mut client = quick().build_blocking();
    let mut hasty = Client::builder().fail_fast().build_blocking();
    let uri = format!("coap://{address}/x");
    assert!(matches!(hasty.get(&uri), Err(Error::Unreachable(_))));
    let soon = Duration::from_millis(300);
    let error = client.request(Code::GET, &uri, |call| call.timeout(soon)).unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    // The first datagram of the next request finds nobody, a later one this server.
    let starts = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(400));
        let socket = UdpSocket::bind(address).unwrap();
        let mut bytes = [0; 64];
        let (_, from) = socket.recv_from(&mut bytes).unwrap();
        let token = usize::from(bytes[0] & 15);
        let (header, rest) =
            ([0x60 | bytes[0] & 15, Code::CONTENT.0, bytes[2], bytes[3]], &bytes[4..4 + token]);
        socket.send_to(&[&header[..], rest].concat(), from).unwrap();
    });
    assert_eq!(client.get(&uri).unwrap().code, Code::CONTENT);
    starts.join().unwrap();
}

#[cfg(feature = "tls")]
mod dtls {
    use coapace_net::{Dtls, Refused, Server};

    use super::*;
    use crate::common::run;
    use crate::secured::{KEY, keys};

    #[tokio::test]
    async fn a_dtls_handshake_continues_until_the_server_has_started() {
        let address = vacant();
        let client = Client::builder().dtls(Dtls::client("lamp-7", KEY)).build();
        let get = tokio::spawn(client.get(&format!("coaps://{address}/x")).into_future());
        // The handshake has begun when there is a session for the request, and the first flight has found nobody.
        until(|| client.metrics().sessions == 1).await;
        let _server = run("coaps", Server::bind_dtls(address, one_core(), &keys()), router());
        let response = timeout(LONG, get).await.unwrap().unwrap().unwrap();
        assert_eq!(response.text(), "here");
    }

    #[tokio::test]
    async fn a_dtls_handshake_without_a_server_finally_reports_a_closed_port() {
        let dtls = Dtls::client("lamp-7", KEY).handshake_timeout(Duration::from_millis(300));
        let client = Client::builder().dtls(dtls).build();
        let error = client.get(&format!("coaps://{}/", vacant())).await.unwrap_err();
        assert!(matches!(error, Error::Session(Refused::Unreachable(_))), "{error:?}");
        let client = Client::builder().dtls(Dtls::client("lamp-7", KEY)).fail_fast().build();
        let get = client.get(&format!("coaps://{}/", vacant())).into_future();
        let error = timeout(Duration::from_secs(20), get).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Session(Refused::Unreachable(_))), "{error:?}");
    }
}
