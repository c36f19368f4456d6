//! TD_COAP_CORE: requests and their responses (td-coap4, `base`).

use std::time::Duration;

use coap_numbers::option;
use coapace_net::Direction::{Received, Sent};
use coapace_net::{Call, Code, Profile};

use super::plug::Plug;
use super::resources::{SEPARATE, TEXT, XML};
use super::seen::MOMENT;

/// Longer than whatever might still be on its way.
const A_MOMENT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn td_coap_core_01_get_confirmable() {
    let plug = Plug::begin("TD_COAP_CORE_01");
    let response = plug.response(plug.get("/test")).await;
    let request = plug.client_sends("CON GET /test").await.with_token();
    plug.server_sends("ACK 2.05").await.to(&request).with_content(TEXT);
    assert_eq!(response.text(), "test");
}

#[tokio::test]
async fn td_coap_core_02_delete_confirmable() {
    let plug = Plug::begin("TD_COAP_CORE_02");
    let response = plug.response(plug.delete("/test")).await;
    let request = plug.client_sends("CON DELETE /test").await.with_token();
    plug.server_sends("ACK 2.02").await.to(&request).says_its_format();
    assert_eq!(response.code, Code::DELETED);
}

#[tokio::test]
async fn td_coap_core_03_put_confirmable() {
    let plug = Plug::begin("TD_COAP_CORE_03");
    let response = plug.response(plug.put("/test", "new")).await;
    let request = plug.client_sends("CON PUT /test").await.with_token().with_content(TEXT);
    plug.server_sends("ACK 2.04").await.to(&request).says_its_format();
    assert_eq!(response.code, Code::CHANGED);
}

#[tokio::test]
async fn td_coap_core_04_post_confirmable() {
    let plug = Plug::begin("TD_COAP_CORE_04");
    let response = plug.response(plug.post("/test", "new")).await;
    let request = plug.client_sends("CON POST /test").await.with_token().with_content(TEXT);
    plug.server_sends("ACK 2.01").await.to(&request).says_its_format();
    assert_eq!(response.code, Code::CREATED);
}

/// The four methods, non-confirmable: the response is non-confirmable too, with a Message ID of the server's.
async fn non_confirmable(plug: &Plug, call: Call, request: &str, code: &str) {
    plug.response(call.non_confirmable()).await;
    let request = plug.client_sends(&format!("NON {request}")).await.with_token().says_its_format();
    plug.server_sends(&format!("NON {code}")).await.of(&request).says_its_format();
    plug.is_silent(A_MOMENT).await;
}

#[tokio::test]
async fn td_coap_core_05_get_non_confirmable() {
    let plug = Plug::begin("TD_COAP_CORE_05");
    non_confirmable(&plug, plug.get("/test"), "GET /test", "2.05").await;
}

#[tokio::test]
async fn td_coap_core_06_delete_non_confirmable() {
    let plug = Plug::begin("TD_COAP_CORE_06");
    non_confirmable(&plug, plug.delete("/test"), "DELETE /test", "2.02").await;
}

#[tokio::test]
async fn td_coap_core_07_put_non_confirmable() {
    let plug = Plug::begin("TD_COAP_CORE_07");
    non_confirmable(&plug, plug.put("/test", "new"), "PUT /test", "2.04").await;
}

#[tokio::test]
async fn td_coap_core_08_post_non_confirmable() {
    let plug = Plug::begin("TD_COAP_CORE_08");
    non_confirmable(&plug, plug.post("/test", "new"), "POST /test", "2.01").await;
}

/// A separate response: acknowledged empty, then sent confirmable, and acknowledged empty by the client.
async fn separate_response(plug: &Plug) {
    let response = plug.response(plug.get("/separate")).await;
    let request = plug.client_sends("CON GET /separate").await.with_token();
    plug.server_sends("ACK 0.00").await.empty_to(&request);
    let content = plug.server_sends("CON 2.05").await.of(&request).with_content(TEXT);
    content.after(&request, SEPARATE);
    plug.client_sends("ACK 0.00").await.empty_to(&content);
    assert_eq!(response.text(), "separate");
}

#[tokio::test]
async fn td_coap_core_09_get_with_a_separate_response() {
    separate_response(&Plug::begin("TD_COAP_CORE_09")).await;
}

