//! Congestion control for the clients of [coap-rs](https://crates.io/crates/coap): a transport around another one. It retransmits
//! confirmable requests by a mechanism of [`coapace_control`]. README.md says what it does and what it cannot do.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use coap::client::{ClientTransport, CoAPClient};
use coapace_control::{
    Answer, Controller, Cue, Draw, Exchange, Instant, Marking, Mechanism, Outcome, Sample, State,
};
use tokio::time::{sleep, sleep_until, Instant as Clock};

/// MAX_RETRANSMIT, RFC 7252 §4.8.
const MAX_RETRANSMIT: u8 = 4;

/// The time after which no exchange of RFC 7252 is given up sooner: 2 + 4 + 8 + 16 + 32 s.
const LEAST_WAIT: Duration = Duration::from_secs(62);

/// MAX_TRANSMIT_SPAN and MAX_TRANSMIT_WAIT, RFC 7252 §4.8.2.
const SPAN: Duration = Duration::from_secs(45);
const WAIT: Duration = Duration::from_secs(93);

/// Returns a client whose confirmable requests follow the mechanism. The transport goes to one server.
pub fn client<T: ClientTransport + 'static>(transport: T, mechanism: Mechanism) -> CoAPClient<Adaptive<T>> {
    let mut client = CoAPClient::from_transport(Adaptive::new(transport, mechanism));
    // The transport retransmits, so coap-rs only has to wait.
    client.set_transport_retries(1);
    client.set_random_factor(1.0);
    client.set_receive_timeout(WAIT + Duration::from_secs(7));
    client
}

/// A transport to one server that retransmits confirmable requests.
pub struct Adaptive<T> {
    peer: Arc<Peer<T>>,
}

struct Peer<T> {
    transport: T,
    mechanism: Mechanism,
    origin: Clock,
    kept: Mutex<Kept>,
}

/// The memory of the server: the state of the mechanism, and the exchanges.
struct Kept {
    state: State,
    /// The exchanges under way, by their Message IDs.
    open: HashMap<u16, Open>,
    /// Whether a request was given up and nothing has been answered since.
    is_silent: bool,
}

/// An exchange under way.
struct Open {
    exchange: Exchange,
    token: Vec<u8>,
    /// The departure and the timeout of each copy.
    copies: Vec<(Clock, Duration)>,
}

impl<T: ClientTransport + 'static> Adaptive<T> {
    /// Wraps a transport to one server.
    pub fn new(transport: T, mechanism: Mechanism) -> Self {
        let kept = Mutex::new(Kept { state: mechanism.state(), open: HashMap::new(), is_silent: false });
        Self { peer: Arc::new(Peer { transport, mechanism, origin: Clock::now(), kept }) }
    }
}

#[async_trait]
impl<T: ClientTransport + 'static> ClientTransport for Adaptive<T> {
    async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        let Some(header) = Header::of(buf).filter(Header::is_confirmable_request) else {
            return self.peer.transport.send(buf).await;
        };
        self.peer.pace().await;
        if !self.peer.start(&header) {
            // coap-rs retransmits by itself, which is not wanted here.
            return Ok(buf.len());
        }
        let is_marked = self.peer.marking(&self.peer.kept()) == Marking::Token;
        let first = if is_marked { marked(buf, 0) } else { buf.to_vec() };
        if let Err(error) = self.peer.transport.send(&first).await {
            self.peer.end(header.message_id, Outcome::Cancelled);
            return Err(error);
        }
        let (peer, datagram) = (self.peer.clone(), buf.to_vec());
        tokio::spawn(async move { peer.retransmit(header.message_id, &datagram).await });
        Ok(buf.len())
    }

    async fn recv(&self, buf: &mut [u8]) -> io::Result<(usize, Option<SocketAddr>)> {
        let (length, from) = self.peer.transport.recv(buf).await?;
        Ok((self.peer.received(buf, length), from))
    }
}

impl<T: ClientTransport> Peer<T> {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing that holds the lock can panic half way.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cue(&self, outstanding: usize) -> Cue {
        // A new key for each number: the standard library's source of randomness.
        let bits = RandomState::new().build_hasher().finish() as u32;
        Cue {
            now: self.now(),
            draw: Draw::from_bits(bits),
            outstanding: outstanding.try_into().unwrap_or(u16::MAX),
        }
    }

