//! Arguments of `coapace advise`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{OutputFormat, key_value};

#[derive(Debug, Args)]
pub(crate) struct Advise {
    /// A capture (pcap or pcapng) of tcpdump, Wireshark, an IEEE 802.15.4 sniffer, or --pcap; `-` reads standard input. Link
    /// types and tunnels that coapace cannot read are read with tshark, if it is installed
    #[arg(value_name = "CAPTURE")]
    pub(crate) capture: PathBuf,

    /// Another UDP port of servers; repeatable. By default port 5683, and every port where both sides speak CoAP
    #[arg(long = "port", value_name = "N")]
    pub(crate) ports: Vec<u16>,

    /// The side where the capture was taken [default: inferred from the copies in it]
    #[arg(long, value_enum, value_name = "SIDE")]
    pub(crate) side: Option<CaptureSide>,

    /// A mechanism to replay, as NAME or NAME:parameter=value,…; repeatable [default: all]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,

    /// Write a scenario file that behaves like the capture, for `coapace run` and `coapace rank`
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,

    /// A value of that scenario that you know better than the capture can show, such as workload.kind=random for clients that
    /// forget their state, or network.up.path.rate='60 kbit/s'; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, requires = "scenario")]
    pub(crate) set: Vec<(String, String)>,

    /// The output format; csv has a row for each mechanism, json one object with everything
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(crate) format: OutputFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CaptureSide {
    /// Beside the clients: the capture has all copies that the clients sent, and the answers that reached the
    /// clients
    Client,
    /// Beside the server: the capture has the copies that reached the server, and all answers of the server
    Server,
    /// Between clients and server, on neither side
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
