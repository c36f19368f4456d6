//! Requests of the command to its own server.

use std::fs;
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Scratch, Serving, coapace, coapace_reading, command};
use serde_json::Value;

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the only line on standard error of a call that printed nothing to standard output.
pub(crate) fn refused(code: i32, arguments: &[&str]) -> String {
    let outcome = coapace(arguments);
    assert_eq!(outcome.stdout, "", "{arguments:?}");
    outcome.failure(code).to_owned()
}

#[test]
fn get_prints_the_payload_unchanged_and_nothing_else() {
    let server = Serving::new(&["--resource", "/greeting=Grüße", "--resource", "empty="]);
    let outcome = coapace(&["get", &server.at("/greeting")]);
    assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), "Grüße", ""));
    assert_eq!(coapace(&["get", &server.at("/empty")]).success(), "");
}

#[test]
fn a_resource_exists_from_its_put_to_its_delete() {
    let server = Serving::new(&[]);
    let uri = server.at("/store/a");
    let code = |arguments: &[&str]| json(&coapace(arguments).success())["code"].as_str().map(str::to_owned);
    assert_eq!(code(&["put", &uri, "-e", "21.5", "-t", "json", "--json"]).as_deref(), Some("2.01"));
    assert_eq!(code(&["put", &uri, "-e", "22.5", "--json"]).as_deref(), Some("2.04"));
    assert_eq!(coapace(&["get", &uri]).success(), "22.5");
    assert_eq!(coapace(&["get", &server.at("/store")]).success(), "a\n");
    assert_eq!(code(&["delete", &uri, "--json"]).as_deref(), Some("2.02"));
    assert_eq!(refused(3, &["get", &uri]), "4.04 Not Found");
}

#[test]
fn every_command_for_a_method_sends_that_method() {
    let server = Serving::new(&[]);
    for (method, code) in
        [("post", "2.04"), ("put", "2.04"), ("fetch", "2.05"), ("patch", "2.04"), ("ipatch", "2.04")]
    {
        let answer =
            json(&coapace(&["request", "-m", method, &server.at("/echo"), "-e", "abc", "--json"]).success());
        assert_eq!((&answer["code"], &answer["payload"]), (&code.into(), &"abc".into()), "{method}");
    }
    let own = |method: &str| coapace(&[method, &server.at("/echo"), "-e", "abc"]).success();
    assert_eq!([own("post"), own("put")], ["abc", "abc"]);
    assert_eq!(refused(3, &["get", &server.at("/echo")]), "4.05 Method Not Allowed");
    assert_eq!(coapace(&["post", &server.at("/counter")]).success(), "1");
    assert_eq!(coapace(&["post", &server.at("/counter")]).success(), "2");
    assert_eq!(coapace(&["get", &server.at("/counter")]).success(), "2");
}

#[test]
fn a_payload_comes_from_an_argument_a_file_or_standard_input() {
    let server = Serving::new(&[]);
    let (uri, scratch) = (server.at("/echo"), Scratch::new());
    let file = scratch.file("payload");
    fs::write(&file, b"of a file").expect("a file");
    assert_eq!(coapace(&["put", &uri, "-e", "50%25 off"]).success(), "50% off");
    assert_eq!(coapace(&["put", &uri, "--payload", "50%25"]).success(), "50%25");
    assert_eq!(coapace(&["put", &uri, "-e", "-21.5"]).success(), "-21.5");
    assert_eq!(coapace(&["put", &uri, "--payload", "-5 °C"]).success(), "-5 °C");
    assert_eq!(coapace(&["put", &uri, "--payload", &format!("@{file}")]).success(), "of a file");
    assert_eq!(coapace(&["put", &uri, "-f", &file]).success(), "of a file");
    assert_eq!(coapace_reading(&["put", &uri, "-f", "-"], "piped").success(), "piped");
}

#[test]
fn a_binary_payload_reaches_a_pipe_or_a_file_unchanged() {
    let server = Serving::new(&[]);
    let (uri, scratch) = (server.at("/echo"), Scratch::new());
    let put = ["put", &uri, "-e", "%00%ff%0a"];
    let output = command().args(put).stdin(Stdio::null()).output().expect("the command ends");
    assert_eq!(output.stdout, [0, 0xff, 0x0a]);
    let file = scratch.file("out");
    assert_eq!(coapace(&[&put[..], &["-o", &file]].concat()).success(), "");
    assert_eq!(fs::read(&file).expect("written"), [0, 0xff, 0x0a]);
    assert_eq!(json(&coapace(&[&put[..], &["--json"]].concat()).success())["payload_hex"], "00ff0a");
}

