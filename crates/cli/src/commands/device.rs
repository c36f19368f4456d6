//! Code shared by the commands that talk to devices: the mechanism, the runtime, texts for errors and times.

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
    /// The capture of their datagrams.
    pub(super) capture: Option<Arc<DatagramCapture>>,
    pcap: Option<PathBuf>,
    /// The arguments that tshark needs to decode the capture.
    decode_as: Option<String>,
    quiet: bool,
}

impl ClientSetup {
    /// Reads keys and certificates and opens the capture. Errors here come before the first request. With a proxy, they are about
    /// the proxy.
    pub(super) fn new(
        arguments: &Arguments,
        transmission: &TransmissionArguments,
        uri: &str,
        proxy: Option<&str>,
    ) -> Result<Self, Failure> {
        let uri = proxy.unwrap_or(uri);
        if transmission.pcap.is_some() {
            datagrams("--pcap", uri)?;
        }
        let dtls = match (&transmission.identity, &transmission.key) {
            (Some(identity), Some(key)) => {
                let dtls = Dtls::client(identity.as_str(), keys::key(key)?);
                Some(dtls.handshake_timeout(transmission.timeout.unwrap_or(HANDSHAKE_TIMEOUT)))
            }
            _ => None,
        };
        let own = transmission.cert.as_deref().zip(transmission.private_key.as_deref());
        let trusted = transmission.ca.as_deref();
        let certificates = trusted.map(|trusted| certificates::read(Some(trusted), own)).transpose()?;
        let profile = profile(transmission)?;
        let as_coap = transmission.pcap_as_coap;
        let capture = transmission.pcap.as_deref().map(|path| capture(path, as_coap)).transpose()?;
        let server = uri.parse::<Uri>().ok();
        let server = server.map(|uri| CoapPort { port: uri.port, dtls: uri.scheme == Scheme::Coaps });
        let name_ports = |capture: &Arc<DatagramCapture>| capture.name_ports(server.into_iter().collect());
        let decode_as = capture.as_ref().and_then(name_ports);
        let (pcap, quiet) = (transmission.pcap.clone(), arguments.quiet);
        let proxy = proxy.map(str::to_owned);
        let fails_fast = transmission.fail_fast;
        Ok(Self { profile, fails_fast, dtls, certificates, proxy, capture, pcap, decode_as, quiet })
    }

    /// Returns the builder of a client, without the capture.
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

    /// Returns a client.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        let builder = self.builder()?;
        Ok(match &self.capture {
            Some(capture) => builder.interceptor(capture.clone()).build(),
            None => builder.build(),
        })
    }

    /// Ends the capture and returns the first failure, of the work or of the capture.
    pub(super) fn finish(&self, result: Result<(), Failure>) -> Result<(), Failure> {
        let finished = finish(self.capture.as_deref(), self.pcap.as_deref(), result);
        if let (Ok(()), Some(path), Some(decode_as), false) =
            (&finished, &self.pcap, &self.decode_as, self.quiet)
        {
            tell(&format!("captured; to read it: tshark -r {} {decode_as}", path.display()));
        }
        finished
    }
}

/// The longest wait for a DTLS handshake without `-B`. OpenSSL does not answer a wrong key.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Refuses an argument about datagrams if the URI is for a connection.
pub(super) fn datagrams(flag: &str, uri: &str) -> Result<(), Failure> {
    match uri.parse::<Uri>() {
        Ok(Uri { scheme, .. }) if !matches!(scheme, Scheme::Coap | Scheme::Coaps) => Err(Failure::Usage(
            format!("{uri}: {flag} is about datagrams, and {scheme} has none; coap and coaps have"),
        )),
        // An invalid URI is reported elsewhere.
        _ => Ok(()),
    }
}

/// Opens a capture.
pub(super) fn capture(path: &Path, as_coap: bool) -> Result<Arc<DatagramCapture>, Failure> {
    Ok(Arc::new(DatagramCapture::new(create(path)?, as_coap)))
}

/// Returns the mechanism for bodies of this name; `None` for `none`.
pub(super) fn bulk(name: &str) -> Result<Option<Mechanism>, Failure> {
    if name == "none" { Ok(None) } else { parse_bulk(name).map(Some).map_err(Failure::Usage) }
}

/// Returns the mechanism and the transmission parameters of the arguments.
fn profile(transmission: &TransmissionArguments) -> Result<Profile, Failure> {
    let mut mechanism = parse_mechanism(&transmission.cc).map_err(Failure::Usage)?;
    if let Some(timeout) = &transmission.ack_timeout {
        set_ack_timeout(&mut mechanism, timeout)?;
    }
    let mut profile = Profile { bulk: bulk(&transmission.bulk)?, ..Profile::from(mechanism) };
    let config = &mut profile.config;
    config.nstart = transmission.nstart;
    config.max_retransmit = transmission.max_retransmit.unwrap_or(config.max_retransmit);
    Ok(profile)
}

