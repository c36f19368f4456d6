//! `coapace playground`, without a browser.

use std::fs;

use crate::common::{Scratch, Serving, coapace, command};
use crate::metrics::ask;

#[test]
fn the_playground_serves_files_of_its_folder_only() {
    let scratch = Scratch::new();
    let folder = scratch.path().join("page");
    fs::create_dir(&folder).expect("a folder");
    fs::write(scratch.path().join("secret.js"), "secret").expect("written");
    for (name, text) in [("index.html", "<p>start"), ("coapace.wasm", "\0asm"), ("notes.txt", "none of it")] {
        fs::write(folder.join(name), text).expect("written");
    }
    let directory = folder.to_str().expect("text");
    let arguments = ["playground", "--bind", "127.0.0.1:0", "--directory", directory];
    let server = Serving::started(command().args(arguments));
    let address = server.uri.trim_start_matches("http://").trim_end_matches('/').to_owned();
    for (path, kind, body) in [
        ("/", "text/html; charset=utf-8", "<p>start"),
        ("/index.html?x", "text/html; charset=utf-8", "<p>start"),
        ("/coapace.wasm", "application/wasm", "\0asm"),
    ] {
        let (head, got) = ask(&address, format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes());
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nContent-Type: {kind}\r\n")) && got == body, "{head}");
    }
    for path in ["/notes.txt", "/../secret.js", "/..%2fsecret.js", "//", "/page/index.html"] {
        let (head, _) = ask(&address, format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes());
        assert!(head.starts_with("HTTP/1.1 404 Not Found\r\n"), "{path}: {head}");
    }
    let (head, body) = ask(&address, b"HEAD / HTTP/1.1\r\n\r\n");
    assert!(head.contains("\r\nContent-Length: 8\r\n") && body.is_empty(), "{head}");
    assert!(ask(&address, b"PUT / HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 405 "));
    assert_eq!(server.interrupt().0, Some(0));

    let empty = scratch.path().to_str().expect("text");
    let error = coapace(&["playground", "--bind", "127.0.0.1:0", "--directory", empty]);
    assert!(error.failure(1).contains("has no index.html"), "{}", error.failure(1));
}
