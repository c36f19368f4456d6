//! The test cases of the ETSI CoAP plugtests, our client against our server.
//!
//! Identifiers and sequences come from the test descriptions of CoAP#4 (td-coap4: `base`, `block`, `link`), with two
//! additions: TD_COAP_OBS_03 is only in the guide of the plugtest of November 2012, and TD_COAP_CORE_30 is in neither. Every
//! *check* of a sequence is asserted on the datagrams that pass the client, every *verify* on the result of the client.
//!
//! With `COAPACE_CAPTURES=DIR` each case also writes `DIR/TD_….pcapng`: `tests/check-plugtest` has them judged by ttproto and
//! tshark.
//!
//! Not here, because the crate has no proxy: TD_COAP_CORE_24 to TD_COAP_CORE_29 ask a reverse proxy for what TD_COAP_CORE_18 to
//! TD_COAP_CORE_23 ask a server for, and whether it answers from its cache. Of TD_COAP_CORE_29 the Max-Age is left, see
//! [`requests`].

mod block;
mod link;
mod obs;
mod plug;
#[path = "plugtest/core.rs"] // `core` is a crate
mod requests;
mod resources;
mod seen;
mod wire;
