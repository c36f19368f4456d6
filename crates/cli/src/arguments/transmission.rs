//! Arguments on how requests are sent, for the commands that talk to devices.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::device::time;

/// Arguments on how requests are retransmitted, delayed and secured, and where they are captured.
#[derive(Clone, Debug, Args)]
pub(crate) struct TransmissionArguments {
    /// The identity to present to a coaps:// server
    #[arg(short = 'u', long, value_name = "IDENTITY", requires = "key")]
    pub(crate) identity: Option<String>,

    /// The key of that identity: text, hexadecimal digits after 0x, or @FILE. A key in a file is hidden from the list of
    /// processes
    #[arg(short = 'k', long, value_name = "KEY", requires = "identity")]
    pub(crate) key: Option<String>,

    /// The certificates to trust over coaps+tcp:// and coaps+ws://, in PEM: the certificates of issuers, or a server's own.
    /// Without this option no server is trusted
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// The certificate to present to such a server, in PEM, followed by its intermediate certificates
    #[arg(long, value_name = "FILE", requires_all = ["private_key", "ca"])]
    pub(crate) cert: Option<PathBuf>,

    /// The private key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) private_key: Option<PathBuf>,

    /// The congestion control mechanism, as NAME or NAME:parameter=value,… (coapace list mechanisms)
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) cc: String,

    /// The bulk mechanism for bodies in blocks, which decides how many blocks to request at once: NAME or
    /// NAME:parameter=value,… (coapace list mechanisms), or none to request one after the other with --cc
    #[arg(long, value_name = "NAME", default_value = "tide")]
    pub(crate) bulk: String,

    /// Send the blocks of a payload one after the other, even to a server that accepts several at once (Q-Block1, RFC 9177)
    #[arg(long)]
    pub(crate) no_q_block: bool,

    /// The maximum number of exchanges with one destination at a time [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) nstart: Option<u16>,

    /// The first timeout, before the first round-trip time is measured, such as 2s or 500ms [default: the mechanism's, usually
    /// 2s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) ack_timeout: Option<String>,

    /// Retransmissions before a request is given up [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=20))]
    pub(crate) max_retransmit: Option<u8>,

    /// The longest wait for a response, in seconds or like 500ms [default: until the mechanism gives up; 247 s for
    /// a request that is acknowledged or non-confirmable]
    #[arg(short = 'B', long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,

    /// End a request at once if the network reports that the port is closed. Without this option it is retransmitted, and a
    /// server that starts meanwhile answers it
    #[arg(long)]
    pub(crate) fail_fast: bool,

    /// Write the datagrams of this command as pcapng, for Wireshark; coaps:// stays encrypted
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// Write the server's port as 5683, or 5684 for coaps://, so that Wireshark recognises the protocol
    #[arg(long, requires = "pcap")]
    pub(crate) pcap_as_coap: bool,
}
