//! Keys and certificates in files, and a server that reads them again.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::common::{Scratch, Serving, coapace, command};

fn get(server: &Serving, identity: &str, key: &str) -> Option<i32> {
    let uri = format!("{}/counter", server.others[0]);
    coapace(&["get", &uri, "-u", identity, "-k", key, "-B", "20"]).code
}

#[test]
fn keys_are_read_from_a_file_in_the_format_of_libcoap() {
    let scratch = Scratch::new();
    let file = scratch.file("keys");
    fs::write(&file, "# hint,identity,key\nCoAP,lamp-7,a,b c\r\n\n,lamp-8,0xcafe42\n").expect("a file");
    let server = Serving::new(&["--demo", "--keys", &file]);
    assert_eq!(get(&server, "lamp-7", "a,b c"), Some(0), "everything after the second comma is the key");
    assert_eq!(get(&server, "lamp-8", "0xcafe42"), Some(0));
    assert_eq!(get(&server, "lamp-8", "cafe42"), Some(1));
}

#[test]
fn a_bad_line_in_a_key_file_is_reported_by_number_without_its_key() {
    let scratch = Scratch::new();
    let file = scratch.file("keys");
    let refused = |text: &str| {
        fs::write(&file, text).expect("a file");
        let outcome = coapace(&["serve", "--bind", "127.0.0.1:0", "--keys", &file]);
        let line = outcome.failure(1).to_owned();
        assert!(!line.contains("secret"), "{line}");
        line.replace(&file, "FILE")
    };
    let expected = "expected HINT,IDENTITY,KEY; the hint may be empty";
    assert_eq!(refused("#\n,a,secret\na secret\n"), format!("FILE, line 3: {expected}"));
    assert_eq!(refused("a,secret\n"), format!("FILE, line 1: {expected}"));
    assert_eq!(refused(",,secret\n"), "FILE, line 1: the identity is empty");
    assert_eq!(refused(",a,\n"), "FILE, line 1: a key must not be empty");
    assert_eq!(refused(",a,secret\n,a,secret2\n"), "FILE, line 2: this identity has a key already");
    assert_eq!(refused("# none\n"), "FILE has no key in it");
    let missing = coapace(&["serve", "--bind", "127.0.0.1:0", "--keys", &scratch.file("none")]);
    assert!(missing.failure(1).starts_with("cannot read the keys in "), "{missing:?}");
}

/// Starts an observation over DTLS and reads its first line.
fn observer(server: &Serving) -> (Child, BufReader<std::process::ChildStdout>) {
    let uri = format!("{}/clock", server.others[0]);
    let mut observer = command()
        .args(["observe", &uri, "-u", "lamp-7", "-k", "first"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut lines = BufReader::new(observer.stdout.take().expect("a pipe"));
    lines.read_line(&mut String::new()).expect("a line");
    (observer, lines)
}

#[test]
fn sighup_reloads_the_keys_and_keeps_sessions_open() {
    let scratch = Scratch::new();
    let file = scratch.file("keys");
    fs::write(&file, ",lamp-7,first\n").expect("a file");
    let mut server = Serving::new(&["--demo", "--keys", &file]);
    assert_eq!(get(&server, "lamp-7", "first"), Some(0));
    let (mut observer, mut lines) = observer(&server);
    fs::write(&file, ",lamp-7,second\n,lamp-8,third\n").expect("a file");
    server.signal("-HUP");
    assert!(server.says(&["reloaded keys and certificates"]).contains("identities=2"));
    assert_eq!(get(&server, "lamp-7", "second"), Some(0));
    assert_eq!(get(&server, "lamp-8", "third"), Some(0));
    assert_eq!(get(&server, "lamp-7", "first"), Some(1));
    // A bad file causes one line in the log and no change.
    fs::write(&file, ",lamp-7,fourth\nnonsense\n").expect("a file");
    server.signal("-HUP");
    let line = server.says(&["not reloaded"]);
    assert!(line.contains(" ERROR ") && line.contains("line 2: expected HINT,IDENTITY,KEY"), "{line}");
    assert_eq!(get(&server, "lamp-7", "second"), Some(0));
    for _ in 0..2 {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).expect("text") > 0, "the session has ended");
    }
    observer.kill().expect("it runs");
    observer.wait().expect("it ends");
}
