//! The server or the client of another stack.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use coapace_proto::{Code, Kind, Message, Tail};
use coapace_run::contender::{Contender, ContenderKind};
use coapace_run::{request, response};
use coapace_scenario::{Answering, File, Scenario, WorkloadKind};
use coapace_sim::Span;

use super::LiveError;
use crate::client_command::ClientCommand;
use crate::program::{Program, Readiness, here, shell};

/// The time within which a server must answer after its start.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time after which an unanswered request is repeated, before the run.
const REPEAT: Duration = Duration::from_millis(200);

/// The maximum number of times that a resource is read to check the length of its representation. It is read unchanged,
/// after a payload as long as ours was written, and after a shorter payload was written.
const ATTEMPTS: u32 = 3;

/// The placeholder for the port in a command line.
const PORT: &str = "{port}";

/// The placeholder for the URI in the command line of a client.
const URI: &str = "{uri}";

/// The placeholder for the address in a command line.
const ADDRESS: &str = "{address}";

/// The maximum number of clients of another stack. Each is a process.
const MOST_PROCESSES: u32 = 500;

/// A command that starts the server or a client of another stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCommand {
    command: String,
    name: String,
    is_client: bool,
}

impl PeerCommand {
    /// Reads a command line for a shell that starts a server. `{port}` is replaced by the port to listen at, and `{address}` by the
    /// address: 127.0.0.1, or over TCP an address in a network namespace.
    ///
    /// # Errors
    /// Returns one line if the command names no program or has no placeholder for the port.
    pub fn parse(command: &str) -> Result<Self, String> {
        let Some(program) = command.split_whitespace().next().filter(|_| command.contains(PORT)) else {
            return Err(format!(
                "a peer is a command with {PORT} where its port goes, such as 'coap-server-notls -A {ADDRESS} -p {PORT} -d 10'"
            ));
        };
        Ok(Self { command: command.to_owned(), name: base_name(program), is_client: false })
    }

    /// Reads a command line for a shell that makes one request, or several one after the other. `{uri}` is replaced by the URI
    /// to request, and `{host}`, `{port}` and `{path}` by its parts. A run starts the command again until all requests are
    /// made.
    ///
    /// # Errors
    /// Returns one line if the command names no program or has no placeholder for the URI.
    pub fn parse_client(command: &str) -> Result<Self, String> {
        let has_place = command.contains(URI) || command.contains(PORT);
        let Some(program) = command.split_whitespace().next().filter(|_| has_place) else {
            return Err(format!(
                "a client is a command with {URI} where the URI goes, or {{host}}, {PORT} and {{path}}, such as \
                 'coap-client-notls -B 300 {URI}'"
            ));
        };
        Ok(Self { command: command.to_owned(), name: base_name(program), is_client: true })
    }

    /// Returns whether the command starts a client.
    pub(super) fn is_client(&self) -> bool {
        self.is_client
    }

    /// Checks that the other stack can run a scenario. A server can run every scenario without a transfer. A client can
    /// run only scenarios that do not ask for what its own behaviour fixes, such as waits between requests.
    ///
    /// # Errors
    /// Returns one line that says what the other stack cannot do.
    pub fn fits(&self, scenario: &Scenario, contender: &Contender) -> Result<(), String> {
        let File { workload, clients, server, .. } = &**scenario;
        let is_single = matches!(&contender.kind, ContenderKind::Udp(mix) if mix.parts().len() == 1);
        if workload.kind == WorkloadKind::Transfer {
            return Err(format!(
                "live runs of other stacks cannot make the transfer of {}: run its programs with coapace emulate",
                scenario.name
            ));
        }
        // A client is a process that asks as fast as it can, so everything else that a scenario may want is refused.
        let cannot = if !self.is_client {
            return Ok(());
        } else if !is_single {
            "run over TCP or beside other clients: name one mechanism at a time"
        } else if workload.kind != WorkloadKind::Continuous || workload.exchanges.is_none() {
            "do more than a number of requests one after the other: set workload.kind=continuous and workload.exchanges"
        } else if [workload.think_time, workload.interval, clients.start_spread] != [Span::ZERO; 3] {
            "wait: set workload.think_time, workload.interval and clients.start_spread to 0 s"
        } else if server.response != Answering::Piggybacked {
            // Answers are matched by Message ID, and a separate response has one of its own (RFC 7252 §5.2.2).
            "be measured with separate responses: set server.response=piggybacked"
        } else if clients.count > MOST_PROCESSES {
            return Err(format!(
                "each client of another stack is a process, and a run may have at most {MOST_PROCESSES}"
            ));
        } else {
            return Ok(());
        };
        Err(format!("clients of {} cannot {cannot}", self.name))
    }