    /// Returns the time of mechanisms, which take 0 for never.
    fn now(&self) -> Instant {
        Instant::from_micros(1_000_000 + self.origin.elapsed().as_micros() as u64)
    }

    /// Waits until the mechanism allows another confirmable message.
    async fn pace(&self) {
        loop {
            let wait = self.mechanism.limits(&self.kept().state).next_confirmable.since(self.now());
            if wait.as_micros() == 0 {
                return;
            }
            sleep(Duration::from_micros(wait.as_micros())).await;
        }
    }

    /// Starts an exchange. Returns false if it is under way already.
    fn start(&self, header: &Header) -> bool {
        let kept = &mut *self.kept();
        if kept.open.contains_key(&header.message_id) {
            return false;
        }
        let cue = self.cue(kept.open.len() + 1);
        let (exchange, timeout) = self.mechanism.on_start(&mut kept.state, cue);
        let timeout = patient(timeout, 0, kept.is_silent, cue.draw);
        let copies = vec![(Clock::now(), timeout)];
        kept.open.insert(header.message_id, Open { exchange, token: header.token.to_vec(), copies });
        true
    }

    /// Retransmits an exchange until it is over.
    async fn retransmit(&self, message_id: u16, datagram: &[u8]) {
        loop {
            let due = self.kept().open.get(&message_id).and_then(Open::due);
            let Some(due) = due else { return };
            sleep_until(due).await;
            let Some(copy) = self.next_copy(message_id, datagram) else { continue };
            // A copy that cannot be sent is lost, like one that the network loses.
            let _ = self.transport.send(&copy).await;
        }
    }

    /// Returns the next copy of an exchange whose timeout has passed. Gives the exchange up if it was the last.
    fn next_copy(&self, message_id: u16, datagram: &[u8]) -> Option<Vec<u8>> {
        let kept = &mut *self.kept();
        let outstanding = kept.open.len();
        let open = kept.open.get_mut(&message_id)?;
        let retransmits = open.copies.len() as u8 - 1;
        let since_first = open.copies[0].0.elapsed();
        if retransmits >= MAX_RETRANSMIT && since_first >= LEAST_WAIT {
            kept.is_silent = true;
            self.finish(kept, message_id, Outcome::GivenUp);
            return None;
        }
        if retransmits >= MAX_RETRANSMIT && since_first < SPAN {
            // A quick mechanism made its copies long before one of RFC 7252 would depart, so one more departs then.
            let first = open.copies[0].0;
            let (departed, timeout) = open.copies.last_mut()?;
            *timeout = SPAN.saturating_sub(departed.duration_since(first));
            return None;
        }
        let cue = self.cue(outstanding);
        let timeout = self.mechanism.on_retransmit(&mut kept.state, &mut open.exchange, cue);
        let ordinal = retransmits + 1;
        let timeout = match ordinal {
            _ if ordinal > MAX_RETRANSMIT => (WAIT - LEAST_WAIT).max(WAIT.saturating_sub(since_first)),
            _ => patient(timeout, ordinal, kept.is_silent, cue.draw),
        };
        open.copies.push((Clock::now(), timeout));
        let is_marked = matches!(self.marking(kept), Marking::Token | Marking::TokenOnRetransmit);
        Some(if is_marked { marked(datagram, ordinal) } else { datagram.to_vec() })
    }

    fn marking(&self, kept: &Kept) -> Marking {
        self.mechanism.limits(&kept.state).marking
    }

