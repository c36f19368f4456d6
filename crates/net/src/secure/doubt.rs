//! Detects that a client's server may no longer know a DTLS session.

use std::time::{Duration, Instant};

/// The maximum number of messages recorded as unanswered. Beyond that the oldest is dropped.
const MAX_MESSAGES: usize = 64;

/// The shortest time from one handshake to the next. It doubles with each handshake, up to the longest pause, until a
/// message is answered before its second copy.
const FIRST_PAUSE: Duration = Duration::from_secs(15);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A client's record of one session: the confirmable messages that the server has left unanswered since it last sent
/// something in the session, and the handshakes begun because of them. DTLS 1.2 does not inform a client that its
/// server has restarted, or that a NAT has assigned another port: the server drops the records of an unknown session.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// The Message IDs, and how often each message was sent.
    unanswered: Vec<(u16, u8)>,
    /// The number of handshakes since a message was answered before its second copy, and when the next may begin.
    handshakes: u32,
    not_before: Option<Instant>,
    /// Whether the last handshake has begun since the server last sent something.
    has_begun: bool,
    /// Whether the session has replaced another and the server has sent nothing in it yet.
    is_new: bool,
}

impl Doubt {
    /// Records a message sent in the session. Returns whether so many copies of it are unanswered that another handshake is
    /// worthwhile.
    ///
    /// The second copy is enough. For a method that is not idempotent (RFC 7252 §5.1), it is the third: to the server, another
    /// session is another sender, so it may execute the message once more (§9.1.1).
    pub(super) fn note_sent(&mut self, message: &[u8]) -> bool {
        let &[first, code, high, low, ..] = message else { return false };
        // Nothing has to answer a non-confirmable message, so its silence shows nothing.
        if !is_confirmable(first) {
            return false;
        }
        let id = u16::from_be_bytes([high, low]);
        if let Some((_, copies)) = self.unanswered.iter_mut().find(|(other, _)| *other == id) {
            *copies = copies.saturating_add(1);
            return *copies >= if is_idempotent(code) { 2 } else { 3 };
        }
        // Forgetting a message only delays a handshake: its copies are counted from 1 again.
        if self.unanswered.len() >= MAX_MESSAGES {
            self.unanswered.remove(0);
        }
        self.unanswered.push((id, 1));
        false
    }

    /// Records that the server has sent a message. Returns whether a superfluous handshake may be in progress.
    ///
    /// The pause before the next handshake stays. If answers take longer than timeouts, every exchange would start a
    /// handshake.
    pub(super) fn note_heard(&mut self) -> bool {
        // The server has answered in the new session, so the old one was lost indeed, and the handshake was right.
        if std::mem::take(&mut self.is_new) {
            (self.handshakes, self.not_before) = (0, None);
        }
        // Every message was answered before its second copy, so the path is as fast as its timeouts.
        if self.unanswered.iter().all(|&(_, copies)| copies == 1) {
            self.handshakes = 0;
        }
        self.unanswered.clear();
        std::mem::take(&mut self.has_begun)
    }

    /// Returns whether another handshake may begin, and records that it does.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        let may = self.not_before.is_none_or(|at| at <= now);
        if may {
            // 15 s · 2⁸ is longer than the longest pause, so a larger shift is not needed.
            let pause = FIRST_PAUSE.saturating_mul(1 << self.handshakes.min(8)).min(LONGEST_PAUSE);
            self.not_before = now.checked_add(pause);
            self.handshakes += 1;
            self.has_begun = true;
        }
        may
    }

    /// Returns the state for a session that replaces this one. The new state keeps the pause until the server sends
    /// something in the new session.
    pub(super) fn handed_on(&mut self) -> Self {
        let Self { handshakes, not_before, .. } = std::mem::take(self);
        Self { handshakes, not_before, is_new: true, ..Self::default() }
    }
}

/// Returns whether a message with this first byte must be answered (RFC 7252 §4.2).
pub(super) fn is_confirmable(first: u8) -> bool {
    first & 0x30 == 0
}

/// Returns whether a request with this code may be executed twice: it is neither POST (RFC 7252 §5.8.2) nor PATCH (RFC 8132
/// §2.5).
fn is_idempotent(code: u8) -> bool {
    !matches!(code, 2 | 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_dtls_handshake_starts_at_the_second_copy_of_a_get_or_the_third_of_a_post() {
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
    fn messages_kept_for_a_new_dtls_session_are_bounded_and_replace_the_oldest() {
        let mut doubt = Doubt::default();
        for id in 0..1_000_u16 {
            let [high, low] = id.to_be_bytes();
            assert!(!doubt.note_sent(&[0x40, 1, high, low]));
        }
        assert_eq!(doubt.unanswered.len(), MAX_MESSAGES);
        assert!(doubt.note_sent(b"\x40\x01\x03\xe7"), "the newest is known");
    }

    #[test]
    fn pauses_between_dtls_handshakes_grow_until_a_session_gets_an_answer() {
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
    fn late_answers_cause_few_new_dtls_handshakes() {
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
