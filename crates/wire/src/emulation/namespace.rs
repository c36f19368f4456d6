//! One end of a tunnel: a network namespace of its own.

use std::fs;
use std::io;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use nix::sched::{CloneFlags, unshare};

/// A network namespace, which has only the interfaces that are made in it. It lasts as long as this value, a program in
/// the namespace, or a socket in the namespace.
///
/// One thread runs in the namespace. A socket that this thread opens belongs to the namespace, even if other threads use it. A
/// program that this thread starts runs in the namespace.
#[derive(Debug)]
pub struct NetworkNamespace {
    jobs: Sender<NamespaceJob>,
    thread: u32,
}

type NamespaceJob = Box<dyn FnOnce() + Send>;

impl NetworkNamespace {
    /// Makes a namespace with nothing but the interface `lo`, which is down.
    ///
    /// # Errors
    /// The error of unshare(2): without [`take_privileges`](super::take_privileges) only root may make a namespace.
    pub(super) fn new() -> io::Result<Self> {
        let (jobs, coming) = channel::<NamespaceJob>();
        let (tell, received) = channel();
        // unshare(2) moves the calling thread alone. So a thread of its own enters the namespace, and the process stays.
        let run = move || {
            let made = unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
            let failed = made.is_err();
            let _ = tell.send(made.map(|()| nix::unistd::gettid().as_raw().unsigned_abs()));
            // `recv` fails when the `NetworkNamespace` is dropped. The thread then ends, and the namespace with it.
            while !failed && let Ok(job) = coming.recv() {
                job();
            }
        };
        thread::Builder::new().name("namespace".to_owned()).spawn(run)?;
        // The first error is a thread that panicked, the second one is unshare's.
        let thread = received.recv().map_err(io::Error::other)??;
        Ok(Self { jobs, thread })
    }

    /// Runs `job` in the namespace and waits for its end.
    ///
    /// # Errors
    /// The thread of the namespace is gone, because an earlier job panicked.
    pub fn run<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> io::Result<R> {
        let (tell, received) = channel();
        let job = Box::new(move || drop(tell.send(job())));
        let gone = || io::Error::other("the thread of the namespace is gone");
        self.jobs.send(job).map_err(|_| gone())?;
        received.recv().map_err(|_| gone())
    }

    /// Starts a program in the namespace.
    ///
    /// # Errors
    /// The errors of [`Command::spawn`] and of [`run`](Self::run).
    pub fn start(&self, mut command: Command) -> io::Result<Child> {
        self.run(move || command.spawn())?
    }

    /// Returns whether a socket of the namespace waits for datagrams or connections.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn listens(&self) -> io::Result<bool> {
        self.run(|| {
            // The states of proc_net(5): a UDP socket without a peer, and a listening socket of TCP.
            [("udp", "07"), ("udp6", "07"), ("tcp", "0A"), ("tcp6", "0A")].iter().any(|(table, state)| {
                // /proc/self would show the namespace of the process's first thread. A table is missing if the kernel has no IPv6.
                let table = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
                let table = table.unwrap_or_default();
                table.lines().skip(1).any(|line| line.split_whitespace().nth(3) == Some(state))
            })
        })
    }

    /// Returns the file of the namespace, for `nsenter --net=FILE`.
    pub fn file(&self) -> String {
        format!("/proc/{}/task/{}/ns/net", std::process::id(), self.thread)
    }

    /// Configures the namespace with lines of `ip -batch`.
    pub(super) fn configure(&self, lines: String) -> io::Result<()> {
        self.run(move || {
            let mut command = Command::new("ip");
            command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut ip = command.spawn().map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => io::Error::other("the program ip is missing; install iproute2"),
                _ => error,
            })?;
            // The pipe closes at the end of this block. Without that, ip would wait for more lines.
            if let Some(mut input) = ip.stdin.take() {
                input.write_all(lines.as_bytes())?;
            }
            let output = ip.wait_with_output()?;
            if output.status.success() {
                return Ok(());
            }
            let complaint = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!("ip: {}", complaint.lines().next().unwrap_or("no reason"))))
        })?
    }
}
