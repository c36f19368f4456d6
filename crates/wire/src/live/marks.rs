//! Marks (exchange and transmission) of datagrams that come from sockets.

use coapace_sim::{Mark, NodeId};

/// The last Message ID and mark of each host that sends. In the simulator a packet carries its mark; on the wire the
/// exchange has to be read from the message. So a retransmission with a new Message ID counts as a new exchange here.
/// The difference matters only for the drawn service times of servers.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<Option<(u16, Mark)>>);

impl Marks {
    /// Returns the mark of a datagram from this host. A Message ID that differs from the last one begins a new
    /// exchange.
    pub(super) fn of(&mut self, from: NodeId, datagram: &[u8]) -> Mark {
        let &[_, _, high, low, ..] = datagram else { return Mark::default() };
        let message_id = u16::from_be_bytes([high, low]);
        let place = from.0 as usize;
        if place >= self.0.len() {
            self.0.resize(place + 1, None);
        }
        let mark = match self.0[place] {
            None => Mark::default(),
            // A copy of a message has its Message ID (RFC 7252 §4.2), so it is the next transmission of the same exchange.
            Some((last, mark)) if last == message_id => {
                Mark { transmission: mark.transmission.saturating_add(1), ..mark }
            }
            Some((_, mark)) => Mark { exchange: mark.exchange.wrapping_add(1), transmission: 0 },
        };
        self.0[place] = Some((message_id, mark));
        mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_runs_count_copies_as_transmissions_and_new_message_ids_as_exchanges() {
        let mut marks = Marks::default();
        let mut of = |node, message_id| {
            let Mark { exchange, transmission } = marks.of(NodeId(node), &[0x40, 1, 0, message_id]);
            (exchange, transmission)
        };
        assert_eq!(
            [of(3, 7), of(3, 7), of(3, 8), of(1, 8), of(3, 8)],
            [(0, 0), (0, 1), (1, 0), (0, 0), (1, 1)]
        );
        assert_eq!(marks.of(NodeId(3), &[]), Mark::default());
    }
}