    /// Takes a datagram from the server. Returns its length without the mark of its token.
    fn received(&self, buf: &mut [u8], mut length: usize) -> usize {
        let Some(Header { kind, code, message_id, token }) = Header::of(&buf[..length]) else {
            return length;
        };
        let kept = &mut *self.kept();
        let is_reply = kind == Kind::Acknowledgement || kind == Kind::Reset;
        let is_response = code >> 5 >= 2;
        let answers = |open: &Open| token.starts_with(&open.token) && token.len() <= open.token.len() + 1;
        let found = if is_reply {
            Some(message_id).filter(|id| kept.open.contains_key(id))
        } else {
            kept.open.iter().find(|(_, open)| is_response && answers(open)).map(|(id, _)| *id)
        };
        let Some(found) = found else { return length };
        let open = &kept.open[&found];
        let retransmits = open.copies.len() as u8 - 1;
        let own = open.token.len();
        // A longer token carries the ordinal of the copy that is answered.
        let ordinal = (token.len() == own + 1).then(|| token[own]).filter(|ordinal| *ordinal <= retransmits);
        let is_marking = own < 8 && self.marking(kept) == Marking::TokenOnRetransmit;
        let named = ordinal.or((is_response && is_marking && token.len() == own).then_some(0));
        let span = |time: Duration| coapace_control::Duration::from_micros(time.as_micros() as u64);
        // A server may repeat its answer to an earlier copy for a later one (RFC 7252 §4.5), so an old one is not believed.
        let answered = named.and_then(|ordinal| {
            let (departed, timeout) = open.copies[usize::from(ordinal)];
            let is_believed = ordinal == retransmits || departed.elapsed() < timeout;
            is_believed.then(|| Answer { ordinal, since: span(departed.elapsed()) })
        });
        let [first, last] =
            [open.copies[0].0, open.copies[usize::from(retransmits)].0].map(|at| span(at.elapsed()));
        let outcome = match kind {
            Kind::Reset => Outcome::Reset,
            _ => Outcome::Acked(Sample { answered, ..Sample::unmarked(first, last, retransmits) }),
        };
        if ordinal.is_some() {
            let end = 4 + own + 1;
            buf.copy_within(end..length, end - 1);
            buf[0] -= 1;
            length -= 1;
        }
        // An empty acknowledgement promises a separate response. It ends the exchange, too (RFC 7252 §4.2).
        kept.is_silent = false;
        self.finish(kept, found, outcome);
        length
    }

    fn end(&self, message_id: u16, outcome: Outcome) {
        self.finish(&mut self.kept(), message_id, outcome);
    }

    fn finish(&self, kept: &mut Kept, message_id: u16, outcome: Outcome) {
        let cue = self.cue(kept.open.len());
        if let Some(open) = kept.open.remove(&message_id) {
            self.mechanism.on_end(&mut kept.state, open.exchange, outcome, cue);
        }
    }
}

impl Open {
    fn due(&self) -> Option<Clock> {
        self.copies.last().map(|(departed, timeout)| *departed + *timeout)
    }
}

/// Returns the timeout of a copy. It is at least the timeout of RFC 7252 after a request that the server never answered.
fn patient(timeout: coapace_control::Duration, retransmits: u8, is_silent: bool, draw: Draw) -> Duration {
    let timeout = Duration::from_micros(timeout.as_micros());
    if !is_silent {
        return timeout;
    }
    let first = 2_000_000 + (1_000_000 * u64::from(draw.to_bits()) >> 32);
    timeout.max(Duration::from_micros(first << retransmits.min(MAX_RETRANSMIT)))
}

/// Returns a datagram whose token has the ordinal of its copy as another byte. A token of 8 bytes has no room for it.
fn marked(datagram: &[u8], ordinal: u8) -> Vec<u8> {
    let mut copy = datagram.to_vec();
    let length = datagram[0] & 0x0f;
    if length < 8 {
        copy.insert(4 + usize::from(length), ordinal);
        copy[0] += 1;
    }
    copy
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Confirmable,
    NonConfirmable,
    Acknowledgement,
    Reset,
}

/// The header of a message and its token, RFC 7252 §3.
struct Header {
    kind: Kind,
    code: u8,
    message_id: u16,
    token: Vec<u8>,
}

impl Header {
    fn of(datagram: &[u8]) -> Option<Self> {
        let [first, code, high, low, ..] = *datagram else { return None };
        let token = datagram.get(4..4 + usize::from(first & 0x0f))?.to_vec();
        let kind = match first >> 4 & 3 {
            0 => Kind::Confirmable,
            1 => Kind::NonConfirmable,
            2 => Kind::Acknowledgement,
            _ => Kind::Reset,
        };
        (first >> 6 == 1 && token.len() <= 8).then_some(Self {
            kind,
            code,
            message_id: u16::from_be_bytes([high, low]),
            token,
        })
    }

    fn is_confirmable_request(&self) -> bool {
        self.kind == Kind::Confirmable && (1..32).contains(&self.code)
    }
}

#[cfg(test)]
mod tests;
