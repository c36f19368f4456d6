//! The command's own server over every transport, with keys and with a directory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Scratch, Serving, coapace, command};
use serde_json::Value;

const KEYS: [&str; 4] = ["-u", "lamp-7", "-k", "a long secret"];

/// Returns the only line on standard error of a call that failed.
fn refused(code: i32, arguments: &[&str]) -> String {
    coapace(arguments).failure(code).to_owned()
}

fn json(arguments: &[&str]) -> Value {
    let text = coapace(arguments).success();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn every_transport_serves_the_same_resources() {
    let server = Serving::new(&[&KEYS[..], &["--tcp", "127.0.0.1:0", "--demo"]].concat());
    let [dtls, tcp] = server.others.as_slice() else { panic!("{:?}", server.others) };
    assert!(dtls.starts_with("coaps://127.0.0.1:") && tcp.starts_with("coap+tcp://127.0.0.1:"));
    let get = |uri: &str| coapace(&[&["get", &format!("{uri}/counter")][..], &KEYS].concat()).success();
    for (uri, count) in [(&server.uri, "1"), (dtls, "2"), (tcp, "3")] {
        let counter = format!("{uri}/counter");
        assert_eq!(coapace(&[&["post", &counter][..], &KEYS].concat()).success(), count, "{uri}");
        assert_eq!([&server.uri, dtls, tcp].map(|uri| get(uri)), [count; 3]);
    }
    let (code, said) = server.interrupt();
    assert_eq!((code, said.matches(" stopped: ").count()), (Some(0), 3), "{said}");
    assert!(said.contains("; 4 DTLS sessions established; 0 handshakes failed"), "{said}");
    assert!(said.contains(" connections with 4 requests"), "{said}");
}

#[test]
fn every_client_command_works_over_dtls() {
    let server = Serving::new(&KEYS);
    let uri = |path: &str| format!("{}{path}", server.others[0]);
    let ask = |arguments: &[&str]| coapace(&[arguments, &KEYS].concat()).success();
    assert_eq!(ask(&["put", &uri("/echo"), "-e", "x"]), "x");
    assert!(ask(&["ping", &uri("")]).contains(" answers after "));
    assert!(ask(&["discover", &uri("")]).contains("</clock>"));
    assert_eq!(ask(&["observe", &uri("/clock"), "--count", "2"]).lines().count(), 2);
    assert!(ask(&["load", &uri("/clock"), "--clients", "2", "--duration", "2s"]).contains(" 0 failed"));
    assert_eq!(ask(&["get", &uri("/large?bytes=5000")]).len(), 5_000);
}

#[test]
fn a_key_for_dtls_is_text_hexadecimal_or_in_a_file() {
    let scratch = Scratch::new();
    let file = scratch.file("key");
    fs::write(&file, "0x6c6f6e67\n").expect("a file");
    let at_file = format!("@{file}");
    let keys = ["-u", "a", "-k", &at_file, "-u", "b", "-k", "other"];
    let server = Serving::new(&[&keys[..], &["--resource", "/a=1"]].concat());
    let uri = format!("{}/a", server.others[0]);
    for (identity, key) in [("a", "long"), ("a", "0x6c6F6e67"), ("a", &at_file), ("b", "other")] {
        assert_eq!(coapace(&["get", &uri, "-u", identity, "-k", key]).success(), "1", "{identity} {key}");
    }
    for (identity, key) in [("a", "other"), ("b", "long"), ("c", "long")] {
        let begun = Instant::now();
        let line = refused(1, &["get", &uri, "-u", identity, "-k", key]);
        assert!(line.contains("does not accept the identity or the key; check -u and -k"), "{line}");
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn unusable_keys_for_dtls_are_reported() {
    let uri = "coaps://127.0.0.1:9/";
    assert!(refused(2, &["get", uri]).contains("give -u IDENTITY and -k KEY"));
    assert!(refused(2, &["get", uri, "-u", "a"]).contains("--key"));
    assert!(refused(2, &["get", uri, "-k", "a"]).contains("--identity"));
    assert!(refused(2, &["get", uri, "-u", "a", "-k", "0xabc"]).contains("pairs of hexadecimal digits"));
    assert!(refused(2, &["get", uri, "-u", "a", "-k", ""]).contains("a key must not be empty"));
    assert!(refused(1, &["get", uri, "-u", "a", "-k", "@/no-such-file"]).contains("cannot read the key in"));
    let hasty = ["get", uri, "-u", "a", "-k", "b", "--fail-fast"];
    assert!(refused(1, &hasty).contains("nobody listens there"));
    let serve = ["serve", "--bind", "127.0.0.1:0"];
    for (arguments, part) in [
        (&["-u", "a"][..], "--key"),
        (&["--dtls", "127.0.0.1:0"], "--identity"),
        (&["-u", "a", "-k", "b", "-u", "c"], "-u is given 2 times, and -k 1 times"),
        (&["-u", "a", "-k", "b", "-u", "a", "-k", "c"], "a has a key already"),
    ] {
        let line = refused(2, &[&serve, arguments].concat());
        assert!(line.contains(part), "{line}");
    }
}

/// Returns the first lines that a server prints with these arguments.
fn served(arguments: &[&str], lines: usize) -> Vec<String> {
    let mut child = command()
        .arg("serve")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let lines: Vec<String> = stdout.lines().take(lines).map(|line| line.expect("text")).collect();
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    lines
}

#[test]
fn a_server_with_keys_serves_plain_udp_only_if_an_option_asks_for_it() {
    let schemes = |arguments: &[&str], lines| -> Vec<String> {
        let scheme = |line: &String| line.split(':').next().expect("a scheme").to_owned();
        served(arguments, lines).iter().map(scheme).collect()
    };
    let dtls = [&KEYS[..], &["--dtls", "127.0.0.1:0", "--tcp", "127.0.0.1:0"]].concat();
    assert_eq!(schemes(&dtls, 2), ["coaps", "coap+tcp"]);
    assert_eq!(schemes(&[&dtls[..], &["--bind", "127.0.0.1:0"]].concat(), 3), ["coap", "coaps", "coap+tcp"]);
    assert_eq!(schemes(&["--no-udp", "--tcp", "127.0.0.1:0"], 1), ["coap+tcp"]);
    let line = refused(2, &["serve", "--no-udp"]);
    assert!(line.starts_with("--no-udp leaves no address to listen at; add --tcp"), "{line}");
    assert!(refused(2, &["serve", "--no-udp", "--bind", "127.0.0.1:0"]).contains("--bind"));
    assert!(refused(2, &["serve", "--no-udp", "--group", "all"]).contains("--group"));
}

#[test]
fn serve_warns_if_anyone_may_write_files() {
    let scratch = Scratch::new();
    let directory = ["--directory", scratch.path().to_str().expect("UTF-8"), "--writable"];
    let server = Serving::new(&directory);
    let uri = server.uri.clone();
    let (_, said) = server.interrupt();
    let warning = format!("anybody may write and remove files at {uri}; -u and -k");
    assert!(said.contains(&warning), "{said}");
    let (_, said) = Serving::new(&[&directory[..], &["--quiet"]].concat()).interrupt();
    assert_eq!(said, "");
    let (_, said) = Serving::new(&directory[..2]).interrupt();
    assert!(!said.contains("anybody"), "{said}");
}

#[test]
fn a_second_sigint_ends_a_server_at_once() {
    let mut server = Serving::new(&["--demo"]);
    let waiting = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = server.uri.trim_start_matches("coap://").to_owned();
    // The request is a GET of /delayed?s=3600. A server that ends waits 10 s for its handler.
    waiting.send_to(b"\x40\x01\x12\x34\xb7delayed\x46s=3600", address).expect("it is sent");
    let mut acknowledged = [0; 16];
    waiting.recv(&mut acknowledged).expect("an acknowledgement");
    let begun = Instant::now();
    server.signal("-INT");
    std::thread::sleep(Duration::from_millis(300));
    server.signal("-INT");
    assert_eq!(server.ended(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(9));
}

#[test]
fn a_port_in_use_is_named_with_the_option_that_changes_it() {
    let server = Serving::new(&[&KEYS[..], &["--tcp", "127.0.0.1:0"]].concat());
    let address = |uri: &str| uri.rsplit('/').next().expect("an address").to_owned();
    let serve = ["serve", "--bind", "127.0.0.1:0"];
    let (dtls, tcp) = (address(&server.others[0]), address(&server.others[1]));
    let line = refused(1, &[&serve[..], &KEYS, &["--dtls", &dtls]].concat());
    assert!(line.contains(&format!("{dtls} is in use; name another port with --dtls")), "{line}");
    let line = refused(1, &[&serve[..], &["--tcp", &tcp]].concat());
    assert!(line.contains(&format!("{tcp} is in use; name another port with --tcp")), "{line}");
}

#[test]
fn a_member_of_a_group_is_discovered_with_all_of_its_links() {
    let server = Serving::bound_to("0.0.0.0", &["--group", "all", "--demo"]);
    let port = server.uri.rsplit(':').next().expect("a port");
    let group = format!("coap://224.0.1.187:{port}");
    let outcome = coapace(&["discover", &group]);
    if outcome.code == Some(1) && outcome.stderr.contains("check address and network") {
        return println!("skipped: no network takes datagrams to groups");
    }
    let links = outcome.success();
    // The answer to a group was a first block. The rest was fetched from the address that answered.
    for path in ["clock", "counter", "delayed", "echo", "large", "store"] {
        let line = |line: &&str| line.starts_with("<coap://") && line.contains(&format!(":{port}/{path}"));
        assert_eq!(links.lines().filter(line).count(), 1, "{path} in {links}");
    }
    assert!(!links.contains("0.0.0.0") && !links.contains("224."), "{links}");
    let nobody = coapace(&["discover", &group, "rt=nothing-of-the-kind"]);
    assert!(nobody.failure(1).contains("nobody answered"), "who has nothing to say is silent: {nobody:?}");
}

#[test]
fn a_group_that_cannot_be_joined_is_reported_in_one_line() {
    for group in ["192.0.2.7", "ff02::fd%", "everybody"] {
        let line = refused(2, &["serve", "--bind", "0.0.0.0:0", "--group", group]);
        assert!(line.starts_with(&format!("--group {group:?}: expected the address of a group")), "{line}");
    }
    let line = refused(1, &["serve", "--bind", "0.0.0.0:0", "--group", "224.0.1.187%nowhere0"]);
    assert_eq!(line, "cannot join the group 224.0.1.187%nowhere0: this host has no interface nowhere0");
    let line = refused(1, &["serve", "--bind", "127.0.0.1:0", "--group", "all"]);
    assert!(line.starts_with("cannot join the group ") && line.contains("[::] or 0.0.0.0"), "{line}");
}

/// Creates a directory with files, and others beside it.
fn files() -> (Scratch, String) {
    let scratch = Scratch::new();
    let top = scratch.path().join("top");
    fs::create_dir_all(top.join("sub/deeper")).expect("folders");
    fs::write(top.join("a.txt"), "of a").expect("a file");
    fs::write(top.join("sub/b.json"), "{}").expect("a file");
    fs::write(top.join("sub/ü b.bin"), [0, 0xff]).expect("a file");
    fs::write(top.join(".hidden"), "hidden").expect("a file");
    fs::write(scratch.path().join("secret"), "secret").expect("a file");
    let pipe = Command::new("mkfifo").arg(top.join("pipe")).status().expect("mkfifo runs");
    assert!(pipe.success());
    symlink("../secret", top.join("out")).expect("a link");
    symlink(scratch.path().join("secret"), top.join("absolute.txt")).expect("a link");
    symlink("..", top.join("up")).expect("a link");
    symlink("a.txt", top.join("in.txt")).expect("a link");
    let top = top.to_str().expect("UTF-8").to_owned();
    (scratch, top)
}

#[test]
fn a_missing_file_is_4_04_whatever_content_format_the_client_accepts() {
    let (_scratch, top) = files();
    let server = Serving::new(&["--directory", &top, "--demo", "--tcp", "127.0.0.1:0"]);
    for uri in [&server.uri, &server.others[0]] {
        for path in ["/none.txt", "/none/x.json", "/sub", "/store/none"] {
            for format in ["json", "text/plain", "cbor"] {
                let uri = format!("{uri}{path}");
                assert_eq!(refused(3, &["get", &uri, "-A", format]), "4.04 Not Found", "{uri} {format}");
            }
        }
        assert_eq!(refused(3, &["get", &format!("{uri}/a.txt"), "-A", "json"]), "4.06 Not Acceptable");
    }
}

#[test]
fn files_are_served_with_their_content_format_and_listed_for_discovery() {
    let (_scratch, top) = files();
    let server = Serving::new(&["--directory", &top, "--resource", "/fixed=1"]);
    for (path, format) in [
        ("/a.txt", "text/plain; charset=utf-8"),
        ("/sub/b.json", "application/json"),
        ("/in.txt", "text/plain; charset=utf-8"),
    ] {
        let answer = json(&["get", &server.at(path), "--json"]);
        let options = answer["options"].as_array().expect("options");
        let value =
            |name: &str| options.iter().find(|option| option["name"] == name).map(|o| o["value"].clone());
        assert_eq!(value("Content-Format"), Some(format.into()), "{path}");
        let tag = value("ETag").expect("a tag").as_str().expect("text").to_owned();
        let again = json(&["get", &server.at(path), "-O", &format!("4,{tag}"), "--json"]);
        assert_eq!((&again["code"], &again["payload"]), (&"2.03".into(), &"".into()), "{path}");
        assert_eq!(json(&["get", &server.at(path), "-O", "4,0x01", "--json"])["code"], "2.05");
    }
    assert_eq!(coapace(&["get", &server.at("/fixed")]).success(), "1");
    assert_eq!(refused(3, &["get", &server.at("/a.txt"), "-A", "json"]), "4.06 Not Acceptable");
    let links = coapace(&["discover", &server.uri]).success();
    let expected = [
        "</fixed>;title=\"text\"",
        "</a.txt>;ct=0;sz=4",
        "</in.txt>;ct=0;sz=4",
        "</sub/b.json>;ct=50;sz=2",
        "</sub/%C3%BC%20b.bin>;ct=42;sz=2",
    ];
    let (mut listed, mut expected) = (links.lines().collect::<Vec<_>>(), expected.to_vec());
    assert_eq!(listed[0], expected[0]);
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    assert_eq!(coapace(&["discover", &server.uri, "ct=50"]).success().lines().count(), 1);
    assert_eq!(coapace(&["get", &server.at("/sub/%C3%BC%20b.bin"), "--json"]).code, Some(0));
}

/// Paths that lead out of the directory or must not be served.
const OUTSIDE: [&str; 10] = [
    "/out",
    "/absolute.txt",
    "/up/secret",
    "/up/top/a.txt",
    "/..%2Fsecret",
    "/sub%2Fb.json",
    "/%2Fetc%2Fpasswd",
    "//a.txt",
    "/.hidden",
    "/a.txt%00",
];

#[test]
fn no_request_path_leads_out_of_the_served_directory() {
    let (scratch, top) = files();
    let server = Serving::new(&["--directory", &top, "--writable"]);
    for path in OUTSIDE {
        assert_eq!(refused(3, &["get", &server.at(path)]), "4.04 Not Found", "{path}");
    }
    for path in OUTSIDE {
        // A link is the operator's. Other paths do not exist.
        let is_link = matches!(path, "/out" | "/absolute.txt");
        let refusal = if is_link { "4.03 Forbidden: it is a symbolic link" } else { "4.04 Not Found" };
        for method in ["put", "delete"] {
            assert_eq!(refused(3, &[method, &server.at(path), "-e", "x"]), refusal, "{method} {path}");
        }
    }
    // A client of another kind may send dots. Codes: GET, PUT, DELETE.
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.connect(server.uri.trim_start_matches("coap://")).expect("an address");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a time");
    let paths = [&b"\xb2..\x06secret"[..], b"\xb3sub\x02..\x05a.txt", b"\xb1.\x05a.txt"];
    let asked = paths.iter().flat_map(|path| [1, 3, 4].map(|code| (path, code)));
    for (id, (path, code)) in (0..).zip(asked) {
        socket.send(&[&[0x40, code, 0, id], *path].concat()).expect("sent");
        let mut answer = [0; 64];
        assert!(socket.recv(&mut answer).expect("an answer") >= 4);
        assert_eq!(answer[..4], [0x60, 0x84, 0, id], "4.04: {code} {}", path.escape_ascii());
    }
    assert_eq!(fs::read(scratch.path().join("secret")).expect("still there"), b"secret");
    let beside = fs::read_dir(scratch.path()).expect("a folder").count();
    assert_eq!(beside, 2, "nothing was written beside it");
    for path in ["/", "/sub", "/nothing", "/a.txt/x", "/sub/", "/pipe"] {
        assert_eq!(refused(3, &["get", &server.at(path)]), "4.04 Not Found", "{path}");
    }
}

#[test]
fn files_can_be_written_and_deleted_only_if_the_server_allows_it() {
    let (_scratch, top) = files();
    let server = Serving::new(&["--directory", &top]);
    for method in ["put", "delete", "post"] {
        assert_eq!(refused(3, &[method, &server.at("/a.txt")]), "4.05 Method Not Allowed", "{method}");
    }
    drop(server);
    let server = Serving::new(&["--directory", &top, "--writable"]);
    let code = |arguments: &[&str]| json(&[arguments, &["--json"]].concat())["code"].clone();
    let uri = server.at("/sub/new.json");
    assert_eq!(refused(3, &["put", &uri, "-e", "1", "-O", "1"]), "4.12 Precondition Failed");
    assert_eq!(code(&["put", &uri, "-e", "1", "-O", "5"]), "2.01");
    assert_eq!(refused(3, &["put", &uri, "-e", "2", "-O", "5"]), "4.12 Precondition Failed");
    assert_eq!(refused(3, &["put", &uri, "-e", "2", "-O", "1,0x01"]), "4.12 Precondition Failed");
    assert_eq!(code(&["put", &uri, "-e", "2", "-O", "1"]), "2.04");
    assert_eq!(coapace(&["get", &uri]).success(), "2");
    assert_eq!(code(&["delete", &uri]), "2.02");
    assert_eq!(code(&["delete", &uri]), "2.02");
    assert_eq!(refused(3, &["get", &uri]), "4.04 Not Found");
    for path in ["/", "/sub"] {
        assert_eq!(refused(3, &["delete", &server.at(path)]), "4.05 Method Not Allowed", "{path}");
    }
    assert_eq!(refused(3, &["put", &server.at("/no/such/folder"), "-e", "x"]), "4.04 Not Found");
    let left = fs::read_dir(format!("{top}/sub")).expect("a folder").count();
    assert_eq!(left, 3, "nothing half-written is left");
}

#[test]
fn files_up_to_the_size_limit_are_uploaded_and_downloaded_and_larger_ones_refused() {
    let (scratch, top) = files();
    let server = Serving::new(&["--directory", &top, "--writable"]);
    let (sent, received) = (scratch.file("sent"), scratch.file("received"));
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    fs::write(&sent, &bytes).expect("a file");
    let uri = server.at("/sub/large.bin");
    coapace(&["put", &uri, "-f", &sent]).success();
    assert!(fs::read(format!("{top}/sub/large.bin")).expect("a file") == bytes);
    coapace(&["get", &uri, "-o", &received]).success();
    assert!(fs::read(&received).expect("a file") == bytes);
    // The file has one byte more than 8 MiB. It is sparse, so it takes no space on the disk.
    let hole = fs::File::create(format!("{top}/hole")).expect("a file");
    hole.set_len((8 << 20) + 1).expect("room");
    let line = refused(3, &["get", &server.at("/hole")]);
    assert_eq!(line, "5.00 Internal Server Error: larger than 8388608 bytes, the limit for served files");
    hole.set_len(8 << 30).expect("room");
    assert!(refused(3, &["get", &server.at("/hole")]).starts_with("5.00"));
}

#[test]
fn the_list_of_files_for_discovery_is_bounded() {
    let scratch = Scratch::new();
    (0..1_005).for_each(|n| fs::write(scratch.path().join(format!("{n}.txt")), "").expect("a file"));
    let server = Serving::new(&["--directory", scratch.path().to_str().expect("UTF-8")]);
    assert_eq!(coapace(&["discover", &server.uri]).success().lines().count(), 1_000);
    assert_eq!(coapace(&["get", &server.at("/1004.txt")]).success(), "");
}

#[test]
fn a_file_given_as_the_served_directory_is_reported() {
    let line = refused(1, &["serve", "--bind", "127.0.0.1:0", "--directory", "/no/such/folder"]);
    assert!(line.starts_with("cannot serve /no/such/folder: "), "{line}");
    assert!(refused(2, &["serve", "--writable"]).contains("--directory"));
}
