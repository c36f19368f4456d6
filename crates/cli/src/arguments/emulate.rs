//! Arguments of `coapace emulate`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::device::time;
use super::key_value;
use super::laboratory::seed;

#[derive(Debug, Args)]
pub(crate) struct Emulate {
    /// A built-in scenario (coapace list scenarios) or a TOML file (docs/scenarios.md), with a network of hops
    pub(crate) scenario: String,

    /// Change a value of the scenario: one of its knobs (coapace list scenarios), or any key by its path; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,

    /// The seed of losses, jitter and all other random effects. Equal seeds give equal losses to equal transmissions
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,

    /// Relay UDP: the address and port that clients send to; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS:PORT", requires = "to")]
    pub(crate) listen: Option<String>,

    /// Relay UDP: the address and port of the server. Each client address has its own port towards it
    #[arg(long, value_name = "ADDRESS:PORT", requires = "listen")]
    pub(crate) to: Option<String>,

    /// Make two network namespaces connected by the emulated network, and wait. Without a COMMAND their addresses and the
    /// commands that enter them are printed
    #[arg(long, conflicts_with_all = ["listen", "to"])]
    pub(crate) tun: bool,

    /// A shell command line that runs a server in the server's namespace. COMMAND starts once it listens, and ends it
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["listen", "to"])]
    pub(crate) server: Option<OsString>,

    /// The program to run in the clients' namespace, with its arguments; implies --tun. coapace then ends with the exit code of
    /// this program
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["listen", "to"])]
    pub(crate) command: Vec<OsString>,

    /// The maximum number of client addresses at a time. A new one beyond that replaces the one that was idle for longest
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) sources: u32,

    /// End after this time, in seconds or like 500ms [default: with Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub(crate) duration: Option<Duration>,

    /// Write the packets before and after the network, and the lost ones, as pcapng, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// Serve counters to Prometheus at http://ADDRESS:PORT/metrics; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<String>,
}

pub(super) const EXAMPLES_EMULATE: &str = "Examples:
  A server behind an NB-IoT link. Clients send to the first address, through the link to the second:
    coapace emulate nb-iot --listen 127.0.0.1:5690 --to 127.0.0.1:5683
  A lossy link with a small buffer, captured:
    coapace emulate nb-iot --set errors=high --set buffer=2500 --listen 127.0.0.1:5690 --to 127.0.0.1:5683 --pcap link.pcapng
  Unmodified programs, through TUN devices between two network namespaces:
    coapace emulate nb-iot --server 'coap-server-notls -A 10.2.0.1' -- coap-client-notls -m get coap://10.2.0.1/
  A shell on the clients' side, where any address of 10.1.0.0/16 is its own:
    coapace emulate lte-m --server 'iperf3 -s' -- bash

Programs find the addresses in COAPACE_CLIENT, COAPACE_CLIENTS and COAPACE_SERVER. Namespaces need no root where the system allows
user namespaces. At the end the counters are printed, with the lateness of departures: how exactly the machine kept the times.

Exit codes: the code of COMMAND; 130 interrupted and 124 after --duration while it runs; 1 the network cannot be had; 2 wrong usage.
See docs/emulation.md.";
