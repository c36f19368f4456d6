//! Mechanisms that do not wait for an answer to the last retransmission, in endpoints without patience.

use std::sync::Arc;

use crate::common::{CONTENT, Client, ms, reply_to, secs};
use crate::noting::{NotedCall, Noting};
use coapace_control::{Instant, Limits};
use coapace_proto::{Config, Event, ExchangeId, Failure, Kind, Setup};

fn impatient(config: Config) -> (Arc<Setup<Noting>>, Client<Noting>) {
    let setup =
        Noting::set_up(Limits { final_wait: false, ..Noting::LIMITS }, Config { patience: false, ..config });
    let client = Client::set_up(&setup);
    (setup, client)
}

/// Sends the next datagram that is due at `at`.
fn fire(client: &mut Client<Noting>, at: Instant) -> Vec<u8> {
    assert_eq!(client.endpoint.poll_timeout(), Some(at));
    client.endpoint.handle_timeout(at);
    assert!(client.endpoint.poll_event().is_none());
    client.sent(at).unwrap()
}

fn given_up(client: &mut Client<Noting>) -> Option<ExchangeId> {
    match client.endpoint.poll_event()? {
        Event::Failed { exchange, failure: Failure::GivenUp } => Some(exchange),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_a_final_wait_an_exchange_is_given_up_with_its_last_retransmission() {
    let (setup, mut client) = impatient(Config::default());
    let exchange = client.get(ms(0), "t");
    let first = client.sent(ms(0)).unwrap();
    for at in [2, 6, 14] {
        assert_eq!(fire(&mut client, secs(at)), first);
        assert_eq!(given_up(&mut client), None, "only the last one is not waited for");
    }
    assert_eq!(fire(&mut client, secs(30)), first, "the last one is sent");
    assert_eq!(given_up(&mut client), Some(exchange));
    assert_eq!(given_up(&mut client), None, "reported once");
    assert_eq!((client.endpoint.exchanges(), client.endpoint.poll_timeout()), (0, None));
    let counters = client.endpoint.counters();
    assert_eq!((counters.started, counters.retransmissions, counters.given_up), (1, 4, 1));
    let retransmitted = [NotedCall::Retransmitted; 4];
    assert_eq!(
        *setup.controller.calls.lock().unwrap(),
        [&[NotedCall::Started], &retransmitted[..], &[NotedCall::GivenUp]].concat()
    );
}

#[test]
fn without_a_final_wait_the_next_request_departs_with_the_last_retransmission() {
    let (_, mut client) = impatient(Config { max_retransmit: 1, ..Config::default() });
    client.get(ms(0), "a");
    client.get(ms(0), "b");
    client.sent(ms(0)).unwrap();
    assert_eq!(fire(&mut client, secs(2))[4], b'a');
    assert_eq!(client.sent(secs(2)).unwrap()[4], b'b');
}

#[test]
fn without_a_final_wait_a_late_answer_matches_no_exchange() {
    let (_, mut client) = impatient(Config { max_retransmit: 1, ..Config::default() });
    client.get(ms(0), "t");
    let request = client.sent(ms(0)).unwrap();
    fire(&mut client, secs(2));
    for _ in 0..2 {
        // The answer comes before the application learned of the failure, or after it.
        assert!(client.receive(secs(3), &reply_to(&request, Kind::Acknowledgement, CONTENT, b"")).is_none());
        assert!(client.receive(secs(3), b"\x41\x45\x12\x34t").is_none());
        assert_eq!(client.sent(secs(3)).unwrap(), [0x70, 0, 0x12, 0x34], "a separate response is rejected");
        given_up(&mut client);
    }
    let counters = client.endpoint.counters();
    assert_eq!((counters.late_replies, counters.completed, counters.given_up), (4, 0, 1));
}

#[test]
fn without_a_final_wait_an_answer_before_the_last_retransmission_still_counts() {
    let (setup, mut client) = impatient(Config { max_retransmit: 2, ..Config::default() });
    client.get(ms(0), "t");
    client.sent(ms(0)).unwrap();
    let request = fire(&mut client, secs(2));
    let response = reply_to(&request, Kind::Acknowledgement, CONTENT, b"");
    assert!(matches!(client.receive(secs(3), &response), Some(Event::Response { .. })));
    assert_eq!(
        *setup.controller.calls.lock().unwrap(),
        [NotedCall::Started, NotedCall::Retransmitted, NotedCall::Acked]
    );
    assert_eq!(client.endpoint.poll_timeout(), None);
}

#[test]
fn with_max_retransmit_0_an_exchange_still_waits_for_its_first_transmission() {
    let (_, mut client) = impatient(Config { max_retransmit: 0, ..Config::default() });
    let exchange = client.get(ms(0), "t");
    client.sent(ms(0)).unwrap();
    assert_eq!(given_up(&mut client), None);
    assert_eq!(client.endpoint.poll_timeout(), Some(secs(2)));
    client.endpoint.handle_timeout(secs(2));
    assert_eq!(given_up(&mut client), Some(exchange));
}
