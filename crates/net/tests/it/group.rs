//! A request to a group is one datagram, and answers come from wherever members are.

use std::time::Duration;

use coapace_net::{Client, Error};
use tokio::net::UdpSocket;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(10);

/// 2.05 with this Message ID and payload, to the request in `asked`.
fn content(asked: &[u8], id: u8, payload: &[u8]) -> Vec<u8> {
    let token = usize::from(asked[0] & 0x0f);
    let header = [0x50 | token as u8, 0x45, 0, id];
    [&header[..], &asked[4..4 + token], &[0xff], payload].concat()
}

#[tokio::test]
async fn whoever_has_the_token_answers_and_copies_count_once() {
    let group = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let members =
        [UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap()];
    let uri = format!("coap://{}/x", group.local_addr().unwrap());
    let mut answers = Client::new().get(&uri).group().await.unwrap();
    let mut asked = [0; 64];
    let (len, client) = timeout(SOON, group.recv_from(&mut asked)).await.unwrap().unwrap();
    // Version 1, non-confirmable, GET, Uri-Path x.
    assert_eq!((asked[0] & 0xf0, asked[1], &asked[len - 2..len]), (0x50, 1, &b"\xb1x"[..]));

    let mut other = content(&asked, 9, b"of another request");
    other[4] ^= 1;
    members[0].send_to(&other, client).await.unwrap();
    for (id, member) in members.iter().enumerate() {
        for _copy in 0..2 {
            member.send_to(&content(&asked, id as u8, b"here"), client).await.unwrap();
        }
    }
    for member in &members {
        let (from, response) = timeout(SOON, answers.next()).await.unwrap().expect("an answer");
        assert_eq!((from, response.text().as_ref()), (member.local_addr().unwrap(), "here"));
    }
    assert!(timeout(Duration::from_millis(200), answers.next()).await.is_err(), "there are no others");
    assert!(timeout(Duration::from_millis(10), group.recv_from(&mut asked)).await.is_err(), "sent once");
}

#[tokio::test]
async fn a_group_is_asked_over_udp_alone() {
    let client = Client::new();
    for uri in ["coaps://224.0.1.187/", "coap+tcp://224.0.1.187/"] {
        assert!(matches!(client.get(uri).group().await, Err(Error::Scheme(_))), "{uri}");
    }
}
