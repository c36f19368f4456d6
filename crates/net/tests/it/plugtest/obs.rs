//! TD_COAP_OBS: observations (td-coap4, `block`; RFC 7641). TD_COAP_OBS_03 comes from the guide of November 2012.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use coap_numbers::option::{BLOCK2, MAX_AGE, OBSERVE};
use coapace_control::{Draw, Instant};
use coapace_net::Direction::{Received, Sent};
use coapace_net::{Client, Code, Config, Observation, Profile};
use coapace_proto::{Endpoint, Setup};

use super::plug::{PATIENCE, Plug};
use super::resources::{JSON, OBS_MAX_AGE, TEXT};
use super::seen::Seen;
use crate::common::receive;

/// Long enough for a notification, if there were one.
const A_WHILE: Duration = Duration::from_millis(300);

/// The client asks to observe the resource at `path`, and its server agrees.
async fn begin(plug: &Plug, path: &str) -> (Observation, Seen) {
    let observation = plug.get(path).observe().await.expect("a response");
    let request = plug.client_sends(&format!("CON GET {path}")).await.with_token().with(OBSERVE, 0);
    let content = plug.server_sends("ACK 2.05").await.to(&request).with_content(TEXT);
    content.uint(OBSERVE);
    assert_eq!(observation.first().payload, content.payload);
    (observation, content)
}

/// Returns the text of the next notification.
async fn next_text(observation: &mut Observation) -> String {
    let next = tokio::time::timeout(Duration::from_secs(5), observation.next()).await;
    next.expect("in time").expect("a representation").expect("a response").text().into_owned()
}

/// /obs changes, and the client is notified.
async fn notified(plug: &Plug, observation: &mut Observation, before: &Seen, text: &str) -> Seen {
    plug.state.set_obs(text);
    let notification = arrives(plug, before, text).await;
    assert_eq!(next_text(observation).await, text);
    notification
}

/// A notification arrives and is acknowledged.
async fn arrives(plug: &Plug, before: &Seen, text: &str) -> Seen {
    let notification = plug.server_sends("CON 2.05").await.of(before).newer_than(before);
    let notification = notification.with_content(TEXT).with_payload(text);
    plug.client_sends("ACK 0.00").await.empty_to(&notification);
    notification
}

#[tokio::test]
async fn td_coap_obs_01_confirmable_notifications() {
    let plug = Plug::begin("TD_COAP_OBS_01");
    let (mut observation, mut last) = begin(&plug, "/obs").await;
    for text in ["1", "2", "3"] {
        last = notified(&plug, &mut observation, &last, text).await;
    }
}

#[tokio::test]
async fn td_coap_obs_02_non_confirmable_notifications() {
    // At a PROBING_RATE of 1 byte/s there would be one in 20 s (RFC 7252 §4.7).
    let config = Config { probing_rate: 0, ..Profile::default().config };
    let plug = Plug::begin_with("TD_COAP_OBS_02", "2s", config);
    let mut observation = plug.get("/obs-non").non_confirmable().observe().await.expect("a response");
    let request = plug.client_sends("NON GET /obs-non").await.with_token().with(OBSERVE, 0);
    let mut last = plug.server_sends("NON 2.05").await.of(&request).with_content(TEXT);
    // Nothing is heard of the client: notifications are 3 s apart (RFC 7641 §4.5.1).
    for text in ["1", "2"] {
        plug.state.set_obs(text);
        let notification = plug.server_sends("NON 2.05").await.of(&request).newer_than(&last);
        last = notification.with_content(TEXT).with_payload(text);
        assert_eq!(next_text(&mut observation).await, text);
    }
}

#[tokio::test]
async fn td_coap_obs_03_the_client_stops_the_observation() {
    let plug = Plug::begin("TD_COAP_OBS_03");
    let (mut observation, content) = begin(&plug, "/obs").await;
    notified(&plug, &mut observation, &content, "1").await;
    drop(observation);
    let farewell = plug.client_sends("CON GET /obs").await.of(&content).with(OBSERVE, 1);
    plug.server_sends("ACK 2.05").await.to(&farewell).without(OBSERVE);
    plug.state.set_obs("2");
    plug.is_silent(A_WHILE).await;
}

