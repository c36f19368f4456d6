//! The datagrams between a client and a server: noted, lost where a case wants it, and captured.

use std::fs::File;
use std::io::BufWriter;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use coapace_net::{Datagram, Direction, Interceptor};
use coapace_sim::{CaptureFile, Ecn, Time, udp_packet};
use tokio::sync::Notify;

use super::seen::Seen;

/// The addresses in captures, wherever the ends are bound. The judges of captures know the server by this one.
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 5683);
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 40_002);

/// The interfaces of a capture, by their numbers.
const INTERFACES: [&str; 2] = ["sent", "delivered"];

/// The client's end of the path to the server.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    state: Mutex<Noted>,
    passed: Notify,
}

#[derive(Debug, Default)]
struct Noted {
    seen: Vec<Seen>,
    /// The number of them that the case has looked at.
    looked_at: usize,
    losses: Vec<(Direction, String)>,
    off: bool,
    server_off: bool,
    /// The number of datagrams that the server has sent without power.
    unsent: u32,
    client_port: u16,
    capture: Option<CaptureFile<BufWriter<File>>>,
}

impl Wire {
    /// Returns a wire with a capture of this name, if captures are wanted.
    pub(crate) fn new(case: &str) -> Self {
        let capture = std::env::var_os("COAPACE_CAPTURES").map(|folder| {
            let path = PathBuf::from(folder).join(case).with_extension("pcapng");
            let file = File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let mut capture = CaptureFile::new(BufWriter::new(file));
            for name in INTERFACES {
                capture.add_interface(CaptureFile::RAW_IP, name, "");
            }
            capture
        });
        Self { state: Mutex::new(Noted { capture, ..Noted::default() }), passed: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, Noted> {
        self.state.lock().expect("no case has panicked here")
    }

    /// The next datagram of this direction and [name](Seen::name) is lost.
    pub(crate) fn lose(&self, direction: Direction, name: &str) {
        self.state().losses.push((direction, name.into()));
    }

    /// The client is without power: it takes no datagram, and none leaves it.
    pub(crate) fn switch_off(&self) {
        self.state().off = true;
    }

    /// The server is without power: its last datagrams never leave.
    pub(crate) fn server_is_off(&self) {
        self.state().server_off = true;
    }

    /// The server is on again and is heard, once its last datagrams are gone: the client may read these late.
    pub(crate) async fn server_is_on(&self, patience: Duration) {
        let gone = async {
            while self.state().unsent == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(patience, gone).await.expect("a farewell");
        self.state().server_off = false;
    }

    /// The port that the client sends from.
    pub(crate) fn client_port(&self) -> u16 {
        self.state().client_port
    }

    /// Records a datagram. Returns whether it passes; it is lost otherwise.
    pub(crate) fn note(&self, direction: Direction, bytes: &[u8]) -> bool {
        let mut state = self.state();
        let mut seen = Seen::new(direction, bytes);
        let name = seen.name();
        let loss = state.losses.iter().position(|loss| *loss == (direction, name.clone()));
        seen.is_lost = loss.map(|place| state.losses.remove(place)).is_some();
        let goes_on = !seen.is_lost;
        // The client's interface sees a sent datagram before its loss, but not a lost datagram to the client.
        if goes_on || direction == Direction::Sent {
            state.capture(direction, bytes);
        }
        state.seen.push(seen);
        drop(state);
        self.passed.notify_one();
        goes_on
    }

    /// The next datagram that the case has not looked at; nothing if none passes in time.
    pub(crate) async fn next(&self, patience: Duration) -> Option<Seen> {
        let next = async {
            loop {
                if let Some(seen) = self.state().next() {
                    return seen;
                }
                self.passed.notified().await;
            }
        };
        tokio::time::timeout(patience, next).await.ok()
    }

    /// Ends the capture.
    pub(crate) fn finish(&self) {
        if let Some(capture) = self.state().capture.take() {
            capture.finish().expect("room for the capture");
        }
    }
}

impl Noted {
    fn next(&mut self) -> Option<Seen> {
        let seen = self.seen.get(self.looked_at)?.clone();
        self.looked_at += 1;
        Some(seen)
    }

    fn capture(&mut self, direction: Direction, bytes: &[u8]) {
        let Some(capture) = &mut self.capture else { return };
        let (from, to, interface) = match direction {
            Direction::Sent => (CLIENT, SERVER, 0),
            Direction::Received => (SERVER, CLIENT, 1),
        };
        let mut packet = Vec::new();
        udp_packet(from, to, 0, Ecn::NotCapable, bytes, &mut packet).expect("a short datagram");
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        capture.add_packet(interface, Time::from_nanos(since.as_nanos() as u64), &packet, None);
    }
}

impl Interceptor for Wire {
    fn pass(&self, datagram: &Datagram<'_>) -> bool {
        let (off, server_off) = {
            let mut state = self.state();
            state.client_port = datagram.local.port();
            (state.off, state.server_off)
        };
        match datagram.direction {
            Direction::Sent if off => false,
            Direction::Received if server_off => {
                self.state().unsent += 1;
                false
            }
            direction => self.note(direction, datagram.bytes) && !off,
        }
    }
}
