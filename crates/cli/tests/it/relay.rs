//! `coapace relay` between the command's own client and server.

use std::fs;

use crate::common::{Scratch, Serving, coapace};
use crate::metrics::scrape;

#[test]
fn requests_pass_through_coapace_relay() {
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
fn a_relay_without_keys_forwards_dtls_unread() {
    let keys = ["-u", "lamp-7", "-k", "a long secret"];
    let server = Serving::new(&[&keys[..], &["--resource", "/a=1"]].concat());
    let relay = Serving::relay(&server.others[0], &["--cc", "cocoa"]);
    let uri = relay.at("/a").replace("coap:", "coaps:");
    assert_eq!(coapace(&[&["get", &uri][..], &keys].concat()).success(), "1");
    let (_, said) = relay.interrupt();
    assert!(said.contains(" datagrams of DTLS passed on"), "{said}");
}

#[test]
fn a_relay_with_keys_terminates_dtls_and_opens_its_own_session_to_the_server() {
    let keys = ["-u", "lamp-7", "-k", "a long secret"];
    let to_server = ["--server-identity", "relay-1", "--server-key", "another secret"];
    let plain = Serving::new(&["--demo"]);
    let secure = Serving::new(&["--demo", "-u", "relay-1", "-k", "another secret"]);
    for (server, relay_keys, client_keys) in [
        (&plain.uri, &keys[..], &keys[..]),
        (&secure.others[0], &to_server, &[]),
        (&secure.others[0], &[keys, to_server].concat(), &keys),
    ] {
        let relay = Serving::relay(server, &[&["--cc", "fasor-token"], relay_keys].concat());
        let ask = |arguments: &[&str]| coapace(&[arguments, client_keys].concat());
        assert_eq!(relay.uri.starts_with("coaps://"), !client_keys.is_empty());
        assert_eq!(ask(&["get", &relay.at("/large?bytes=5000")]).success().len(), 5_000);
        assert_eq!(ask(&["observe", &relay.at("/clock"), "--count", "2"]).success().lines().count(), 2);
        assert_eq!(ask(&["get", &relay.at("/none")]).failure(3), "4.04 Not Found");
        let (code, said) = relay.interrupt();
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(said.contains(" 3 DTLS sessions of clients"), !client_keys.is_empty(), "{said}");
        assert!(!said.contains("DTLS passed on") && !said.contains("failed"), "{said}");
    }
}

#[test]
fn a_relay_with_keys_refuses_clients_without_a_key_and_reports_a_refusal_by_the_server() {
    let server = Serving::new(&["--resource", "/a=1", "-u", "relay-1", "-k", "another secret"]);
    let keys = ["-u", "lamp-7", "-k", "a long secret"];
    let to_server = ["--server-identity", "relay-1", "--server-key", "a wrong one"];
    let brief = ["--cc", "default:ack_timeout=100ms", "--max-retransmit", "1"];
    let mut relay = Serving::relay(&server.others[0], &[&brief[..], &keys, &to_server].concat());
    let uri = relay.at("/a");
    assert!(
        coapace(&["get", &uri, "-u", "lamp-7", "-k", "a wrong one"]).failure(1).contains("does not accept")
    );
    let plain = uri.replace("coaps:", "coap:");
    let silent = coapace(&["get", &plain, "--ack-timeout", "50ms", "--max-retransmit", "1"]);
    assert_eq!(silent.code, Some(1), "{silent:?}");
    let refused = coapace(&[&["get", &uri][..], &keys].concat());
    assert!(refused.failure(3).starts_with("5.04"), "{refused:?}");
    relay.says(&["handshakes with the server failed"]);
}

#[test]
fn a_relay_exports_metrics_of_its_exchanges_with_the_server() {
    let server = Serving::new(&["--resource", "/a=1"]);
    let mut relay = Serving::relay(&server.uri, &["--sluice", "--metrics", "127.0.0.1:0"]);
    let uri = relay.line();
    let address = uri.strip_prefix("http://").and_then(|uri| uri.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{uri:?}"));
    assert_eq!(coapace(&["get", &relay.at("/a")]).success(), "1");
    let text = scrape(address);
    let page = include_str!("../../../../docs/metrics.md");
    for name in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()) {
        let documented = [format!("`{name}`"), format!("`{name}{{")];
        assert!(documented.iter().any(|text| page.contains(text)), "{name} is not in docs/metrics.md");
    }
    for line in ["coap_exchanges_started_total 1", "coap_relay_requests_total 1", "coap_relay_sources 1"] {
        assert!(text.lines().any(|other| other == line), "{line} is not in {text}");
    }
}

#[test]
fn a_relay_that_cannot_start_says_why() {
    for (arguments, code, expected) in [
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
        assert!(line.contains(expected), "{line}");
    }
}
