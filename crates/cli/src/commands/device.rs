//! Code shared by the commands that talk to devices: mechanism, runtime, and texts for errors and times.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use coapace_control::SetError;
use coapace_net::uri::Scheme;
use coapace_net::{
    BadOption, Call, Client, ClientBuilder, Error, Mechanism, Profile, Refused, TlsError, TransferError, Uri,
};
use coapace_scenario::naming::{parse_bulk, parse_mechanism};
use tokio::runtime::{Builder, Runtime};

use crate::arguments::{Arguments, RequestContent, RequestOptions, TransmissionArguments};
use crate::capture::{CoapPort, DatagramCapture};
use crate::message::option_name;
#[cfg(not(feature = "tls"))]
use crate::secure::SecureClient;
use crate::secure::{BadCertificate, Certificates, Dtls};
pub(super) use crate::shown::tell;
use crate::{Failure, certificates, keys};

/// The settings that all clients of a command share.
pub(super) struct ClientSetup {
    pub(super) profile: Profile,
    fails_fast: bool,
    dtls: Option<Dtls>,
    certificates: Option<Certificates>,
    proxy: Option<String>,
    /// The capture of the clients' datagrams.
    pub(super) capture: Option<Arc<DatagramCapture>>,
    pcap: Option<PathBuf>,
    /// The arguments that tshark needs to decode the capture.
    decode_as: Option<String>,
    quiet: bool,
}

impl ClientSetup {
    /// Reads keys and certificates and opens the capture, so that errors come before the first request. With a proxy,
    /// the capture shows the datagrams between the clients and the proxy.
    pub(super) fn new(
        arguments: &Arguments,
        transmission: &TransmissionArguments,
        uri: &str,
        proxy: Option<&str>,
    ) -> Result<Self, Failure> {
        // Datagrams, keys and certificates concern the next hop, which is the proxy.
        let uri = proxy.unwrap_or(uri);
        if transmission.pcap.is_some() {
            datagrams("--pcap", uri)?;
        }
        // The arguments require each other, so only both or none come here.
        let dtls = match (&transmission.identity, &transmission.key) {
            (Some(identity), Some(key)) => {
                let dtls = Dtls::client(identity.as_str(), keys::key(key)?);
                Some(dtls.handshake_timeout(transmission.timeout.unwrap_or(HANDSHAKE_TIMEOUT)))
            }
            _ => None,
        };
        let own = transmission.cert.as_deref().zip(transmission.private_key.as_deref());
        let trusted = transmission.ca.as_deref();
        // --cert requires --ca, so without trusted certificates there is none of our own.
        let certificates = trusted.map(|trusted| certificates::read(Some(trusted), own)).transpose()?;
        let profile = profile(transmission)?;
        // Keys and certificates are read before the capture is created, so that a mistake leaves no empty file.
        let as_coap = transmission.pcap_as_coap;
        let capture = transmission.pcap.as_deref().map(|path| capture(path, as_coap)).transpose()?;
        // An invalid URI is reported with the first request.
        let server = uri.parse::<Uri>().ok();
        let server = server.map(|uri| CoapPort { port: uri.port, dtls: uri.scheme == Scheme::Coaps });
        let name_ports = |capture: &Arc<DatagramCapture>| capture.name_ports(server.into_iter().collect());
        let decode_as = capture.as_ref().and_then(name_ports);
        let (pcap, quiet) = (transmission.pcap.clone(), arguments.quiet);
        let proxy = proxy.map(str::to_owned);
        let fails_fast = transmission.fail_fast;
        Ok(Self { profile, fails_fast, dtls, certificates, proxy, capture, pcap, decode_as, quiet })
    }

    /// Returns a builder of clients with these settings, but without the capture.
    pub(super) fn builder(&self) -> Result<ClientBuilder, Failure> {
        let mut builder = Client::builder()
            .mechanism(self.profile.mechanism)
            .bulk(self.profile.bulk)
            .config(self.profile.config);
        if self.fails_fast {
            builder = builder.fail_fast();
        }
        if let Some(dtls) = &self.dtls {
            builder = builder.dtls(dtls.clone());
        }
        if let Some(proxy) = &self.proxy {
            let bad = |bad| Failure::Usage(format!("--proxy {proxy}: {bad}"));
            builder = builder.proxy(proxy).map_err(bad)?;
        }
        let Some(certificates) = &self.certificates else { return Ok(builder) };
        builder.certificates(certificates).map_err(|bad: BadCertificate| Failure::Input(bad.to_string()))
    }

