//! The server of another stack.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use coapace_lab::run::{request, response};
use coapace_proto::{Code, Kind, Message, Tail};
use coapace_scenario::Scenario;

use super::LiveError;

/// The time that a server has to answer after its start.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two copies of a question.
const REPEAT: Duration = Duration::from_millis(200);

/// How often a resource is read to be of the right length: as it is, written as long as ours, and written shorter.
const ATTEMPTS: u32 = 3;

/// The place of the port in a command line.
const PORT: &str = "{port}";

/// The place of the address in a command line.
const ADDRESS: &str = "{address}";

/// A command that starts the server of another stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    command: String,
    name: String,
}

impl Peer {
    /// Reads a command line for a shell. `{port}` in it stands for the port to listen at, and `{address}` for the address:
    /// 127.0.0.1, or that of a network namespace over TCP.
    ///
    /// # Errors
    /// Returns one line if the command names no program or has no place for the port.
    pub fn parse(command: &str) -> Result<Self, String> {
        let Some(program) = command.split_whitespace().next().filter(|_| command.contains(PORT)) else {
            return Err(format!(
                "a peer is a command with {PORT} where its port goes, such as 'coap-server-notls -A {ADDRESS} -p {PORT} -d 10'"
            ));
        };
        let name = program.rsplit('/').next().unwrap_or(program);
        Ok(Self { command: command.to_owned(), name: name.to_owned() })
    }

    /// Returns the name of the program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the line of the shell that starts the server at an address. The shell makes room for it, so that ending the shell
    /// ends the server.
    pub(super) fn line(&self, at: SocketAddr) -> String {
        let placed = self.command.replace(PORT, &at.port().to_string());
        format!("exec {}", placed.replace(ADDRESS, &at.ip().to_string()))
    }

    /// Returns the error of a server that has ended.
    pub(super) fn ended(&self, how: &str) -> LiveError {
        LiveError::Peer(format!("`{}` ended at once ({how}): run it by hand to see why", self.command))
    }

    /// Returns the error of a server that does not answer at an address.
    pub(super) fn silent(&self, at: SocketAddr) -> LiveError {
        LiveError::Peer(format!(
            "`{}` does not answer at {at}: it has to listen at the address {ADDRESS} and the port {PORT}",
            self.command
        ))
    }

    /// Returns the error of a server whose answer has another length than wanted; `None` is no answer of success.
    pub(super) fn misfit(&self, scenario: &Scenario, has: Option<usize>, wanted: usize) -> LiveError {
        let has = has.map_or_else(|| "no answer 2.05".to_owned(), |has| format!("an answer of {has} bytes"));
        LiveError::Peer(format!(
            "`{}` has {has} to GET /{}, and takes no PUT that makes it {wanted}: give it such a resource, or change \
             clients.uri_path and server.payload_bytes with --set",
            self.command, scenario.clients.uri_path
        ))
    }

