//! `coapace get`, `put`, `post`, `delete`, `fetch`, `patch` and `ipatch`.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use coapace_net::{Client, Code, Destination, Error, Response};
use serde_json::{Map, Value, json};

use super::device::{client, explain, finish, payload, prepare, profile, runtime, short, tell};
use super::output::remark;
use crate::Failure;
use crate::arguments::{Arguments, Request};
use crate::latencies::Latencies;
use crate::message::{code_text, hex, option_name, option_value, response_json};

pub(crate) fn request(arguments: &Arguments, method: u8, request: &Request) -> Result<(), Failure> {
    let profile = profile(&request.transmission)?;
    let payload = payload(&request.content)?;
    // Opened first: what cannot be written is known before anything is asked.
    let out: Box<dyn Write> = match &request.output {
        Some(path) => Box::new(
            File::create(path)
                .map_err(|error| Failure::Io(format!("cannot write {}", path.display()), error))?,
        ),
        None => Box::new(io::stdout()),
    };
    let terminal = request.output.is_none() && io::stdout().is_terminal();
    let mut printer = Printer { request, out, terminal };
    let pcap = request.pcap.as_deref();
    let (client, capture) = client(profile, pcap)?;
    let result = runtime()?.block_on(async {
        let mut sum = Sum::default();
        for _ in 0..request.repeat.unwrap_or(1) {
            let call = client.request(Code(method), &request.uri);
            let begun = std::time::Instant::now();
            let result = prepare(call, &request.content, &payload, &request.transmission).await;
            sum.add(&result, begun.elapsed());
            let failure = printer.print(&client, &result)?;
            if request.repeat.is_none() {
                return failure.map_or(Ok(()), Err);
            }
            match failure {
                // It will not be any better the next time.
                Some(usage @ Failure::Usage(_)) => return Err(usage),
                Some(failure) => {
                    tell(&format!("coapace: {failure}"));
                    sum.keep(failure);
                }
                None => {}
            }
        }
        printer.sum_up(arguments, &client, &sum)
    });
    finish(capture, pcap, result)
}

/// What became of requests that were made one after the other.
#[derive(Default)]
struct Sum {
    made: u64,
    latencies: Latencies,
    elapsed: Duration,
    worst: Option<Failure>,
}

impl Sum {
    fn add(&mut self, result: &Result<Response, Error>, elapsed: Duration) {
        self.made += 1;
        self.elapsed += elapsed;
        if let Ok(response) = result {
            self.latencies.add(response.elapsed);
        }
    }

    /// No answer is worse than one that refuses.
    fn keep(&mut self, failure: Failure) {
        if self.worst.is_none() || matches!(failure, Failure::Network(_)) {
            self.worst = Some(failure);
        }
    }
}

/// Prints what comes back.
struct Printer<'a> {
    request: &'a Request,
    out: Box<dyn Write>,
    /// Whether a person reads the payload.
    terminal: bool,
}

