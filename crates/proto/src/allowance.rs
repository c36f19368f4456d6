//! The bytes that may be sent to a source whose address is not verified (RFC 9175 §2.4, item 3).

use core::net::IpAddr;

/// The maximum number of bytes that may be sent to an unverified source, as a multiple of the bytes received from it.
/// Both counts include the headers of IP and UDP.
const AMPLIFICATION: usize = 3;

/// The length of the headers of IP and UDP in a datagram, bytes: with IPv4, and with IPv6.
const HEADERS: [usize; 2] = [28, 48];

/// The bits of an [`Allowance`] that hold the number of bytes.
const BYTES: u16 = 0x7fff;

/// The bytes that may still be sent to the source of a request: in the answer, in copies of the answer, and in notifications.
/// Headers of IP and UDP count.
/// An allowance takes two bytes, because it is stored with every waiting request. The highest bit is set for IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance(u16);

impl Allowance {
    /// The allowance of a verified or trusted source.
    pub const UNLIMITED: Self = Self(u16::MAX);

    /// Returns the allowance for the source of a request over IPv4 whose CoAP message has `request` bytes.
    pub const fn ipv4(request: usize) -> Self {
        Self::of(request, 0)
    }

    /// Returns the allowance for the source of a request over IPv6 whose CoAP message has `request` bytes.
    pub const fn ipv6(request: usize) -> Self {
        Self::of(request, 1)
    }

    /// Returns the allowance for the source `from` of a request whose CoAP message has `request` bytes.
    pub fn over(request: usize, from: IpAddr) -> Self {
        // A socket of both families shows an IPv4 source as ::ffff:a.b.c.d, but its datagrams have the shorter header.
        Self::of(request, u16::from(!from.to_canonical().is_ipv4()))
    }

    const fn of(request: usize, family: u16) -> Self {
        let bytes = AMPLIFICATION.saturating_mul(request.saturating_add(HEADERS[family as usize]));
        // For IPv6 the largest number of bytes, with the bit of the family, would read as `UNLIMITED`.
        let most = BYTES as usize - 1;
        Self(family << 15 | (if bytes < most { bytes } else { most }) as u16)
    }

    const fn headers(self) -> usize {
        HEADERS[(self.0 >> 15) as usize]
    }

    const fn left(self) -> usize {
        (self.0 & BYTES) as usize
    }

    /// Returns the allowance that remains after a message of `message` bytes. A message that exceeds the allowance
    /// changes nothing.
    #[must_use]
    pub fn less(mut self, message: usize) -> Self {
        self.spend(message);
        self
    }

    /// Returns whether the allowance is limited; false only for [`UNLIMITED`](Self::UNLIMITED).
    pub const fn is_limited(self) -> bool {
        self.0 != Self::UNLIMITED.0
    }

    /// Returns the length of the longest CoAP message that may still be sent, in bytes without the headers of IP and
    /// UDP. It is `usize::MAX` without a limit.
    pub const fn room(self) -> usize {
        if self.is_limited() { self.left().saturating_sub(self.headers()) } else { usize::MAX }
    }

    /// Returns whether two messages of this length are allowed.
    pub const fn has_room_for_two(self, message: usize) -> bool {
        // Half of the rest is compared, because twice the length may overflow.
        !self.is_limited() || self.left() / 2 >= message.saturating_add(self.headers())
    }

    /// Subtracts the bytes of a message from the allowance. Returns false, and changes nothing, if too few are left.
    pub(crate) fn spend(&mut self, message: usize) -> bool {
        if self.is_limited() {
            let whole = message.saturating_add(self.headers());
            if whole > self.left() {
                return false;
            }
            // It is at most `left`, so it fits 15 bits, and the bit of the family stays.
            self.0 -= whole as u16;
        }
        true
    }

    /// Reserves `rest` for other messages: subtracts its bytes from this allowance.
    pub(crate) fn keep_back(&mut self, rest: Self) {
        self.0 -= rest.left().min(self.left()) as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unverified_source_is_sent_at_most_three_times_its_bytes_headers_included() {
        let mut allowance = Allowance::ipv4(15);
        assert!(allowance.is_limited() && allowance.room() == 3 * 43 - 28);
        assert!(allowance.has_room_for_two(36) && !allowance.has_room_for_two(37));
        assert!(allowance.spend(36) && allowance.spend(36));
        assert!(!allowance.spend(0));
        assert_eq!(allowance.room(), 0);
    }

    #[test]
    fn the_allowance_for_the_longest_request_is_limited() {
        let allowance = Allowance::ipv6(usize::MAX);
        assert!(allowance.is_limited() && allowance.room() > 32_000);
        assert!(!Allowance::UNLIMITED.is_limited() && Allowance::UNLIMITED.has_room_for_two(1 << 40));
    }
}