#[tokio::test]
async fn td_coap_core_10_get_with_a_token() {
    let plug = Plug::begin("TD_COAP_CORE_10");
    plug.response(plug.get("/test")).await;
    let request = plug.client_sends("CON GET /test").await.with_token();
    plug.server_sends("ACK 2.05").await.to(&request).with_content(TEXT);
}

#[tokio::test]
async fn td_coap_core_11_get_with_a_token_and_a_separate_response() {
    separate_response(&Plug::begin("TD_COAP_CORE_11")).await;
}

#[tokio::test]
async fn td_coap_core_12_get_with_an_empty_token() {
    // Clients of ours always have a token: this one is bytes.
    let plug = Plug::begin("TD_COAP_CORE_12");
    plug.ask_by_hand(b"\x40\x01\x12\x34\xb4test").await;
    let request = plug.client_sends("CON GET /test").await;
    assert_eq!(request.token, b"");
    plug.server_sends("ACK 2.05").await.to(&request).with_content(TEXT);
}

#[tokio::test]
async fn td_coap_core_13_get_with_several_uri_path_options() {
    let plug = Plug::begin("TD_COAP_CORE_13");
    plug.response(plug.get("/seg1/seg2/seg3")).await;
    let request = plug.client_sends("CON GET /seg1/seg2/seg3").await.with_token();
    let request = request.with_all(option::URI_PATH, &[b"seg1", b"seg2", b"seg3"]);
    plug.server_sends("ACK 2.05").await.to(&request).with_content(TEXT);
}

#[tokio::test]
async fn td_coap_core_14_get_with_several_uri_query_options() {
    let plug = Plug::begin("TD_COAP_CORE_14");
    plug.response(plug.get("/query?first=1&second=2&third=3")).await;
    let request = plug.client_sends("CON GET /query?first=1&second=2&third=3").await.with_token();
    let request = request.with_all(option::URI_QUERY, &[b"first=1", b"second=2", b"third=3"]);
    plug.server_sends("ACK 2.05").await.to(&request).with_content(TEXT);
}

#[tokio::test]
async fn td_coap_core_15_get_on_a_lossy_path() {
    let plug = Plug::begin_with("TD_COAP_CORE_15", "200ms", Profile::default().config);
    plug.wire.lose(Sent, "CON GET /test");
    plug.wire.lose(Received, "ACK 2.05");
    let response = plug.response(plug.get("/test")).await;
    let request = plug.client_sends("CON GET /test").await.lost();
    let second = plug.client_sends("CON GET /test").await.again(&request);
    plug.server_sends("ACK 2.05").await.lost().to(&request);
    let third = plug.client_sends("CON GET /test").await.again(&request);
    let content = plug.server_sends("ACK 2.05").await.to(&request).with_content(TEXT);
    assert_eq!((response.text().as_ref(), response.transmissions), ("test", 3));
    second.after(&request, Duration::from_millis(200));
    third.after(&second, Duration::from_millis(400));
    assert!(response.elapsed.abs_diff(content.at - request.at) <= MOMENT);
}

#[tokio::test]
async fn td_coap_core_16_get_of_a_separate_response_on_a_lossy_path() {
    let plug = Plug::begin_with("TD_COAP_CORE_16", "400ms", Profile::default().config);

    // A request is lost.
    plug.wire.lose(Sent, "CON GET /separate");
    plug.response(plug.get("/separate")).await;
    let request = plug.client_sends("CON GET /separate").await.lost();
    plug.client_sends("CON GET /separate").await.again(&request);
    plug.server_sends("ACK 0.00").await.empty_to(&request);
    let content = plug.server_sends("CON 2.05").await.of(&request).with_content(TEXT);
    plug.client_sends("ACK 0.00").await.empty_to(&content);

    // The acknowledgements of a request are lost: it is sent again, until its response comes.
    plug.wire.lose(Received, "ACK 0.00");
    plug.wire.lose(Received, "ACK 0.00");
    plug.response(plug.get("/separate")).await;
    let request = plug.client_sends("CON GET /separate").await.new_after(&[&request]);
    plug.server_sends("ACK 0.00").await.lost().empty_to(&request);
    plug.client_sends("CON GET /separate").await.again(&request);
    plug.server_sends("ACK 0.00").await.lost().empty_to(&request);
    let content = plug.server_sends("CON 2.05").await.of(&request).with_content(TEXT);
    plug.client_sends("ACK 0.00").await.empty_to(&content);
    plug.is_silent(Duration::from_secs(1)).await;

    // A response is lost.
    plug.wire.lose(Received, "CON 2.05");
    plug.response(plug.get("/separate")).await;
    let request = plug.client_sends("CON GET /separate").await;
    plug.server_sends("ACK 0.00").await.empty_to(&request);
    let content = plug.server_sends("CON 2.05").await.lost().of(&request);
    plug.server_sends("CON 2.05").await.again(&content);
    plug.client_sends("ACK 0.00").await.empty_to(&content);

    // The acknowledgement of a response is lost: the response is sent again, and acknowledged again.
    plug.wire.lose(Sent, "ACK 0.00");
    plug.response(plug.get("/separate")).await;
    let request = plug.client_sends("CON GET /separate").await;
    plug.server_sends("ACK 0.00").await.empty_to(&request);
    let content = plug.server_sends("CON 2.05").await.of(&request);
    plug.client_sends("ACK 0.00").await.lost().empty_to(&content);
    plug.server_sends("CON 2.05").await.again(&content);
    plug.client_sends("ACK 0.00").await.empty_to(&content);
}

