//! What the radios of a mesh did.

use serde::{Deserialize, Serialize};

/// Sums over all nodes of a mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshResult {
    /// Frames sent, attempts included, acknowledgements not.
    pub frames: u64,
    /// Acknowledgements sent.
    pub acks: u64,
    /// Frames sent for RPL, attempts included.
    pub control_frames: u64,
    /// Frames received by the node that they were for.
    pub received: u64,
    /// Frames that another transmission destroyed.
    pub collided: u64,
    /// Frames that a link failed, or that came when the radio was busy or off.
    pub missed: u64,
    /// Frames given up because no attempt was acknowledged.
    pub not_acknowledged: u64,
    /// Frames given up because the channel was busy.
    pub channel_busy: u64,
    /// Datagrams dropped because a queue was full.
    pub queue_full: u64,
    /// Datagrams dropped for want of a route.
    pub no_route: u64,
    /// Datagrams dropped because their hop limit was reached, or in a loop.
    pub hop_limit: u64,
    /// Fragments dropped because there was no room to put them together.
    pub reassembly: u64,
    /// Energy spent sending, in millijoule.
    pub transmit_mj: f64,
    /// Energy spent receiving.
    pub receive_mj: f64,
    /// Energy spent listening.
    pub listen_mj: f64,
    /// Energy spent while switched off.
    pub sleep_mj: f64,
}

impl MeshResult {
    /// Energy spent in all, in millijoule.
    pub fn energy_mj(&self) -> f64 {
        self.transmit_mj + self.receive_mj + self.listen_mj + self.sleep_mj
    }

    /// Frames and datagrams that the mesh lost for good, fragments it had no room for included.
    pub fn drops(&self) -> u64 {
        self.not_acknowledged
            + self.channel_busy
            + self.queue_full
            + self.no_route
            + self.hop_limit
            + self.reassembly
    }

    /// Takes away what was counted until an earlier moment of the same run.
    pub(super) fn leave_out(&mut self, earlier: &Self) {
        for ((_, count), (_, earlier)) in self.counts_mut().into_iter().zip(earlier.counts()) {
            *count -= earlier;
        }
        self.transmit_mj -= earlier.transmit_mj;
        self.receive_mj -= earlier.receive_mj;
        self.listen_mj -= earlier.listen_mj;
        self.sleep_mj -= earlier.sleep_mj;
    }

    /// Every count with its name in results.
    pub fn counts(&self) -> [(&'static str, u64); 12] {
        let mut copy = *self;
        copy.counts_mut().map(|(name, count)| (name, *count))
    }

    fn counts_mut(&mut self) -> [(&'static str, &mut u64); 12] {
        [
            ("frames", &mut self.frames),
            ("acks", &mut self.acks),
            ("control_frames", &mut self.control_frames),
            ("received", &mut self.received),
            ("collided", &mut self.collided),
            ("missed", &mut self.missed),
            ("not_acknowledged", &mut self.not_acknowledged),
            ("channel_busy", &mut self.channel_busy),
            ("queue_full", &mut self.queue_full),
            ("no_route", &mut self.no_route),
            ("hop_limit", &mut self.hop_limit),
            ("reassembly", &mut self.reassembly),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_is_left_out_of_every_sum() {
        let earlier = MeshResult { frames: 10, queue_full: 1, listen_mj: 2.0, ..MeshResult::default() };
        let mut later = MeshResult {
            frames: 25,
            queue_full: 4,
            no_route: 2,
            listen_mj: 5.0,
            transmit_mj: 1.0,
            ..earlier
        };
        later.leave_out(&earlier);
        assert_eq!((later.frames, later.drops()), (15, 5));
        assert!((later.energy_mj() - 4.0).abs() < 1e-12);
    }
}
