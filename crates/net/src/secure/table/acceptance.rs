//! The handshakes of a server.

use std::time::Instant;

use dimpl::Output;

use super::{Remote, Sessions, key};
use crate::Refused;
use crate::datagram::io::OutgoingDatagrams;
use crate::secure::cookie::Hello;
use crate::secure::dtls::with_cookie;
use crate::secure::session::MAX_READY;

impl Sessions {
    /// Handles a datagram from a client. Answers a first ClientHello with a cookie, starts a session at the second one,
    /// and decrypts records of the session.
    pub(super) fn open_of_client(&mut self, from: Remote, datagram: &[u8], arrived: &mut OutgoingDatagrams) {
        let (now, place) = (Instant::now(), key(from));
        if let Some(cookies) = &self.cookies
            && let Some(hello) = Hello::read(datagram)
        {
            // The first ClientHello is answered with a cookie, and nothing is kept of it (RFC 6347 §4.2.1).
            if hello.message == 0 {
                if self.ready.len() < MAX_READY {
                    self.counters.cookies_asked += 1;
                    cookies.request(now, from, &hello, &mut self.ready.bytes);
                    self.ready.push(from);
                }
                return;
            }
            // A copy of the second ClientHello belongs to the handshake that it has begun.
            let again = self.by_peer.get(&place).is_some_and(|session| session.random == hello.random());
            if !again {
                if hello.message == 1 && cookies.verify(now, from, &hello) {
                    self.accept(now, from, &hello, datagram);
                } else {
                    self.counters.strays += 1;
                }
                return;
            }
        }
        if let Some(session) = self.by_peer.get_mut(&place).filter(|session| !session.connected) {
            session.seen.see(datagram);
        }
        self.open_in(now, place, datagram, arrived);
    }

    /// Starts a server's session with the ClientHello that has a cookie.
    fn accept(&mut self, now: Instant, from: Remote, hello: &Hello<'_>, datagram: &[u8]) {
        let Some(cookie) = hello.cookie() else { return };
        let place = key(from);
        // A client with a new handshake has lost its old session (RFC 6347 §4.2.8). The cookie has shown that it is at this
        // address.
        self.remove(place, &Refused::GivenUp);
        self.accepted = self.accepted.wrapping_add(1);
        let peer = Remote { local: self.accepted, ..from };
        let library = dimpl::Dtls::new_12_psk(self.library.clone(), now);
        self.insert(now, place, from, peer, library, hello.random().to_vec());
        let first = hello.first();
        self.drive(now, place, None, |session| {
            session.library.handle_timeout(now)?;
            with_cookie(cookie, || session.library.handle_packet(&first))?;
            // The library answers with a request for the cookie, which the client has shown already.
            let mut unused = [0; 128];
            while let Output::Packet(_) = session.library.poll_output(&mut unused) {}
            with_cookie(cookie, || session.library.handle_packet(datagram))
        });
    }
}
