//! One run written down packet by packet.

use std::io::{self, Write};

use coapace_scenario::Scenario;
use coapace_sim::{MeshPcapng, Pcapng, Trace};

use crate::contender::Contender;
use crate::results::RunResult;
use crate::run::{Observe, accounting, hop_names, run_tapped};

/// Runs `scenario` once and writes its packets, or the frames of its mesh, as pcapng to `pcap`, and every event as CSV to
/// `trace`.
///
/// # Errors
/// The first that writing met.
pub fn write<W: Write>(
    scenario: &Scenario,
    contender: &Contender,
    seed: u64,
    pcap: Option<W>,
    trace: Option<W>,
) -> io::Result<RunResult> {
    let hops = hop_names(scenario);
    // The servers come first; the others are clients.
    let servers = 0..scenario.server.count;
    let (pcap, frames) = match &scenario.network.mesh {
        Some(mesh) => (None, pcap.map(|file| MeshPcapng::new(file, &mesh.lowpan))),
        None => (pcap.map(|file| Pcapng::new(file, accounting(scenario), servers, &hops)), None),
    };
    let trace = trace.map(|file| Trace::new(file, &hops));
    let (result, ((pcap, frames), trace)) =
        run_tapped(scenario, contender, seed, Observe::Totals, ((pcap, frames), trace));
    if let Some(frames) = frames {
        frames.finish()?;
    }
    if let Some(pcap) = pcap {
        pcap.finish()?;
    }
    if let Some(trace) = trace {
        trace.finish()?;
    }
    Ok(result)
}
