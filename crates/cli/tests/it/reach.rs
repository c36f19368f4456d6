//! The destinations of requests: servers that are not there yet, groups, and addresses with zones.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, Stdio};

use crate::common::{Serving, coapace, command};

/// Returns an address at which nobody listens.
fn vacant() -> String {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Starts a command whose standard error is read from here.
fn started(arguments: &[&str]) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut child = command().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    (child, stderr)
}

#[test]
fn a_client_waits_for_a_server_that_starts_late_and_says_so_once() {
    let address = vacant();
    let uri = format!("coap://{address}/a");
    let (child, mut stderr) = started(&["get", &uri, "--ack-timeout", "1s"]);
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    assert!(said.contains("nobody listens there yet; still trying") && said.contains(&address), "{said}");
    let _server = Serving::at_port(&address, &["--resource", "/a=1"]);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"1"[..]));
    said.clear();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

#[test]
fn a_request_to_a_closed_port_ends_with_the_reason() {
    let uri = format!("coap://{}/a", vacant());
    let patient = ["get", &uri, "--ack-timeout", "20ms", "--max-retransmit", "2"];
    let outcome = coapace(&[&patient[..], &["-q"]].concat());
    assert!(outcome.failure(1).contains("nobody listens there; check the port"), "and nothing else with -q");
    let outcome = coapace(&[&patient[..], &["--json"]].concat());
    assert!(outcome.stdout.contains("\"retransmissions\":2"), "{outcome:?}");
    let outcome = coapace(&[&patient[..], &["--json", "--fail-fast"]].concat());
    assert!(outcome.failure(1).contains("nobody listens there"));
    assert!(outcome.stdout.contains("\"retransmissions\":0"), "{outcome:?}");
}

#[test]
fn a_link_local_address_without_a_zone_is_refused_with_a_list_of_interfaces() {
    for arguments in [
        &["get", "coap://[fe80::1]/"][..],
        &["observe", "coap://[fe80::1]/"],
        &["serve", "--bind", "[fe80::1]:5683"],
        &["relay", "--cc", "fasor", "--listen", "127.0.0.1:0", "--to", "[fe80::1]:5683"],
    ] {
        let outcome = coapace(arguments);
        let line = outcome.failure(2);
        let expected = "fe80::1 is a link-local address; name its interface, too, as in [fe80::1%";
        assert!(line.contains(expected) && line.contains("; there are lo"), "{line}");
    }
    let own = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let link_local = own.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [digits, _, _, "20", _, interface] = fields[..] else { return None };
        let groups: Vec<&str> =
            digits.as_bytes().chunks(4).map(|four| std::str::from_utf8(four).unwrap()).collect();
        Some((groups.join(":"), interface.to_owned()))
    });
    let Some((ip, interface)) = link_local else {
        println!("skipped in part: no interface has a link-local address");
        return;
    };
    let server = Serving::at_port(&format!("[{ip}%{interface}]:0"), &["--resource", "/a=1"]);
    let port = server.uri.rsplit_once(':').unwrap().1;
    for zone in [format!("%25{interface}"), format!("%{interface}")] {
        assert_eq!(coapace(&["get", &format!("coap://[{ip}{zone}]:{port}/a")]).success(), "1", "{zone}");
    }
}

#[test]
fn get_and_put_to_a_group_list_the_members_that_answered() {
    let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
    let group = Ipv4Addr::new(224, 0, 1, 187);
    let reached = probe
        .join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED)
        .and_then(|()| probe.send_to(b"", (group, probe.local_addr()?.port())))
        .and_then(|_| probe.set_read_timeout(Some(std::time::Duration::from_secs(1))))
        .and_then(|()| probe.recv_from(&mut []));
    if let Err(error) = reached {
        println!("skipped: no network takes datagrams to groups ({error})");
        return;
    }
    let server = Serving::bound_to("0.0.0.0", &["--group", "224.0.1.187", "--resource", "/a=here"]);
    let port = server.uri.rsplit_once(':').unwrap().1.to_owned();
    let at = |path: &str| format!("coap://224.0.1.187:{port}{path}");
    let outcome = coapace(&["get", &at("/a")]);
    let line = outcome.stdout.trim_end().to_owned();
    assert!(line.ends_with(&format!(":{port} 2.05 here")) && !line.contains("224."), "{outcome:?}");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), "1 member answered\n"));
    let lines = coapace(&["request", "-m", "fetch", &at("/a"), "-B", "7", "--json", "-q"]);
    assert!(lines.code == Some(1) || lines.stdout.contains("\"code\""), "{lines:?}");
    let object: serde_json::Value =
        serde_json::from_str(&coapace(&["get", &at("/a"), "--json"]).success()).unwrap();
    assert_eq!((&object["code"], &object["payload"]), (&"2.05".into(), &"here".into()));
    let sent = coapace(&["put", &at("/store/x"), "-e", "1", "--no-response", "all"]);
    assert_eq!((sent.code, sent.stderr.as_str()), (Some(0), "sent; no answer was asked for\n"));
    let outcome = coapace(&["get", &at("/nowhere"), "-B", "300ms"]);
    assert!(outcome.failure(1).contains("nobody answered; check the network"));
    let outcome = coapace(&["get", &at("/a"), "-o", "/dev/null"]);
    assert!(outcome.failure(2).contains("-o saves one answer"));
}

#[test]
fn ping_observe_and_tcp_are_refused_for_a_group() {
    for arguments in [
        &["ping", "coap://224.0.1.187"][..],
        &["observe", "coap://[ff02::fd]/x"],
        &["load", "coap://224.0.1.187/x"],
    ] {
        assert!(coapace(arguments).failure(2).contains("a group accepts only non-confirmable requests"));
    }
    for uri in ["coap+tcp://224.0.1.187/x", "coaps://224.0.1.187/x"] {
        let outcome = coapace(&["get", uri, "-u", "a", "-k", "b"]);
        assert!(outcome.failure(2).contains("has no groups; only coap has"), "{outcome:?}");
    }
}
