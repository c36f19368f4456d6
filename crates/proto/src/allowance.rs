//! The bytes that a source may be sent while nobody has verified its address (RFC 9175 §2.4, item 3).

use core::net::IpAddr;

/// The most bytes that are sent to a source, as a multiple of the bytes that it has sent. The headers of all
/// datagrams count.
const AMPLIFICATION: usize = 3;

/// The bytes of the headers of UDP and IPv4, and of UDP and IPv6.
const HEADERS: [usize; 2] = [28, 48];

/// The bits of an [`Allowance`] that are the number of bytes.
const BYTES: u16 = 0x7fff;

/// The bytes that may still be sent to the source of a request: in the answer, in copies of the answer, and
/// in notifications. Headers of IP and UDP count.
///
/// It has two bytes, because it is kept with every request that waits. The highest bit is set for IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance(u16);

impl Allowance {
    /// The allowance of a source that is verified, or trusted.
    pub const UNLIMITED: Self = Self(u16::MAX);

    /// Returns the allowance of a request of `request` bytes of CoAP over IPv4.
    pub const fn ipv4(request: usize) -> Self {
        Self::of(request, 0)
    }

    /// Returns the allowance of a request of `request` bytes of CoAP over IPv6.
    pub const fn ipv6(request: usize) -> Self {
        Self::of(request, 1)
    }

    /// Returns the allowance of a request of `request` bytes of CoAP from this address.
    pub fn over(request: usize, from: IpAddr) -> Self {
        Self::of(request, u16::from(!from.to_canonical().is_ipv4()))
    }

    const fn of(request: usize, family: u16) -> Self {
        let bytes = AMPLIFICATION.saturating_mul(request.saturating_add(HEADERS[family as usize]));
        let most = BYTES as usize - 1;
        Self(family << 15 | (if bytes < most { bytes } else { most }) as u16)
    }

    const fn headers(self) -> usize {
        HEADERS[(self.0 >> 15) as usize]
    }

    const fn left(self) -> usize {
        (self.0 & BYTES) as usize
    }

    /// Returns the allowance that is left after a message of this length.
    #[must_use]
    pub fn less(mut self, message: usize) -> Self {
        self.spend(message);
        self
    }

    /// Returns whether there is a limit.
    pub const fn is_limited(self) -> bool {
        self.0 != Self::UNLIMITED.0
    }

    /// Returns the length of the longest message that is allowed, in bytes of CoAP.
    pub const fn room(self) -> usize {
        if self.is_limited() { self.left().saturating_sub(self.headers()) } else { usize::MAX }
    }

    /// Returns whether two messages of this length are allowed.
    pub const fn has_room_for_two(self, message: usize) -> bool {
        !self.is_limited() || self.left() / 2 >= message.saturating_add(self.headers())
    }

    /// Takes the bytes of a message from the allowance. Returns false, and takes nothing, if too few are
    /// left.
    pub(crate) fn spend(&mut self, message: usize) -> bool {
        if self.is_limited() {
            let whole = message.saturating_add(self.headers());
            if whole > self.left() {
                return false;
            }
            self.0 -= whole as u16;
        }
        true
    }

    /// Reserves `rest` for other messages: takes its bytes from this allowance.
    pub(crate) fn keep_back(&mut self, rest: Self) {
        self.0 -= rest.left().min(self.left()) as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_sent_three_times_its_bytes_with_all_headers_and_not_one_more() {
        let mut allowance = Allowance::ipv4(15);
        assert!(allowance.is_limited() && allowance.room() == 3 * 43 - 28);
        assert!(allowance.has_room_for_two(36) && !allowance.has_room_for_two(37));
        assert!(allowance.spend(36) && allowance.spend(36));
        assert!(!allowance.spend(0));
        assert_eq!(allowance.room(), 0);
    }

    #[test]
    fn the_longest_request_is_no_unlimited_allowance() {
        let allowance = Allowance::ipv6(usize::MAX);
        assert!(allowance.is_limited() && allowance.room() > 32_000);
        assert!(!Allowance::UNLIMITED.is_limited() && Allowance::UNLIMITED.has_room_for_two(1 << 40));
    }
}
