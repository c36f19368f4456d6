//! A request to a group is one datagram, and answers come from wherever members are.

use std::time::Duration;

use coapace_net::{ALL_COAP_NODES, Call, Client, Error};
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
async fn every_member_of_a_group_may_answer_and_copies_of_an_answer_count_once() {
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
async fn requests_to_a_group_are_refused_over_tcp_and_dtls() {
    let client = Client::new();
    for uri in ["coaps://224.0.1.187/", "coap+tcp://224.0.1.187/"] {
        assert!(matches!(client.get(uri).group().await, Err(Error::Scheme(_))), "{uri}");
    }
}

#[tokio::test]
async fn nothing_confirmable_is_sent_to_a_group() {
    let groups =
        ["coap://224.0.1.187/x", "coap://[ff02::fd]/x", "coaps://224.0.1.187/", "coap+tcp://[ff05::1]/"];
    let named = |host: &str| Client::builder().resolve(host, &[ALL_COAP_NODES.into()]).build();
    let client = named("all");
    for uri in groups.into_iter().chain(["coap://all/x"]) {
        for call in [client.get(uri), client.put(uri).payload("1"), client.ping(uri)] {
            let refused = call.await;
            #[cfg(not(feature = "tls"))]
            let refused =
                if uri.starts_with("coaps") { Err(Error::Group(ALL_COAP_NODES.into())) } else { refused };
            assert!(matches!(refused, Err(Error::Group(_))), "{uri}: {refused:?}");
        }
    }
    assert!(matches!(client.observe(groups[0]).await, Err(Error::Group(_))));
    assert_eq!(client.stats().endpoint.started, 0);
}

#[tokio::test]
async fn a_group_request_ends_after_the_leisure_or_the_timeout_or_at_once_without_responses() {
    let group = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("coap://{}/x", group.local_addr().unwrap());
    let calls: [fn(Call) -> Call; 3] = [
        |call| call.leisure(Duration::from_millis(1)),
        |call| call.timeout(Duration::from_millis(1)),
        |call| call.option(258, &[26]),
    ];
    for prepare in calls {
        let mut answers = prepare(Client::new().get(&uri)).group().await.unwrap();
        assert!(timeout(SOON, answers.next()).await.expect("in time").is_none());
        group.recv(&mut [0; 64]).await.expect("it was sent");
    }
}

#[tokio::test]
async fn later_blocks_of_a_group_response_come_from_the_member_alone() {
    let group = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("coap://{}/x", group.local_addr().unwrap());
    let client = Client::new();
    let mut answers = client.get(&uri).group().await.unwrap();
    let mut asked = [0; 64];
    let (_, from) = group.recv_from(&mut asked).await.unwrap();
    let member = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    // Block2: number 0, more, 16 bytes.
    let first = content(&asked, 7, b"0123456789abcdef");
    let marker = first.len() - 17;
    member.send_to(&[&first[..marker], b"\xd1\x0a\x08", &first[marker..]].concat(), from).await.unwrap();
    let (address, partial) = timeout(SOON, answers.next()).await.unwrap().unwrap();
    assert_eq!(partial.payload.len(), 16);
    let answers_block = async {
        let (len, from) = member.recv_from(&mut asked).await.unwrap();
        assert_eq!((asked[0] & 0x30, asked[len - 1]), (0, 0x10), "confirmable, and block 1 of 16 bytes");
        let token = usize::from(asked[0] & 0x0f);
        let header = [0x60 | token as u8, 0x45, asked[2], asked[3]];
        let answer = [&header[..], &asked[4..4 + token], b"\xd1\x0a\x10\xffghij"].concat();
        member.send_to(&answer, from).await.unwrap();
    };
    let (whole, ()) = tokio::join!(answers.whole(address, partial), answers_block);
    assert_eq!(whole.unwrap().text(), "0123456789abcdefghij");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_request_to_a_group_without_a_route_is_an_error() {
    // Nothing is sent from an address of loopback to the network, and no socket of this host has this zone.
    let gone = Client::new().get("coap://[ff02::fd%25123456789]/x").group().await;
    assert!(matches!(gone, Err(Error::Unreachable(_))), "{gone:?}");
}