#[test]
fn options_of_the_command_line_are_sent_and_options_of_the_response_are_named() {
    let server = Serving::new(&[]);
    let uri = server.at("/echo");
    let answer = json(&coapace(&["put", &uri, "-e", "{}", "-t", "application/json", "--json"]).success());
    let option = &answer["options"][0];
    assert_eq!((&option["name"], &option["value"]), (&"Content-Format".into(), &"application/json".into()));
    // One option is critical, the other elective.
    assert_eq!(
        refused(3, &["put", &uri, "-O", "65001,0xcafe"]),
        "4.02 Bad Option: option 65001 is not understood"
    );
    assert_eq!(coapace(&["put", &uri, "-O", "65000,x", "-e", "a"]).success(), "a");
    let verbose = coapace(&["get", &server.at("/clock"), "-v"]);
    let lines: Vec<_> = verbose.stderr.lines().collect();
    assert_eq!(lines, ["2.05 Content", "Content-Format: \"text/plain; charset=utf-8\"", "Max-Age: 1"]);
}

#[test]
fn a_separate_response_is_waited_for_without_a_retransmission() {
    let server = Serving::new(&[]);
    // The wait is longer than the longest first timeout, 3 s.
    let answer = json(&coapace(&["get", &server.at("/delayed?s=4"), "--json"]).success());
    assert_eq!((&answer["payload"], &answer["transmissions"]), (&"4 s later".into(), &1.into()));
    let (code, said) = server.interrupt();
    assert_eq!(code, Some(0));
    assert!(said.contains("1 separate responses with 0 retransmissions"), "{said}");
}

#[test]
fn the_line_about_an_error_response_has_its_diagnostic_payload() {
    let server = Serving::new(&[]);
    let line = refused(3, &["get", &server.at("/delayed?s=99999")]);
    assert_eq!(line, "4.00 Bad Request: an hour at most");
}

#[test]
fn every_link_that_discover_prints_can_be_requested() {
    let server = Serving::new(&["--resource", "/a b/ü=x", "--demo"]);
    let links = coapace(&["get", &server.at("/.well-known/core")]).success();
    let paths: Vec<_> =
        links.split(",<").map(|link| link.trim_start_matches('<').split('>').next().unwrap_or("")).collect();
    assert_eq!(paths, ["/a%20b/%C3%BC", "/clock", "/counter", "/delayed", "/echo", "/large", "/store"]);
    assert_eq!(coapace(&["get", &server.at(paths[0])]).success(), "x");
}

#[test]
fn repeated_requests_show_the_rto_that_the_mechanism_has_learned() {
    let server = Serving::new(&[]);
    let uri = server.at("/clock");
    let rto = |cc: &str| {
        let lines = coapace(&["get", &uri, "--cc", cc, "--repeat", "3", "--json"]).success();
        let third = json(lines.lines().nth(2).expect("three answers"));
        assert_eq!(third["destinations"][0]["exchanges"], 3);
        third["destinations"][0]["rto_ms"].as_f64().expect("a number")
    };
    assert!((rto("default") - 2_000.0).abs() < 1e-6);
    assert!((rto("default:ack_timeout=3s") - 3_000.0).abs() < 1e-6);
    assert!(rto("cocoa") < 2_000.0, "three samples of loopback");
    let stats = coapace(&["get", &uri, "--cc", "fasor", "--stats"]);
    assert!(
        stats.stderr.contains("2.05 Content after ") && stats.stderr.contains(", 1 transmission\n"),
        "{stats:?}"
    );
    assert!(
        stats.stderr.contains(": fasor, RTO ") && stats.stderr.contains("1 exchanges, 0 failed"),
        "{stats:?}"
    );
}

#[test]
fn repeated_requests_end_with_a_summary() {
    let server = Serving::new(&[]);
    let outcome = coapace(&["post", &server.at("/counter"), "--count", "5"]);
    assert_eq!(outcome.stdout, "1\n2\n3\n4\n5\n");
    assert!(
        outcome.stderr.starts_with("5 of 5 answered in ")
            && outcome.stderr.ends_with("; 0 retransmissions\n")
    );
    let outcome = coapace(&["get", &server.at("/nothing"), "--repeat", "2", "--quiet"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""));
    assert_eq!(outcome.stderr.lines().count(), 3, "each and the sum: {outcome:?}");
    let lines = coapace(&["get", &server.at("/clock"), "--repeat", "2", "--json"]).success();
    let summary = &json(lines.lines().last().expect("a summary"))["summary"];
    assert_eq!((&summary["requests"], &summary["answered"]), (&2.into(), &2.into()));
}