    /// Returns a client with these settings, whose datagrams are captured if a capture was asked for.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        let builder = self.builder()?;
        Ok(match &self.capture {
            Some(capture) => builder.interceptor(capture.clone()).build(),
            None => builder.build(),
        })
    }

    /// Ends the capture and returns the first failure, of the command or of the capture. After a success, prints the
    /// tshark command if tshark needs arguments to decode the capture.
    pub(super) fn finish(&self, result: Result<(), Failure>) -> Result<(), Failure> {
        let finished = finish(self.capture.as_deref(), self.pcap.as_deref(), result);
        // The remark would hide the reason of a failure, so it follows only success.
        if let (Ok(()), Some(path), Some(decode_as), false) =
            (&finished, &self.pcap, &self.decode_as, self.quiet)
        {
            tell(&format!(
                "the packets are captured; to read them: tshark -r {} {decode_as}",
                path.display()
            ));
        }
        finished
    }
}

/// The longest wait for a DTLS handshake if `-B` is not given. With a wrong key the handshake would never end, because
/// OpenSSL servers do not answer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Refuses the option `flag`, which is about datagrams, if the scheme of `uri` uses connections, such as coap+tcp.
pub(super) fn datagrams(flag: &str, uri: &str) -> Result<(), Failure> {
    match uri.parse::<Uri>() {
        Ok(Uri { scheme, .. }) if !matches!(scheme, Scheme::Coap | Scheme::Coaps) => Err(Failure::Usage(
            format!("{uri}: {flag} needs datagrams, and {scheme} runs over TCP; use coap or coaps"),
        )),
        // An invalid URI is reported elsewhere.
        _ => Ok(()),
    }
}

/// Opens a capture.
pub(super) fn capture(path: &Path, as_coap: bool) -> Result<Arc<DatagramCapture>, Failure> {
    Ok(Arc::new(DatagramCapture::new(create(path)?, as_coap)))
}

/// Returns the bulk mechanism of this name; `None` for `none`.
pub(super) fn bulk(name: &str) -> Result<Option<Mechanism>, Failure> {
    if name == "none" { Ok(None) } else { parse_bulk(name).map(Some).map_err(Failure::Usage) }
}

/// Returns the mechanism and the transmission parameters given by the arguments.
fn profile(transmission: &TransmissionArguments) -> Result<Profile, Failure> {
    let mut mechanism = parse_mechanism(&transmission.cc).map_err(Failure::Usage)?;
    if let Some(timeout) = &transmission.ack_timeout {
        set_ack_timeout(&mut mechanism, timeout)?;
    }
    let mut profile = Profile { bulk: bulk(&transmission.bulk)?, ..Profile::from(mechanism) };
    let config = &mut profile.config;
    // `None` leaves NSTART to the mechanism (RFC 7252 §4.7).
    config.nstart = transmission.nstart;
    config.max_retransmit = transmission.max_retransmit.unwrap_or(config.max_retransmit);
    Ok(profile)
}

/// Sets ACK_TIMEOUT; in a mechanism that measures round-trip times, it is the initial RTO.
fn set_ack_timeout(mechanism: &mut Mechanism, timeout: &str) -> Result<(), Failure> {
    let set = match mechanism.set("ack_timeout", timeout) {
        // Mechanisms that measure round trips have `initial_rto` in place of `ack_timeout`.
        Err(SetError::UnknownParameter) => mechanism.set("initial_rto", timeout),
        set => set,
    };
    set.map_err(|error| {
        Failure::Usage(match error {
            SetError::BadValue(kind) => format!("--ack-timeout is {kind}, not {timeout:?}"),
            _ => "this mechanism has no parameter for --ack-timeout; see coapace list mechanisms".to_owned(),
        })
    })
}

