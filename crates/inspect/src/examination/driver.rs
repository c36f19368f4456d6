//! Runs cases on real sockets, in real time.

use std::io;
use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use coapace_proto::{Code, Kind};

use super::case::{Case, DatagramSchedule, DueDatagram, ExaminationTarget, ExaminedSide};
use super::finding::Finding;
use super::packet::{Packet, PacketDirection, message};
use super::recorder::Recorder;
use super::transcript::{Exit, Transcript};
use coapace_sim::Span;
use coapace_wire::client_command::{ClientCommand, uri};
use coapace_wire::{Lateness, Program};

/// The plan of an examination.
#[derive(Debug)]
pub struct ExaminationPlan {
    /// Whether the examined stack is the client or the server.
    pub side: ExaminedSide,
    /// The address of the examined server, or the address to listen at for a client.
    pub address: SocketAddr,
    /// The cases to run, in sequence.
    pub cases: Vec<&'static Case>,
    /// The resources of the stack, and the extent of the examination.
    pub target: ExaminationTarget,
    /// The command that starts the client. Without one, the user must start it for every case.
    pub command: Option<ClientCommand>,
    /// The number of lanes that are used concurrently.
    pub at_once: usize,
    /// The time that a case waits for the first request of a client that the user starts.
    pub patience: Duration,
}

/// A case with its findings.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The case.
    pub case: &'static Case,
    /// The findings; at least one.
    pub findings: Vec<Finding>,
    /// The packets that the case has sent and received.
    pub packets: usize,
    /// The delays of the examiner's own timers. On an overloaded machine measured times are too long.
    pub lateness: Lateness,
}

/// The reason why no case could be examined.
#[derive(Debug, thiserror::Error)]
pub enum ExamineError {
    /// A socket could not be used.
    #[error("cannot use {0}: {1}")]
    Socket(SocketAddr, io::Error),
    /// The server does not answer.
    #[error("{0} did not answer a GET within 6 s; is a server there?")]
    NoAnswer(SocketAddr),
}

/// Progress of a running examination.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// A case waits for a request of a client to this URI.
    Ask(&'static Case, &'a str),
    /// A case has ended.
    Done(&'a Examined),
}

/// The path of the resource that clients must request.
const PATH: &str = "examined";

/// The multicast address of All CoAP Nodes (RFC 7252 §12.8).
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 1, 187);

/// The longest wait between two checks of the client processes.
const LOOK: Duration = Duration::from_millis(10);

/// If a client ends this many times without a request, its case ends and counts as not tested.
const MAX_SILENT_STARTS: u32 = 3;

/// The number of consecutive errors above which a socket counts as failed.
const MOST_ERRORS: u32 = 1_000;

/// The pause after an error of a socket.
const ERROR_PAUSE: Duration = Duration::from_millis(1);

