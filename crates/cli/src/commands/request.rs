//! `coapace get`, `put`, `post`, `delete`, `fetch`, `patch`, `ipatch` and `request`.

use std::future::IntoFuture;
use std::time::Duration;

use coap_numbers::option::SIZE1;
use coapace_net::{Call, Client, Code, Error, Response, Salvage, Transferred};
use indicatif::ProgressBar;
use serde_json::json;

use super::device::{ClientSetup, payload, prepare, runtime, short, tell};
use super::group;
use super::printer::{Printer, destination_lines, transfer_line};
use crate::arguments::{Arguments, RequestArguments, RequestContent};
use crate::interrupt::interrupted;
use crate::latencies::Latencies;
use crate::partial_file::PartialFile;
use crate::shown::remark;
use crate::{Failure, logging, progress};

pub(crate) fn request(
    arguments: &Arguments,
    method: Code,
    request: &RequestArguments,
) -> Result<(), Failure> {
    logging::of_client(request.show.verbose, arguments.quiet);
    let proxy = request.content.terms.proxy.as_deref();
    let setup = ClientSetup::new(arguments, &request.transmission, &request.uri, proxy)?;
    let payload = payload(&request.content)?;
    let several = request.repeat.is_some();
    let mut printer = Printer::open(&request.uri, proxy, &request.transmission, &request.show, several)?;
    let salvaging = Salvaging::new(arguments, request)?;
    let client = setup.client()?;
    let result = runtime()?.block_on(async {
        // Ctrl-C is caught only if there are blocks to keep.
        let interrupted = salvaging.part.as_ref().map(|_| interrupted()).transpose()?;
        let mut interrupted = std::pin::pin!(async {
            match interrupted {
                Some(interrupted) => interrupted.await,
                // Ctrl-C ends the process.
                None => std::future::pending().await,
            }
        });
        let (mut sum, mut to_group) = (Sum::default(), false);
        for _ in 0..request.repeat.unwrap_or(1) {
            let call = || {
                let call = client.request(method, &request.uri);
                prepare(call, &request.content, &payload, &request.transmission)
            };
            let begun = std::time::Instant::now();
            // The bar stays invisible for a response in one message, because `drawing` is not called then.
            let bar = progress::bytes(arguments.quiet);
            let asked = group::called(call(), &request.gathering).progress(drawing(bar.clone()));
            let result = tokio::select! {
                result = salvaging.of(asked).into_future() => result,
                () = &mut interrupted => {
                    bar.finish_and_clear();
                    return Err(salvaging.keep(Failure::Interrupted("interrupted".to_owned())));
                }
            };
            bar.finish_and_clear();
            // The name may lead to a group, which only its lookup shows.
            to_group = matches!(result, Err(Error::Group(_)));
            let failure = if to_group {
                group::ask(arguments, request, call(), &mut printer).await.err()
            } else {
                sum.add(&result, begun.elapsed());
                let failure = printer.print(&client, &result)?;
                if let (Ok(response), true, false) = (&result, request.show.stats, several) {
                    transfer_line(&client, payload.len(), response);
                }
                let failure = failure.map(|failure| with_size(failure, &result, &request.content, &payload));
                if failure.is_none() {
                    salvaging.end();
                }
                failure.map(|failure| salvaging.keep(failure))
            };
            if request.repeat.is_none() {
                return failure.map_or(Ok(()), Err);
            }
            match failure {
                // Wrong usage would fail again.
                Some(usage @ Failure::Usage(_)) => return Err(usage),
                Some(failure) => {
                    tell(&format!("coapace: {failure}"));
                    sum.keep(failure);
                }
                None => {}
            }
        }
        if to_group {
            return sum.worst.map_or(Ok(()), Err);
        }
        sum_up(arguments, request, printer, &client, &sum)
    });
    setup.finish(result)
}

/// Keeps the first blocks of a response in `FILE.part` if its transfer to a file breaks.
struct Salvaging<'a> {
    /// The file `FILE.part`. `None` if the response does not go into a file, or the request is repeated with
    /// `--repeat`.
    part: Option<PartialFile<'a>>,
    salvage: Salvage,
}

