//! Arguments of `coapace serve`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("over_tls").args(["tls", "wss"]).multiple(true))]
pub(crate) struct Serve {
    /// The address and port to answer at; port 0 is any that is free [default: [::]:5683, or 0.0.0.0:5683 without IPv6]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) bind: Option<String>,

    /// Answer over TCP as well (coap+tcp://), at this address and port
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) tcp: Option<String>,

    /// Answer over DTLS (coaps://) at this address and port [default with keys: that of --bind, one port higher]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "identities")]
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

    /// Let nobody in over --tls and --wss but clients with a certificate of these issuers, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) ca: Option<PathBuf>,

    /// Serve the files of a directory and those below it, but for names that begin with a dot; a file has 8 MiB at most,
    /// and 1000 of them are in /.well-known/core
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,

    /// Let whoever reaches the server write and remove these files, with PUT and DELETE
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

    /// Tell Prometheus at http://ADDRESS:PORT/metrics what was counted; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<String>,

    /// Write the datagrams that come and go as pcapng, for Wireshark; those of coaps:// as they are sealed
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
}

pub(super) const EXAMPLES_SERVE: &str = "Examples:
  coapace serve
  coapace serve --bind 127.0.0.1:0 --resource /greeting=Hello --demo
  coapace serve --tcp '[::]:5683' -u lamp-7 -k @lamp-7.key -u lamp-8 -k 0xcafe42
  coapace serve --tls '[::]:5684' --ws '[::]:8080' --cert server.pem --private-key server.key
  coapace serve --group all
  coapace serve --directory firmware
  coapace serve --metrics 127.0.0.1:9683
  coapace serve --directory uploads --writable

It prints its URIs to standard output, one a line, that of the metrics last, and with Ctrl-C a line for each server on
what it did to standard error.";

fn path_text(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, text)) if !path.is_empty() => Ok((path.to_owned(), text.to_owned())),
        _ => Err("expected PATH=TEXT, as /greeting=Hello".to_owned()),
    }
}