#[tokio::test]
async fn td_coap_obs_04_the_server_is_rebooted() {
    let mut plug = Plug::begin("TD_COAP_OBS_04");
    let (mut observation, content) = begin(&plug, "/obs").await;
    let last = notified(&plug, &mut observation, &content, "1").await;
    plug.reboot_server().await;
    plug.state.set_obs("2");
    plug.is_silent(A_WHILE).await;
    // 5 to 15 s after it is stale (RFC 7641 §3.3.1), the client registers again.
    let again = async {
        let next = tokio::time::timeout(Duration::from_secs(20), observation.next()).await;
        next.expect("in time").expect("it goes on").expect("a response")
    };
    assert_eq!(again.await.text(), "2");
    let request = plug.client_sends("CON GET /obs").await.of(&content).with(OBSERVE, 0);
    let stale = Duration::from_secs(u64::from(OBS_MAX_AGE) + 5);
    request.after(&last, stale);
    let mut last = plug.server_sends("ACK 2.05").await.to(&request).with_content(TEXT);
    for text in ["3", "4"] {
        last = notified(&plug, &mut observation, &last, text).await;
    }
}

#[tokio::test]
async fn td_coap_obs_05_the_client_is_switched_off() {
    let config = Config { max_retransmit: 2, ..Profile::default().config };
    let plug = Plug::begin_with("TD_COAP_OBS_05", "600ms", config);
    let (mut observation, content) = begin(&plug, "/obs").await;
    let last = notified(&plug, &mut observation, &content, "1").await;
    plug.wire.switch_off();
    plug.state.set_obs("2");
    let first = plug.server_sends("CON 2.05").await.of(&content).newer_than(&last).with(MAX_AGE, OBS_MAX_AGE);
    let mut before = first.clone();
    for timeout in [600, 1_200] {
        let again = plug.server_sends("CON 2.05").await.again(&first);
        again.after(&before, Duration::from_millis(timeout));
        before = again;
    }
    // Nothing was heard until after the representation was stale: the client is not an observer any more (RFC 7641 §4.5).
    before.after(&first, Duration::from_secs(OBS_MAX_AGE.into()));
    tokio::time::sleep(Duration::from_millis(2_600)).await;
    plug.state.set_obs("3");
    plug.is_silent(A_WHILE).await;
}