/// Sets ACK_TIMEOUT; in a mechanism that measures, it is the initial RTO.
fn set_ack_timeout(mechanism: &mut Mechanism, timeout: &str) -> Result<(), Failure> {
    let set = match mechanism.set("ack_timeout", timeout) {
        Err(SetError::UnknownParameter) => mechanism.set("initial_rto", timeout),
        set => set,
    };
    set.map_err(|error| {
        Failure::Usage(match error {
            SetError::BadValue(kind) => format!("--ack-timeout is {kind}, not {timeout:?}"),
            _ => "--ack-timeout means nothing to this mechanism; see coapace list mechanisms".to_owned(),
        })
    })
}

/// Ends a capture and returns the first failure, of the work or of the capture.
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
            written.err().iter().for_each(|written| tell(&format!("coapace: {written}")));
            Err(failure)
        }
    }
}

/// Returns a runtime of one thread.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread().enable_all().build().map_err(no_runtime)
}

pub(super) fn no_runtime(error: io::Error) -> Failure {
    Failure::Io(
        "the system has no room for this: fewer open files or more allowed (ulimit -n) help".to_owned(),
        error,
    )
}

/// Returns the payload that the arguments give.
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
            read.map(|_| bytes).map_err(|error| Failure::Io("standard input".to_owned(), error))
        }
        (None, Some(path)) => read(path),
        (None, None) => Ok(Vec::new()),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::Io(format!("cannot read {}", path.display()), error))
}

/// Adds method, payload and options from the arguments to a request.
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

/// Adds the arguments that every request has.
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
        Error::Uri(_) | Error::Transfer(_) => uri,
        _ => proxy.unwrap_or(uri),
    };
    explain(error, at)
}

/// Explains why a request has no response, and suggests a remedy.
pub(super) fn explain(error: &Error, uri: &str) -> Failure {
    let told = match error {
        Error::Uri(bad) => {
            return Failure::Usage(format!("bad URI {uri:?}: {bad}; as in coap://[::1]:5683/path"));
        }
        Error::Zone(bad) => return Failure::Usage(format!("{uri}: {bad}")),
        Error::Group(_) => {
            return Failure::Usage(format!(
                "{uri}: a group takes non-confirmable requests, such as get and put; ask one member here"
            ));
        }
        Error::Scheme(scheme) => {
            return Failure::Usage(format!("{uri}: {scheme} has no groups; only coap has"));
        }
        Error::TooLarge { bytes } => {
            format!("{uri}: {bytes} bytes of options and payload do not fit into a message; fewer options do")
        }
        Error::NotFound { host, error } => format!("{uri}: {host} not found ({error}); check the name"),
        Error::TimedOut => format!("{uri}: no response in time; -B waits longer"),
        Error::Session(Refused::NoKeys) => {
            return Failure::Usage(format!("{uri}: DTLS takes keys; give -u IDENTITY and -k KEY"));
        }
        Error::Session(Refused::TimedOut) => {
            format!(
                "{uri}: {error}; check address and port, and the key, for some servers keep silent about a wrong one"
            )
        }
        Error::Session(Refused::Alert(20 | 51 | 115)) => format!("{uri}: {error}; check -u and -k"),
        Error::Unreachable(io::ErrorKind::ConnectionRefused)
        | Error::Connection(io::ErrorKind::ConnectionRefused)
        | Error::Session(Refused::Unreachable(io::ErrorKind::ConnectionRefused)) => {
            format!("{uri}: nobody listens there; check the port, and whether the server runs")
        }
        Error::Tls(error) => return explain_tls(error, uri),
        Error::Unreachable(kind) => format!("{uri}: {kind}; check address and network"),
        Error::Protocol(_) => format!("{uri}: {error}; check the port, and which protocol it speaks"),
        Error::BadOption(number) => format!(
            "{uri}: the response has the option {}, which must be understood and is not",
            option_name(*number)
        ),
        Error::Transfer(TransferError::Option(bad @ BadOption::BesideProxyUri { .. })) => {
            return Failure::Usage(format!("{uri}: {bad}; --proxy URI asks a proxy for the resource"));
        }
        Error::Transfer(TransferError::Option(bad)) => return Failure::Usage(format!("{uri}: {bad}")),
        Error::Transfer(TransferError::Changed) => {
            format!("{uri}: {error}; ask again, or with larger blocks (-b)")
        }
        _ => format!("{uri}: {error}"),
    };
    Failure::Network(told)
}

/// Explains why TLS with a server failed, and suggests what to do.
fn explain_tls(error: &TlsError, uri: &str) -> Failure {
    let help = match error {
        TlsError::NoRoots => {
            return Failure::Usage(format!(
                "{uri}: TLS takes certificates to trust; give --ca FILE with the certificate of the server's issuer"
            ));
        }
        TlsError::UnknownIssuer => "check --ca",
        TlsError::NotValidFor(_) => "use a name that it covers",
        TlsError::Expired | TlsError::NotYetValid => {
            "the server needs another certificate, or this host's clock is wrong"
        }
        TlsError::Refused(_) => "check the port, --cert and --private-key",
        _ => "check the port, and which protocol it speaks",
    };
    Failure::Network(format!("{uri}: {error}; {help}"))
}

/// Returns a rate in kB/s.
pub(super) fn kilobytes_a_second(bytes: u64, time: Duration) -> f64 {
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

/// Opens a file for writing. This comes before the work, so that an error costs no time.
fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    File::create(path).map(BufWriter::new).map_err(|error| Failure::cannot_write(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_that_count() {
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
