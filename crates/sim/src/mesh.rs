//! A mesh of IEEE 802.15.4 radios under 6LoWPAN: a [`Medium`](crate::Medium) of many hops.

mod config;
mod frame;
pub mod rpl;

pub use config::{
    Backoff, ChannelBusy, LowpanConfig, MacConfig, MeshConfig, Propagation, RadioConfig, RoutingConfig,
    RplConfig,
};
pub use frame::{Content, Datagram, Frame, FrameEvent, FrameKind, FrameRecord, Leg, RplOption};
