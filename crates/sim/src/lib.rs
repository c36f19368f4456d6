//! A discrete-event network simulator. It knows no experiment: nodes, links and taps are handed to it.

mod node;
mod time;

pub use node::{Mark, Node, NodeId, Outgoing, Transport};
pub use time::Time;
