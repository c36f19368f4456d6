//! The taps of this crate, and the capture file that two of them write.

mod capture_file;
mod counters;
mod hash;
mod headers;
mod mesh_pcapng;
mod pcapng;
mod queue_series;
mod trace;

pub use capture_file::CaptureFile;
pub use counters::{HopCounters, PacketCounters};
pub use hash::TraceHash;
pub use headers::udp_packet;
pub use mesh_pcapng::MeshPcapng;
pub use pcapng::Pcapng;
pub use queue_series::QueueSeries;
pub use trace::Trace;
