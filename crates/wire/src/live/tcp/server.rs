//! A server that answers every request with the same response, over the TCP of the operating system.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use coapace_proto::Code;
use coapace_proto::stream::StreamMessage;

use super::talk::ConnectionEndpoint;
use crate::emulation::waiting::EventWaiter;

/// The longest wait for a connection before the next check for an interruption.
const PATIENCE: Duration = Duration::from_millis(100);

/// The memory of a thread's stack, in bytes.
const STACK: usize = 128 * 1024;

/// The settings and the counters that all connections of a server share.
#[derive(Debug)]
pub(super) struct TcpService {
    /// The options and the payload of the response.
    pub(super) response: Vec<u8>,
    pub(super) nagle: bool,
    /// The maximum number of connections that are accepted in the whole run.
    pub(super) most: u64,
    /// Ends the server when it becomes true.
    pub(super) stops: AtomicBool,
    /// The requests that were answered.
    pub(super) answered: AtomicU64,
}

impl TcpService {
    /// Listens at an address, and answers on threads of its own until `stops` becomes true. The threads are in the
    /// network namespace of the caller. Returns the address with its port.
    ///
    /// # Errors
    /// Errors of the socket.
    pub(super) fn start(self: &Arc<Self>, at: SocketAddr) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(at)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let service = self.clone();
        thread::Builder::new().stack_size(STACK).spawn(move || service.accept(&listener))?;
        Ok(address)
    }

    fn stops(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) -> io::Result<()> {
        let (mut waiting, mut ready) = (EventWaiter::new()?, Vec::new());
        waiting.add(listener, 0)?;
        let mut accepted = 0;
        while !self.stops() && accepted < self.most {
            waiting.wait(PATIENCE, &mut ready)?;
            // epoll reports the listener once for several connections.
            while let Ok((stream, _)) = listener.accept() {
                accepted += 1;
                let service = self.clone();
                // A connection without a thread is closed, and its client makes another.
                let _ = thread::Builder::new().stack_size(STACK).spawn(move || service.answer(stream));
            }
        }
        Ok(())
    }

    /// Answers the requests of a connection until it ends.
    fn answer(&self, stream: TcpStream) -> io::Result<()> {
        // `ConnectionEndpoint::read` waits with a timeout, which needs a blocking socket.
        stream.set_nonblocking(false)?;
        let mut talk = ConnectionEndpoint::begin(stream, self.nagle)?;
        while !self.stops() {
            talk.read(|message, answer| {
                if message.code.is_request() {
                    self.answered.fetch_add(1, Ordering::Relaxed);
                    let code = Code(coap_numbers::code::CONTENT);
                    let written =
                        StreamMessage { code, token: message.token, tail: &self.response }.write(answer);
                    debug_assert!(written.is_ok(), "a scenario's payload fits into a message");
                }
            })?;
        }
        Ok(())
    }
}
