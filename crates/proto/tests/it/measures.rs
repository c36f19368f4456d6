//! The measures of an endpoint.

use crate::common::{CONTENT, Client, ms, reply_to, secs};
use coapace_control::{Duration, Instant};
use coapace_proto::{Code, Config, Histogram, Kind};

/// Returns how many durations were counted, and their sum in milliseconds.
fn of(histogram: &Histogram) -> (u64, u64) {
    (histogram.count(), histogram.sum().as_micros() / 1_000)
}

fn acknowledge(client: &mut Client, at: Instant, request: &[u8]) {
    client.receive(at, &reply_to(request, Kind::Acknowledgement, CONTENT, b"")).expect("a response");
}

/// Returns a client that measures.
fn measuring(mechanism: &str) -> Client {
    let mut client = Client::running(mechanism, Config::default());
    client.endpoint.measure();
    client
}

#[test]
fn an_answer_without_a_retransmission_is_a_strong_sample_and_one_after_it_a_weak_one() {
    let mut client = measuring("default");
    client.get(ms(0), "a");
    let request = client.sent(ms(0)).unwrap();
    acknowledge(&mut client, ms(300), &request);
    client.get(ms(1_000), "b");
    let request = client.sent(ms(1_000)).unwrap();
    client.endpoint.handle_timeout(secs(3));
    client.sent(secs(3)).unwrap();
    acknowledge(&mut client, ms(3_100), &request);
    let measures = client.endpoint.measures().unwrap();
    assert_eq!((of(&measures.rtt_strong), of(&measures.rtt_weak)), ((1, 300), (1, 2_100)));
    assert_eq!(of(&measures.rto), (2, 4_000), "ACK_TIMEOUT, once an exchange");
    assert_eq!(of(&measures.queue_wait), (2, 0));
}

#[test]
fn a_marked_retransmission_is_a_strong_sample_of_its_own_time() {
    let mut client = measuring("fasor-token");
    client.get(ms(0), "a");
    client.sent(ms(0)).unwrap();
    let at = client.endpoint.poll_timeout().unwrap();
    client.endpoint.handle_timeout(at);
    let again = client.sent(at).unwrap();
    acknowledge(&mut client, at + Duration::from_millis(70), &again);
    let measures = client.endpoint.measures().unwrap();
    assert_eq!((of(&measures.rtt_strong), of(&measures.rtt_weak)), ((1, 70), (0, 0)));
}

#[test]
fn the_measured_rto_is_that_of_the_mechanism() {
    let mut client = measuring("linux-rto");
    for nth in 0..10 {
        client.get(ms(nth * 1_000), "a");
        let request = client.sent(ms(nth * 1_000)).unwrap();
        acknowledge(&mut client, ms(nth * 1_000 + 300), &request);
    }
    let rto = client.endpoint.measures().unwrap().rto;
    let up_to = |ms| rto.cumulative().find(|&(bound, _)| bound == Duration::from_millis(ms)).unwrap().1;
    assert_eq!((rto.count(), up_to(1_000), up_to(5_000)), (10, 9, 10));
}

#[test]
fn the_wait_for_nstart_is_measured_from_the_call_to_the_departure() {
    let mut client = measuring("default");
    for (token, at) in [("a", 0), ("b", 10), ("c", 20)] {
        client.get(ms(at), token);
    }
    for at in [30, 130, 230] {
        let request = client.sent(ms(at)).unwrap();
        acknowledge(&mut client, ms(at + 100), &request);
    }
    let measures = client.endpoint.measures().unwrap();
    assert_eq!(of(&measures.queue_wait), (3, 30 + 120 + 210));
    assert_eq!(of(&measures.rtt_strong), (3, 300), "without the wait");
}

#[test]
fn a_non_confirmable_message_is_measured_for_its_wait_only() {
    let mut client = measuring("default");
    client.ask(ms(0), "a", false);
    let request = client.sent(ms(5)).unwrap();
    client.receive(ms(9), &reply_to(&request, Kind::NonConfirmable, CONTENT, b"")).unwrap();
    let measures = client.endpoint.measures().unwrap();
    assert_eq!((measures.queue_wait.count(), measures.rto.count()), (1, 0));
    assert_eq!((measures.rtt_strong.count(), measures.rtt_weak.count()), (0, 0));
}

#[test]
fn an_endpoint_collects_histograms_only_after_measure_was_called() {
    let mut client = Client::default();
    client.get(ms(0), "a");
    let request = client.sent(ms(0)).unwrap();
    acknowledge(&mut client, ms(300), &request);
    assert_eq!(client.endpoint.measures(), None);
}

#[test]
fn datagrams_and_bytes_of_every_kind_are_counted() {
    let mut client = measuring("default");
    client.get(ms(0), "a");
    let request = client.sent(ms(0)).unwrap();
    let reset = reply_to(&[0x40, 1, request[2], request[3]], Kind::Reset, Code::EMPTY, b"");
    client.receive(ms(9), &reset).unwrap();
    // A ping is answered. A datagram that is not a CoAP message is not.
    client.receive(ms(9), &[0x40, 0, 0, 1]);
    client.receive(ms(9), &[0xff; 7]);
    assert_eq!(client.sent(ms(9)).unwrap().len(), 4);
    let counters = client.endpoint.counters();
    let measures = client.endpoint.measures().unwrap();
    assert_eq!((counters.received, measures.received_bytes), (3, 4 + 4 + 7));
    assert_eq!((measures.sent, measures.sent_bytes), (2, request.len() as u64 + 4));
    assert_eq!((counters.rejected, counters.timed_out, counters.malformed), (1, 0, 1));
}