#[tokio::test]
async fn td_coap_obs_06_the_client_is_rebooted() {
    // Soon over, so that the client leaves its port.
    let config = Config { max_retransmit: 1, ..Profile::default().config };
    let mut plug = Plug::begin_with("TD_COAP_OBS_06", "200ms", config);
    let (mut observation, content) = begin(&plug, "/obs").await;
    let last = notified(&plug, &mut observation, &content, "1").await;
    plug.wire.switch_off();
    drop(observation);
    plug.client = Client::new();
    // The program at its address now knows of nothing.
    let port = plug.wire.client_port();
    let left = async {
        loop {
            match UdpSocket::bind(("127.0.0.1", port)) {
                Ok(socket) => break socket,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let socket =
        tokio::time::timeout(Duration::from_secs(10), left).await.expect("the client leaves its port");
    let profile = Profile::default();
    let setup = Setup { controller: profile.mechanism, config: profile.config, bulk: None };
    let mut rebooted = Endpoint::new(Arc::new(setup), 1);

    plug.state.set_obs("2");
    let notification = receive(&socket, PATIENCE).await.expect("a datagram");
    plug.wire.note(Received, &notification);
    let server = plug.address();
    assert!(rebooted.handle_datagram(Instant::ZERO, server, &notification).is_none(), "discarded");
    let mut answer = Vec::new();
    rebooted.poll_transmit(Instant::ZERO, |_| Draw::from_bits(0), &mut answer).expect("an answer");
    plug.wire.note(Sent, &answer);
    socket.send_to(&answer, server).expect("sent");

    let notification = plug.server_sends("CON 2.05").await.of(&content).newer_than(&last).with_payload("2");
    plug.client_sends("RST 0.00").await.empty_to(&notification);
    socket.set_read_timeout(Some(A_WHILE)).expect("a timeout");
    tokio::time::sleep(Duration::from_millis(50)).await;
    plug.state.set_obs("3");
    let silent = tokio::task::spawn_blocking(move || socket.recv(&mut [0; 64]).is_err());
    assert!(silent.await.expect("no panic"));
}

#[tokio::test]
async fn td_coap_obs_07_the_resource_is_deleted() {
    let plug = Plug::begin("TD_COAP_OBS_07");
    let (mut observation, content) = begin(&plug, "/obs").await;
    notified(&plug, &mut observation, &content, "1").await;
    plug.response(plug.delete("/obs")).await;
    let request = plug.client_sends("CON DELETE /obs").await;
    plug.server_sends("ACK 2.02").await.to(&request);
    it_ends(&plug, &mut observation, &content, "CON 4.04").await;
}

/// An error ends the observation on both sides (RFC 7641 §4.2).
async fn it_ends(plug: &Plug, observation: &mut Observation, content: &Seen, name: &str) {
    let last = plug.server_sends(name).await.of(content).without(OBSERVE);
    plug.client_sends("ACK 0.00").await.empty_to(&last);
    let notification = observation.next().await.expect("the error").expect("a response");
    assert_eq!(notification.code, last.code);
    assert!(observation.next().await.is_none());
    plug.state.set_obs("9");
    plug.is_silent(A_WHILE).await;
}

#[tokio::test]
async fn td_coap_obs_08_the_content_format_changes() {
    let plug = Plug::begin("TD_COAP_OBS_08");
    let (mut observation, content) = begin(&plug, "/obs").await;
    notified(&plug, &mut observation, &content, "1").await;
    let update = plug.client.post(&plug.uri("/obs")).content_format(JSON).payload("[2]");
    plug.response(update).await;
    let request = plug.client_sends("CON POST /obs").await.with_content(JSON);
    plug.server_sends("ACK 2.04").await.to(&request);
    it_ends(&plug, &mut observation, &content, "CON 4.06").await;
}

#[tokio::test]
async fn td_coap_obs_09_the_resource_is_updated() {
    let plug = Plug::begin("TD_COAP_OBS_09");
    let (mut observation, content) = begin(&plug, "/obs").await;
    let last = notified(&plug, &mut observation, &content, "1").await;
    let response = plug.response(plug.post("/obs", "2")).await;
    let request = plug.client_sends("CON POST /obs").await.with_content(TEXT);
    plug.server_sends("ACK 2.04").await.to(&request);
    let last = arrives(&plug, &last, "2").await;
    assert_eq!((response.code, next_text(&mut observation).await.as_str()), (Code::CHANGED, "2"));
    notified(&plug, &mut observation, &last, "3").await;
}

#[tokio::test]
async fn td_coap_obs_10_a_get_does_not_end_it() {
    let plug = Plug::begin("TD_COAP_OBS_10");
    let (mut observation, content) = begin(&plug, "/obs").await;
    let last = notified(&plug, &mut observation, &content, "1").await;
    plug.response(plug.get("/obs")).await;
    let request = plug.client_sends("CON GET /obs").await.new_after(&[&content]).without(OBSERVE);
    plug.server_sends("ACK 2.05").await.to(&request).with_content(TEXT).without(OBSERVE);
    notified(&plug, &mut observation, &last, "2").await;
}

#[tokio::test]
async fn td_coap_obs_11_notifications_on_a_lossy_path() {
    let plug = Plug::begin_with("TD_COAP_OBS_11", "200ms", Profile::default().config);
    let (mut observation, content) = begin(&plug, "/obs").await;

    // While a notification is not acknowledged, a newer one takes its place: no second one is under way.
    plug.wire.lose(Received, "CON 2.05");
    plug.state.set_obs("1");
    let first = plug.server_sends("CON 2.05").await.lost().of(&content).newer_than(&content);
    plug.state.set_obs("2");
    let second = arrives(&plug, &first, "2").await;
    second.after(&first, Duration::from_millis(200));
    assert_eq!(next_text(&mut observation).await, "2");

    plug.wire.lose(Sent, "ACK 0.00");
    plug.state.set_obs("3");
    let third = plug.server_sends("CON 2.05").await.newer_than(&second);
    plug.client_sends("ACK 0.00").await.lost().empty_to(&third);
    plug.server_sends("CON 2.05").await.again(&third);
    plug.client_sends("ACK 0.00").await.empty_to(&third);
    assert_eq!(next_text(&mut observation).await, "3");
    plug.is_silent(A_WHILE).await;
}

#[tokio::test]
async fn td_coap_obs_12_a_get_with_observe_1_ends_it() {
    let plug = Plug::begin("TD_COAP_OBS_12");
    let (mut observation, content) = begin(&plug, "/obs").await;
    notified(&plug, &mut observation, &content, "1").await;
    observation.end().await.expect("the server knows");
    let farewell = plug.client_sends("CON GET /obs").await.of(&content).with(OBSERVE, 1);
    plug.server_sends("ACK 2.05").await.to(&farewell).with_content(TEXT).without(OBSERVE);
    plug.state.set_obs("2");
    plug.is_silent(A_WHILE).await;
}

/// Until /obs-pumping is that long again, and the client has its blocks.
async fn pumped(plug: &Plug, observation: &mut Observation, before: &Seen, text: &str) -> Seen {
    let body = if text.len() > 1 { text.repeat(600) } else { text.into() };
    plug.state.set_obs(text);
    assert_eq!(next_text(observation).await, body);
    let notification = plug.server_sends("CON 2.05").await.of(before).newer_than(before).with_content(TEXT);
    plug.client_sends("ACK 0.00").await.empty_to(&notification);
    the_rest_comes(plug, &notification, &body).await;
    notification
}

/// The client fetches the blocks after the notification, each with a request that does not observe.
async fn the_rest_comes(plug: &Plug, notification: &Seen, body: &str) {
    let blocks: Vec<&[u8]> = body.as_bytes().chunks(1024).collect();
    assert_eq!(notification.payload, blocks[0]);
    if blocks.len() == 1 {
        notification.clone().without(BLOCK2);
        return;
    }
    notification.clone().with_block(BLOCK2, (0, true, 1024));
    for (num, block) in blocks.iter().enumerate().skip(1) {
        let request = plug.client_sends("CON GET /obs-pumping").await.without(OBSERVE);
        let request = request.new_after(&[notification]).with_block(BLOCK2, (num as u32, false, 1024));
        let content = plug.server_sends("ACK 2.05").await.to(&request).with_payload(block);
        content.with_block(BLOCK2, (num as u32, num + 1 < blocks.len(), 1024));
    }
}

#[tokio::test]
async fn td_coap_obs_13_large_representations() {
    let plug = Plug::begin("TD_COAP_OBS_13");
    plug.state.set_obs("100");
    let mut observation = plug.get("/obs-pumping").observe().await.expect("a response");
    let request = plug.client_sends("CON GET /obs-pumping").await.with(OBSERVE, 0);
    let mut last = plug.server_sends("ACK 2.05").await.to(&request).with_content(TEXT);
    the_rest_comes(&plug, &last, &"100".repeat(600)).await;
    for text in ["101", "1020"] {
        last = pumped(&plug, &mut observation, &last, text).await;
    }
}

#[tokio::test]
async fn td_coap_obs_14_representations_that_are_large_at_times() {
    let plug = Plug::begin("TD_COAP_OBS_14");
    let (mut observation, mut last) = begin(&plug, "/obs-pumping").await;
    for text in ["101", "2", "103", "4"] {
        last = pumped(&plug, &mut observation, &last, text).await;
    }
}