#[test]
fn a_ping_succeeds_if_a_server_listens_and_fails_otherwise() {
    let server = Serving::new(&[]);
    assert!(coapace(&["ping", &server.uri]).success().starts_with(&format!("{} answers after ", server.uri)));
    let pong = json(&coapace(&["ping", &server.uri, "--json"]).success());
    assert_eq!(pong["transmissions"], 1);
    let uri = server.uri.clone();
    drop(server);
    assert!(refused(1, &["ping", &uri, "--fail-fast"]).contains("nobody listens there"));
}

#[test]
fn an_unanswered_request_ends_after_its_last_retransmission_or_at_the_timeout_option() {
    // This socket never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let uri = format!("coap://{}/", silent.local_addr().expect("bound"));
    let line = refused(1, &["get", &uri, "--ack-timeout", "20ms", "--max-retransmit", "2"]);
    assert!(line.contains("given up after 3 transmissions"), "{line}");
    let line = refused(1, &["get", &uri, "-B", "100ms"]);
    assert!(line.contains("no response in time; -B waits longer"), "{line}");
    let outcome = coapace(&["get", &uri, "-B", "100ms", "--json"]);
    assert_eq!(
        (outcome.code, &json(&outcome.stdout)["error"]),
        (Some(1), &"no response in time; wait longer, or check address and port".into())
    );
    let line = refused(1, &["get", &uri, "-N", "-B", "100ms"]);
    assert!(line.contains("no response in time"), "{line}");
}

#[test]
fn an_unusable_uri_is_reported_with_a_remedy() {
    for (uri, part) in [
        ("localhost/x", "expected scheme://host; as in coap://"),
        ("http://localhost/x", "expected coap, coaps"),
        ("coap://localhost/a b", "has to be percent-encoded"),
        ("coap://localhost:99999/", "the port is not a number"),
        ("coap://localhost/#x", "fragment"),
        ("coaps+tcp://localhost/", "TLS needs a certificate to trust; give --ca FILE"),
        ("coaps+ws://localhost/", "TLS needs a certificate to trust; give --ca FILE"),
    ] {
        let line = refused(2, &["get", uri]);
        assert!(line.contains(part) && line.contains(uri), "{line}");
    }
    let line = refused(2, &["get", "coaps://localhost/"]);
    assert!(line.contains("give -u IDENTITY and -k KEY"), "{line}");
    let line = refused(1, &["get", "coap://no-such-host.invalid/"]);
    assert!(line.contains("no-such-host.invalid not found") && line.ends_with("check the name"), "{line}");
}

#[test]
fn invalid_options_of_requests_end_with_the_exit_code_for_wrong_usage() {
    let uri = "coap://127.0.0.1:9/";
    for (arguments, part) in [
        (&["-e", "%"][..], "two hexadecimal digits"),
        (&["-e", "a", "--payload", "b"], "cannot be used with"),
        (&["-t", "jsn"], "or a name such as"),
        (&["-O", "x,y"], "expected NUMBER,VALUE"),
        (&["-O", "4,0xc"], "pairs of hexadecimal digits"),
        (&["-B", "0"], "expected seconds"),
        (&["--cc", "coca"], "did you mean cocoa?"),
        (&["--cc", "cocoa:max_rto=x"], "max_rto of cocoa"),
        (&["--ack-timeout", "soon"], "--ack-timeout is a time above zero"),
        (&["--nstart", "0"], "--nstart"),
        (&["--max-retransmit", "21"], "--max-retransmit"),
        (&["--repeat", "0"], "--repeat"),
    ] {
        let line = refused(2, &[&["get", uri][..], arguments].concat());
        assert!(line.contains(part), "{line}");
    }
}

/// Answers the next request, and returns its options.
fn answer_as_proxy(socket: &UdpSocket) -> Vec<u8> {
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a time");
    let mut buffer = [0; 2048];
    let (len, client) = socket.recv_from(&mut buffer).expect("a request");
    let end = 4 + usize::from(buffer[0] & 15);
    let answer = [&[0x60 | buffer[0] & 15, 0x45][..], &buffer[2..end], b"\xffgot it"].concat();
    socket.send_to(&answer, client).expect("sent");
    buffer[end..len].to_vec()
}

