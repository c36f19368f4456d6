//! An interceptor of a client or a server sees all of its datagrams, and may lose them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{serve, serve_with};
use coapace_net::Direction::{Received, Sent};
use coapace_net::{
    Client, Config, Datagram, Direction, Interceptor, Profile, Rejection, Request, Response, Router,
    ServerConfig,
};

/// Notes what passes by, and loses the first of these directions.
#[derive(Debug, Default)]
struct Noting {
    seen: Mutex<Vec<(Direction, Vec<u8>)>>,
    loses: Mutex<Vec<Direction>>,
}

impl Interceptor for Noting {
    fn pass(&self, datagram: &Datagram<'_>) -> bool {
        self.seen.lock().unwrap().push((datagram.direction, datagram.bytes.to_vec()));
        let mut loses = self.loses.lock().unwrap();
        let place = loses.iter().position(|&direction| direction == datagram.direction);
        place.map(|place| loses.remove(place)).is_none()
    }
}

#[tokio::test]
async fn an_interceptor_sees_requests_and_responses_and_datagrams_it_drops_are_retransmitted() {
    let server =
        serve(Router::new().get("/a", |_: Request| async { Ok::<_, Rejection>(Response::content("1")) }));
    let tap = Arc::new(Noting::default());
    tap.loses.lock().unwrap().extend([Direction::Sent, Direction::Received]);
    let mechanism = "default:ack_timeout=20ms".parse().expect("a mechanism");
    let config = Config { max_retransmit: 8, ..Profile::default().config };
    let client = Client::builder().mechanism(mechanism).config(config).interceptor(tap.clone()).build();
    let call = client.get(&server.uri("/a")).timeout(Duration::from_secs(10));
    let response = call.await.unwrap();
    assert_eq!((response.text().as_ref(), response.transmissions), ("1", 3));
    let seen = tap.seen.lock().unwrap();
    let directions: Vec<_> = seen.iter().map(|(direction, _)| *direction).collect();
    assert_eq!(directions, [Sent, Sent, Received, Sent, Received]);
    assert_eq!(seen[0].1, seen[1].1);
    assert!(seen[0].1.ends_with(b"\xb1a") && seen[4].1.ends_with(b"\xff1"), "{seen:?}");
    assert_eq!(server.handle.stats().endpoint.duplicates, 1, "the first never arrived, the third is a copy");
}

#[tokio::test]
async fn an_interceptor_of_a_server_sees_and_drops_datagrams_in_both_directions() {
    let tap = Arc::new(Noting::default());
    tap.loses.lock().unwrap().extend([Direction::Sent, Direction::Received]);
    let config = ServerConfig { cores: 1, interceptor: Some(tap.clone()), ..ServerConfig::default() };
    let router = Router::new().get("/a", |_: Request| async { Ok::<_, Rejection>(Response::content("1")) });
    let server = serve_with(router, config);
    let mechanism = "default:ack_timeout=20ms".parse().expect("a mechanism");
    let config = Config { max_retransmit: 8, ..Profile::default().config };
    let client = Client::builder().mechanism(mechanism).config(config).build();
    let response = client.get(&server.uri("/a")).timeout(Duration::from_secs(10)).await.unwrap();
    assert_eq!((response.text().as_ref(), response.transmissions), ("1", 3));
    let seen = tap.seen.lock().unwrap();
    let directions: Vec<_> = seen.iter().map(|(direction, _)| *direction).collect();
    assert_eq!(directions, [Received, Received, Sent, Received, Sent]);
    assert_eq!((&seen[0].1, &seen[2].1), (&seen[3].1, &seen[4].1));
}