    /// Starts a client that sends requests for `path` to `address`.
    pub(super) fn start_client(&self, address: SocketAddr, path: &str) -> Result<Program, LiveError> {
        // The placeholders are replaced inside the shell's line, so that the line may have quotes and pipes.
        let words = ["sh".to_owned(), "-c".to_owned(), self.command.clone()];
        let command =
            ClientCommand::new(words.to_vec()).ok_or_else(|| self.failed("it has no place for the URI"))?;
        command.start(address, path).map_err(LiveError::Peer)
    }

    /// Returns the error of a client that ended without a request, with the last line that it wrote.
    pub(super) fn failed(&self, message: &str) -> LiveError {
        LiveError::Peer(format!("`{}` ends without a request: {message}", self.command))
    }

    /// Returns the name of the program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the shell's command line that starts the server at an address.
    pub(super) fn line(&self, at: SocketAddr) -> String {
        let placed = self.command.replace(PORT, &at.port().to_string());
        placed.replace(ADDRESS, &at.ip().to_string())
    }

    /// Returns the error of a server that has ended with this exit code, with the last line that it wrote.
    pub(super) fn ended(&self, code: u8, message: &str) -> LiveError {
        LiveError::Peer(format!("`{}` ended at once, with exit code {code}: {message}", self.command))
    }

    /// Returns the error of a server that does not answer at an address.
    pub(super) fn silent(&self, at: SocketAddr) -> LiveError {
        LiveError::Peer(format!(
            "`{}` does not answer at {at}: it has to listen at the address {ADDRESS} and the port {PORT}",
            self.command
        ))
    }

    /// Returns the error of a server whose answer does not have the `wanted` length. `has` is the length of its answer;
    /// `None` if it answered with another code than 2.05.
    pub(super) fn misfit(&self, scenario: &Scenario, has: Option<usize>, wanted: usize) -> LiveError {
        let has = has.map_or_else(|| "no answer 2.05".to_owned(), |has| format!("an answer of {has} bytes"));
        LiveError::Peer(format!(
            "`{}` has {has} to GET /{}, and takes no PUT that makes it {wanted}: give it such a resource, or change \
             clients.uri_path and server.payload_bytes with --set",
            self.command, scenario.clients.uri_path
        ))
    }

    /// Starts the server, and makes its answers as long as our server's answers.
    pub(super) fn start(&self, scenario: &Scenario) -> Result<StartedServer, LiveError> {
        // Another program may take the free port first; then the server ends with an error.
        let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
        let address = free.map_err(LiveError::io("find a free port"))?;
        let started = Program::silent(shell(self.line(address)), here);
        let mut program = started.map_err(LiveError::io("start a shell for the peer"))?;
        let mut dialogue = Dialogue::with(address)?;
        // UDP has no connections. So only the answer to a ping (RFC 7252 §4.3) shows that the server listens.
        let answers = || Ok(dialogue.is_answered());
        match program.wait_until(PATIENCE, answers).map_err(LiveError::io("wait for the peer"))? {
            Readiness::Ready => {}
            Readiness::Ended(code) => return Err(self.ended(code, &program.last_words())),
            Readiness::Late => return Err(self.silent(address)),
        }
        dialogue.fit(scenario, self)?;
        Ok(StartedServer { _program: program, address })
    }
}

fn base_name(program: &str) -> String {
    program.rsplit('/').next().unwrap_or(program).to_owned()
}