#[test]
fn a_request_through_a_proxy_carries_all_parts_of_its_uri() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let proxy = format!("coap://{}", socket.local_addr().expect("bound"));
    let cases: [(&[&str], &[u8]); 3] = [
        (&["get", "coap://h/x?y"], b"\x31h\x42\x16\x33\x41x\x41y\xd4\x0bcoap"),
        (&["delete", "coaps://[::1]:9/"], b"\x35[::1]\x41\x09\xd5\x13coaps"),
        (&["observe", "http://h/x", "--count", "1"], b"\x60\xda\x10http://h/x"),
    ];
    for (arguments, options) in cases {
        let proxy = proxy.clone();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let asking = std::thread::spawn(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            coapace(&[&arguments[..], &["--proxy", &proxy]].concat()).success()
        });
        let sent = answer_as_proxy(&socket);
        assert_eq!(sent.escape_ascii().to_string(), options.escape_ascii().to_string());
        assert_eq!(asking.join().expect("no panic").trim_end(), "got it");
    }
}

#[test]
fn a_server_that_is_not_a_proxy_is_reported_and_so_are_misused_proxy_options() {
    let server = Serving::new(&["--demo"]);
    let clock = server.at("/clock");
    let through = ["get", "coap://192.0.2.1/x", "--proxy", &server.uri];
    assert!(refused(3, &through).starts_with("5.05 Proxying Not Supported"));
    let said = refused(2, &["get", &clock, "-O", "35,coap://target/x"]);
    assert_eq!(
        said,
        format!(
            "{clock}: Uri-Path must not be there beside Proxy-Uri; --proxy URI asks a proxy for the resource"
        )
    );
    let said = refused(2, &["get", &clock, "--proxy", &clock]);
    assert!(said.starts_with(&format!("--proxy {clock}: a proxy has neither path nor query")), "{said}");
    for arguments in [&["get", &server.at("/a/%2e%2e/b")][..], &["put", &clock, "-O", "11,..", "-e", "1"]] {
        let said = refused(2, arguments);
        assert!(said.contains("must not be"), "{said}");
    }
}

#[test]
fn an_unusable_file_is_reported_before_any_request_is_sent() {
    let server = Serving::new(&[]);
    let (uri, scratch) = (server.at("/counter"), Scratch::new());
    let missing = scratch.file("no-such-folder/file");
    assert!(refused(1, &["post", &uri, "-f", &missing]).starts_with(&format!("cannot read {missing}: ")));
    assert!(refused(1, &["post", &uri, "-o", &missing]).starts_with(&format!("cannot write {missing}: ")));
    assert_eq!(coapace(&["get", &uri]).success(), "0");
}

#[test]
fn an_output_file_is_replaced_only_by_a_successful_response() {
    let (server, scratch) = (Serving::new(&["--resource", "/a=new", "--demo"]), Scratch::new());
    let file = scratch.file("file");
    fs::write(&file, "before").expect("a file");
    let content = || fs::read_to_string(&file).expect("a file");
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let at = |socket: &UdpSocket| format!("coap://{}/x", socket.local_addr().expect("an address"));
    refused(1, &["get", &at(&silent), "-B", "200ms", "-o", &file]);
    let gone = at(&silent);
    drop(silent);
    refused(1, &["get", &gone, "--fail-fast", "-o", &file]);
    refused(3, &["get", &server.at("/nothing"), "-o", &file]);
    refused(3, &["get", &server.at("/delayed?s=x"), "-o", &file, "--json"]);
    assert_eq!(content(), "before");
    let mut interrupted = command();
    let uri = server.at("/large?bytes=1048576");
    let mut interrupted =
        interrupted.args(["get", &uri, "-b", "16", "-o", &file]).spawn().expect("it starts");
    std::thread::sleep(Duration::from_millis(100));
    interrupted.kill().expect("it is killed");
    interrupted.wait().expect("it ends");
    assert_eq!(content(), "before");
    coapace(&["get", &server.at("/a"), "-o", &file]).success();
    assert_eq!(content(), "new");
    coapace(&["get", &server.at("/a"), "-o", &file, "--repeat", "2"]).success();
    assert_eq!(content(), "new\nnew\n");
    assert_eq!(fs::read_dir(scratch.path()).expect("a folder").count(), 1, "nothing is beside it");
}

