//! A client's doubt whether its server still knows a session.

use std::time::{Duration, Instant};

/// The number of messages that are known to be unanswered. Beyond it the oldest is forgotten.
const MAX_MESSAGES: usize = 64;

/// The time from one handshake to the next. It doubles each time, until a message is answered before its second copy.
const FIRST_PAUSE: Duration = Duration::from_secs(15);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The confirmable messages that a server has not answered since it was last heard in a session, and the handshakes that this
/// has caused. Nothing in DTLS 1.2 tells a client that its server has restarted, or that a NAT has given the client another
/// port: the server drops the records of a session that it does not know.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// The Message IDs, and how often each message was sent.
    unanswered: Vec<(u16, u8)>,
    /// The handshakes since a message was answered before its second copy, and when the next may begin.
    handshakes: u32,
    not_before: Option<Instant>,
    /// Set if the last handshake has begun since the server was last heard.
    has_begun: bool,
    /// Set if the session has replaced another and the server was not heard in it yet.
    is_new: bool,
}

impl Doubt {
    /// Notes a message that the session carries. Returns whether so many copies of it are unanswered that another session is
    /// worth a handshake.
    ///
    /// That is the second copy. If the method is not idempotent (RFC 7252 §5.1), it is the third: the other session is another
    /// sender to the server, which may act on the message once more (§9.1.1).
    pub(super) fn note_sent(&mut self, message: &[u8]) -> bool {
        let &[first, code, high, low, ..] = message else { return false };
        if !is_confirmable(first) {
            return false;
        }
        let id = u16::from_be_bytes([high, low]);
        if let Some((_, copies)) = self.unanswered.iter_mut().find(|(other, _)| *other == id) {
            *copies = copies.saturating_add(1);
            return *copies >= if is_idempotent(code) { 2 } else { 3 };
        }
        if self.unanswered.len() >= MAX_MESSAGES {
            self.unanswered.remove(0);
        }
        self.unanswered.push((id, 1));
        false
    }

    /// Notes that the server has sent a message. Returns whether a needless handshake may be under way.
    ///
    /// The pause before the next one stays. Where answers take longer than timeouts, every exchange would begin a handshake.
    pub(super) fn note_heard(&mut self) -> bool {
        if std::mem::take(&mut self.is_new) {
            (self.handshakes, self.not_before) = (0, None);
        }
        if self.unanswered.iter().all(|&(_, copies)| copies == 1) {
            self.handshakes = 0;
        }
        self.unanswered.clear();
        std::mem::take(&mut self.has_begun)
    }

    /// Returns whether another handshake may begin, and notes that it does.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        let may = self.not_before.is_none_or(|at| at <= now);
        if may {
            let pause = FIRST_PAUSE.saturating_mul(1 << self.handshakes.min(8)).min(LONGEST_PAUSE);
            self.not_before = now.checked_add(pause);
            self.handshakes += 1;
            self.has_begun = true;
        }
        may
    }

    /// Returns the doubt about a session that takes the place of this one. It keeps the pause until the server is heard.
    pub(super) fn handed_on(&mut self) -> Self {
        let Self { handshakes, not_before, .. } = std::mem::take(self);
        Self { handshakes, not_before, is_new: true, ..Self::default() }
    }
}

/// Returns whether a message with this first byte has to be answered (RFC 7252 §4.2).
pub(super) fn is_confirmable(first: u8) -> bool {
    first & 0x30 == 0
}

/// Returns whether a request with this code may be carried out twice: it is neither POST (RFC 7252 §5.8.2) nor PATCH (RFC 8132
/// §2.5).
fn is_idempotent(code: u8) -> bool {
    !matches!(code, 2 | 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_copy_of_a_get_and_the_third_of_a_post_are_worth_a_handshake() {
        let mut doubt = Doubt::default();
        let mut send = |message: &[u8]| doubt.note_sent(message);
        assert_eq!([b"\x40\x01\0\x01", b"\x40\x01\0\x01"].map(|get| send(get)), [false, true]);
        assert_eq!([b"\x40\x02\0\x02"; 3].map(|post| send(post)), [false, false, true]);
        for other in [&b"\x60\x00\0\x03"[..], b"\x50\x01\0\x04", b"\x40", b""] {
            assert!(!send(other) && !send(other), "{other:02x?} needs no answer");
        }
        assert!(!doubt.note_heard(), "no handshake has begun");
        assert!(!doubt.note_sent(b"\x40\x01\0\x01"), "the server is there");
    }

    #[test]
    fn messages_beyond_the_bound_displace_the_oldest() {
        let mut doubt = Doubt::default();
        for id in 0..1_000_u16 {
            let [high, low] = id.to_be_bytes();
            assert!(!doubt.note_sent(&[0x40, 1, high, low]));
        }
        assert_eq!(doubt.unanswered.len(), MAX_MESSAGES);
        assert!(doubt.note_sent(b"\x40\x01\x03\xe7"), "the newest is known");
    }

    #[test]
    fn the_pause_between_handshakes_grows_until_a_session_has_been_answered_in() {
        let (begin, mut doubt) = (Instant::now(), Doubt::default());
        let seconds = |doubt: &mut Doubt| {
            (0..300).filter(|&s| doubt.begin(begin + Duration::from_secs(s))).collect::<Vec<_>>()
        };
        assert_eq!(seconds(&mut doubt), [0, 15, 45, 105, 165, 225, 285]);
        let mut next = doubt.handed_on();
        assert!(!next.begin(begin + Duration::from_secs(300)), "another session has the same pause");
        assert!(!next.note_heard() && next.begin(begin + Duration::from_secs(300)));
    }

    #[test]
    fn answers_that_come_after_a_timeout_begin_few_handshakes() {
        let (begin, mut doubt) = (Instant::now(), Doubt::default());
        let mut handshakes = 0;
        for id in 0..100_u8 {
            let now = begin + Duration::from_secs(10 * u64::from(id));
            let get = [0x40, 1, 0, id];
            let in_doubt = [doubt.note_sent(&get), doubt.note_sent(&get)];
            assert_eq!(in_doubt, [false, true]);
            let begins = doubt.begin(now);
            handshakes += u32::from(begins);
            assert_eq!(doubt.note_heard(), begins);
        }
        assert!((15..=20).contains(&handshakes), "{handshakes} in 1,000 s");
        doubt.note_sent(b"\x40\x01\x01\x00");
        doubt.note_heard();
        assert_eq!(doubt.handshakes, 0, "an answer in time");
    }
}
