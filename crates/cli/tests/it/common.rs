//! Runs the command like a user does, and returns what it prints.

use std::env::temp_dir;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio, id};
use std::sync::atomic::{AtomicU32, Ordering};

/// The exit code and the outputs of a call.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Returns the command, not yet started.
pub(crate) fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_coapace"))
}

/// Runs the command with these arguments and an empty standard input.
pub(crate) fn coapace(arguments: &[&str]) -> Outcome {
    finish(command().args(arguments), "")
}

/// Runs the command with `input` on standard input.
pub(crate) fn coapace_reading(arguments: &[&str], input: &str) -> Outcome {
    finish(command().args(arguments), input)
}

/// Runs a prepared command with `input` on standard input.
pub(crate) fn finish(command: &mut Command, input: &str) -> Outcome {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("its standard input is a pipe");
    let input = input.as_bytes().to_vec();
    // The command may stop reading early, so an error of writing is not a failure.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the command ends");
    writer.join().expect("the input is written");
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
    }
}

impl Outcome {
    /// Returns the standard output of a call that succeeded.
    pub(crate) fn success(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// Returns the one line on standard error of a call that failed with `code`, without the name of the command.
    pub(crate) fn failure(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.ends_with('\n'), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        self.stderr
            .trim_end()
            .strip_prefix("coapace: ")
            .expect("the line begins with the name of the command")
    }
}

/// A directory for one test, removed when the test is over.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let path = temp_dir().join(format!("coapace-test-{}-{}", id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in the directory, to be used as an argument.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("temporary paths are UTF-8").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A `coapace serve` or `coapace relay` at a loopback port. It is stopped when this is dropped.
pub(crate) struct Serving {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    /// The first URI of the server, without a slash at the end.
    pub(crate) uri: String,
    /// Its other URIs: over DTLS, TCP, TLS, WebSockets, and WebSockets with TLS.
    pub(crate) others: Vec<String>,
}

/// Sends a process a signal, named like in kill(1).
pub(crate) fn signal(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// Stops a process like Ctrl-C does.
pub(crate) fn interrupt(child: &Child) {
    signal(child, "-INT");
}

impl Serving {
    /// Starts a server with these arguments at a free port.
    pub(crate) fn new(arguments: &[&str]) -> Self {
        Self::bound_to("127.0.0.1", arguments)
    }

    /// Starts a server at this address.
    pub(crate) fn bound_to(ip: &str, arguments: &[&str]) -> Self {
        let serving = Self::listening(&format!("{ip}:0"), arguments);
        assert!(serving.uri.starts_with(&format!("coap://{ip}:")), "{:?}", serving.uri);
        serving
    }

    /// Starts a server at this address and port.
    pub(crate) fn listening(address: &str, arguments: &[&str]) -> Self {
        let mut serve = command();
        serve.args(["serve", "--bind", address]).args(arguments);
        if !arguments.contains(&"--threads") {
            serve.args(["--threads", "1"]);
        }
        let mut serving = Self::started(&mut serve);
        for _ in ["-u", "--keys", "--tcp", "--tls", "--ws", "--wss"]
            .iter()
            .filter(|other| arguments.contains(other))
        {
            let other = serving.line();
            serving.others.push(other);
        }
        serving
    }

    /// Starts a server at this address and port.
    pub(crate) fn at_port(address: &str, arguments: &[&str]) -> Self {
        Self::started(command().args(["serve", "--bind", address, "--threads", "1"]).args(arguments))
    }

    /// Starts a relay to the server at this URI.
    pub(crate) fn relay(to: &str, arguments: &[&str]) -> Self {
        let to = to.split_once("://").expect("coap://ADDRESS:PORT or coaps://ADDRESS:PORT").1;
        Self::started(command().args(["relay", "--listen", "127.0.0.1:0", "--to", to]).args(arguments))
    }

    /// Starts a command and reads its first URI.
    pub(crate) fn started(command: &mut Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
        let stdout = BufReader::new(child.stdout.take().expect("its standard output is a pipe"));
        let stderr = BufReader::new(child.stderr.take().expect("its standard error is a pipe"));
        let mut serving = Self { child, stdout, stderr, uri: String::new(), others: Vec::new() };
        serving.uri = serving.line();
        serving
    }

    /// Returns the next line of its standard output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Returns the URI of a resource.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.uri)
    }

    /// Sends it a signal, named like in kill(1).
    pub(crate) fn signal(&self, signal: &str) {
        self::signal(&self.child, signal);
    }

    /// Returns the exit code, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    /// Waits for a line on standard error that contains all of these parts.
    pub(crate) fn says(&mut self, parts: &[&str]) -> String {
        loop {
            let mut line = String::new();
            assert!(self.stderr.read_line(&mut line).expect("text") > 0, "it never says {parts:?}");
            if parts.iter().all(|part| line.contains(part)) {
                return line.trim_end().to_owned();
            }
        }
    }

    /// Stops it like Ctrl-C does. Returns the exit code and the unread rest of standard error.
    pub(crate) fn interrupt(mut self) -> (Option<i32>, String) {
        self.signal("-INT");
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("text");
        (self.child.wait().expect("it ends").code(), said)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns header and rows of a CSV. No field may contain a line break or a quote.
pub(crate) fn csv(text: &str) -> (Vec<&str>, Vec<Vec<&str>>) {
    let fields = |line| {
        let mut quoted = false;
        let between = move |c: char| {
            quoted ^= c == '"';
            c == ',' && !quoted
        };
        str::split(line, between).map(|field| field.trim_matches('"')).collect::<Vec<_>>()
    };
    let mut lines = text.lines().map(fields);
    let header = lines.next().expect("a header");
    (header, lines.collect())
}

/// Returns one column of a CSV.
pub(crate) fn column<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let (header, rows) = csv(text);
    let place = header.iter().position(|title| *title == name).expect("a column of this name");
    rows.into_iter().map(|row| row[place]).collect()
}
