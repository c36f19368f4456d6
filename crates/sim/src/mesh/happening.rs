//! What a number in the queue of events stands for.

/// Something that happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// A queue's backoff is over, and the channel has been assessed.
    Assess(u32, u8),
    /// The radio has turned to sending.
    Send(u32),
    /// The last bit of a frame has left.
    End(u32),
    /// An acknowledgement begins.
    Acknowledge(u32),
    /// Its last bit has left.
    Acknowledged(u32),
    /// No acknowledgement has come in time.
    NotAcknowledged(u32),
    /// The node is switched on.
    SwitchOn(u32),
    /// The timer of its RPL fires.
    Route(u32),
    /// Nodes move.
    Move,
}

const NODE_BITS: u32 = 23;
const QUEUE_BITS: u32 = 4;
const KIND: u32 = NODE_BITS + QUEUE_BITS;

impl Happening {
    /// Nodes are numbered below this.
    pub(super) const NODES: u32 = 1 << NODE_BITS;

    pub(super) fn encode(self) -> u32 {
        match self {
            Self::Assess(node, queue) => node | u32::from(queue) << NODE_BITS,
            Self::Send(node) => 1 << KIND | node,
            Self::End(node) => 2 << KIND | node,
            Self::Acknowledge(node) => 3 << KIND | node,
            Self::Acknowledged(node) => 4 << KIND | node,
            Self::NotAcknowledged(node) => 5 << KIND | node,
            Self::SwitchOn(node) => 6 << KIND | node,
            Self::Route(node) => 7 << KIND | node,
            Self::Move => 8 << KIND,
        }
    }

    pub(super) fn decode(code: u32) -> Option<Self> {
        let node = code & (Self::NODES - 1);
        Some(match code >> KIND {
            0 => Self::Assess(node, (code >> NODE_BITS & ((1 << QUEUE_BITS) - 1)) as u8),
            1 => Self::Send(node),
            2 => Self::End(node),
            3 => Self::Acknowledge(node),
            4 => Self::Acknowledged(node),
            5 => Self::NotAcknowledged(node),
            6 => Self::SwitchOn(node),
            7 => Self::Route(node),
            8 => Self::Move,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_for_what_it_was_made_of() {
        let last = Happening::NODES - 1;
        for happening in [
            Happening::Assess(last, 14),
            Happening::Assess(0, 0),
            Happening::Send(last),
            Happening::End(3),
            Happening::Acknowledge(last),
            Happening::Acknowledged(4),
            Happening::NotAcknowledged(last),
            Happening::SwitchOn(5),
            Happening::Route(last),
            Happening::Move,
        ] {
            assert!(happening.encode() < crate::Happenings::LIMIT);
            assert_eq!(Happening::decode(happening.encode()), Some(happening));
        }
        assert_eq!(Happening::decode(15 << KIND), None);
    }
}