impl Printer<'_> {
    /// Prints a response, or why there is none. Returns what is wrong with it.
    fn print(
        &mut self,
        client: &Client,
        result: &Result<Response, Error>,
    ) -> Result<Option<Failure>, Failure> {
        let failure = match result {
            Ok(response) => refusal(response),
            Err(error) => Some(explain(error, &self.request.uri)),
        };
        if self.request.json {
            let mut object = match result {
                Ok(response) => response_json(&self.request.uri, response),
                Err(error) => failure_json(&self.request.uri, error),
            };
            object.insert("destinations".into(), destinations_json(client, &self.request.transmission.cc));
            self.line(&Value::Object(object).to_string())?;
        }
        if let Ok(response) = result {
            if self.request.verbose {
                tell(&code_text(response.code));
                for (number, value) in response.options.iter() {
                    tell(&format!("{}: {}", option_name(number), option_value(number, value)));
                }
            }
            if self.request.stats {
                tell(&exchange_line(response));
            }
            if !self.request.json && !is_diagnostic(response) {
                self.payload(response)?;
            }
        }
        if self.request.stats && self.request.repeat.is_none() {
            destination_lines(client, &self.request.transmission.cc);
        }
        Ok(failure)
    }

    /// The payload as it is; for a person what is no text as hexadecimal digits, and each on lines of its own.
    fn payload(&mut self, response: &Response) -> Result<(), Failure> {
        let is_text = std::str::from_utf8(&response.payload).is_ok();
        if self.terminal && !is_text {
            return self.line(&hex(&response.payload));
        }
        let line = self.terminal || self.request.repeat.is_some();
        if line && is_text && !response.payload.is_empty() && !response.payload.ends_with(b"\n") {
            return self.line(&response.text());
        }
        self.write(&response.payload)
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.write(format!("{text}\n").as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        written.map_err(|error| match &self.request.output {
            Some(path) => Failure::Io(format!("cannot write {}", path.display()), error),
            None => error.into(),
        })
    }

    fn sum_up(mut self, arguments: &Arguments, client: &Client, sum: &Sum) -> Result<(), Failure> {
        let answered = sum.latencies.len();
        let retransmissions = client.stats().endpoint.retransmissions;
        let [median, p95] = [0.5, 0.95].map(|share| sum.latencies.quantile(share));
        if self.request.json {
            let ms = |time: Duration| time.as_micros() as f64 / 1e3;
            let summary = json!({
                "requests": sum.made, "answered": answered, "retransmissions": retransmissions,
                "elapsed_ms": ms(sum.elapsed), "median_ms": ms(median), "p95_ms": ms(p95),
                "longest_ms": ms(sum.latencies.longest()),
            });
            self.line(&json!({ "summary": summary }).to_string())?;
        }
        if self.request.stats {
            destination_lines(client, &self.request.transmission.cc);
        }
        remark(
            arguments,
            &format!(
                "{answered} of {} answered in {}; median {}, 95 % {}, longest {}; {retransmissions} retransmissions",
                sum.made,
                short(sum.elapsed),
                short(median),
                short(p95),
                short(sum.latencies.longest()),
            ),
        );
        match &sum.worst {
            None => Ok(()),
            Some(Failure::Refused(_)) => Err(Failure::Refused("some answers were no success".to_owned())),
            Some(_) => Err(Failure::Network(format!(
                "{} of {} requests got no answer",
                sum.made - answered,
                sum.made
            ))),
        }
    }
}

/// What is wrong with a response, with the words that the server has for a person.
fn refusal(response: &Response) -> Option<Failure> {
    if response.is_success() {
        return None;
    }
    let words = if is_diagnostic(response) { response.text() } else { "".into() };
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let code = code_text(response.code);
    Some(Failure::Refused(if words.is_empty() { code } else { format!("{code}: {words}") }))
}

/// Whether the payload is for a person to read: that of an error without Content-Format (RFC 7252 §5.5.2).
fn is_diagnostic(response: &Response) -> bool {
    !response.is_success() && response.format().is_none() && std::str::from_utf8(&response.payload).is_ok()
}

fn exchange_line(response: &Response) -> String {
    let times = if response.transmissions == 1 { "transmission" } else { "transmissions" };
    format!(
        "{} after {}, {} {times}",
        code_text(response.code),
        short(response.elapsed),
        response.transmissions
    )
}

/// What the mechanism has learnt of each destination.
fn destination_lines(client: &Client, cc: &str) {
    for (_, known) in client.destinations() {
        let Destination { address, rto, srtt, rttvar, exchanges, failed, retransmissions, .. } = known;
        let measured = srtt.map_or(String::new(), |srtt| format!(", SRTT {}", short(srtt)));
        let varied = rttvar.map_or(String::new(), |rttvar| format!(", RTTVAR {}", short(rttvar)));
        tell(&format!(
            "{address}: {cc}, RTO {}{measured}{varied}; {exchanges} exchanges, {failed} failed, \
             {retransmissions} retransmissions",
            short(rto),
        ));
    }
}

fn destinations_json(client: &Client, cc: &str) -> Value {
    let ms = |time: Duration| time.as_micros() as f64 / 1e3;
    let each = client.destinations().into_iter().map(|(_, known)| {
        json!({
            "address": known.address.to_string(), "cc": cc, "rto_ms": ms(known.rto),
            "srtt_ms": known.srtt.map(ms), "rttvar_ms": known.rttvar.map(ms), "exchanges": known.exchanges,
            "failed": known.failed, "retransmissions": known.retransmissions,
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
