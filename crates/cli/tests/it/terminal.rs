//! Output on a terminal, and into a pipe.

use std::fs::File;
use std::io::Read;
use std::net::UdpSocket;
use std::process::Stdio;

use crate::common::{Serving, coapace, command};
use nix::pty::{Winsize, openpty};

/// Returns the output of a call on a terminal, standard error included.
fn on_terminal(arguments: &[&str]) -> String {
    on_wide_terminal(100, &[], arguments)
}

/// Returns the output of a call on a terminal of so many columns, with these variables of the environment.
fn on_wide_terminal(columns: u16, environment: &[(&str, &str)], arguments: &[&str]) -> String {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(&size, None).expect("a terminal");
    let mut child = {
        let end = || Stdio::from(terminal.slave.try_clone().expect("a descriptor"));
        command()
            .args(arguments)
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .envs(environment.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the command starts")
    };
    drop(terminal.slave);
    let mut printed = Vec::new();
    let mut buffer = [0; 4_096];
    let mut master = File::from(terminal.master);
    // Reading fails when the other end of the terminal is closed.
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        printed.extend_from_slice(&buffer[..count]);
    }
    child.wait().expect("it ends");
    String::from_utf8(printed).expect("UTF-8")
}

/// Stores a text on a server, and returns its URI.
fn stored(server: &Serving, name: &str, arguments: &[&str]) -> String {
    let uri = server.at(&format!("/store/{name}"));
    coapace(&[&["put", &uri], arguments].concat()).success();
    uri
}

/// Text that would set the title of a window, ring a bell, and clear the screen with a C1 control character.
const COMMANDS: &str = "%1b]0;owned%07%c2%9b2J";

#[test]
fn escape_sequences_of_a_payload_reach_a_pipe_but_not_a_terminal() {
    let server = Serving::new(&["--demo"]);
    let text = stored(&server, "text", &["-e", COMMANDS]);
    let shown = r"\u001b]0;owned\u0007\u009b2J";
    assert_eq!(on_terminal(&["get", &text]), format!("{shown}\r\n"));
    let observed = on_terminal(&["observe", &text]);
    assert!(observed.starts_with(shown), "{observed:?}");
    let cbor = stored(&server, "cbor", &["-e", &format!("%6e{COMMANDS}"), "-t", "cbor"]);
    assert_eq!(on_terminal(&["get", &cbor]), format!("\"{shown}\"\r\n"));
    let json = on_terminal(&["get", &text, "--json"]);
    assert!(json.contains(shown), "{json:?}");
    assert_eq!(coapace(&["get", &text]).success(), "\u{1b}]0;owned\u{7}\u{9b}2J");
}

#[test]
fn escape_sequences_in_links_and_diagnostics_do_not_reach_a_terminal() {
    let server = Serving::new(&["--demo"]);
    let links = stored(&server, "links", &["-e", "</a>;title=\"%c2%9b2J\"", "-t", "link"]);
    // This server answers 4.04 with a diagnostic payload.
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let refused = format!("coap://{}/x", socket.local_addr().expect("an address"));
    let refusing = std::thread::spawn(move || {
        let mut request = [0; 64];
        let (_, from) = socket.recv_from(&mut request).expect("a request");
        let token = 4 + usize::from(request[0] & 15);
        let head = [&[0x60 | request[0] & 15, 0x84], &request[2..token]].concat();
        socket.send_to(&[&head, &b"\xff\xc2\x9b2J"[..]].concat(), from).expect("it is sent");
    });
    for arguments in [["discover", &links], ["get", &refused]] {
        let printed = on_terminal(&arguments);
        assert!(!printed.contains('\u{9b}') && printed.contains(r"\u009b2J"), "{printed:?}");
    }
    refusing.join().expect("it was asked");
}

#[test]
fn a_long_transfer_shows_its_progress_unless_it_is_quiet() {
    let server = Serving::new(&["--demo"]);
    let uri = server.at("/large?bytes=1048576");
    let long = ["get", &uri, "-b", "64", "-o", "/dev/null"];
    let printed = on_terminal(&long);
    assert!(printed.contains("MiB") && printed.contains("left"), "{printed:?}");
    assert_eq!(on_terminal(&[&long[..], &["--quiet"]].concat()), "");
    assert_eq!(on_terminal(&["get", &server.at("/counter")]), "0\r\n");
}

#[test]
fn results_fit_the_width_of_the_terminal_and_are_coloured_unless_no_color_is_set() {
    let run = ["run", "nb-iot", "--set", "clients=3,60", "--set", "buffer=2500", "--seeds", "3", "--quiet"];
    let run = [&run[..], &["-m", "default", "-m", "cocoa:preset=libcoap-2019", "-m", "linux-rto"]].concat();
    let rank = ["rank", "nb-iot", "--set", "clients=3,60", "--seeds", "2", "--quiet"];
    let rank =
        [&rank[..], &["-m", "default", "-m", "cocoa", "-m", "fasor-token:preset=libcoap-2019"]].concat();
    for columns in [80, 100, 120, 200] {
        let [run, rank] = [&run, &rank].map(|words| on_wide_terminal(columns, &[("NO_COLOR", "1")], words));
        for text in [&run, &rank] {
            assert!(!text.contains('\u{1b}'), "{text}");
            let widest = text.lines().map(|line| line.trim_end().chars().count()).max();
            assert!(
                widest.is_some_and(|widest| widest <= columns.into()),
                "{widest:?} of {columns}:\n{text}"
            );
        }
        assert!(run.contains("median FCT") && run.contains('█') && rank.starts_with("Use "), "{run}{rank}");
    }
    assert!(on_terminal(&run).contains("\u{1b}[3"), "coloured");
    assert!(!on_wide_terminal(100, &[("TERM", "dumb")], &run).contains('\u{1b}'));
}
