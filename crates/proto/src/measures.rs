//! Measures of the traffic and the exchanges of an endpoint.

use coapace_control::{Duration, Sample};

use crate::histogram::Histogram;

/// Sums over all datagrams of an endpoint, and distributions over its own exchanges, since the call of
/// [`measure`](crate::Endpoint::measure).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Bytes of the datagrams received.
    pub received_bytes: u64,
    /// Datagrams sent: transmissions of exchanges, and replies.
    pub sent: u64,
    /// Bytes of the datagrams sent.
    pub sent_bytes: u64,
    /// Round-trip times for which the answered transmission is known: it was the only one, or the transmissions were
    /// marked. These are the strong samples of draft-ietf-core-cocoa-03 §4.2.
    pub rtt_strong: Histogram,
    /// Times from the first transmission to the acknowledgement if it is unknown which transmission was acknowledged. These are
    /// the weak samples, whether the mechanism uses them or not.
    pub rtt_weak: Histogram,
    /// The RTO for the peer, without dither, at the first transmission of each confirmable message.
    pub rto: Histogram,
    /// Times from the call that began an exchange to its first transmission, spent waiting for NSTART, for the pace of the
    /// mechanism or for PROBING_RATE.
    pub queue_wait: Histogram,
}

impl Measures {
    /// Adds the measures of another endpoint.
    pub fn merge(&mut self, other: &Self) {
        self.received_bytes += other.received_bytes;
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.rtt_strong.merge(&other.rtt_strong);
        self.rtt_weak.merge(&other.rtt_weak);
        self.rto.merge(&other.rto);
        self.queue_wait.merge(&other.queue_wait);
    }

    /// Adds the round-trip time of an acknowledgement to the histogram of strong or weak samples.
    pub(crate) fn acknowledged(&mut self, sample: &Sample) {
        match sample.unambiguous() {
            Some(rtt) => self.rtt_strong.add(rtt),
            None => self.rtt_weak.add(sample.since_first),
        }
    }

    /// Adds the wait before a first transmission to its histogram, and the RTO if the message is confirmable.
    pub(crate) fn departs(&mut self, waited: Duration, rto: Option<Duration>) {
        self.queue_wait.add(waited);
        if let Some(rto) = rto {
            self.rto.add(rto);
        }
    }
}