impl<'a> Salvaging<'a> {
    /// Reads `FILE.part`, if the transfer is to continue after it.
    fn new(arguments: &Arguments, request: &'a RequestArguments) -> Result<Self, Failure> {
        // Repeated requests would overwrite each other's blocks.
        let path = request.show.output.as_deref().filter(|_| request.repeat.is_none());
        let part = path.map(|path| PartialFile::of(path, &request.uri));
        let mut salvage = Salvage::default();
        if let Some(part) = part.as_ref().filter(|_| request.resume) {
            let cannot = |error| Failure::Io(format!("cannot read {}", part.path().display()), error);
            if let Some(partial) = part.read().map_err(cannot)? {
                let (bytes, path) = (partial.body.len(), part.path().display());
                remark(arguments, &format!("{bytes} bytes are in {path}"));
                salvage = partial.into();
            }
        }
        Ok(Self { part, salvage })
    }

    fn of(&self, call: Call) -> Call {
        if self.part.is_some() { call.salvage(&self.salvage) } else { call }
    }

    /// Writes the received blocks to `FILE.part`, and adds to the failure message how many bytes are there.
    fn keep(&self, failure: Failure) -> Failure {
        let (Some(part), Some(partial)) = (&self.part, self.salvage.take()) else { return failure };
        let (bytes, path) = (partial.body.len(), part.path().display());
        failure.and(&match part.write(&partial) {
            Ok(there) => format!("; {there} bytes are in {path}, and --continue goes on after them"),
            Err(error) => format!("; {bytes} bytes are lost: cannot write {path}: {error}"),
        })
    }

    /// Removes `FILE.part`, because the response is complete.
    fn end(&self) {
        if let Some(part) = &self.part {
            part.remove();
        }
    }
}

/// Adds the server's limit (Size1) and the block size that was tried to the message about a refused body (4.13).
fn with_size(
    failure: Failure,
    result: &Result<Response, Error>,
    content: &RequestContent,
    payload: &[u8],
) -> Failure {
    let too_large = result.as_ref().ok().filter(|answer| answer.code == Code::REQUEST_ENTITY_TOO_LARGE);
    let size = too_large.and_then(|answer| answer.options.uint(SIZE1));
    let (Failure::Refused(text), Some(size)) = (&failure, size) else { return failure };
    // The block size that a client takes is the largest power of two that the server takes and the payload exceeds.
    let tried = size.min((payload.len() as u64).saturating_sub(1)).checked_ilog2().map_or(0, |log| 1 << log);
    let advice = match tried {
        // The client's own blocks were not above the server's limit, so smaller ones may not help.
        16.. if tried >= content.terms.block_size.unwrap_or(1_024) => String::new(),
        32.. => format!("; -b {tried} was tried, -b {} may work", tried / 2),
        16 => "; -b 16 was tried".to_owned(),
        _ => String::new(),
    };
    Failure::Refused(format!("{text}; the server takes {size} bytes at most{advice}"))
}

/// Returns a callback that shows the progress of a block-wise transfer. It is not called for a single block.
fn drawing(bar: ProgressBar) -> impl Fn(Transferred) {
    move |Transferred { sent, to_send, received, to_receive }| {
        bar.set_length((to_send + to_receive.unwrap_or(received)) as u64);
        bar.set_position((sent + received) as u64);
    }
}

/// The outcomes of successive requests.
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

    /// Keeps the worst failure: no response is worse than an error response.
    fn keep(&mut self, failure: Failure) {
        if self.worst.is_none() || matches!(failure, Failure::Network(_)) {
            self.worst = Some(failure);
        }
    }
}

/// Prints a summary of all requests.
fn sum_up(
    arguments: &Arguments,
    request: &RequestArguments,
    mut printer: Printer<'_>,
    client: &Client,
    sum: &Sum,
) -> Result<(), Failure> {
    let answered = sum.latencies.len();
    // The counters are the client's, so they include requests that failed.
    let retransmissions = client.stats().endpoint.retransmissions;
    // Quantiles are of the exchanges that were answered, like in `load`.
    let [median, p95] = [0.5, 0.95].map(|share| sum.latencies.quantile(share));
    if request.show.json {
        let ms = |time: Duration| time.as_micros() as f64 / 1e3;
        let summary = json!({
            "requests": sum.made, "answered": answered, "retransmissions": retransmissions,
            "elapsed_ms": ms(sum.elapsed), "median_ms": ms(median), "p95_ms": ms(p95),
            "longest_ms": ms(sum.latencies.longest()),
        });
        printer.line(&json!({ "summary": summary }).to_string())?;
    }
    if request.show.stats {
        destination_lines(client, &request.transmission);
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
    // Each failure was printed when it came. Their kind decides the exit code.
    match &sum.worst {
        None => Ok(()),
        Some(Failure::Refused(_)) => Err(Failure::Refused("some answers were errors".to_owned())),
        Some(_) => {
            Err(Failure::Network(format!("{} of {} requests got no answer", sum.made - answered, sum.made)))
        }
    }
}
