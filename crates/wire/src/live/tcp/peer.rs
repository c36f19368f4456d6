//! The server of another stack in a network namespace.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use coapace_proto::stream::StreamMessage;
use coapace_proto::{Code, Token};
use coapace_run::response;
use coapace_scenario::Scenario;

use super::inside;
use super::talk::ConnectionEndpoint;
use crate::emulation::NetworkNamespace;
use crate::live::peer::fit;
use crate::live::{LiveError, PeerCommand};
use crate::program::{Program, Readiness, shell};

/// The longest wait for a server to listen after its start, and for the answer to each request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts a server of another stack in a namespace, and makes its answers as long as our server's answers. The server
/// ends when the returned program is dropped.
pub(super) fn start(
    peer: &PeerCommand,
    side: &NetworkNamespace,
    at: SocketAddr,
    scenario: &Scenario,
) -> Result<Program, LiveError> {
    let started = Program::silent(shell(peer.line(at)), |command| side.start(command));
    let mut program = started.map_err(LiveError::io("start the peer"))?;
    let mut connected = None;
    // A connection shows that the server listens. It is kept for the questions below.
    let connects = || {
        connected = side.run(move || TcpStream::connect(at).ok())?;
        Ok(connected.is_some())
    };
    let readiness = program.wait_until(PATIENCE, connects).map_err(LiveError::io("wait for the peer"))?;
    let Some(stream) = connected else {
        return Err(match readiness {
            Readiness::Ended(code) => peer.ended(code, &program.last_words()),
            _ => peer.silent(at),
        });
    };
    // The job runs on the namespace's thread, which needs a copy of its own.
    let copy = scenario.clone();
    let wanted = response(scenario).len();
    let has = inside(side, move || {
        let mut talk = ConnectionEndpoint::begin(stream, false)?;
        Ok(fit(&copy, wanted, |code, tail| ask(&mut talk, code, tail).ok()))
    })?;
    if has == Some(wanted) { Ok(program) } else { Err(peer.misfit(scenario, has, wanted)) }
}

/// Sends a request. Returns the code of the answer, and the length of its options and payload.
fn ask(talk: &mut ConnectionEndpoint, code: Code, tail: &[u8]) -> io::Result<(Code, usize)> {
    // One request is open at a time, so its answer needs no token to be recognised.
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
