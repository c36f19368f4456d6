//! One node alone, which hears the frames of a test.

use crate::mesh::RplConfig;
use crate::mesh::rpl::{LollipopCounter, RplMessage, RplNode};
use crate::{Luck, NodeId, Time};

/// Returns a DIO of the DODAG of node 0.
pub(crate) fn dio(rank: u16) -> RplMessage {
    RplMessage::Dio { root: NodeId(0), rank, dtsn: LollipopCounter::START }
}

/// Returns the DAO of a node that is asked for the `count`th time.
pub(crate) fn dao(target: u32, count: usize) -> RplMessage {
    let path = (0..count).fold(LollipopCounter::CIRCLE, |path, _| path.next());
    RplMessage::Dao {
        root: NodeId(0),
        target: NodeId(target),
        sequence: LollipopCounter::START,
        path,
        no_path: false,
    }
}

/// Returns node 5 below node 1, whose rank is 256, and above node 9. Its messages are fetched.
pub(crate) fn between() -> (RplNode, Time) {
    let now = Time::from_secs(1);
    let mut node =
        RplNode::new(&RplConfig::CONTIKI_3, NodeId(5), false, Luck::new(1).stream("rpl"), Time::ZERO);
    node.handle(now, NodeId(1), &dio(256));
    node.handle(now, NodeId(9), &dao(9, 1));
    assert_eq!((node.parent(), node.rank(), node.routes(now)), (Some(NodeId(1)), 512, 1));
    assert!(matches!(fetched(&mut node)[..], [(Some(NodeId(1)), RplMessage::Dao { target: NodeId(9), .. })]));
    (node, now)
}

/// Returns the messages that the node has to send.
pub(crate) fn fetched(node: &mut RplNode) -> Vec<(Option<NodeId>, RplMessage)> {
    std::iter::from_fn(|| node.poll_transmit()).collect()
}