/// Makes the answer to a GET `wanted` bytes long: reads the resource, and writes it with PUT until the length is right,
/// for at most [`ATTEMPTS`] reads. `ask` sends a request and returns the code and the length of the answer. Returns the
/// last length, or `None` if the last answer was not 2.05.
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
        // A shorter payload makes up for options that the server adds.
        written = has.map_or(payload, |has| (written + wanted).saturating_sub(has));
        let tail = scenario.clients.uri_path_segments().fold(Tail::default(), |tail, segment| {
            tail.option(coap_numbers::option::URI_PATH, segment.as_bytes())
        });
        ask(Code::PUT, &tail.payload(&vec![b'.'; written]).into_bytes());
    }
    None
}

/// A server that runs. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct StartedServer {
    _program: Program,
    address: SocketAddr,
}

impl StartedServer {
    /// Returns the address at which the server listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A socket for requests to the server before the run, which bypass the emulated network.
struct Dialogue {
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
        Ok(Self { socket: open().map_err(LiveError::io("open a socket"))?, message_id: 1 })
    }

    /// Returns whether the server answers a ping. A port without a server refuses at once.
    fn is_answered(&mut self) -> bool {
        self.message_id += 1;
        self.ask_once(&Message::empty(Kind::Confirmable, self.message_id)).is_some()
    }

    /// Makes the answer to the request of the scenario as long as our server's.
    fn fit(&mut self, scenario: &Scenario, peer: &PeerCommand) -> Result<(), LiveError> {
        // 4 bytes are the header of CoAP (RFC 7252 §3). The requests here have no token.
        let wanted = 4 + response(scenario).len();
        let has = fit(scenario, wanted, |code, tail| {
            let answer = self.ask(code, tail)?;
            let read = Message::parse(&answer).ok()?;
            Some((read.code, answer.len()))
        });
        if has == Some(wanted) { Ok(()) } else { Err(peer.misfit(scenario, has, wanted)) }
    }

    /// Sends a request up to ten times, until it is answered; `None` if it is not.
    fn ask(&mut self, code: Code, tail: &[u8]) -> Option<Vec<u8>> {
        self.message_id += 1;
        let message = Message { code, tail, ..Message::empty(Kind::Confirmable, self.message_id) };
        (0..10).find_map(|_| self.ask_once(&message))
    }

    /// Sends a message once. Returns the answer with the same Message ID; `None` if none arrives within [`REPEAT`].
    fn ask_once(&mut self, message: &Message<'_>) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        message.write(&mut bytes);
        self.socket.send(&bytes).ok()?;
        let mut answer = vec![0; 65_536];
        // The answer to an earlier copy may come first, and would otherwise be taken for this one.
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
    fn a_server_command_needs_a_placeholder_for_its_port() {
        assert_eq!(PeerCommand::parse("/usr/bin/server -p {port}").unwrap().name(), "server");
        assert!(PeerCommand::parse("server -p 5683").unwrap_err().contains("{port}"));
        assert!(PeerCommand::parse("").is_err());
        let client = PeerCommand::parse_client("/usr/bin/coap-client -B 9 {uri}").unwrap();
        assert_eq!((client.name(), client.is_client()), ("coap-client", true));
        assert!(PeerCommand::parse_client("coap-client coap://localhost/").unwrap_err().contains("{uri}"));
    }

    #[test]
    fn an_unsupported_workload_for_clients_of_another_stack_is_refused_with_a_reason() {
        let client = PeerCommand::parse_client("ask {uri}").unwrap();
        let message = |settings: &[(&str, &str)], name: &str| {
            let settings: Vec<_> =
                settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
            let scenario = Scenario::load("nb-iot", &settings).unwrap();
            client.fits(&scenario, &Contender::parse(name).unwrap()).err().unwrap_or_default()
        };
        assert_eq!(message(&[], "default"), "");
        assert!(message(&[("workload.kind", "random")], "default").contains("one after the other"));
        assert!(message(&[], "default+cocoa").contains("one mechanism at a time"));
        assert!(message(&[("workload.think_time", "1 s")], "default").contains("think_time"));
        assert!(message(&[("clients", "501")], "default").contains("at most 500"));
    }
}
