//! Measures what a request costs a server, compared with a bare UDP responder: `cargo run --release -p coapace-net --example
//! bench_server`
//!
//! Each server is its own process on one core, the generator is on another: N sockets, each of which sends its next confirmable
//! GET when the response to the previous one has come. Every response is checked. The cost is the CPU time of the server's
//! threads according to the kernel, divided by the requests; the servers take turns, and the table has the medians. With
//! `--sources N`, N sources send one request each to our server before it measures again.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use coapace_net::{Rejection, Request, Response, Router, Server, ServerConfig};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::unistd::Pid;

const ANSWER: &str = "a payload of sixty bytes, which is about what a sensor says.";
const CLIENTS: [usize; 4] = [1, 16, 128, 1024];
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(400);
const PATH: &[u8] = b"\xb4temp";

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["bare", address] => bare(address),
        ["ours", address] => ours(address),
        ["--sources", count] => compare(count.parse().map_err(io::Error::other)?),
        _ => compare(0),
    }
}

/// Answers every request, without any state.
fn bare(address: &str) -> io::Result<()> {
    let socket = UdpSocket::bind(address)?;
    println!("{}", socket.local_addr()?.port());
    let (mut request, mut answer) = ([0; 2048], Vec::new());
    loop {
        let (len, from) = socket.recv_from(&mut request)?;
        let token = usize::from(request[0] & 15);
        if len < 4 + token {
            continue;
        }
        answer.clear();
        answer.extend_from_slice(&[0x60 | request[0] & 15, 0x45]);
        answer.extend_from_slice(&request[2..4 + token]);
        answer.push(0xff);
        answer.extend_from_slice(ANSWER.as_bytes());
        socket.send_to(&answer, from)?;
    }
}

async fn temperature(_: Request) -> Result<Response, Rejection> {
    Ok(Response::content(ANSWER))
}

fn ours(address: &str) -> io::Result<()> {
    let server = Server::bind_with(address, ServerConfig { cores: 1, ..ServerConfig::default() })?;
    println!("{}", server.local_addr()?.port());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(server.serve(Router::new().get("/temp", temperature)))
}

/// A server process on the first core, beside this process.
struct Running {
    name: &'static str,
    child: Child,
    address: SocketAddr,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(name: &'static str, kind: &str, bind: &str) -> io::Result<Self> {
        // A child inherits the cores of its parent.
        pin(0)?;
        let mut child =
            Command::new(std::env::current_exe()?).args([kind, bind]).stdout(Stdio::piped()).spawn()?;
        pin(1)?;
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut line)?;
        let port: u16 = line.trim().parse().map_err(io::Error::other)?;
        Ok(Self { name, child, address: ([127, 0, 0, 1], port).into() })
    }

    /// Returns the CPU time of all threads of the server.
    fn cpu(&self) -> io::Result<Duration> {
        let mut nanos = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let schedstat = std::fs::read_to_string(task?.path().join("schedstat"))?;
            let first = schedstat.split(' ').next().unwrap_or_default();
            nanos += first.parse::<u64>().map_err(io::Error::other)?;
        }
        Ok(Duration::from_nanos(nanos))
    }

    /// Returns the resident memory of the server, in bytes.
    fn resident(&self) -> io::Result<u64> {
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap_or_default();
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().map_err(io::Error::other)?;
        Ok(kib * 1024)
    }

    /// Returns the CPU time for each request with this many clients, in microseconds.
    fn cost(&self, generator: &mut Generator, clients: usize) -> io::Result<f64> {
        let before = self.cpu()?;
        let requests = generator.run(self.address, clients)?;
        Ok(self.cpu()?.saturating_sub(before).as_secs_f64() * 1e6 / requests as f64)
    }
}

fn pin(core: usize) -> io::Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core)?;
    // On a machine with one core everything is on that.
    let _ = sched_setaffinity(Pid::from_raw(0), &cores);
    Ok(())
}

/// A client that sends its next request after each response.
struct Source {
    socket: UdpSocket,
    message_id: u16,
    /// Set if a response is expected.
    waits: bool,
}

impl Source {
    fn send_next(&mut self, to: SocketAddr) -> io::Result<()> {
        self.message_id = self.message_id.wrapping_add(1);
        self.waits = true;
        self.send(to)
    }

    fn send(&self, to: SocketAddr) -> io::Result<()> {
        let [high, low] = self.message_id.to_be_bytes();
        let mut request = [0x42, 0x01, high, low, low, high, 0, 0, 0, 0, 0];
        request[6..].copy_from_slice(PATH);
        self.socket.send_to(&request, to).map(drop)
    }

