//! The header of a packet inside the network: three words before its bytes.

use crate::{Ecn, Mark, NodeId, Time, Transport};

/// The state of a packet in the network, in the form in which it is stored before the bytes of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The time at which the packet leaves its present hop.
    pub(crate) due: Time,
    /// Sender and receiver, 31 bits each. Bit 63 is set if the packet is ECN-capable, and bit 31 if a queue has marked
    /// the packet CE.
    ends: u64,
    /// The other fields, from the lowest bit: transmission 8 bits, exchange 32, length 16, index of the present hop in
    /// the path 4, copy 3, transport 1.
    rest: u64,
}

/// The largest number of hops of a path.
pub(crate) const MAX_HOPS: usize = 16;
/// The largest copy number of a packet. All later copies have this number, too, and so the same random numbers.
pub(crate) const MAX_COPY: u8 = 7;

/// The bits of ECN in `ends`. A world has fewer than 2³¹ nodes.
const ECN_CAPABLE: u64 = 1 << 63;
const CONGESTION: u64 = 1 << 31;

const STEP_BITS: u32 = 40;
const LENGTH: u32 = STEP_BITS;
const PLACE: u32 = 56;
const COPY: u32 = 60;
const TRANSPORT: u32 = 63;

impl Header {
    pub(crate) const BYTES: usize = 24;

    /// Returns the header of a packet of `length` bytes at the beginning of its path. `copy` is the number of packets
    /// sent before it with the same sender, receiver and mark.
    pub(crate) fn new(
        from: NodeId,
        to: NodeId,
        mark: Mark,
        transport: Transport,
        length: u16,
        copy: u8,
    ) -> Self {
        let step = u64::from(mark.exchange) << 8 | u64::from(mark.transmission);
        let rest = step
            | u64::from(length) << LENGTH
            | u64::from(copy.min(MAX_COPY)) << COPY
            | u64::from(transport == Transport::Ip) << TRANSPORT;
        Self { due: Time::ZERO, ends: u64::from(from.0) << 32 | u64::from(to.0), rest }
    }

    pub(crate) const fn from(&self) -> NodeId {
        NodeId(((self.ends & !ECN_CAPABLE) >> 32) as u32)
    }

    pub(crate) const fn to(&self) -> NodeId {
        NodeId((self.ends & !CONGESTION) as u32)
    }

    /// Returns this header with the ECN field at ECT(0).
    pub(crate) const fn ecn_capable(self) -> Self {
        Self { ends: self.ends | ECN_CAPABLE, ..self }
    }

    /// Returns this header with an ECN field.
    pub(crate) const fn with_ecn(self, ecn: Ecn) -> Self {
        let bits = match ecn {
            Ecn::NotCapable => 0,
            Ecn::Capable => ECN_CAPABLE,
            Ecn::Congested => ECN_CAPABLE | CONGESTION,
        };
        Self { ends: self.ends | bits, ..self }
    }

    pub(crate) const fn is_ecn_capable(&self) -> bool {
        self.ends & ECN_CAPABLE != 0
    }

    /// Sets the ECN field to CE. The packet must be ECN-capable.
    pub(crate) const fn mark_congestion(&mut self) {
        self.ends |= CONGESTION;
    }

    /// Returns the ECN field.
    pub(crate) const fn ecn(&self) -> Ecn {
        match (self.ends & ECN_CAPABLE != 0, self.ends & CONGESTION != 0) {
            (false, _) => Ecn::NotCapable,
            (true, false) => Ecn::Capable,
            (true, true) => Ecn::Congested,
        }
    }

    pub(crate) const fn mark(&self) -> Mark {
        Mark { exchange: (self.rest >> 8) as u32, transmission: self.rest as u8 }
    }

    pub(crate) const fn transport(&self) -> Transport {
        if self.rest >> TRANSPORT == 1 { Transport::Ip } else { Transport::Udp }
    }

    /// Returns the length of the packet in bytes, without the headers of [`Accounting`](crate::Accounting).
    pub(crate) const fn length(&self) -> usize {
        (self.rest >> LENGTH) as u16 as usize
    }

    /// Returns the index of the packet's present hop within its path.
    pub(crate) const fn place(&self) -> usize {
        (self.rest >> PLACE) as usize % MAX_HOPS
    }

    /// Returns the header on the next hop of the path, or `None` beyond the longest path.
    pub(crate) fn on_next_hop(self) -> Option<Self> {
        // The place has 4 bits. One hop more would carry into the copy, and change the packet's random numbers.
        (self.place() + 1 < MAX_HOPS).then(|| Self { rest: self.rest + (1 << PLACE), ..self })
    }

    /// Returns the key of the random numbers drawn for this packet: its sender and receiver, its mark, and its copy.
    pub(crate) const fn key(&self) -> (u64, u64, u64) {
        (
            // The luck of a packet must not depend on ECN.
            self.ends & !(ECN_CAPABLE | CONGESTION),
            self.rest & ((1 << STEP_BITS) - 1),
            self.rest >> COPY & MAX_COPY as u64,
        )
    }

    #[inline]
    pub(crate) fn write(&self, bytes: &mut [u8; Self::BYTES]) {
        let (due, rest) = bytes.split_at_mut(8);
        let (ends, rest) = rest.split_at_mut(8);
        due.copy_from_slice(&self.due.as_nanos().to_le_bytes());
        ends.copy_from_slice(&self.ends.to_le_bytes());
        rest.copy_from_slice(&self.rest.to_le_bytes());
    }

    #[inline]
    pub(crate) fn read(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Self { due: Time::from_nanos(word(0)), ends: word(8), rest: word(16) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_packet_header_keeps_the_bytes_it_is_given(
            (from, to) in (0..1u32 << 31, 0..1u32 << 31),
            ecn in 0u8..3,
            (exchange, transmission, length, ip) in any::<(u32, u8, u16, bool)>(),
            (copy, hops) in (0u8..8, 0usize..16),
        ) {
            let transport = if ip { Transport::Ip } else { Transport::Udp };
            let mark = Mark { exchange, transmission };
            let mut header = Header::new(NodeId(from), NodeId(to), mark, transport, length, copy);
            let key = header.key();
            if ecn > 0 {
                header = header.ecn_capable();
            }
            if ecn > 1 {
                header.mark_congestion();
            }
            prop_assert_eq!(header.key(), key, "the luck of a packet does not depend on ECN");
            for _ in 0..hops {
                header = header.on_next_hop().unwrap();
            }
            let mut bytes = [0; Header::BYTES];
            header.write(&mut bytes);
            prop_assert_eq!(Header::read(&bytes), header);
            prop_assert_eq!((header.from(), header.to(), header.mark()), (NodeId(from), NodeId(to), mark));
            prop_assert_eq!((header.transport(), header.length()), (transport, usize::from(length)));
            prop_assert_eq!((header.place(), header.on_next_hop().is_none()), (hops, hops == 15));
            prop_assert_eq!(header.ecn(), [Ecn::NotCapable, Ecn::Capable, Ecn::Congested][usize::from(ecn)]);
            prop_assert_eq!(header.key().2, u64::from(copy));
        }
    }
}
