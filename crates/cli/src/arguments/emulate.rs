//! Arguments of `coapace emulate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::device::time;
use super::key_value;

#[derive(Debug, Args)]
pub(crate) struct Emulate {
    /// A built-in scenario (coapace list scenarios) or a TOML file (docs/scenarios.md), with a network of hops
    pub(crate) scenario: String,

    /// Change a value of the scenario: one of its knobs (coapace list scenarios), or any key by its path; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,

    /// The seed of losses, jitter and all that is random. Equal seeds have equal luck at equal steps
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Relay UDP: the address and port that clients send to; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", requires = "to")]
    pub(crate) listen: Option<String>,

    /// Relay UDP: the address and port of the server. Each source has a port of its own towards it
    #[arg(long, value_name = "ADDRESS:PORT", requires = "listen")]
    pub(crate) to: Option<String>,

    /// Sources that have a place at a time. Beyond it, the one that was idle for longest makes room
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) sources: u32,

    /// End after this time, in seconds or like 500ms [default: with Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<Duration>,

    /// Write the packets before and behind the network, and the lost ones, as pcapng, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// Serve counters to Prometheus at http://ADDRESS:PORT/metrics; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<String>,
}

pub(super) const EXAMPLES_EMULATE: &str = "Examples:
  A server behind an NB-IoT link. Clients send to the first address, through the link to the second:
    coapace emulate nb-iot --listen 127.0.0.1:5690 --to 127.0.0.1:5683
  The same with a lossy link and a small buffer, captured:
    coapace emulate nb-iot --set errors=high --set buffer=2500 --listen 127.0.0.1:5690 --to 127.0.0.1:5683 --pcap link.pcapng

At the end the counters are printed, with the lateness of departures: how exactly the machine kept the times of the scenario.
See docs/emulation.md.";