#[tokio::test]
async fn td_coap_core_17_get_non_confirmable_of_what_takes_long() {
    let plug = Plug::begin("TD_COAP_CORE_17");
    let response = plug.response(plug.get("/separate").non_confirmable()).await;
    let request = plug.client_sends("NON GET /separate").await.with_token();
    // No acknowledgement before it.
    let content = plug.server_sends("NON 2.05").await.of(&request).with_content(TEXT);
    content.after(&request, SEPARATE);
    assert_eq!(response.text(), "separate");
}

#[tokio::test]
async fn td_coap_core_18_post_answered_with_a_location_path() {
    let plug = Plug::begin("TD_COAP_CORE_18");
    let response = plug.response(plug.post("/test", "new")).await;
    let request = plug.client_sends("CON POST /test").await.with_content(TEXT);
    let location: [&[u8]; 3] = [b"location1", b"location2", b"location3"];
    let created = plug.server_sends("ACK 2.01").await.to(&request);
    created.with_all(option::LOCATION_PATH, &location);
    let displayed = response.options.iter().filter(|&(number, _)| number == option::LOCATION_PATH);
    assert!(displayed.map(|(_, value)| value).eq(location));
}

#[tokio::test]
async fn td_coap_core_19_post_answered_with_a_location_query() {
    let plug = Plug::begin("TD_COAP_CORE_19");
    plug.response(plug.post("/location-query", "new")).await;
    let request = plug.client_sends("CON POST /location-query").await.with_token().with_content(TEXT);
    let created = plug.server_sends("ACK 2.01").await.to(&request).says_its_format();
    created.with_all(option::LOCATION_QUERY, &[b"first=1", b"second=2"]);
}

#[tokio::test]
async fn td_coap_core_20_get_with_the_accept_option() {
    let plug = Plug::begin("TD_COAP_CORE_20");
    let mut before = Vec::new();
    for format in [TEXT, XML] {
        let response = plug.response(plug.get("/multi-format").accept(format)).await;
        let request = plug.client_sends("CON GET /multi-format").await.with_token();
        let request =
            request.with(option::ACCEPT, format.into()).new_after(&before.iter().collect::<Vec<_>>());
        plug.server_sends("ACK 2.05").await.to(&request).with_content(format);
        assert_eq!(response.format(), Some(format));
        before.push(request);
    }
}

#[tokio::test]
async fn td_coap_core_21_get_with_the_etag_option() {
    let plug = Plug::begin("TD_COAP_CORE_21");
    plug.response(plug.get("/validate")).await;
    let first = plug.client_sends("CON GET /validate").await.without(option::ETAG);
    let content = plug.server_sends("ACK 2.05").await.to(&first).with_content(TEXT);
    let [etag] = content.values(option::ETAG)[..] else { panic!("an ETag in {content:?}") };

    plug.response(plug.get("/validate").option(option::ETAG, etag)).await;
    let second = plug.client_sends("CON GET /validate").await.new_after(&[&first]);
    let second = second.with_all(option::ETAG, &[etag]);
    let valid = plug.server_sends("ACK 2.03").await.to(&second);
    valid.with_all(option::ETAG, &[etag]).with_payload("");

    plug.response(plug.put("/validate", "update")).await;
    let update = plug.client_sends("CON PUT /validate").await.with_content(TEXT);
    plug.server_sends("ACK 2.04").await.to(&update);

    plug.response(plug.get("/validate").option(option::ETAG, etag)).await;
    let third = plug.client_sends("CON GET /validate").await.new_after(&[&first, &second]);
    let third = third.with_all(option::ETAG, &[etag]);
    let changed = plug.server_sends("ACK 2.05").await.to(&third).with_payload("update");
    let [other] = changed.values(option::ETAG)[..] else { panic!("an ETag in {changed:?}") };
    assert_ne!(other, etag);
}

