//! Arguments of `coapace relay`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::{ClientKeys, Trust};
use crate::logging::Form;

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // each is a flag
pub(crate) struct RelayArguments {
    /// The address and port that clients send to; port 0 takes any free one. If keys of clients are given, only DTLS
    /// (coaps://) is accepted there
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: String,

    /// The address and port of the server
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) to: String,

    /// The congestion control, as NAME or NAME:parameter=value,… (coapace list mechanisms)
    // A relay in front of a server needs no mechanism of its own, so --sluice makes --cc optional.
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present = "sluice",
        default_value_if("sluice", "true", "default")
    )]
    pub(crate) cc: Option<String>,

    /// The bulk mechanism for bodies in blocks (coapace list mechanisms). The relay requests several blocks at once from the
    /// server, ahead of clients that ask for one after the other; none forwards the requests of clients instead
    #[arg(long, value_name = "NAME", default_value = "tide")]
    pub(crate) bulk: String,

    /// The maximum number of exchanges of one client with the server at a time [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) nstart: Option<u16>,

    /// Retransmissions before a request is given up [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=20))]
    pub(crate) max_retransmit: Option<u8>,

    /// Let all clients of one IP address share a port, the RTO estimate, and --nstart. For programs that make one request each,
    /// such as coap-client in a script: a new program continues with the estimate of the last one
    #[arg(long)]
    pub(crate) share: bool,

    /// For a relay in front of a server: withhold the answer to a copy of a request while the last answer may still be
    /// travelling, for at most two copies in a row (docs/sluice.md)
    #[arg(long)]
    pub(crate) sluice: bool,

    #[command(flatten)]
    pub(crate) trust: Trust,

    /// The maximum number of clients at a time. Each has its own port towards the server. Beyond that, a new client
    /// replaces the one that was idle for longest, or is answered 5.03 if none is idle [default: 1024, or fewer if
    /// fewer files may be open]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) max_clients: Option<u32>,

    #[command(flatten)]
    pub(crate) client_keys: ClientKeys,

    /// The identity that the relay presents to the server: if given, the relay speaks DTLS to the server, in a session for each
    /// client
    #[arg(long, value_name = "IDENTITY", requires = "server_key")]
    pub(crate) server_identity: Option<String>,

    /// The key of that identity: text, hexadecimal digits after 0x, or @FILE
    #[arg(long, value_name = "KEY", requires = "server_identity")]
    pub(crate) server_key: Option<String>,

    /// Serve counters to Prometheus at http://ADDRESS:PORT/metrics; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<String>,

    /// Write the datagrams on both sides of the relay as pcapng, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// Write the ports of relay and server as 5683, so that Wireshark recognises the protocol
    #[arg(long, requires = "pcap")]
    pub(crate) pcap_as_coap: bool,

    /// Log more to standard error
    #[arg(long, short, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// The format of log lines
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Form::Text)]
    pub(crate) log: Form,
}

pub(super) const EXAMPLES_RELAY: &str = "Examples:
  On the device, for a program that asks coap://127.0.0.1 in place of the server:
    coapace relay --listen 127.0.0.1:5683 --to coap.example.org:5683 --cc fasor
    coap-client -m get coap://127.0.0.1/temperature
  For scripts that start a program for each request:
    coapace relay --listen 127.0.0.1:5683 --to 192.0.2.7:5683 --cc fasor --share
  In front of a server that answers every copy:
    coapace relay --listen '[::]:5683' --to 127.0.0.1:5684 --sluice
  With DTLS at both sides, each with its keys:
    coapace relay --listen 127.0.0.1:5684 --to coap.example.org:5684 --cc fasor \\
          -u lamp-7 -k @lamp-7.key --server-identity lamp-7 --server-key @lamp-7.key

Standard output gets the URI for clients, and then the URI of the metrics. The log goes to standard error; its last line has
the counts. SIGHUP has the files of keys read again. See docs/relay.md.";