    /// Receives a response. Returns whether it answers the last request, and is not a copy of an earlier response.
    fn receive(&self) -> io::Result<bool> {
        let mut response = [0; 2048];
        let len = self.socket.recv(&mut response)?;
        let [high, low] = self.message_id.to_be_bytes();
        let expected = [&[0x62, 0x45, high, low, low, high, 0xff], ANSWER.as_bytes()].concat();
        // Late copies of earlier responses may come where the system had lost a datagram.
        let earlier = response[2..4] != expected[2..4] && response[6..len] == expected[6..];
        if response[..len] == expected || earlier {
            return Ok(!earlier);
        }
        Err(io::Error::other(format!("not the response: {:02x?}", &response[..len])))
    }
}

/// The clients, the same for every server.
struct Generator {
    sources: Vec<Source>,
    epoll: Epoll,
}

impl Generator {
    fn new(count: usize) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::empty())?;
        let mut sources = Vec::new();
        for nth in 0..count {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.set_nonblocking(true)?;
            epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, nth as u64))?;
            sources.push(Source { socket, message_id: 0, waits: false });
        }
        Ok(Self { sources, epoll })
    }

    /// Runs this many clients for a round. Returns the number of responses.
    fn run(&mut self, to: SocketAddr, clients: usize) -> io::Result<u64> {
        let sources = &mut self.sources[..clients];
        let (mut responses, mut open, mut silences) = (0, clients, 0);
        sources.iter_mut().try_for_each(|source| source.send_next(to))?;
        let began = Instant::now();
        let mut events = [EpollEvent::empty(); 256];
        while open > 0 {
            let count = self.epoll.wait(&mut events, EpollTimeout::from(50u16))?;
            if count == 0 {
                // A queue of the system was full.
                sources.iter().filter(|source| source.waits).try_for_each(|source| source.send(to))?;
                silences += 1;
                if silences > 100 {
                    return Err(io::Error::other(format!("{open} responses are missing")));
                }
            }
            for event in &events[..count] {
                let source = &mut sources[event.data() as usize];
                if source.receive()? && source.waits {
                    source.waits = false;
                    responses += 1;
                    if began.elapsed() < ROUND { source.send_next(to)? } else { open -= 1 }
                }
            }
        }
        Ok(responses)
    }
}

/// Sends one request from each of this many sources.
fn ask_once(server: SocketAddr, sources: usize) -> io::Result<()> {
    for _ in 0..sources {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        let mut source = Source { socket, message_id: 7, waits: false };
        source.send_next(server)?;
        source.receive()?;
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn compare(sources: usize) -> io::Result<()> {
    let servers = [
        Running::start("bare", "bare", "127.0.0.1:0")?,
        Running::start("ours", "ours", "127.0.0.1:0")?,
        Running::start("ours, any address", "ours", "[::]:0")?,
    ];
    let mut generator = Generator::new(1024)?;
    println!("{:>8}  {:18} {:>8} {:>6} {:>15}", "clients", "server", "us", "ratio", "of all rounds");
    let mut measure = |clients: usize| -> io::Result<()> {
        let mut costs = vec![Vec::new(); servers.len()];
        for _ in 0..ROUNDS {
            for (server, costs) in servers.iter().zip(&mut costs) {
                costs.push(server.cost(&mut generator, clients)?);
            }
        }
        for (server, costs_of) in servers.iter().zip(&costs) {
            let ratio = median(costs_of.iter().zip(&costs[0]).map(|(own, bare)| own / bare).collect());
            let low = costs_of.iter().copied().fold(f64::MAX, f64::min);
            let high = costs_of.iter().copied().fold(0.0, f64::max);
            let us = median(costs_of.clone());
            println!("{clients:>8}  {:18} {us:>8.2} {ratio:>6.2} {low:>7.2}–{high:<7.2}", server.name);
        }
        Ok(())
    };
    CLIENTS.into_iter().try_for_each(&mut measure)?;
    if sources > 0 {
        // A server that has not filled its memory yet shows how much a source takes.
        let fresh = Running::start("fresh", "ours", "127.0.0.1:0")?;
        let before = fresh.resident()?;
        ask_once(fresh.address, sources)?;
        let grown = fresh.resident()?.saturating_sub(before);
        println!("\nafter {sources} sources, which took {} bytes each:", grown / sources as u64);
        servers.iter().try_for_each(|server| ask_once(server.address, sources))?;
        [16, 128].into_iter().try_for_each(&mut measure)?;
    }
    Ok(())
}
