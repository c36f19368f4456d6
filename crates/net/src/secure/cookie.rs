//! Cookies of DTLS 1.2 (RFC 6347 §4.2.1): a client must prove that it receives datagrams at its address before the server
//! stores anything for it.

use std::hash::{BuildHasher, RandomState};
use std::time;

use crate::address::Remote;

/// The length of a record's header, in bytes (RFC 6347 §4.1).
const RECORD: usize = 13;
/// The length of a handshake message's header, in bytes (RFC 6347 §4.2.2).
const HANDSHAKE: usize = 12;
/// The length of a cookie, in bytes.
pub(crate) const COOKIE: usize = 32;
/// The shortest time that a cookie is valid. The longest is twice this.
const PERIOD: time::Duration = time::Duration::from_secs(60);

const CONTENT_HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const HELLO_VERIFY_REQUEST: u8 = 3;

/// An unfragmented ClientHello in one record.
///
/// A fragmented ClientHello is ignored, because the server stores nothing for its sender yet, and so no fragments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hello<'a> {
    /// The epoch and sequence number of its record.
    sequence: &'a [u8],
    /// The sequence number of the handshake message.
    pub(crate) message: u16,
    /// Version, random and session identifier of the ClientHello.
    before: &'a [u8],
    cookie: &'a [u8],
    /// The offered cipher suites and compression methods.
    offered: &'a [u8],
    extensions: &'a [u8],
}

impl<'a> Hello<'a> {
    /// Reads a datagram. Returns `None` if it is not a ClientHello.
    pub(crate) fn read(datagram: &'a [u8]) -> Option<Self> {
        let (header, rest) = datagram.split_at_checked(RECORD)?;
        // A ClientHello is in epoch 0, before any key.
        if header[0] != CONTENT_HANDSHAKE || header[3..5] != [0, 0] {
            return None;
        }
        let record = rest.get(..usize::from(u16::from_be_bytes([header[11], header[12]])))?;
        let (handshake, body) = record.split_at_checked(HANDSHAKE)?;
        let length = &handshake[1..4];
        // The fragment begins at 0 and is as long as the message: there is only one.
        let whole = handshake[6..9] == [0, 0, 0] && handshake[9..12] == *length;
        let declared = usize::from(length[0]) << 16 | usize::from(length[1]) << 8 | usize::from(length[2]);
        if handshake[0] != CLIENT_HELLO || !whole || declared != body.len() {
            return None;
        }
        // All lengths are chosen by the sender, so every split is checked.
        let session_id_len = usize::from(*body.get(34)?);
        let (before, rest) = body.split_at_checked(35 + session_id_len)?;
        let (&cookie_len, rest) = rest.split_first()?;
        let (cookie, rest) = rest.split_at_checked(cookie_len.into())?;
        let suites = usize::from(u16::from_be_bytes(*rest.first_chunk()?));
        let methods = usize::from(*rest.get(2 + suites)?);
        let (offered, extensions) = rest.split_at_checked(3 + suites + methods)?;
        let message = u16::from_be_bytes([handshake[4], handshake[5]]);
        Some(Self { sequence: &header[3..11], message, before, cookie, offered, extensions })
    }

    /// Returns the client's random, which identifies the handshake.
    pub(crate) fn random(&self) -> &'a [u8] {
        &self.before[2..34]
    }

    /// Returns the cookie, if it has the length of a cookie of this server.
    pub(crate) fn cookie(&self) -> Option<[u8; COOKIE]> {
        self.cookie.try_into().ok()
    }

    /// Returns the first ClientHello of this handshake, which equals this one without its cookie.
    pub(crate) fn first(&self) -> Vec<u8> {
        let body = [self.before, &[0], self.offered, self.extensions].concat();
        let mut first = Vec::with_capacity(RECORD + HANDSHAKE + body.len());
        header(&mut first, &[0; 8], CLIENT_HELLO, 0, body.len());
        first.extend(body);
        first
    }
}

/// Appends the headers of a record with one handshake message of `body` bytes.
fn header(into: &mut Vec<u8>, sequence: &[u8], kind: u8, message: u16, body: usize) {
    let length = (body as u32).to_be_bytes();
    // The version is DTLS 1.0, which every client accepts here (RFC 6347 §4.2.1).
    into.extend_from_slice(&[CONTENT_HANDSHAKE, 0xfe, 0xff]);
    into.extend_from_slice(sequence);
    into.extend_from_slice(&((HANDSHAKE + body) as u16).to_be_bytes());
    into.push(kind);
    into.extend_from_slice(&length[1..]);
    into.extend_from_slice(&message.to_be_bytes());
    into.extend_from_slice(&[0; 3]);
    into.extend_from_slice(&length[1..]);
}

/// Makes cookies and verifies them, without storing any. A cookie is a keyed hash of the client's address, of the
/// current minute, and of the parts that are equal in both ClientHellos. The extensions are left out (RFC 6347 §4.2.1),
/// because pion sends more of them the second time.
#[derive(Debug)]
pub(crate) struct Cookies {
    keys: RandomState,
    since: time::Instant,
}

impl Cookies {
    pub(crate) fn new(now: time::Instant) -> Self {
        Self { keys: RandomState::new(), since: now }
    }

    fn period(&self, now: time::Instant) -> u64 {
        now.saturating_duration_since(self.since).as_secs() / PERIOD.as_secs()
    }

