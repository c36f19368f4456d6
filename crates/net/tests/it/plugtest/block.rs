//! TD_COAP_BLOCK: bodies in blocks (td-coap4, `block`; RFC 7959).

use coap_numbers::option::{BLOCK1, BLOCK2};
use coapace_net::Code;

use super::plug::Plug;
use super::resources::{TEXT, large};

/// The rest of a body comes, from block `first` on: each block is asked for alone and is whole but for the last.
async fn the_rest_comes(plug: &Plug, request: &str, code: &str, first: usize, size: usize) {
    let body = large();
    let blocks: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
    for (num, block) in blocks.iter().enumerate().skip(first) {
        let more = num + 1 < blocks.len();
        let request = plug.client_sends(request).await.with_block(BLOCK2, (num as u32, false, size));
        let content = plug.server_sends(code).await.to(&request).with_payload(block);
        content.with_block(BLOCK2, (num as u32, more, size));
    }
}

/// A body leaves from block 0 on: all but the last are whole, answered 2.31 and say that there are more.
async fn a_body_leaves(plug: &Plug, request: &str, last: &str, size: usize) -> super::seen::Seen {
    let body = large();
    let blocks: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
    for (num, block) in blocks.iter().enumerate() {
        let more = num + 1 < blocks.len();
        let request = plug.client_sends(request).await.with_payload(block);
        let request = request.with_block(BLOCK1, (num as u32, more, size));
        let answer = plug.server_sends(if more { "ACK 2.31" } else { last }).await.to(&request);
        let answer = answer.with_block(BLOCK1, (num as u32, more, size));
        if !more {
            return answer;
        }
    }
    panic!("the last block has none after it")
}

#[tokio::test]
async fn td_coap_block_01_get_of_a_large_resource_early_negotiation() {
    let plug = Plug::begin("TD_COAP_BLOCK_01");
    let response = plug.response(plug.get("/large").block_size(64)).await;
    the_rest_comes(&plug, "CON GET /large", "ACK 2.05", 0, 64).await;
    assert_eq!(response.payload, large());
}

#[tokio::test]
async fn td_coap_block_02_get_of_a_large_resource_late_negotiation() {
    let plug = Plug::begin("TD_COAP_BLOCK_02");
    let response = plug.response(plug.get("/large")).await;
    let request = plug.client_sends("CON GET /large").await.without(BLOCK2);
    let content = plug.server_sends("ACK 2.05").await.to(&request).with_payload(&large()[..1024]);
    content.with_block(BLOCK2, (0, true, 1024));
    the_rest_comes(&plug, "CON GET /large", "ACK 2.05", 1, 1024).await;
    assert_eq!(response.payload, large());
}

#[tokio::test]
async fn td_coap_block_03_put_of_a_large_resource() {
    let plug = Plug::begin("TD_COAP_BLOCK_03");
    let response = plug.response(plug.put("/large-update", &large()).block_size(128)).await;
    a_body_leaves(&plug, "CON PUT /large-update", "ACK 2.04", 128).await;
    assert_eq!(response.code, Code::CHANGED);
    assert_eq!(plug.response(plug.get("/large-update")).await.payload, large());
}

#[tokio::test]
async fn td_coap_block_04_post_that_creates_a_large_resource() {
    let plug = Plug::begin("TD_COAP_BLOCK_04");
    let response = plug.response(plug.post("/large-create", &large())).await;
    let created = a_body_leaves(&plug, "CON POST /large-create", "ACK 2.01", 1024).await;
    created.with_all(coap_numbers::option::LOCATION_PATH, &[b"large-create", b"1"]);
    assert_eq!(response.code, Code::CREATED);

    let response = plug.response(plug.get("/large-create/1")).await;
    let request = plug.client_sends("CON GET /large-create/1").await;
    plug.server_sends("ACK 2.05").await.to(&request).with_block(BLOCK2, (0, true, 1024));
    the_rest_comes(&plug, "CON GET /large-create/1", "ACK 2.05", 1, 1024).await;
    assert_eq!(response.payload, large());
}

#[tokio::test]
async fn td_coap_block_05_post_with_blocks_both_ways() {
    let plug = Plug::begin("TD_COAP_BLOCK_05");
    let response = plug.response(plug.post("/large-post", &large())).await;
    let changed = a_body_leaves(&plug, "CON POST /large-post", "ACK 2.04", 1024).await;
    changed.with_block(BLOCK2, (0, true, 1024)).with_payload(&large()[..1024]).with_content(TEXT);
    the_rest_comes(&plug, "CON POST /large-post", "ACK 2.04", 1, 1024).await;
    assert_eq!((response.code, response.payload), (Code::CHANGED, large().into()));
}

#[tokio::test]
async fn td_coap_block_06_get_of_a_large_resource_in_blocks_of_16_bytes() {
    let plug = Plug::begin("TD_COAP_BLOCK_06");
    let response = plug.response(plug.get("/large").block_size(16)).await;
    the_rest_comes(&plug, "CON GET /large", "ACK 2.05", 0, 16).await;
    assert_eq!(response.payload, large());
}