/// Ends a capture and returns the first failure, of the command or of the capture.
pub(super) fn finish(
    capture: Option<&DatagramCapture>,
    pcap: Option<&Path>,
    result: Result<(), Failure>,
) -> Result<(), Failure> {
    let (Some(capture), Some(path)) = (capture, pcap) else { return result };
    let written = capture.finish().map_err(|error| Failure::cannot_write(path, error));
    match (result, written) {
        (Ok(()), written) => written,
        (Err(failure), written) => {
            // A command has one failure. The capture's is printed, so that neither is lost.
            written.err().iter().for_each(|written| tell(&format!("coapace: {written}")));
            Err(failure)
        }
    }
}

/// Returns a runtime of one thread.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    // One client needs no second thread.
    Builder::new_current_thread().enable_all().build().map_err(no_runtime)
}

pub(super) fn no_runtime(error: io::Error) -> Failure {
    Failure::Io("too many open files: close some, or allow more (ulimit -n)".to_owned(), error)
}

/// Returns the payload given by the arguments.
pub(super) fn payload(content: &RequestContent) -> Result<Vec<u8>, Failure> {
    if let Some(encoded) = &content.encoded {
        return Ok(encoded.0.clone());
    }
    match (&content.payload, &content.file) {
        (Some(text), _) => match text.strip_prefix('@') {
            Some(path) => read(Path::new(path)),
            None => Ok(text.clone().into_bytes()),
        },
        (None, Some(path)) if path == Path::new("-") => {
            let mut bytes = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut bytes);
            read.map(|_| bytes).map_err(|error| Failure::Io("cannot read standard input".to_owned(), error))
        }
        (None, Some(path)) => read(path),
        (None, None) => Ok(Vec::new()),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::Io(format!("cannot read {}", path.display()), error))
}

/// Adds the payload, its Content-Format and the options of the arguments to a call.
pub(super) fn prepare(
    mut call: Call,
    content: &RequestContent,
    payload: &[u8],
    transmission: &TransmissionArguments,
) -> Call {
    call = call.payload(payload.to_vec());
    if let Some(format) = content.format {
        call = call.content_format(format);
    }
    on_terms(call, &content.terms, transmission)
}

/// Adds to a call the arguments that all request commands share: Accept, options, message type, block size and timeout.
pub(super) fn on_terms(mut call: Call, terms: &RequestOptions, transmission: &TransmissionArguments) -> Call {
    if let Some(format) = terms.accept {
        call = call.accept(format);
    }
    for (number, value) in &terms.options {
        call = call.option(*number, &value.0);
    }
    if terms.non {
        call = call.non_confirmable();
    }
    if let Some(bytes) = terms.block_size {
        call = call.block_size(bytes);
    }
    if transmission.no_q_block {
        call = call.no_q_block();
    }
    match transmission.timeout {
        Some(timeout) => call.timeout(timeout),
        None => call,
    }
}

/// Explains why a resource or its proxy gave no response.
pub(super) fn explain_with(error: &Error, uri: &str, proxy: Option<&str>) -> Failure {
    let at = match error {
        // These are faults of the request. All others concern the host that was asked: the proxy, if there is one.
        Error::Uri(_) | Error::Transfer(_) => uri,
        _ => proxy.unwrap_or(uri),
    };
    explain(error, at)
}

