//! Arguments of `coapace serve`.

use std::path::PathBuf;

use clap::{ArgAction, ArgGroup, Args};

use super::{ClientKeys, SharedBound, Trust, bound};
use crate::logging::Form;

#[derive(Debug, Args)]
// One certificate serves both transports, and keys may come from both options, so each group allows several arguments.
#[command(group = ArgGroup::new("over_tls").args(["tls", "wss"]).multiple(true))]
#[command(group = ArgGroup::new("shared_keys").args(["identities", "keys_file"]).multiple(true))]
#[allow(clippy::struct_excessive_bools)] // each is a flag
pub(crate) struct Serve {
    /// The address and port for UDP without DTLS (coap://), where clients are not authenticated; port 0 takes any free one
    /// [default: [::]:5683, or 0.0.0.0:5683 without IPv6; none if keys or --ca restrict access, unless --group is given]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) bind: Option<String>,

    /// Do not answer UDP without DTLS
    #[arg(long, conflicts_with_all = ["bind", "groups"])]
    pub(crate) no_udp: bool,

    /// Also answer over TCP (coap+tcp://) at this address and port
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) tcp: Option<String>,

    /// Answer over DTLS (coaps://) at this address and port [default with keys: the address of --bind, one port higher;
    /// [::]:5684 without it]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "shared_keys")]
    pub(crate) dtls: Option<String>,

    /// Also answer requests to a group, over UDP: ADDRESS, ADDRESS%INTERFACE, or all for every All CoAP Nodes address of the
    /// networks of this host (224.0.1.187, ff02::fd, ff05::fd); repeatable. Answers are sent within 5 s
    #[arg(long = "group", value_name = "ADDRESS")]
    pub(crate) groups: Vec<String>,

    #[command(flatten)]
    pub(crate) client_keys: ClientKeys,

    /// Answer over TLS (coaps+tcp://) at this address and port
    #[arg(long, value_name = "ADDRESS:PORT", requires = "cert")]
    pub(crate) tls: Option<String>,

    /// Answer over WebSockets (coap+ws://) at this address and port
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) ws: Option<String>,

    /// Answer over WebSockets and TLS (coaps+ws://) at this address and port
    #[arg(long, value_name = "ADDRESS:PORT", requires = "cert")]
    pub(crate) wss: Option<String>,

    /// The certificate of --tls and --wss, in PEM, followed by its intermediate certificates
    #[arg(long, value_name = "FILE", requires_all = ["private_key", "over_tls"])]
    pub(crate) cert: Option<PathBuf>,

    /// The private key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) private_key: Option<PathBuf>,

    /// Accept only clients with a certificate of these issuers (PEM) over --tls and --wss. coap:// is then served only if
    /// --bind or --group is given
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) ca: Option<PathBuf>,

    /// Serve the files of a directory and its subdirectories, except names that begin with a dot. A file has 8 MiB
    /// at most; /.well-known/core lists 1000 files
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,

    /// Let clients write and remove these files with PUT and DELETE; read-only files stay
    #[arg(long, requires = "directory")]
    pub(crate) writable: bool,

    /// The maximum number of bytes of all files below the directory, and of the files written by one client since the
    /// start; without /CLIENT a quarter of the total. A write beyond it is answered 4.13. A client is an identity, or
    /// without one an IPv4 address or an IPv6 network of 64 bits
    #[arg(long, value_name = "TOTAL[/CLIENT]", default_value = "1G/256M", value_parser = bound::of_bytes, requires = "writable")]
    pub(crate) max_stored: SharedBound,

    /// The maximum number of files below the directory: in total, and written by one client since the start
    #[arg(long, value_name = "TOTAL[/CLIENT]", default_value = "10000/2500", value_parser = bound::of_numbers, requires = "writable")]
    pub(crate) max_files: SharedBound,

    /// The maximum number of PUT and DELETE requests for files in a second: in total, and of one client; as many may come at
    /// once. Every 256 KiB of a file count as one write. A client that is faster is answered 4.29, or 5.03 if all
    /// together are too fast, with the time to wait in Max-Age
    #[arg(long, value_name = "TOTAL[/CLIENT]", default_value = "400/100", value_parser = bound::of_numbers, requires = "writable")]
    pub(crate) max_writes: SharedBound,

    /// A file of write permissions with lines PATH IDENTITY. The identity is one of -u or --keys, the subject of a certificate
    /// (CN=lamp-7), or * for every client with either. It may write PATH and all paths below it. A client without an identity
    /// may then write nothing
    #[arg(long, value_name = "FILE", requires = "writable")]
    pub(crate) rights: Option<PathBuf>,

    /// A resource that answers GET with this text; repeatable
    #[arg(long = "resource", value_name = "PATH=TEXT", value_parser = path_text)]
    pub(crate) resources: Vec<(String, String)>,

    /// Add resources to try things out, as is the default without --resource and --directory
    #[arg(long)]
    pub(crate) demo: bool,

    /// The congestion control of separate responses, as NAME or NAME:parameter=value,… (coapace list mechanisms)
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) cc: String,

    /// Threads, each with its own socket [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// The memory that clients can make the server use, with K, M or G for powers of 1024. It is a limit; nothing is reserved.
    /// An eighth goes to each of: peers and observers (1 KiB for both), messages remembered to recognise duplicates (256 B
    /// each), DTLS sessions (8 KiB each), connections over TCP, TLS and WebSockets (128 KiB each; a limit on open files may
    /// allow fewer), and responses queued on these connections
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bound::memory)]
    pub(crate) memory: usize,

    /// The maximum number of clients over UDP, and as many over DTLS, whose state, such as round-trip times, is
    /// remembered, by all threads together. Observers come in addition [default: 131072 with --memory 1G]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_peers: Option<u32>,

    /// The maximum number of requests that one client over UDP or DTLS may make in a second; faster ones are answered
    /// 4.29 with the time to wait in Max-Age (RFC 8516). A client is an address and a port, or a DTLS session [default:
    /// not limited]
    #[arg(long, value_name = "PER_CLIENT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_rate: Option<u32>,

    #[command(flatten)]
    pub(crate) trust: Trust,

    /// Withhold the answer to a copy of a request while the last answer may still be travelling, for at most two copies in a
    /// row (docs/sluice.md). For clients on a slow link that make one request after the other. Takes 80 B for each of
    /// --max-peers clients
    #[arg(long)]
    pub(crate) sluice: bool,

    /// The maximum number of observers over UDP, and as many over DTLS, for all threads together; also the limit for
    /// each connection over TCP. In each thread 1 slot in 64 is for addresses that are not verified; beyond that a
    /// client is asked for an Echo option (RFC 9175). A client without a slot gets its answer but no notifications, and
    /// is counted [default: 131072 with
    /// --memory 1G]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_observers: Option<u32>,

    /// Serve counters to Prometheus at http://ADDRESS:PORT/metrics; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<String>,

    /// Write the datagrams sent and received as pcapng, for Wireshark; coaps:// stays encrypted
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// Write the server's port as 5683, or 5684 for coaps://, so that Wireshark recognises the protocol
    #[arg(long, requires = "pcap")]
    pub(crate) pcap_as_coap: bool,

    /// Log more to standard error: -v adds each request, up to 1000 a second, and each handshake; -vv observers too
    #[arg(long, short, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// The format of log lines
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
  coapace serve --directory uploads --writable --max-stored 100M/10M -u lamp-7 -k @lamp-7.key

The URIs go to standard output, one per line, the URI of the metrics last. The log goes to standard error.
SIGHUP has the files of keys, certificates and rights read again. See docs/operating.md.";

impl Serve {
    /// Returns whether the server answers over UDP without DTLS: if an option asks for it, and by default unless keys or
    /// issuers restrict access.
    pub(crate) fn plain_udp(&self) -> bool {
        let known_clients = self.ca.is_some() || self.client_keys.are_given();
        // Requests to groups come over UDP without DTLS, so --group asks for it even beside keys.
        self.bind.is_some() || !self.groups.is_empty() || !self.no_udp && !known_clients
    }
}

fn path_text(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, text)) if !path.is_empty() => Ok((path.to_owned(), text.to_owned())),
        _ => Err("expected PATH=TEXT, such as /greeting=Hello".to_owned()),
    }
}
