//! A record of one run, packet by packet.

use std::io::{self, Write};

use coapace_scenario::Scenario;
use coapace_sim::{MeshPcapng, Pcapng, Trace};

use crate::contender::Contender;
use crate::measured::RunResult;
use crate::{Observe, accounting, hop_names, run_tapped};

/// Runs `scenario` once. Writes its packets, or the frames of its mesh, to `pcap` as pcapng, and every event to `trace` as
/// CSV.
///
/// # Errors
/// Returns the first error in writing.
pub fn write<W: Write>(
    scenario: &Scenario,
    contender: &Contender,
    seed: u64,
    pcap: Option<W>,
    trace: Option<W>,
) -> io::Result<RunResult> {
    let hops = hop_names(scenario);
    // The nodes with the lowest numbers are the servers. The others are clients.
    let servers = 0..scenario.server.count;
    let (pcap, frames) = match &scenario.network.mesh {
        Some(mesh) => (None, pcap.map(|file| MeshPcapng::new(file, &mesh.lowpan.config))),
        None => (pcap.map(|file| Pcapng::new(file, accounting(scenario), servers, &hops)), None),
    };
    let trace = trace.map(|file| Trace::new(file, &hops));
    let (result, ((pcap, frames), trace)) =
        run_tapped(scenario, contender, seed, Observe::Totals, ((pcap, frames), trace));
    frames.map(MeshPcapng::finish).transpose()?;
    pcap.map(Pcapng::finish).transpose()?;
    trace.map(Trace::finish).transpose()?;
    Ok(result)
}
