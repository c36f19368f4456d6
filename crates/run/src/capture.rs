//! A record of one run, packet by packet.

use std::io::{self, Write};

use coapace_scenario::Scenario;
use coapace_sim::{MeshPcapng, Pcapng, Trace};

use crate::contender::Contender;
use crate::measured::RunResult;
use crate::seats::Seats;
use crate::{Observe, accounting, hop_names, run_tapped};

/// Runs `scenario` once. Writes its packets, or the frames of its mesh, to `pcap` as pcapng, and every event to `trace`
/// as CSV. Writes nothing to a writer that is `None`.
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
    // The nodes with the lowest numbers are the servers of requests and of transfers. The others are clients.
    let servers = 0..Seats::of(scenario).first_client();
    let (pcap, frames) = match &scenario.network.mesh {
        Some(mesh) => (None, pcap.map(|file| MeshPcapng::new(file, &mesh.lowpan.config))),
        None => (pcap.map(|file| Pcapng::new(file, accounting(scenario), servers, &hops)), None),
    };
    let trace = trace.map(|file| Trace::new(file, &hops));
    let (result, ((pcap, frames), trace)) =
        run_tapped(scenario, contender, seed, Observe::Totals, ((pcap, frames), trace));
    // A tap writes nothing after its first error, and returns that error here.
    frames.map(MeshPcapng::finish).transpose()?;
    pcap.map(Pcapng::finish).transpose()?;
    trace.map(Trace::finish).transpose()?;
    Ok(result)
}
