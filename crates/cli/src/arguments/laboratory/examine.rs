//! The arguments of `coapace examine`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) const EXAMPLES_EXAMINE: &str = "\
In COMMAND, {uri}, {host}, {port} and {path} stand for the address to ask. Every case starts it with a port of its own, several
at a time. A client that makes many requests in one process shows more. Without COMMAND the cases use the port of --listen and
those after it, one after the other, and each waits a minute for a request.

Verdicts: fault (a MUST is broken), warning (a SHOULD), note (allowed, and worth knowing), ok, not tested.

Examples:
  A server, with a resource for every case:
    coapace examine coap://[::1]/hello --observe /clock --slow /delayed?s=3 --large /large --counter /counter
  A client, in half a minute, with the packets that prove the verdicts:
    coapace examine --quick --pcap client.pcapng -- coap-client-notls -B 120 {uri}
  Two cases with a client that somebody starts on another machine:
    coapace examine --listen 192.0.2.1:5683 --only backoff,separate
  The cases:
    coapace examine --list

Exit codes: 0 no fault; 3 a fault was found; 1 nothing could be examined; 2 wrong usage; 130 interrupted";

/// The arguments of `coapace examine`.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Each is a flag of the command line.
pub(crate) struct Examine {
    /// The resource of a server to examine, as coap://HOST[:PORT]/PATH; it is read with GET
    #[arg(conflicts_with_all = ["listen", "command"])]
    pub(crate) uri: Option<String>,

    /// Examine a client: listen at this address [default with COMMAND: 127.0.0.1 and free ports]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,

    /// A resource of the server that can be observed and changes about every second
    #[arg(long, value_name = "PATH", requires = "uri")]
    pub(crate) observe: Option<String>,

    /// A resource of the server that answers after some seconds, separately
    #[arg(long, value_name = "PATH", requires = "uri")]
    pub(crate) slow: Option<String>,

    /// A resource of the server with a representation of more than 1024 bytes
    #[arg(long, value_name = "PATH", requires = "uri")]
    pub(crate) large: Option<String>,

    /// A resource of the server that answers each POST with another payload, such as the number of POSTs
    #[arg(long, value_name = "PATH", requires = "uri")]
    pub(crate) counter: Option<String>,

    /// Also let the client send requests to the group 224.0.1.187; the packets leave this machine unless its route is the
    /// loopback interface
    #[arg(long, conflicts_with = "uri")]
    pub(crate) group: bool,

    /// Examine for half a minute instead of minutes: fewer exchanges, and none until the client gives up
    #[arg(long)]
    pub(crate) quick: bool,

    /// Run these cases only
    #[arg(long, value_name = "CASE[,CASE...]", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    /// List the cases and end
    #[arg(long)]
    pub(crate) list: bool,

    /// The number of clients, or of cases for a server, that run at a time
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) at_once: u16,

    /// Write all packets as pcapng; the verdicts name packets by number
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// The output format; json has an object for each verdict
    #[arg(long, value_enum, default_value_t = Verdicts::Table)]
    pub(crate) format: Verdicts,

    /// The command that starts the client to examine
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// The output format of verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verdicts {
    /// A page of text for people
    Table,
    /// A JSON object on each line
    Json,
}