/// Runs the cases of a plan, and judges them. Returns them in the sequence of the plan. Progress is reported to `tell`.
/// If `stop` becomes true, running cases count as not tested.
///
/// # Errors
/// [`ExamineError`] if nothing could be examined.
pub fn examine(
    plan: &ExaminationPlan,
    recorder: &Recorder,
    stop: &AtomicBool,
    tell: &(dyn Fn(News<'_>) + Sync),
) -> Result<Vec<Examined>, ExamineError> {
    if plan.side == ExaminedSide::Server {
        greet(plan, recorder)?;
    }
    // Somebody who starts clients by hand can do so for one case at a time.
    let at_once =
        if plan.side == ExaminedSide::Client && plan.command.is_none() { 1 } else { plan.at_once.max(1) };
    let (free, freed) = (Mutex::new(at_once), Condvar::new());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (place, &case) in plan.cases.iter().enumerate() {
            let lanes = lane_count(plan, case).min(at_once);
            // Nothing panics under these locks, so their values are valid even if they are poisoned.
            let mut left = free.lock().unwrap_or_else(PoisonError::into_inner);
            // The next case is not looked at before this one has its lanes, so cases begin in the order of the plan.
            while *left < lanes {
                left = freed.wait(left).unwrap_or_else(PoisonError::into_inner);
            }
            *left -= lanes;
            drop(left);
            let (free, freed, done) = (&free, &freed, &done);
            scope.spawn(move || {
                let _lanes = Finally(|| {
                    *free.lock().unwrap_or_else(PoisonError::into_inner) += lanes;
                    freed.notify_all();
                });
                let examined = conduct(plan, place, case, lanes, recorder, stop, tell);
                tell(News::Done(&examined));
                done.lock().unwrap_or_else(PoisonError::into_inner).push((place, examined));
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, examined)| examined).collect())
}

/// Calls a function when it is dropped, and so also if its scope panics.
struct Finally<F: FnMut()>(F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn lane_count(plan: &ExaminationPlan, case: &Case) -> usize {
    let many = plan.side == ExaminedSide::Client && plan.command.is_some();
    // A server is examined from one address, and a client that is started by hand is one process.
    if many { case.lane_count(plan.target.is_quick) } else { 1 }
}

/// Sends a GET, at most three times. Fails without an answer, so that a missing server is reported before any case
/// begins.
fn greet(plan: &ExaminationPlan, recorder: &Recorder) -> Result<(), ExamineError> {
    let fail = |error| ExamineError::Socket(plan.address, error);
    let socket = socket_towards(plan.address).map_err(fail)?;
    let local = socket.local_addr().map_err(fail)?;
    // The number before the first one of the cases, which count up from it.
    let id = plan.target.id(u16::MAX);
    let bytes =
        message(Kind::Confirmable, Code::GET, id, &plan.target.token(u16::MAX), &plan.target.resource, &[]);
    let mut buffer = [0; 2048];
    for _ in 0..3 {
        recorder.record("greeting", PacketDirection::Sent, local, plan.address, &bytes);
        socket.send_to(&bytes, plan.address).map_err(fail)?;
        socket.set_read_timeout(Some(Duration::from_secs(2))).map_err(fail)?;
        // Any datagram shows that somebody is there, also a Reset or an error.
        if let Ok((count, peer)) = socket.recv_from(&mut buffer) {
            recorder.record("greeting", PacketDirection::Received, local, peer, &buffer[..count]);
            return Ok(());
        }
    }
    Err(ExamineError::NoAnswer(plan.address))
}

/// Binds a socket to the local address that the system uses towards a server.
fn socket_towards(server: SocketAddr) -> io::Result<UdpSocket> {
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let probe = UdpSocket::bind(any)?;
    // Connecting a UDP socket sends nothing. The returned socket is not connected: a server may answer from elsewhere.
    probe.connect(server)?;
    UdpSocket::bind((probe.local_addr()?.ip(), 0))
}

/// Returns the address of the interface on which the examiner joins [`GROUP`], or why it cannot join.
fn group_interface(plan: &ExaminationPlan) -> Result<Ipv4Addr, String> {
    match plan.address.ip() {
        _ if !plan.target.may_ask_group => {
            Err(format!("the client would send to {GROUP}; allow that with --group"))
        }
        IpAddr::V4(interface) => Ok(interface),
        IpAddr::V6(_) => Err(format!("the group {GROUP} needs IPv4: give an IPv4 address with --listen")),
    }
}

fn conduct(
    plan: &ExaminationPlan,
    place: usize,
    case: &'static Case,
    lanes: usize,
    recorder: &Recorder,
    stop: &AtomicBool,
    tell: &(dyn Fn(News<'_>) + Sync),
) -> Examined {
    let mut lateness = Lateness::default();
    let transcript = CaseStage::new(plan, place, case, lanes, recorder).and_then(|mut stage| {
        if plan.side == ExaminedSide::Client && plan.command.is_none() {
            tell(News::Ask(case, &uri(stage.locals[0], PATH)));
        }
        let transcript = stage.play(stop);
        lateness = stage.lateness;
        transcript
    });
    let (findings, packets) = match transcript {
        // An interrupted case has seen too little for a verdict, whatever it has seen.
        _ if stop.load(Ordering::Relaxed) => (vec![Finding::not_tested("interrupted")], 0),
        Err(reason) => (vec![Finding::not_tested(reason)], 0),
        Ok(transcript) => (case.findings(&plan.target, &transcript), transcript.packets.len()),
    };
    let findings = if findings.is_empty() { vec![Finding::ok("no fault was found")] } else { findings };
    Examined { case, findings, packets, lateness }
}

/// An arrived datagram: its lane, sender, bytes, packet number, and time since the examination began.
type LaneDatagram = (usize, SocketAddr, Vec<u8>, u32, Duration);

/// An arrived datagram, or the error that ended the reception of a lane.
type Arrival = io::Result<LaneDatagram>;

/// A case while it runs, with its sockets and its clients.
struct CaseStage<'a> {
    plan: &'a ExaminationPlan,
    case: &'static Case,
    recorder: &'a Recorder,
    sockets: Vec<UdpSocket>,
    locals: Vec<SocketAddr>,
    clients: Vec<Option<Program>>,
    /// How many times each lane's client was started since the last packet of that lane.
    silent_starts: Vec<u32>,
    transcript: Transcript,
    due: Vec<DueDatagram>,
    lateness: Lateness,
}

impl<'a> CaseStage<'a> {
    fn new(
        plan: &'a ExaminationPlan,
        place: usize,
        case: &'static Case,
        lanes: usize,
        recorder: &'a Recorder,
    ) -> Result<Self, String> {
        let interface = case.asks_group.then(|| group_interface(plan)).transpose()?;
        // On Linux, a socket at a group's address receives packets to the group alone.
        let at_port = |port| {
            let Some(interface) = interface else { return UdpSocket::bind((plan.address.ip(), port)) };
            let socket = UdpSocket::bind((GROUP, port))?;
            socket.join_multicast_v4(&GROUP, &interface).map(|()| socket)
        };
        let open = |_| match (plan.side, &plan.command, plan.address.port()) {
            (ExaminedSide::Server, ..) => socket_towards(plan.address),
            (ExaminedSide::Client, Some(_), _) | (ExaminedSide::Client, None, 0) => at_port(0),
            // Each case has its own port: late copies of an earlier case must not be taken for requests of this one.
            (ExaminedSide::Client, None, port) => at_port(port.saturating_add(place as u16)),
        };
        let text = |error: io::Error| format!("cannot open a socket: {error}");
        let sockets = (0..lanes).map(open).collect::<io::Result<Vec<_>>>().map_err(text)?;
        let locals =
            sockets.iter().map(UdpSocket::local_addr).collect::<io::Result<Vec<_>>>().map_err(text)?;
        Ok(Self {
            plan,
            case,
            recorder,
            locals,
            clients: sockets.iter().map(|_| None).collect(),
            silent_starts: vec![0; sockets.len()],
            sockets,
            transcript: Transcript::default(),
            due: Vec::new(),
            lateness: Lateness::default(),
        })
    }

    /// Runs the case, with a receiving thread for each socket. Returns its packets, or why it failed.
    fn play(&mut self, stop: &AtomicBool) -> Result<Transcript, String> {
        let (sender, arrivals) = channel();
        let is_over = AtomicBool::new(false);
        let (name, recorder) = (self.case.name, self.recorder);
        // The threads receive, and `direct` sends, at the same sockets.
        let sockets = self.sockets.iter().map(UdpSocket::try_clone).collect::<io::Result<Vec<_>>>();
        let sockets = sockets.map_err(|error| format!("cannot open a socket: {error}"))?;
        thread::scope(|scope| {
            for (lane, socket) in sockets.iter().enumerate() {
                let (sender, is_over, local) = (sender.clone(), &is_over, self.locals[lane]);
                scope.spawn(move || {
                    if let Err(error) = listen(name, recorder, lane, socket, local, &sender, is_over) {
                        // A case that is over does not need the error.
                        let _ = sender.send(Err(error));
                    }
                });
            }
            // Only the threads have senders now, so that `direct` sees when the last one has ended.
            drop(sender);
            // The scope waits for the threads, also after a panic of the case.
            let _over = Finally(|| is_over.store(true, Ordering::Relaxed));
            self.direct(&arrivals, stop)
        })?;
        Ok(std::mem::take(&mut self.transcript))
    }

    fn direct(&mut self, arrivals: &Receiver<Arrival>, stop: &AtomicBool) -> Result<(), String> {
        let is_quick = self.plan.target.is_quick;
        let is_awaited = self.plan.side == ExaminedSide::Client && self.plan.command.is_none();
        let begun = self.recorder.now();
        let mut end = begun + if is_awaited { self.plan.patience } else { self.case.lasts(is_quick) };
        if self.plan.side == ExaminedSide::Server {
            self.take(|case, target, _, outbox| (case.begin)(target, outbox));
        }
        loop {
            let now = self.recorder.now();
            self.send_due(now);
            self.transcript.until = now;
            let target = &self.plan.target;
            let has_begun = !self.transcript.packets.is_empty();
            // A client begins by itself, so the case cannot have seen enough before its first packet.
            if now >= end
                || stop.load(Ordering::Relaxed)
                || (has_begun || self.plan.side == ExaminedSide::Server)
                    && (self.case.is_enough)(target, &self.transcript)
            {
                return Ok(());
            }
            self.attend_clients()?;
            let next = self.due.iter().map(|due| due.at.saturating_sub(now)).min().unwrap_or(LOOK);
            // Processes of clients have to be looked at even if no datagram is due soon.
            let (asleep_from, patience) = (self.recorder.now(), next.min(LOOK));
            match arrivals.recv_timeout(patience) {
                Ok(Ok((lane, peer, bytes, number, at))) => {
                    // Nobody knows when a client is started by hand, so its time counts from its first packet.
                    if is_awaited && !has_begun {
                        end = at + self.case.lasts(is_quick);
                    }
                    // A packet shows that the command works.
                    self.silent_starts[lane] = 0;
                    let direction = PacketDirection::Received;
                    let packet = Packet { number, at, lane, peer, direction, bytes };
                    // The transcript is full: a stack that sends this much is judged by the beginning.
                    if !self.transcript.add(packet) {
                        return Ok(());
                    }
                    self.take(|case, target, transcript, outbox| {
                        if let Some(packet) = transcript.packets.last() {
                            (case.react)(target, transcript, packet, outbox);
                        }
                    });
                }
                Err(RecvTimeoutError::Timeout) => {
                    // Waking later than asked shows an overloaded machine, on which times cannot be trusted.
                    let late = self.recorder.now().saturating_sub(asleep_from + patience);
                    self.lateness.add(Span::from_nanos(late.as_nanos() as u64));
                }
                // Without its socket, a lane would look like a stack that sends nothing.
                Ok(Err(error)) => return Err(format!("a socket failed: {error}")),
                Err(RecvTimeoutError::Disconnected) => return Err("a socket failed".to_owned()),
            }
        }
    }

    /// Calls a function of the case, and queues the datagrams that it sends.
    fn take(&mut self, act: impl FnOnce(&Case, &ExaminationTarget, &Transcript, &mut DatagramSchedule)) {
        let mut outbox = DatagramSchedule { now: self.recorder.now(), due: Vec::new() };
        act(self.case, &self.plan.target, &self.transcript, &mut outbox);
        self.due.append(&mut outbox.due);
    }

    fn send_due(&mut self, now: Duration) {
        let mut ready: Vec<DueDatagram> = self.due.extract_if(.., |due| due.at <= now).collect();
        // Several may be due after a long pause; they leave in the order of their times.
        ready.sort_by_key(|due| due.at);
        for DueDatagram { lane, peer, bytes, .. } in ready {
            let peer = peer.unwrap_or(self.plan.address);
            let (Some(socket), Some(&local)) = (self.sockets.get(lane), self.locals.get(lane)) else {
                continue;
            };
            let direction = PacketDirection::Sent;
            let (number, at) = self.recorder.record(self.case.name, direction, local, peer, &bytes);
            // A datagram that cannot be sent counts as lost: the stack may have closed its socket.
            let _ = socket.send_to(&bytes, peer);
            // If the transcript is full, the next arrival ends the case.
            self.transcript.add(Packet { number, at, lane, peer, direction, bytes });
        }
    }

    /// Records the clients that have ended, and starts clients where the case needs them.
    fn attend_clients(&mut self) -> Result<(), String> {
        let Some(command) = &self.plan.command else { return Ok(()) };
        for (lane, client) in self.clients.iter_mut().enumerate() {
            // A program that cannot be waited for has ended with an error.
            let code = client.as_mut().and_then(|client| client.ended().unwrap_or(Some(1)));
            let has_ended = code.is_some();
            if let Some(code) = code {
                let at = self.recorder.now();
                // A process that is not started again ends once. Its code is the same at every look.
                if !self.transcript.exits.iter().any(|exit| exit.lane == lane) || self.case.restarts {
                    self.transcript.exits.push(Exit { lane, at, code });
                }
                if self.silent_starts[lane] >= MAX_SILENT_STARTS {
                    let words = client.as_ref().map(Program::last_words).unwrap_or_default();
                    return Err(format!("the command ends without a request: {words}"));
                }
            }
            let is_first = client.is_none();
            // A client that ended without a packet may have started too early, so it gets another try.
            let is_silent = has_ended && self.silent_starts[lane] > 0;
            if is_first || has_ended && (self.case.restarts || is_silent) {
                self.silent_starts[lane] += 1;
                // The old process group ends before the new client takes its lane.
                *client = None;
                *client = Some(command.start(self.locals[lane], PATH)?);
            }
        }
        Ok(())
    }
}

/// Receives the datagrams of a lane, and passes them to `sender`, until the case is over or the socket fails.
fn listen(
    case: &str,
    recorder: &Recorder,
    lane: usize,
    socket: &UdpSocket,
    local: SocketAddr,
    sender: &Sender<Arrival>,
    is_over: &AtomicBool,
) -> io::Result<()> {
    // No UDP payload is longer, so none is cut off.
    let mut buffer = vec![0; 65_536];
    // The timeout bounds how long a case that is over waits for this thread.
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let mut errors = 0;
    while !is_over.load(Ordering::Relaxed) {
        let (count, peer) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), WouldBlock | TimedOut | Interrupted) => {
                errors = 0;
                continue;
            }
            Err(error) if errors >= MOST_ERRORS => return Err(error),
            Err(_) => {
                // One error may be an ICMP message about an earlier datagram. The pause is for errors that last.
                errors += 1;
                thread::sleep(ERROR_PAUSE);
                continue;
            }
        };
        errors = 0;
        let bytes = buffer[..count].to_vec();
        let (number, at) = recorder.record(case, PacketDirection::Received, local, peer, &bytes);
        if sender.send(Ok((lane, peer, bytes, number, at))).is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
