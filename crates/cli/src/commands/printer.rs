//! Output for responses.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use coapace_net::{Client, Destination, Error, Response, Uri};
use serde_json::{Map, Value, json};

use super::device::{explain_with, kilobytes_a_second, short, tell};
use crate::Failure;
use crate::arguments::{Show, TransmissionArguments};
use crate::message::{hex, option_name, option_value, response_json};
use crate::readable::readable;
use crate::replacement::FileReplacement;
use crate::shown::shown;

/// Prints responses.
pub(super) struct Printer<'a> {
    uri: &'a str,
    proxy: Option<&'a str>,
    /// The arguments with the names of the mechanisms.
    transmission: &'a TransmissionArguments,
    show: &'a Show,
    /// Whether there may be several responses. Each then starts a line, and the estimates of the mechanism follow at the end.
    several: bool,
    out: Output,
    /// Whether the payload goes to a terminal.
    terminal: bool,
}

/// Where the payload is written.
enum Output {
    Standard(io::Stdout),
    /// A file. Its old content is replaced when the first success arrives.
    File(FileReplacement),
}

impl<'a> Printer<'a> {
    /// Checks before any request that the output file, if any, can be written. The file stays unchanged until a response is a
    /// success.
    pub(super) fn open(
        uri: &'a str,
        proxy: Option<&'a str>,
        transmission: &'a TransmissionArguments,
        show: &'a Show,
        several: bool,
    ) -> Result<Self, Failure> {
        let out = match &show.output {
            // An unwritable file is reported before the request, which may change something on the server.
            Some(path) => {
                Output::File(FileReplacement::open(path).map_err(|error| Failure::cannot_write(path, error))?)
            }
            None => Output::Standard(io::stdout()),
        };
        let terminal = show.output.is_none() && io::stdout().is_terminal();
        Ok(Self { uri, proxy, transmission, show, several, out, terminal })
    }

    /// Prints a response, or the reason why there is none. Returns the failure if the response is an error or missing.
    pub(super) fn print(
        &mut self,
        client: &Client,
        result: &Result<Response, Error>,
    ) -> Result<Option<Failure>, Failure> {
        // The failure is returned and not printed, because the caller knows whether another request follows.
        let failure = match result {
            Ok(response) => refusal(response),
            Err(error) => Some(explain_with(error, self.uri, self.proxy)),
        };
        if self.show.json {
            let mut object = match result {
                Ok(response) => response_json(self.uri, response),
                Err(error) => failure_json(self.uri, error),
            };
            // The estimates are read after the response, so they contain its round trip.
            object.insert("destinations".into(), destinations_json(client, self.transmission));
            self.line(&Value::Object(object).to_string())?;
        }
        if let Ok(response) = result {
            if self.show.verbose > 0 {
                tell(&response.code.to_string());
                for (number, value) in response.options.iter() {
                    tell(&format!("{}: {}", option_name(number), option_value(number, value)));
                }
            }
            if self.show.stats {
                tell(&exchange_line(response));
            }
            // A diagnostic payload is part of the failure.
            if !self.show.json && !is_diagnostic(response) {
                self.payload(response)?;
            }
            // An error response must not replace a good file.
            if let Output::File(file) = &mut self.out
                && response.is_success()
            {
                file.replace().map_err(|error| unwritten(self.show, error))?;
            }
        }
        if self.show.stats && !self.several {
            destination_lines(client, self.transmission);
        }
        Ok(failure)
    }

    /// Prints the answer of a group member in a line: address, code, and payload, which follows on separate lines if it has
    /// several. A failure is printed only in JSON.
    pub(super) fn member(&mut self, member: &Uri, result: &Result<Response, Error>) -> Result<(), Failure> {
        let uri = member.to_string();
        if self.show.json {
            let object = match result {
                Ok(response) => response_json(&uri, response),
                Err(error) => failure_json(&uri, error),
            };
            return self.line(&Value::Object(object).to_string());
        }
        // The caller prints failures of members.
        let Ok(response) = result else { return Ok(()) };
        if self.show.verbose > 0 {
            for (number, value) in response.options.iter() {
                tell(&format!("{uri}: {}: {}", option_name(number), option_value(number, value)));
            }
        }
        if self.show.stats {
            tell(&format!("{uri}: {} after {}", response.code, short(response.elapsed)));
        }
        // Programs that read a pipe get the payload as it was sent.
        let readable = if self.terminal { readable(response.format(), &response.payload) } else { None };
        let text = || {
            let text = std::str::from_utf8(&response.payload);
            text.map_or_else(|_| hex(&response.payload), |text| text.trim_end_matches('\n').to_owned())
        };
        let text = readable.unwrap_or_else(text);
        // A payload of several lines begins on a line of its own, so that its lines stay aligned.
        let before = if text.contains('\n') { "\n" } else { " " };
        let code = response.code.dotted();
        self.line(format!("{} {code}{before}{text}", member.place()).trim_end())
    }