#[test]
fn a_load_on_a_silent_server_ends_after_its_duration() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let uri = format!("coap://{}/x", silent.local_addr().expect("an address"));
    let begun = Instant::now();
    let line = refused(1, &["load", &uri, "--duration", "500ms"]);
    assert!(line.contains("no response in 500 ms"), "{line}");
    // RFC 7252 gives up after 62 s at the earliest.
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn options_that_do_not_fit_into_a_message_are_reported() {
    let server = Serving::new(&[]);
    let line = refused(1, &["get", &server.at("/clock"), "-O", &format!("65000,{}", "x".repeat(2_100))]);
    assert!(line.contains("do not fit into a message"), "{line}");
}

#[test]
fn large_payloads_are_sent_and_received_complete_with_any_block_size() {
    let (server, scratch) = (Serving::new(&[]), Scratch::new());
    let (sent, received) = (scratch.file("sent"), scratch.file("received"));
    let bytes: Vec<u8> = (0..20_000u32).map(|at| ((at * at) >> 7) as u8).collect();
    std::fs::write(&sent, &bytes).expect("a file");
    let uri = server.at("/store/a");
    for size in ["64", "1024"] {
        coapace(&["put", &uri, "-f", &sent, "-b", size]).success();
        coapace(&["get", &uri, "-o", &received, "-b", size]).success();
        assert_eq!(std::fs::read(&received).expect("a file"), bytes, "{size}");
    }
    let large = coapace(&["get", &server.at("/large?bytes=100000"), "-N", "-B", "60"]).success();
    assert!(large.len() == 100_000 && large.lines().nth(1000).expect("a line").trim_end() == "64000");
    let line = refused(2, &["get", &uri, "-b", "100"]);
    assert!(line.contains("expected 16, 32, 64"), "{line}");
    let line = refused(2, &["get", &uri, "-O", "4,0x010203040506070809"]);
    assert!(line.contains("ETag is too short or too long"), "{line}");
}

#[test]
fn observe_prints_notifications_up_to_the_given_number() {
    let server = Serving::new(&[]);
    let seen = coapace(&["observe", &server.at("/clock"), "--count", "3"]).success();
    let seconds: Vec<u64> = seen.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(seconds.len(), 3);
    assert!(seconds.is_sorted() && seconds[2] - seconds[0] <= 4, "{seconds:?}");
    let json_lines = coapace(&["observe", &server.at("/clock"), "-s", "1500ms", "--json"]).success();
    assert!(json_lines.lines().count() >= 2, "{json_lines}");
    assert!(json_lines.lines().all(|line| json(line)["options"][0]["name"] == "Observe"), "{json_lines}");
    let fixed = coapace(&["observe", &server.at("/large?bytes=3")]);
    assert_eq!((fixed.code, fixed.stdout.as_str()), (Some(0), "0  \n"));
    assert!(fixed.stderr.contains("cannot be observed"), "{fixed:?}");
    refused(3, &["observe", &server.at("/nothing")]);
}

#[test]
fn resources_of_a_server_are_listed_and_filtered_by_a_query() {
    let server = Serving::new(&["--resource", "/greeting=Hello", "--demo"]);
    let links = coapace(&["discover", &server.uri]).success();
    assert_eq!(links.lines().next(), Some("</greeting>;title=\"text\""));
    for (uri, filter) in [(server.at("?obs"), "title=*"), (server.uri.clone(), "obs")] {
        let chosen = coapace(&["discover", &uri, filter]).success();
        assert_eq!(chosen.lines().count(), 2, "{chosen}");
    }
    assert_eq!(coapace(&["discover", &server.uri, "obs", "href=/cl*"]).success().lines().count(), 1);
    let chosen = coapace(&["discover", &format!("{}?obs", server.uri), "--json"]).success();
    let targets: Vec<_> = chosen.lines().map(|line| json(line)["target"].to_string()).collect();
    assert_eq!(targets, ["\"/clock\"", "\"/counter\""]);
    assert!(chosen.lines().all(|line| json(line)["attributes"]["obs"] == true), "{chosen}");
    let none = refused(1, &["discover", &server.at("/clock")]);
    assert!(none.contains("not in link format"), "{none}");
    refused(3, &["discover", &server.at("/nothing")]);
}

