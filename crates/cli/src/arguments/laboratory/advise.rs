//! Arguments of `coapace advise`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{OutputFormat, key_value};

#[derive(Debug, Args)]
pub(crate) struct Advise {
    /// A capture, pcap or pcapng, of tcpdump, Wireshark, a sniffer of IEEE 802.15.4, or --pcap; `-` reads standard input.
    /// Link types and tunnels that are not known here are read with tshark, if it is installed
    #[arg(value_name = "CAPTURE")]
    pub(crate) capture: PathBuf,

    /// A further port of servers; repeatable. Without it 5683 is one, and so is every port where both ends speak CoAP
    #[arg(long = "port", value_name = "N")]
    pub(crate) ports: Vec<u16>,

    /// The side where the capture was taken [default: what the copies in it look like]
    #[arg(long, value_enum, value_name = "SIDE")]
    pub(crate) side: Option<CaptureSide>,

    /// A mechanism to replay, as NAME or NAME:parameter=value,…; repeatable [default: all]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,

    /// Write a scenario file that behaves like the capture, for `coapace run` and `coapace rank`
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,

    /// A value of that scenario which you know better than the capture shows it, such as workload.kind=random for clients
    /// that forget their state, or network.up.path.rate='60 kbit/s'; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, requires = "scenario")]
    pub(crate) set: Vec<(String, String)>,

    /// The output format; csv has a row for each mechanism, json one object with everything
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(crate) format: OutputFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CaptureSide {
    /// Beside the clients: it has all their copies, and the answers that reached them
    Client,
    /// Beside the server: it has the copies that reached it, and all its answers
    Server,
    /// Between both
    Middle,
}

pub(super) const EXAMPLES_ADVISE: &str = "Examples:
  A capture beside the clients: how they fare, and which mechanism would have done better:
    tcpdump -i eth0 -w coap.pcap udp port 5683
    coapace advise coap.pcap
  Servers at other ports; results for a program:
    coapace advise coap.pcap --port 61616 --format json
  A scenario that behaves like the capture, and the mechanisms ranked on it:
    coapace advise coap.pcap --scenario mine.toml
    coapace rank mine.toml
  Clients that sleep, and forget what they learnt:
    coapace advise coap.pcap --scenario mine.toml --set workload.kind=random

A replay takes the round trips and losses of the capture as they were. It cannot know that a mechanism that sends more
would have met longer queues; the scenario can. See docs/advice.md.";