    /// Prints a payload unchanged. On a terminal JSON is indented, CBOR is in diagnostic notation, other binary
    /// data in hexadecimal digits, and every payload ends with a line break.
    fn payload(&mut self, response: &Response) -> Result<(), Failure> {
        let text = std::str::from_utf8(&response.payload).ok();
        if self.terminal {
            let readable = readable(response.format(), &response.payload);
            let text = readable.unwrap_or_else(|| text.map_or_else(|| hex(&response.payload), str::to_owned));
            return if text.is_empty() {
                Ok(())
            } else {
                self.line(text.strip_suffix('\n').unwrap_or(&text))
            };
        }
        match text {
            // Only text gets a line break: binary payloads must stay what the server sent.
            Some(text) if self.several && !text.is_empty() && !text.ends_with('\n') => self.line(text),
            _ => self.write(&response.payload),
        }
    }

    pub(super) fn line(&mut self, text: &str) -> Result<(), Failure> {
        // A payload must not control the terminal of its reader.
        let text = if self.terminal { shown(text) } else { text.into() };
        self.write(format!("{text}\n").as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let out: &mut dyn Write = match &mut self.out {
            Output::Standard(out) => out,
            Output::File(file) => file,
        };
        // Flushed at once: the reader of a pipe sees each notification when it arrives.
        let written = out.write_all(bytes).and_then(|()| out.flush());
        written.map_err(|error| unwritten(self.show, error))
    }
}

fn unwritten(show: &Show, error: io::Error) -> Failure {
    match &show.output {
        Some(path) => Failure::cannot_write(path, error),
        None => error.into(),
    }
}

/// Returns the failure of a response other than 2.xx, with the server's diagnostic payload; `None` for 2.xx.
pub(super) fn refusal(response: &Response) -> Option<Failure> {
    if response.is_success() {
        return None;
    }
    let words = if is_diagnostic(response) { response.text() } else { "".into() };
    // A diagnostic payload of several lines would break the one line of a failure.
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let code = response.code;
    Some(Failure::Refused(if words.is_empty() { code.to_string() } else { format!("{code}: {words}") }))
}

/// Returns whether the payload is a diagnostic text: the payload of an error response without Content-Format (RFC 7252 §5.5.2).
fn is_diagnostic(response: &Response) -> bool {
    !response.is_success() && response.format().is_none() && std::str::from_utf8(&response.payload).is_ok()
}

fn exchange_line(response: &Response) -> String {
    let times = if response.transmissions == 1 { "transmission" } else { "transmissions" };
    format!("{} after {}, {} {times}", response.code, short(response.elapsed), response.transmissions)
}

/// Prints the estimates of the mechanism for each destination.
pub(super) fn destination_lines(client: &Client, transmission: &TransmissionArguments) {
    let TransmissionArguments { cc, bulk, .. } = transmission;
    for (_, known) in client.destinations() {
        let Destination { address, rto, srtt, rttvar, exchanges, failed, retransmissions, .. } = known;
        let (measured, varied) = (estimate("SRTT", srtt), estimate("RTTVAR", rttvar));
        tell(&format!(
            "{address}: {cc}, RTO {}{measured}{varied}; {exchanges} exchanges, {failed} failed, \
             {retransmissions} retransmissions",
            short(rto),
        ));
        if let Some(window) = known.window {
            tell(&format!("{address}: {bulk}, window {window}{}", estimate("SRTT", known.bulk_srtt)));
        }
    }
}

/// Returns the text of an estimate within a line; empty without an estimate.
fn estimate(name: &str, time: Option<Duration>) -> String {
    time.map_or(String::new(), |time| format!(", {name} {}", short(time)))
}

/// Prints how a payload of `sent` bytes and its response were transferred, if several exchanges were needed.
pub(super) fn transfer_line(client: &Client, sent: usize, response: &Response) {
    let counters = client.stats().endpoint;
    if counters.started < 2 {
        return;
    }
    let bytes = sent + response.payload.len();
    let rate = kilobytes_a_second(bytes as u64, response.elapsed);
    tell(&format!(
        "{bytes} bytes at {rate:.1} kB/s: {} exchanges, {} retransmissions, {} of them spurious",
        counters.started,
        counters.retransmissions,
        // The network may duplicate a reply, so there may be more late replies than retransmissions.
        counters.late_replies.min(counters.retransmissions),
    ));
}

fn destinations_json(client: &Client, transmission: &TransmissionArguments) -> Value {
    let TransmissionArguments { cc, bulk, .. } = transmission;
    let ms = |time: Duration| time.as_micros() as f64 / 1e3;
    let each = client.destinations().into_iter().map(|(_, known)| {
        json!({
            "address": known.address.to_string(), "cc": cc, "rto_ms": ms(known.rto),
            "srtt_ms": known.srtt.map(ms), "rttvar_ms": known.rttvar.map(ms), "exchanges": known.exchanges,
            "failed": known.failed, "retransmissions": known.retransmissions,
            "bulk": known.window.map(|_| bulk), "window": known.window, "bulk_srtt_ms": known.bulk_srtt.map(ms),
        })
    });
    each.collect()
}

fn failure_json(uri: &str, error: &Error) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("uri".into(), uri.into());
    object.insert("error".into(), error.to_string().into());
    object
}