#[test]
fn serve_explains_an_unusable_address_or_resource() {
    let server = Serving::new(&[]);
    let taken = server.uri.trim_start_matches("coap://");
    let line = refused(1, &["serve", "--bind", taken]);
    assert!(line.contains("is in use; name another port"), "{line}");
    let line = refused(1, &["serve", "--bind", "192.0.2.1:0"]);
    assert!(line.contains("is not an address of this host"), "{line}");
    for (arguments, part) in [
        (&["--cc", "coca"][..], "did you mean cocoa?"),
        (&["--threads", "0"], "--threads"),
        (&["--resource", "greeting"], "expected PATH=TEXT"),
        (&["--resource", "/a=1", "--resource", "a=2"], "has a text already"),
        (&["--resource", "/{a}=1"], "choose another"),
        (&["--resource", "/clock=1", "--demo"], "is already a resource of --demo"),
    ] {
        let line = refused(2, &[&["serve", "--bind", "127.0.0.1:0"][..], arguments].concat());
        assert!(line.contains(part), "{line}");
    }
    assert!(refused(2, &["serve", "--bind", "nonsense"]).contains("--bind takes ADDRESS:PORT"));
}

#[test]
fn an_interrupted_server_shuts_down_cleanly_and_prints_its_counters() {
    let server = Serving::new(&["--resource", "/a=1"]);
    coapace(&["get", &server.at("/a"), "--repeat", "3"]).success();
    let (code, said) = server.interrupt();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("stopped: 3 datagrams received, 0 of them copies"), "{said}");
}

#[test]
fn load_reports_the_number_of_responses_and_their_latencies() {
    let server = Serving::new(&[]);
    let uri = server.at("/counter");
    let load = ["load", &uri, "-m", "post", "--clients", "3", "--duration", "500ms", "--json"];
    let result = json(&coapace(&load).success());
    let answered = result["answered"].as_u64().expect("a number");
    let counted: u64 = coapace(&["get", &uri]).success().parse().expect("a number");
    let unfinished = result["unfinished"].as_u64().expect("a number");
    // `load` sends one request before it starts to count.
    assert!((answered + 1..=answered + 1 + unfinished).contains(&counted), "{result} {counted}");
    let latency = &result["latency_ms"];
    let ms = |name: &str| latency[name].as_f64().expect("a number");
    assert!(ms("p50") > 0.0 && ms("p50") <= ms("p99") && ms("p99") <= ms("longest"), "{latency}");
}

#[test]
fn load_keeps_the_given_rate() {
    let server = Serving::new(&[]);
    let uri = server.at("/clock");
    let load = ["load", &uri, "--clients", "2", "--rate", "50", "--duration", "1", "--json"];
    let result = json(&coapace(&load).success());
    let begun =
        result["answered"].as_u64().expect("a number") + result["unfinished"].as_u64().expect("a number");
    assert!((45..=50).contains(&begun), "{result}");
    let table = coapace(&["load", &uri, "--duration", "200ms"]).success();
    assert!(table.contains(" a second, ") && table.contains(" kB/s of payloads\nlatency: p50 "), "{table}");
    assert!(table.contains(" 0 failed, "), "{table}");
}

#[test]
fn load_with_simulated_losses_retransmits_until_it_is_answered() {
    let server = Serving::new(&[]);
    let uri = server.at("/clock");
    let load = [
        "load",
        &uri,
        "--loss",
        "0.2",
        "--ack-timeout",
        "10ms",
        "--max-retransmit",
        "20",
        "--duration",
        "2",
        "--json",
    ];
    let result = json(&coapace(&load).success());
    let number = |name: &str| result[name].as_f64().expect("a number");
    // A transmission fails with probability 1 - 0.8² = 0.36, which makes 0.56 retransmissions per exchange.
    assert!(number("answered") > 30.0 && number("lost") > 0.0, "{result}");
    let each = number("retransmissions") / number("answered");
    assert!((0.05..1.5).contains(&each), "{result}");
    assert!(coapace(&["load", &uri, "--loss", "1"]).failure(2).contains("expected a share"));
}

#[test]
fn load_fails_if_nobody_listens_or_no_resource_exists() {
    let server = Serving::new(&[]);
    let outcome = coapace(&["load", &server.at("/nothing"), "--duration", "100ms"]);
    assert_eq!(outcome.code, Some(3), "{outcome:?}");
    assert!(outcome.stdout.contains(": 4.04 Not Found"), "{outcome:?}");
    let uri = server.uri.clone();
    drop(server);
    let hasty = ["load", &uri, "--duration", "100", "--fail-fast"];
    assert!(refused(1, &hasty).contains("nobody listens there"));
    let line = refused(1, &["load", &uri, "--duration", "300ms", "-q"]);
    assert!(line.contains("nobody listens there"), "{line}");
}
