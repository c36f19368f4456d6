//! A mesh of IEEE 802.15.4 radios under 6LoWPAN: a [`Medium`](crate::Medium) of many hops.

pub(crate) mod address;
pub(crate) mod bytes;
mod config;
mod frame;
#[cfg_attr(not(test), expect(dead_code, reason = "the mesh is not there yet"))]
pub(crate) mod lowpan;
#[cfg_attr(not(test), expect(dead_code, reason = "the mesh is not there yet"))]
mod reassembly;

pub use config::{
    Backoff, ChannelBusy, LowpanConfig, MacConfig, MeshConfig, Propagation, RadioConfig, RoutingConfig,
    RplConfig,
};
pub use frame::{Content, Datagram, Frame, FrameEvent, FrameKind, FrameRecord, Leg, RplOption};
