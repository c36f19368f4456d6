//! The capture of an examination.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use coapace_sim::{CaptureFile, Ecn, Time, udp_packet};

use super::packet::PacketDirection;

/// Numbers the packets of an examination, and writes them as pcapng if there is a file. Several threads may share it.
#[derive(Debug)]
pub struct Recorder {
    begun: Instant,
    /// The time from the Unix epoch to the start of the examination.
    epoch: Duration,
    inner: Mutex<RecorderState>,
}

struct RecorderState {
    file: Option<CaptureFile<Box<dyn Write + Send>>>,
    count: u32,
}

impl std::fmt::Debug for RecorderState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecorderState").field("count", &self.count).finish_non_exhaustive()
    }
}

const SENT: u32 = 0;
const RECEIVED: u32 = 1;

impl Recorder {
    /// Starts the capture of an examination. It is written to `writer`, which should be buffered; with `None`, packets
    /// are only numbered.
    pub fn new(writer: Option<Box<dyn Write + Send>>) -> Self {
        let file = writer.map(|writer| {
            let mut file = CaptureFile::new(writer);
            for name in ["sent", "delivered"] {
                file.add_interface(CaptureFile::RAW_IP, name, "CoAP; the comment of a packet names its case");
            }
            file
        });
        let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { begun: Instant::now(), epoch, inner: Mutex::new(RecorderState { file, count: 0 }) }
    }

    /// Returns the time since the examination began.
    pub fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Records a datagram of a case. Returns its number and its time. The time is taken here, so that the capture is sorted.
    pub fn record(
        &self,
        case: &str,
        direction: PacketDirection,
        local: SocketAddr,
        peer: SocketAddr,
        bytes: &[u8],
    ) -> (u32, Duration) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        // The time is taken under the lock, so that times ascend with the numbers.
        let at = self.now();
        inner.count += 1;
        let number = inner.count;
        if let Some(file) = &mut inner.file {
            let (from, to, interface) = match direction {
                PacketDirection::Sent => (local, peer, SENT),
                PacketDirection::Received => (peer, local, RECEIVED),
            };
            // 48 bytes are the headers of IPv6 and UDP.
            let mut packet = Vec::with_capacity(bytes.len() + 48);
            // A datagram that no header fits stays in the capture as an empty packet, so that the numbers agree.
            let _ = udp_packet(from, to, 0, Ecn::NotCapable, bytes, &mut packet);
            let time = Time::from_nanos((self.epoch + at).as_nanos() as u64);
            file.add_packet(interface, time, &packet, Some(case));
        }
        (number, at)
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// Returns the first write error.
    pub fn finish(self) -> io::Result<()> {
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        inner.file.map_or(Ok(()), |file| file.finish().map(drop))
    }
}