#[tokio::test]
async fn td_coap_core_22_put_with_the_if_match_option() {
    let plug = Plug::begin("TD_COAP_CORE_22");
    plug.response(plug.get("/validate")).await;
    let first = plug.client_sends("CON GET /validate").await.without(option::ETAG);
    let content = plug.server_sends("ACK 2.05").await.to(&first).with_content(TEXT);
    let [etag] = content.values(option::ETAG)[..] else { panic!("an ETag in {content:?}") };

    plug.response(plug.put("/validate", "second").option(option::IF_MATCH, etag)).await;
    let second = plug.client_sends("CON PUT /validate").await.new_after(&[&first]).with_content(TEXT);
    let second = second.with_all(option::IF_MATCH, &[etag]);
    plug.server_sends("ACK 2.04").await.to(&second).says_its_format();

    plug.response(plug.get("/validate")).await;
    let third = plug.client_sends("CON GET /validate").await.new_after(&[&first, &second]);
    let content = plug.server_sends("ACK 2.05").await.to(&third).with_payload("second");
    let [other] = content.values(option::ETAG)[..] else { panic!("an ETag in {content:?}") };
    assert_ne!(other, etag);

    plug.response(plug.put("/validate", "third")).await;
    let fourth = plug.client_sends("CON PUT /validate").await.new_after(&[&first, &second, &third]);
    plug.server_sends("ACK 2.04").await.to(&fourth.with_content(TEXT)).says_its_format();

    let response = plug.response(plug.put("/validate", "fourth").option(option::IF_MATCH, other)).await;
    let fifth = plug.client_sends("CON PUT /validate").await.new_after(&[&first, &second, &third]);
    let fifth = fifth.with_content(TEXT).with_all(option::IF_MATCH, &[other]);
    plug.server_sends("ACK 4.12").await.to(&fifth);
    assert_eq!(response.code, Code::PRECONDITION_FAILED);
    assert_eq!(plug.response(plug.get("/validate")).await.text(), "third");
}

#[tokio::test]
async fn td_coap_core_23_put_with_the_if_none_match_option() {
    let plug = Plug::begin("TD_COAP_CORE_23");
    let create = |text| plug.put("/create1", text).option(option::IF_NONE_MATCH, b"");
    plug.response(create("first")).await;
    let first = plug.client_sends("CON PUT /create1").await.with_token().with_content(TEXT);
    let first = first.with_all(option::IF_NONE_MATCH, &[b""]);
    plug.server_sends("ACK 2.01").await.to(&first).says_its_format();

    let response = plug.response(create("second")).await;
    let second = plug.client_sends("CON PUT /create1").await.new_after(&[&first]).with_content(TEXT);
    let second = second.with_all(option::IF_NONE_MATCH, &[b""]);
    plug.server_sends("ACK 4.12").await.to(&second);
    assert_eq!(response.code, Code::PRECONDITION_FAILED);
}

/// The rest of TD_COAP_CORE_29 without a proxy: the response says for how long it is fresh.
#[tokio::test]
async fn td_coap_core_29_get_of_what_has_a_max_age() {
    let plug = Plug::begin("TD_COAP_CORE_29");
    let response = plug.response(plug.get("/obs")).await;
    let request = plug.client_sends("CON GET /obs").await;
    let content = plug.server_sends("ACK 2.05").await.to(&request).with_content(TEXT);
    content.with(option::MAX_AGE, super::resources::OBS_MAX_AGE).without(option::OBSERVE);
    assert_eq!(response.options.uint(option::MAX_AGE), Some(super::resources::OBS_MAX_AGE.into()));
}

#[tokio::test]
async fn td_coap_core_31_ping() {
    let plug = Plug::begin("TD_COAP_CORE_31");
    let response = plug.response(plug.client.ping(&plug.uri("/"))).await;
    let ping = plug.client_sends("CON 0.00").await;
    assert_eq!(ping.bytes.len(), 4);
    plug.server_sends("RST 0.00").await.empty_to(&ping);
    assert_eq!(response.code, Code::EMPTY);
}
