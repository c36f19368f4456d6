//! The server of another stack in a network namespace.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use coapace_lab::run::response;
use coapace_proto::stream::StreamMessage;
use coapace_proto::{Code, Token};
use coapace_scenario::Scenario;

use super::inside;
use super::talk::Talk;
use crate::emulation::{Program, Side};
use crate::live::peer::fit;
use crate::live::{LiveError, Peer};

/// The time that a server has to answer after its start, and for each answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts a server in a namespace, and makes its answers as long as those of the scenario. It ends when what is returned is
/// dropped.
pub(super) fn start(
    peer: &Peer,
    side: &Side,
    at: SocketAddr,
    scenario: &Scenario,
) -> Result<Program, LiveError> {
    let quiet = |command: &mut std::process::Command| {
        command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
    };
    let program = Program::shell(side, peer.line(at), quiet).map_err(LiveError::io("start the peer"))?;
    let (copy, connected) = (scenario.clone(), inside(side, move || Ok(connect(at)))?);
    let Some(stream) = connected else { return Err(peer.silent(at)) };
    let wanted = response(scenario).len();
    let has = inside(side, move || {
        let mut talk = Talk::begin(stream, false)?;
        Ok(fit(&copy, wanted, |code, tail| ask(&mut talk, code, tail).ok()))
    })?;
    if has == Some(wanted) { Ok(program) } else { Err(peer.misfit(scenario, has, wanted)) }
}

/// Connects to a server that may not listen yet.
fn connect(at: SocketAddr) -> Option<TcpStream> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match TcpStream::connect(at) {
            Ok(stream) => return Some(stream),
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
    None
}

/// Sends a request. Returns the code of the answer, and the length of its options and payload.
fn ask(talk: &mut Talk, code: Code, tail: &[u8]) -> io::Result<(Code, usize)> {
    talk.send(&StreamMessage { code, token: Token::EMPTY, tail })?;
    let until = Instant::now() + PATIENCE;
    let mut answer = None;
    while answer.is_none() && Instant::now() < until {
        talk.read(|message, _| {
            if message.code.is_response() {
                answer = Some((message.code, message.tail.len()));
            }
        })?;
    }
    answer.ok_or_else(|| io::ErrorKind::TimedOut.into())
}
