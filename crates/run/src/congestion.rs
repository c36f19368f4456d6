//! Counts of the packets and exchanges that were marked CE (RFC 3168).

use coapace_sim::{Ecn, Event, Record, Tap};

use crate::measured::EcnResult;

/// Counts marks, and the exchanges whose request or response arrived with CE.
///
/// An exchange counts once in each direction, even if several of its packets arrive with CE. It counts again if a
/// packet of another exchange of the same client arrives with CE in between.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    /// Nodes with numbers below this are servers.
    servers: u32,
    /// For each client, the last exchange whose request arrived with CE, and the last exchange whose response arrived
    /// with CE.
    last: Vec<[Option<u32>; 2]>,
    counts: EcnResult,
}

impl Congestion {
    pub(super) fn new(servers: u32) -> Self {
        Self { servers, last: Vec::new(), counts: EcnResult::default() }
    }

    pub(super) fn counts(&self) -> EcnResult {
        self.counts
    }
}

impl Tap for Congestion {
    fn record(&mut self, record: &Record<'_>) {
        // A mark counts at the hop that sets it, and an exchange where its packet arrives.
        self.counts.marks += u64::from(record.event == Event::Marked);
        if record.event != Event::Delivered || record.ecn != Ecn::Congested {
            return;
        }
        // In a network of hops, servers have the lowest numbers.
        let is_response = record.from.0 < self.servers;
        let client = if is_response { record.to } else { record.from }.0 as usize;
        if client >= self.last.len() {
            self.last.resize(client + 1, [None; 2]);
        }
        let last = &mut self.last[client][usize::from(is_response)];
        if last.replace(record.mark.exchange) != Some(record.mark.exchange) {
            let count = if is_response { &mut self.counts.responses } else { &mut self.counts.requests };
            *count += 1;
        }
    }
}