/// Explains why a request has no response, and suggests a remedy.
pub(super) fn explain(error: &Error, uri: &str) -> Failure {
    let message = match error {
        Error::Uri(bad) => {
            return Failure::Usage(format!("bad URI {uri:?}: {bad}; as in coap://[::1]:5683/path"));
        }
        Error::Zone(bad) => return Failure::Usage(format!("{uri}: {bad}")),
        Error::Group(_) => {
            return Failure::Usage(format!(
                "{uri}: a group accepts only non-confirmable requests, such as get and put; here, name one member's address"
            ));
        }
        Error::Scheme(scheme) => {
            return Failure::Usage(format!("{uri}: {scheme} has no groups; only coap has"));
        }
        Error::TooLarge { bytes } => {
            format!(
                "{uri}: {bytes} bytes of options and payload do not fit into a message; use fewer options"
            )
        }
        Error::NotFound { host, error } => format!("{uri}: {host} not found ({error}); check the name"),
        Error::TimedOut => format!("{uri}: no response in time; -B waits longer"),
        // Missing arguments are wrong usage, and not a fault of the network.
        Error::Session(Refused::NoKeys) => {
            return Failure::Usage(format!("{uri}: DTLS needs a key; give -u IDENTITY and -k KEY"));
        }
        Error::Session(Refused::TimedOut) => {
            format!(
                "{uri}: {error}; check address, port and key: some servers do not answer a client with a wrong key"
            )
        }
        // bad_record_mac, decrypt_error and unknown_psk_identity (RFC 5246 §7.2, RFC 4279 §6): the keys differ.
        Error::Session(Refused::Alert(20 | 51 | 115)) => format!("{uri}: {error}; check -u and -k"),
        // ICMP port unreachable, a refused connection of TCP, and the former during a DTLS handshake.
        Error::Unreachable(io::ErrorKind::ConnectionRefused)
        | Error::Connection(io::ErrorKind::ConnectionRefused)
        | Error::Session(Refused::Unreachable(io::ErrorKind::ConnectionRefused)) => {
            format!("{uri}: nobody listens there; check the port, and whether the server runs")
        }
        Error::Tls(error) => return explain_tls(error, uri),
        Error::Unreachable(kind) => format!("{uri}: {kind}; check address and network"),
        Error::Protocol(_) => {
            format!("{uri}: {error}; check the port, and which protocol the server speaks there")
        }
        Error::BadOption(number) => format!(
            "{uri}: the response has the option {}, which is critical, and this client does not know it",
            option_name(*number)
        ),
        Error::Transfer(TransferError::Option(bad @ BadOption::BesideProxyUri { .. })) => {
            return Failure::Usage(format!("{uri}: {bad}; --proxy URI asks a proxy for the resource"));
        }
        Error::Transfer(TransferError::Option(bad)) => return Failure::Usage(format!("{uri}: {bad}")),
        // With fewer blocks the transfer may end before the resource changes again.
        Error::Transfer(TransferError::Changed) => {
            format!("{uri}: {error}; repeat the request, or use larger blocks (-b)")
        }
        _ => format!("{uri}: {error}"),
    };
    Failure::Network(message)
}

/// Explains why TLS with a server failed, and suggests what to do.
fn explain_tls(error: &TlsError, uri: &str) -> Failure {
    let help = match error {
        TlsError::NoRoots => {
            return Failure::Usage(format!(
                "{uri}: TLS needs a certificate to trust; give --ca FILE with the certificate of the server's issuer"
            ));
        }
        TlsError::UnknownIssuer => "check --ca",
        TlsError::NotValidFor(_) => "use a name that it covers",
        TlsError::Expired | TlsError::NotYetValid => {
            "the server needs another certificate, or this host's clock is wrong"
        }
        TlsError::Refused(_) => "check the port, --cert and --private-key",
        _ => "check the port, and which protocol the server speaks there",
    };
    Failure::Network(format!("{uri}: {error}; {help}"))
}

/// Returns a rate in kB/s.
pub(super) fn kilobytes_a_second(bytes: u64, time: Duration) -> f64 {
    // A duration of 0 must not give an infinite rate.
    bytes as f64 / 1e3 / time.as_secs_f64().max(1e-9)
}

/// Formats a time with three significant digits.
pub(super) fn short(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    let (value, unit) = match us {
        ..1e3 => (us, "µs"),
        1e3..1e6 => (us / 1e3, "ms"),
        _ => (us / 1e6, "s"),
    };
    let places = match value {
        ..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{value:.places$} {unit}")
}

/// Opens a file for writing. This happens before requests and runs, so that an error costs no time.
fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    File::create(path).map(BufWriter::new).map_err(|error| Failure::cannot_write(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_with_three_significant_digits() {
        let texts =
            [0, 1_234, 12_345, 123_456, 1_234_567, 93_000_000].map(|us| short(Duration::from_micros(us)));
        assert_eq!(texts, ["0.00 µs", "1.23 ms", "12.3 ms", "123 ms", "1.23 s", "93.0 s"]);
    }

    #[test]
    fn the_ack_timeout_is_the_first_timeout_of_every_mechanism() {
        for entry in coapace_control::REGISTRY {
            let mut mechanism = entry.mechanism;
            set_ack_timeout(&mut mechanism, "7s").expect(entry.name);
            assert!(mechanism != entry.mechanism, "{}", entry.name);
        }
    }
}
