//! The events of a mesh, and their numbers in the queue of events.

/// An event of a mesh. The first value of a variant, if it has values, is the number of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MeshEvent {
    /// The backoff of a queue is over, and the channel has been assessed.
    Assess(u32, u8),
    /// The radio has turned to sending.
    Send(u32),
    /// The last bit of a frame has left.
    End(u32),
    /// An acknowledgement begins.
    Acknowledge(u32),
    /// The last bit of an acknowledgement has left.
    Acknowledged(u32),
    /// No acknowledgement has come in time.
    NotAcknowledged(u32),
    /// The node is switched on.
    SwitchOn(u32),
    /// The timer of the node's RPL fires.
    Route(u32),
    /// Nodes move.
    Move,
    /// A node wakes up, and has assessed the channel (ContikiMAC).
    WakeUp(u32),
    /// The second assessment of a wake-up.
    AssessAgain(u32),
    /// A node that noticed a transmission has waited long enough.
    Doze(u32),
    /// Nodes begin to listen in a cell (TSCH).
    Cell,
    /// Nodes that heard nothing in a cell stop listening.
    CellIdle,
    /// The driver call, by which a node with one thread sends a frame or an acknowledgement, continues.
    Tick(u32),
}

// These 27 bits leave 4 for the kind: the number of a medium's event is below 2³¹.
const NODE_BITS: u32 = 23;
const QUEUE_BITS: u32 = 4;
const KIND: u32 = NODE_BITS + QUEUE_BITS;

impl MeshEvent {
    /// The upper limit of the numbers of nodes.
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
            Self::WakeUp(node) => 9 << KIND | node,
            Self::AssessAgain(node) => 10 << KIND | node,
            Self::Doze(node) => 11 << KIND | node,
            Self::Cell => 12 << KIND,
            Self::CellIdle => 13 << KIND,
            Self::Tick(node) => 14 << KIND | node,
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
            9 => Self::WakeUp(node),
            10 => Self::AssessAgain(node),
            11 => Self::Doze(node),
            12 => Self::Cell,
            13 => Self::CellIdle,
            14 => Self::Tick(node),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_mesh_event_decodes_to_itself() {
        let last = MeshEvent::NODES - 1;
        for event in [
            MeshEvent::Assess(last, 14),
            MeshEvent::Assess(0, 0),
            MeshEvent::Send(last),
            MeshEvent::End(3),
            MeshEvent::Acknowledge(last),
            MeshEvent::Acknowledged(4),
            MeshEvent::NotAcknowledged(last),
            MeshEvent::SwitchOn(5),
            MeshEvent::Route(last),
            MeshEvent::Move,
            MeshEvent::WakeUp(last),
            MeshEvent::AssessAgain(6),
            MeshEvent::Doze(last),
            MeshEvent::Cell,
            MeshEvent::CellIdle,
            MeshEvent::Tick(7),
        ] {
            assert!(event.encode() < crate::MediumEvents::LIMIT);
            assert_eq!(MeshEvent::decode(event.encode()), Some(event));
        }
        assert_eq!(MeshEvent::decode(15 << KIND), None);
    }
}
