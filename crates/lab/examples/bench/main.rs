//! Measures this machine: controller calls, simulated exchanges and events for each second of CPU.
//!
//! ```sh
//! cargo run --release -p coapace-lab --example bench
//! ```

mod cost;

use std::io::{self, Write};

use cost::{controller_calls, simulate};

/// Numbers of simulated clients. The capacity of their link grows with their number.
const CLIENTS: [u32; 5] = [100, 400, 1_000, 10_000, 100_000];

/// The maximum number of clients for which a simulation is repeated to show the median.
const REPEATED: u32 = 1_000;
const REPETITIONS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "controller calls (median of many)\n{:<18} {:>10} {:>14} {:>8}",
        "mechanism", "on_start", "on_retransmit", "on_end"
    )?;
    for calls in controller_calls() {
        let [start, retransmit, end] = calls.ns;
        writeln!(out, "{:<18} {start:>7.1} ns {retransmit:>11.1} ns {end:>5.1} ns", calls.mechanism)?;
    }
    writeln!(
        out,
        "\nsimulation under `default`: 50 exchanges a client, buffers without limit, the link 1/400 of 60 and 30 kbit/s a client\n\
         {:>9} {:>12} {:>9} {:>15} {:>15} {:>9} {:>13}",
        "clients", "requests", "CPU", "exchanges/CPU s", "events/CPU s", "ns/event", "bytes/client"
    )?;
    for clients in CLIENTS {
        eprintln!("{clients} clients …");
        let repetitions = if clients <= REPEATED { REPETITIONS } else { 1 };
        let mut costs = Vec::new();
        for _ in 0..repetitions {
            costs.push(simulate(clients)?);
        }
        costs.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
        let cost = costs[costs.len() / 2];
        // The memory of a small run cannot be measured: it fits into memory that the process already has.
        let measured = cost.bytes_per_client.filter(|_| clients > REPEATED);
        let memory = measured.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.0}"));
        writeln!(
            out,
            "{clients:>9} {:>12} {:>7.3} s {:>15.0} {:>15.0} {:>9.1} {memory:>13}",
            cost.requests,
            cost.cpu_s,
            cost.exchanges as f64 / cost.cpu_s,
            cost.events as f64 / cost.cpu_s,
            cost.ns_per_event(),
        )?;
    }
    Ok(())
}
