//! What an endpoint measures of its traffic and its exchanges.

use coapace_control::{Duration, Sample};

use crate::histogram::Histogram;

/// Sums over all datagrams of an endpoint and distributions over the exchanges that it began, since it was told to [measure](crate::Endpoint::measure).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Bytes of the datagrams received.
    pub received_bytes: u64,
    /// Datagrams handed out to be sent: transmissions of exchanges, and replies.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Round-trip times of confirmable messages of which it is known which transmission was acknowledged: there was one,
    /// or they are marked. The strong samples of draft-ietf-core-cocoa-03 §4.2.
    pub rtt_strong: Histogram,
    /// Where that is not known, from the first transmission to the acknowledgement: the weak samples, whatever use the
    /// mechanism makes of them.
    pub rtt_weak: Histogram,
    /// The RTO of the destination, before dither, at every first transmission of a confirmable message.
    pub rto: Histogram,
    /// From the call that began an exchange to its first transmission: the wait for NSTART, the mechanism's pace or
    /// PROBING_RATE.
    pub queue_wait: Histogram,
}

impl Measures {
    /// Adds those of another endpoint.
    pub fn merge(&mut self, other: &Self) {
        self.received_bytes += other.received_bytes;
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.rtt_strong.merge(&other.rtt_strong);
        self.rtt_weak.merge(&other.rtt_weak);
        self.rto.merge(&other.rto);
        self.queue_wait.merge(&other.queue_wait);
    }

    /// An acknowledgement arrived.
    pub(crate) fn acknowledged(&mut self, sample: &Sample) {
        match sample.unambiguous() {
            Some(rtt) => self.rtt_strong.add(rtt),
            None => self.rtt_weak.add(sample.since_first),
        }
    }

    /// An exchange departs for the first time.
    pub(crate) fn departs(&mut self, waited: Duration, rto: Option<Duration>) {
        self.queue_wait.add(waited);
        if let Some(rto) = rto {
            self.rto.add(rto);
        }
    }
}