    /// Starts the server, and makes its answers as long as those of the scenario.
    pub(super) fn start(&self, scenario: &Scenario) -> Result<Started, LiveError> {
        // The port is free until another program takes it, which the server would tell.
        let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
        let address = free.map_err(LiveError::io("find a free port"))?;
        let child = Command::new("sh")
            .args(["-c", &self.line(address)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(LiveError::io("start a shell for the peer"))?;
        let mut started = Started { child, address };
        let mut dialogue = Dialogue::with(address)?;
        dialogue.wait(&mut started.child, self)?;
        dialogue.fit(scenario, self)?;
        Ok(started)
    }
}

/// Makes the answer to a GET as long as `wanted`: if it is not, writes the resource with PUT, and compares again. `ask` sends a
/// request and returns the code and the length of the answer. Returns the length at the end; `None` if there is no answer of
/// success.
pub(super) fn fit(
    scenario: &Scenario,
    wanted: usize,
    mut ask: impl FnMut(Code, &[u8]) -> Option<(Code, usize)>,
) -> Option<usize> {
    let path = request(scenario);
    let payload = scenario.server.payload_bytes as usize;
    let mut written = payload;
    for attempt in 1.. {
        let answer = ask(Code::GET, &path).filter(|(code, _)| *code == Code(coap_numbers::code::CONTENT));
        let has = answer.map(|(_, length)| length);
        if has == Some(wanted) || attempt == ATTEMPTS {
            return has;
        }
        // Options that the server adds are made up for by a shorter payload.
        written = has.map_or(payload, |has| (written + wanted).saturating_sub(has));
        let tail = scenario.clients.uri_path_segments().fold(Tail::default(), |tail, segment| {
            tail.option(coap_numbers::option::URI_PATH, segment.as_bytes())
        });
        ask(Code::PUT, &tail.payload(&vec![b'.'; written]).into_bytes());
    }
    None
}

/// A server that runs. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Started {
    child: Child,
    address: SocketAddr,
}

impl Started {
    /// Returns the address at which it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // A server that has ended by itself cannot be ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Requests to the server before the run, past the emulated network.
struct Dialogue {
    server: SocketAddr,
    socket: UdpSocket,
    message_id: u16,
}

impl Dialogue {
    fn with(server: SocketAddr) -> Result<Self, LiveError> {
        let open = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.connect(server)?;
            socket.set_read_timeout(Some(REPEAT))?;
            Ok(socket)
        };
        Ok(Self { server, socket: open().map_err(LiveError::io("open a socket"))?, message_id: 1 })
    }

    /// Waits until the server answers a ping.
    fn wait(&mut self, child: &mut Child, peer: &Peer) -> Result<(), LiveError> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let status = child.try_wait().map_err(LiveError::io("look after the peer"))?;
            if let Some(status) = status {
                return Err(peer.ended(&status.to_string()));
            }
            self.message_id += 1;
            if self.ask_once(&Message::empty(Kind::Confirmable, self.message_id)).is_some() {
                return Ok(());
            }
            // A port without a server refuses at once.
            thread::sleep(Duration::from_millis(20));
        }
        Err(peer.silent(self.server))
    }

    /// Makes the answer to the request of the scenario as long as that of our server.
    fn fit(&mut self, scenario: &Scenario, peer: &Peer) -> Result<(), LiveError> {
        let wanted = 4 + response(scenario).len();
        let has = fit(scenario, wanted, |code, tail| {
            let answer = self.ask(code, tail)?;
            let read = Message::parse(&answer).ok()?;
            Some((read.code, answer.len()))
        });
        if has == Some(wanted) { Ok(()) } else { Err(peer.misfit(scenario, has, wanted)) }
    }

    /// Sends a request until it is answered.
    fn ask(&mut self, code: Code, tail: &[u8]) -> Option<Vec<u8>> {
        self.message_id += 1;
        let message = Message { code, tail, ..Message::empty(Kind::Confirmable, self.message_id) };
        (0..10).find_map(|_| self.ask_once(&message))
    }

    /// Sends a message once. Returns the answer with its Message ID, if it comes in time.
    fn ask_once(&mut self, message: &Message<'_>) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        message.write(&mut bytes);
        self.socket.send(&bytes).ok()?;
        let mut answer = vec![0; 65_536];
        let until = Instant::now() + REPEAT;
        while Instant::now() < until {
            let length = self.socket.recv(&mut answer).ok()?;
            let read = Message::parse(&answer[..length]);
            if read.is_ok_and(|read| read.message_id == message.message_id) {
                answer.truncate(length);
                return Some(answer);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_command_with_a_place_for_its_port() {
        assert_eq!(Peer::parse("/usr/bin/server -p {port}").unwrap().name(), "server");
        assert!(Peer::parse("server -p 5683").unwrap_err().contains("{port}"));
        assert!(Peer::parse("").is_err());
    }
}
