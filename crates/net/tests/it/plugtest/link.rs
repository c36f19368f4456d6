//! TD_COAP_LINK: discovery (td-coap4, `link`; RFC 6690).

use super::plug::Plug;
use super::resources::{LINKS, TEXT};

/// The targets of the links that a query chooses.
async fn targets(plug: &Plug, query: &str) -> Vec<String> {
    let path = format!("/.well-known/core{query}");
    let response = plug.response(plug.get(&path)).await;
    let request = plug.client_sends(&format!("CON GET {path}")).await;
    plug.server_sends("ACK 2.05").await.to(&request).with_content(LINKS);
    let text = response.text().into_owned();
    let links = text.split(',').map(|link| link.split_once('>').expect("a link").0[1..].to_owned());
    links.collect()
}

#[tokio::test]
async fn td_coap_link_01_all_links() {
    let plug = Plug::begin("TD_COAP_LINK_01");
    let targets = targets(&plug, "").await;
    for path in
        ["/test", "/separate", "/seg1/seg2/seg3", "/validate", "/large", "/obs", "/link1", "/path/sub2"]
    {
        assert!(targets.iter().any(|target| target == path), "{path} in {targets:?}");
    }
    assert_eq!(targets.len(), 22);
}

#[tokio::test]
async fn td_coap_link_02_links_of_a_type() {
    let plug = Plug::begin("TD_COAP_LINK_02");
    assert_eq!(targets(&plug, "?rt=Type1").await, ["/test", "/query"]);
}

#[tokio::test]
async fn td_coap_link_03_links_of_any_type() {
    let plug = Plug::begin("TD_COAP_LINK_03");
    assert_eq!(targets(&plug, "?rt=*").await, ["/test", "/separate", "/query", "/large"]);
}

#[tokio::test]
async fn td_coap_link_04_links_of_one_of_several_types() {
    let plug = Plug::begin("TD_COAP_LINK_04");
    assert_eq!(targets(&plug, "?rt=Type2").await, ["/test", "/separate"]);
}

#[tokio::test]
async fn td_coap_link_05_links_of_interfaces_that_begin_so() {
    let plug = Plug::begin("TD_COAP_LINK_05");
    assert_eq!(targets(&plug, "?if=If*").await, ["/test", "/separate"]);
}

#[tokio::test]
async fn td_coap_link_06_links_that_say_a_size() {
    let plug = Plug::begin("TD_COAP_LINK_06");
    assert_eq!(targets(&plug, "?sz=*").await, ["/large"]);
}

#[tokio::test]
async fn td_coap_link_07_the_link_to_a_path() {
    let plug = Plug::begin("TD_COAP_LINK_07");
    assert_eq!(targets(&plug, "?href=/link1").await, ["/link1"]);
}

#[tokio::test]
async fn td_coap_link_08_links_to_paths_that_begin_so() {
    let plug = Plug::begin("TD_COAP_LINK_08");
    assert_eq!(targets(&plug, "?href=/link*").await, ["/link1", "/link2", "/link3"]);
}

#[tokio::test]
async fn td_coap_link_09_links_in_a_hierarchy() {
    let plug = Plug::begin("TD_COAP_LINK_09");
    assert!(targets(&plug, "").await.contains(&"/path".to_owned()));
    plug.response(plug.get("/path")).await;
    let request = plug.client_sends("CON GET /path").await;
    let links = plug.server_sends("ACK 2.05").await.to(&request).with_content(LINKS);
    links.with_payload("</path/sub1>,</path/sub2>");
    plug.response(plug.get("/path/sub1")).await;
    let request = plug.client_sends("CON GET /path/sub1").await;
    plug.server_sends("ACK 2.05").await.to(&request).with_content(TEXT).with_payload("/path/sub1");
}
