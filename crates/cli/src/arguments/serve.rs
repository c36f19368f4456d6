//! Arguments of `coapace serve`.

use std::path::PathBuf;

use clap::{ArgAction, ArgGroup, Args};

use crate::logging::Form;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("over_tls").args(["tls", "wss"]).multiple(true))]
#[command(group = ArgGroup::new("shared_keys").args(["identities", "keys_file"]).multiple(true))]
#[allow(clippy::struct_excessive_bools)] // each is a flag
pub(crate) struct Serve {
    /// The address and port to answer at over UDP (coap://), where nobody has to show who it is; port 0 is any that is free
    /// [default: [::]:5683, or 0.0.0.0:5683 without IPv6; without --group not at all where keys or --ca say who may ask]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) bind: Option<String>,

    /// Do not answer over UDP without DTLS
    #[arg(long, conflicts_with_all = ["bind", "groups"])]
    pub(crate) no_udp: bool,

    /// Answer over TCP as well (coap+tcp://), at this address and port
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) tcp: Option<String>,

    /// Answer over DTLS (coaps://) at this address and port [default with keys: that of --bind, one port higher; [::]:5684 without it]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "shared_keys")]
    pub(crate) dtls: Option<String>,

    /// Answer what comes to a group as well, over UDP: ADDRESS, ADDRESS%INTERFACE, or all for every All CoAP Nodes address
    /// that there is a network for (224.0.1.187, ff02::fd, ff05::fd); repeatable. Answers leave within 5 s
    #[arg(long = "group", value_name = "ADDRESS")]
    pub(crate) groups: Vec<String>,

    /// An identity that clients of coaps:// have; repeatable, with a key for each
    #[arg(short = 'u', long = "identity", value_name = "IDENTITY", requires = "keys")]
    pub(crate) identities: Vec<String>,

    /// The key of an identity: text, hexadecimal digits behind 0x, or @FILE for what a file says
    #[arg(short = 'k', long = "key", value_name = "KEY", requires = "identities")]
    pub(crate) keys: Vec<String>,

    /// Identities and their keys, a line each as HINT,IDENTITY,KEY, as libcoap's coap-server takes with -i; the hint may be
    /// empty, and # begins a comment. Read again with SIGHUP, as are certificates and @FILE
    #[arg(long = "keys", value_name = "FILE")]
    pub(crate) keys_file: Option<PathBuf>,

    /// Answer over TLS (coaps+tcp://) at this address and port
    #[arg(long, value_name = "ADDRESS:PORT", requires = "cert")]
    pub(crate) tls: Option<String>,

    /// Answer over WebSockets (coap+ws://) at this address and port
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) ws: Option<String>,

    /// Answer over WebSockets and TLS (coaps+ws://) at this address and port
    #[arg(long, value_name = "ADDRESS:PORT", requires = "cert")]
    pub(crate) wss: Option<String>,

    /// The certificate of --tls and --wss, in PEM, those between it and its root after it
    #[arg(long, value_name = "FILE", requires_all = ["private_key", "over_tls"])]
    pub(crate) cert: Option<PathBuf>,

    /// The private key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) private_key: Option<PathBuf>,

    /// Let nobody in over --tls and --wss but clients with a certificate of these issuers, in PEM; without TLS or DTLS it
    /// answers then only where --bind, --group, --tcp and --ws say so
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) ca: Option<PathBuf>,

    /// Serve the files of a directory and those below it, but for names that begin with a dot; a file has 8 MiB at most,
    /// and 1000 of them are in /.well-known/core
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,

    /// Let whoever may ask write and remove these files, with PUT and DELETE; files that are read-only stay
    #[arg(long, requires = "directory")]
    pub(crate) writable: bool,

    /// A resource whose GET is answered with this text; repeatable
    #[arg(long = "resource", value_name = "PATH=TEXT", value_parser = path_text)]
    pub(crate) resources: Vec<(String, String)>,

    /// Have, as without --resource and --directory, resources for trying things out
    #[arg(long)]
    pub(crate) demo: bool,

    /// The congestion control of separate responses, as NAME or NAME:parameter=value,… (coapace list mechanisms)
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) cc: String,

    /// Threads, each with a socket of its own [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// The memory that clients can make the server take, with K, M or G for powers of 1024. It is a bound and reserves
    /// nothing. An eighth each is for: peers and observers (1 KiB for both), messages remembered to recognise copies (512 B
    /// each), DTLS sessions (8 KiB), connections over TCP, TLS and WebSockets (128 KiB; open files may allow fewer), and
    /// answers that wait there
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes)]
    pub(crate) memory: usize,

    /// Clients over UDP, and as many over DTLS, of which round-trip times and the like are remembered, all threads together;
    /// those that observe are kept beside these [default: 131072 with --memory 1G]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_peers: Option<u32>,

    /// Observers over UDP, and as many over DTLS, all threads together, and of each connection over TCP. Of these, 1 in 64 of
    /// a thread may have an address that is not verified (RFC 9175); beyond that a client is asked for an Echo option. One
    /// that finds no room is answered, but not told of changes, and counted [default: 131072 with --memory 1G]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_observers: Option<u32>,

    /// Tell Prometheus at http://ADDRESS:PORT/metrics what was counted; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<String>,

    /// Write the datagrams that come and go as pcapng, for Wireshark; those of coaps:// as they are sealed
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// Write the port of the server as 5683, or 5684 for coaps://, so that Wireshark knows what it is
    #[arg(long, requires = "pcap")]
    pub(crate) pcap_as_coap: bool,

    /// Log more to standard error: -v each request and handshake, -vv observers too
    #[arg(long, short, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// How a line of the log looks
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Form::Text)]
    pub(crate) log: Form,
}

pub(super) const EXAMPLES_SERVE: &str = "Examples:
  coapace serve
  coapace serve --bind 127.0.0.1:0 --resource /greeting=Hello --demo
  coapace serve --tcp '[::]:5683' -u lamp-7 -k @lamp-7.key -u lamp-8 -k 0xcafe42
  coapace serve --tls '[::]:5684' --ws '[::]:8080' --cert server.pem --private-key server.key
  coapace serve --group all
  coapace serve --directory firmware
  coapace serve --metrics 127.0.0.1:9683 -v --log json
  coapace serve --directory uploads --writable -u lamp-7 -k @lamp-7.key

It prints its URIs to standard output, one a line, that of the metrics last, and logs to standard error. docs/operating.md
says more.";

impl Serve {
    /// Returns whether the server answers over UDP without DTLS: where that is asked for, and by default unless keys or issuers
    /// say who may ask.
    pub(crate) fn plain_udp(&self) -> bool {
        let known_clients = self.ca.is_some() || self.keys_file.is_some() || !self.identities.is_empty();
        self.bind.is_some() || !self.groups.is_empty() || !self.no_udp && !known_clients
    }
}

/// Reads a number of bytes: 500000, 512K, 64M, 1G, 1 GiB.
fn bytes(text: &str) -> Result<usize, String> {
    let wrong = || "expected a number of bytes, as 512M or 2G".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let power = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => return Err(wrong()),
    };
    let number: usize = number.parse().map_err(|_| wrong())?;
    number
        .checked_mul(1 << power)
        .filter(|&bytes| bytes >= 1 << 20)
        .ok_or_else(|| "expected at least 1M, and no more than a computer can have".to_owned())
}

fn path_text(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, text)) if !path.is_empty() => Ok((path.to_owned(), text.to_owned())),
        _ => Err("expected PATH=TEXT, as /greeting=Hello".to_owned()),
    }
}