    fn cookie(&self, period: u64, from: Remote, hello: &Hello<'_>) -> [u8; COOKIE] {
        let mut cookie = [0; COOKIE];
        for (part, bytes) in cookie.chunks_exact_mut(8).enumerate() {
            // Each part is a hash of 8 bytes, and its number makes it differ from the others.
            let same = (hello.before, hello.offered);
            let hash = self.keys.hash_one((part, period, from.ip, from.port, same));
            bytes.copy_from_slice(&hash.to_be_bytes());
        }
        cookie
    }

    /// Returns whether the ClientHello has the cookie of this address and of the current or previous minute.
    pub(crate) fn verify(&self, now: time::Instant, from: Remote, hello: &Hello<'_>) -> bool {
        let Some(shown) = hello.cookie() else { return false };
        let period = self.period(now);
        let same = |period| {
            let made = self.cookie(period, from, hello);
            // The comparison takes the same time however many bytes are right.
            shown.iter().zip(made).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
        };
        same(period) || period > 0 && same(period - 1)
    }

    /// Appends the HelloVerifyRequest that answers a ClientHello. It has 60 bytes, fewer than a ClientHello.
    pub(crate) fn request(&self, now: time::Instant, from: Remote, hello: &Hello<'_>, into: &mut Vec<u8>) {
        // The record has the sequence number of the ClientHello's record (RFC 6347 §4.2.1), so no number has to be kept.
        header(into, hello.sequence, HELLO_VERIFY_REQUEST, 0, 3 + COOKIE);
        into.extend_from_slice(&[0xfe, 0xff, COOKIE as u8]);
        into.extend_from_slice(&self.cookie(self.period(now), from, hello));
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;

    /// Returns a ClientHello with this cookie, as the `message`th of its client.
    fn hello(message: u16, cookie: &[u8]) -> Vec<u8> {
        let mut body = vec![0xfe, 0xfd];
        body.extend_from_slice(&[7; 32]);
        body.push(0);
        body.push(cookie.len() as u8);
        body.extend_from_slice(cookie);
        body.extend_from_slice(&[0, 2, 0xc0, 0xa8, 1, 0]);
        let mut bytes = Vec::new();
        header(&mut bytes, &[0, 0, 0, 0, 0, 0, 0, message as u8], CLIENT_HELLO, message, body.len());
        bytes.extend_from_slice(&body);
        bytes
    }

    fn at(port: u16) -> Remote {
        Remote::new(Ipv6Addr::LOCALHOST, port, 0)
    }

    #[test]
    fn a_dtls_cookie_is_valid_only_for_its_address_and_for_a_time() {
        let now = Instant::now();
        let cookies = Cookies::new(now);
        let first = hello(0, &[]);
        let mut request = Vec::new();
        cookies.request(now, at(1), &Hello::read(&first).unwrap(), &mut request);
        assert_eq!(request.len(), 60);
        assert!(request.len() < first.len() + COOKIE);
        let second = hello(1, &request[28..]);
        let second = Hello::read(&second).unwrap();
        assert!(cookies.verify(now, at(1), &second));
        assert!(!cookies.verify(now, at(2), &second));
        assert!(cookies.verify(now + PERIOD, at(1), &second));
        assert!(!cookies.verify(now + 2 * PERIOD, at(1), &second));
        assert!(!Cookies::new(now).verify(now, at(1), &second));
        assert_eq!(Hello::read(&second.first()).unwrap().offered, second.offered);
    }

    #[test]
    fn a_second_client_hello_may_have_other_extensions() {
        let now = Instant::now();
        let cookies = Cookies::new(now);
        let mut request = Vec::new();
        cookies.request(now, at(1), &Hello::read(&hello(0, &[])).unwrap(), &mut request);
        let mut second = hello(1, &request[28..]);
        let extended_master_secret = [0, 4, 0, 23, 0, 0];
        second.extend_from_slice(&extended_master_secret);
        for length in [12, 16, 24] {
            second[length] += extended_master_secret.len() as u8;
        }
        let second = Hello::read(&second).unwrap();
        assert_eq!(second.extensions, extended_master_secret);
        assert!(cookies.verify(now, at(1), &second));
        assert!(second.first().ends_with(&extended_master_secret));
    }

    #[test]
    fn a_fragmented_or_late_epoch_client_hello_is_not_accepted() {
        let whole = hello(0, &[]);
        let mut fragment = whole.clone();
        fragment[19] = 1;
        let mut later = whole.clone();
        later[4] = 1;
        assert!(Hello::read(&whole).is_some());
        assert!(Hello::read(&fragment).is_none());
        assert!(Hello::read(&later).is_none());
        assert!((0..whole.len()).all(|len| Hello::read(&whole[..len]).is_none()));
    }

    proptest! {
        #[test]
        fn changing_any_byte_of_a_client_hello_invalidates_its_cookie(place in 25_usize..99, change in 1_u8..) {
            let now = Instant::now();
            let cookies = Cookies::new(now);
            let first = hello(0, &[]);
            let mut request = Vec::new();
            cookies.request(now, at(1), &Hello::read(&first).unwrap(), &mut request);
            let mut second = hello(1, &request[28..]);
            prop_assume!(place < second.len());
            second[place] ^= change;
            let verified = Hello::read(&second).is_some_and(|hello| cookies.verify(now, at(1), &hello));
            prop_assert!(!verified);
        }
    }
}
