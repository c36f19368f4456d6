//! `coapace relay` between the command's own client and server.

use std::fs;

use crate::common::{Scratch, Serving, coapace};
use crate::metrics::scrape;

#[test]
fn what_a_client_asks_passes_through_the_relay() {
    let server = Serving::new(&["--demo"]);
    let scratch = Scratch::new();
    let pcap = scratch.file("relay.pcapng");
    let relay = Serving::relay(&server.uri, &["--cc", "fasor-token", "--pcap", &pcap]);
    let ask = |arguments: &[&str]| coapace(arguments).success();
    assert_eq!(ask(&["post", &relay.at("/counter")]), "1");
    assert_eq!(ask(&["get", "-N", &relay.at("/counter")]), "1");
    assert_eq!(ask(&["get", &relay.at("/large?bytes=5000")]).len(), 5_000);
    assert!(!ask(&["get", &relay.at("/delayed?s=1"), "--cc", "fasor-token"]).is_empty());
    assert_eq!(ask(&["observe", &relay.at("/clock"), "--count", "2"]).lines().count(), 2);
    assert_eq!(coapace(&["get", &relay.at("/none")]).failure(3), "4.04 Not Found");
    let (code, said) = relay.interrupt();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(" requests of 6 sources, 0 copies absorbed; towards the server "), "{said}");
    assert!(fs::metadata(&pcap).expect("the capture").len() > 1_000);
}

#[test]
fn keys_pass_through_the_relay_unseen() {
    let keys = ["-u", "lamp-7", "-k", "a long secret"];
    let server = Serving::new(&[&keys[..], &["--resource", "/a=1"]].concat());
    let relay = Serving::relay(&server.others[0].replace("coaps", "coap"), &["--cc", "cocoa"]);
    let uri = relay.at("/a").replace("coap:", "coaps:");
    assert_eq!(coapace(&[&["get", &uri][..], &keys].concat()).success(), "1");
    let (_, said) = relay.interrupt();
    assert!(said.contains(" datagrams of DTLS passed on"), "{said}");
}

#[test]
fn a_relay_has_the_metrics_of_its_exchanges_with_the_server() {
    let server = Serving::new(&["--resource", "/a=1"]);
    let mut relay = Serving::relay(&server.uri, &["--sluice", "--metrics", "127.0.0.1:0"]);
    let uri = relay.line();
    let address = uri.strip_prefix("http://").and_then(|uri| uri.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{uri:?}"));
    assert_eq!(coapace(&["get", &relay.at("/a")]).success(), "1");
    let text = scrape(address);
    for line in ["coap_exchanges_started_total 1", "coap_relay_requests_total 1", "coap_relay_sources 1"] {
        assert!(text.lines().any(|told| told == line), "{line} is not in {text}");
    }
}

#[test]
fn a_relay_that_cannot_begin_says_why() {
    for (arguments, code, told) in [
        (&["--to", "127.0.0.1:1"][..], 2, "--listen"),
        (&["--listen", "127.0.0.1:0", "--to", "127.0.0.1:1"], 2, "--cc"),
        (&["--listen", "127.0.0.1:0", "--to", "nowhere", "--cc", "fasor"], 2, "--to takes ADDRESS:PORT"),
        (&["--listen", "127.0.0.1:0", "--to", "127.0.0.1:1", "--cc", "fasr"], 2, "fasor"),
        (&["--listen", "127.0.0.1:9", "--to", "127.0.0.1:9", "--cc", "fasor"], 2, "same address"),
        (
            &["--listen", "192.0.2.1:5683", "--to", "127.0.0.1:9", "--cc", "fasor"],
            1,
            "not an address of this host",
        ),
    ] {
        let outcome = coapace(&[&["relay"], arguments].concat());
        let line = outcome.failure(code);
        assert!(line.contains(told), "{line}");
    }
}
