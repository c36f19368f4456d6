//! `coapace load`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coapace_net::{Call, Client, Config, Error, Response};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until};

use super::device::{
    ClientSetup, datagrams, explain_with, kilobytes_a_second, no_runtime, payload, prepare, short,
};
use crate::arguments::{Arguments, Load};
use crate::interrupt::interrupted;
use crate::latencies::Latencies;
use crate::lossy::Lossy;
use crate::{Failure, logging, progress};

/// With a fixed `--rate`, the most requests of one client that may be open or wait for NSTART.
const MAX_UNDER_WAY: u32 = 4_096;

pub(crate) fn load(arguments: &Arguments, load: &Load) -> Result<(), Failure> {
    logging::of_client(0, arguments.quiet);
    let proxy = load.content.terms.proxy.as_deref();
    let mut setup = ClientSetup::new(arguments, &load.transmission, &load.uri, proxy)?;
    if load.loss > 0.0 {
        datagrams("--loss", proxy.unwrap_or(&load.uri))?;
    }
    bound(&mut setup.profile.config);
    let payload = payload(&load.content)?;
    let mut builder = Builder::new_multi_thread();
    let jobs = arguments.jobs();
    if jobs > 0 {
        builder.worker_threads(jobs);
    }
    let runtime = builder.enable_all().build().map_err(no_runtime)?;
    let asked = Arc::new(LoadContext {
        load: load.clone(),
        payload,
        setup,
        over: AtomicU64::new(0),
        stop: watch::Sender::new(false),
    });
    let result = runtime.block_on(conduct(arguments, &asked)).and_then(|tally| tally.print(load));
    asked.setup.finish(result)
}

/// The state that all clients of a load share: the arguments, and the number of requests that have ended so far.
struct LoadContext {
    load: Load,
    payload: Vec<u8>,
    setup: ClientSetup,
    over: AtomicU64,
    /// Becomes true at Ctrl-C.
    stop: watch::Sender<bool>,
}

/// Lowers the limits of a client, because there are many clients with one destination each.
fn bound(config: &mut Config) {
    *config = Config {
        max_exchanges: MAX_UNDER_WAY,
        max_peers: 4,
        max_replies: 64,
        max_deduplicated: 256,
        ..*config
    };
}

impl LoadContext {
    /// Returns the `nth` client, and its interceptor, which drops some of its datagrams.
    fn client(&self, nth: u32) -> Result<(Client, Arc<Lossy>), Failure> {
        let lossy = Arc::new(Lossy::new(self.load.loss, nth.into(), self.setup.capture.clone()));
        Ok((self.setup.builder()?.interceptor(lossy.clone()).build(), lossy))
    }

    /// Returns whether the load has lasted its duration or was interrupted.
    fn is_over(&self, end: Instant) -> bool {
        Instant::now() >= end || *self.stop.borrow()
    }

    /// Waits for the end of the load, or for Ctrl-C.
    async fn ended(&self, end: Instant) {
        let mut stop = self.stop.subscribe();
        tokio::select! {
            () = sleep_until(end) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    fn call(&self, client: &Client) -> Call {
        let call = client.request(self.load.method, &self.load.uri);
        prepare(call, &self.load.content, &self.payload, &self.load.transmission)
    }

    async fn ask(&self, client: &Client) -> Result<Response, Error> {
        let result = self.call(client).await;
        self.over.fetch_add(1, Ordering::Relaxed);
        result
    }
}

async fn conduct(arguments: &Arguments, asked: &Arc<LoadContext>) -> Result<LoadTally, Failure> {
    // One request goes first. If nobody answers, that is known without any load, and after no more time than the
    // load would take.
    let (uri, duration) = (&asked.load.uri, asked.load.duration);
    // No client of the load has this number, so the losses of the others do not change.
    let (first, _) = asked.client(u32::MAX)?;
    let patience = asked.load.transmission.timeout.map_or(duration, |timeout| timeout.min(duration));
    match asked.call(&first).timeout(patience).await {
        Ok(_) => {}
        Err(Error::TimedOut) => {
            let waited = short(patience);
            let flag = if patience < duration { "--timeout" } else { "--duration" };
            let message =
                format!("{uri}: no response in {waited}; check address and port, or wait longer with {flag}");
            return Err(Failure::Network(message));
        }
        Err(error) => return Err(explain_with(&error, uri, asked.load.content.terms.proxy.as_deref())),
    }

    // The time counts from here, so the request above is not part of it.
    let begin = Instant::now();
    let end = begin + asked.load.duration;
    let clients = asked.load.clients;
    let mut tasks = JoinSet::new();
    for nth in 0..clients {
        let (asked, client) = (asked.clone(), asked.client(nth)?);
        match asked.load.rate {
            None => tasks.spawn(closed(asked, client, end)),
            Some(rate) => {
                let period = Duration::from_secs_f64(f64::from(clients) / rate);
                // Clients start evenly spread, not all at once.
                let first = begin + period.mul_f64(f64::from(nth) / f64::from(clients));
                tasks.spawn(open(asked, client, first, period, end))
            }
        };
    }
    let bar = progress::milliseconds(asked.load.duration, arguments.quiet);
    let mut tally = LoadTally::default();
    let mut interrupted = std::pin::pin!(interrupted()?);
    loop {
        tokio::select! {
            joined = tasks.join_next() => match joined {
                Some(Ok(each)) => tally.merge(&each),
                // A task ends without a tally only if it panics.
                Some(Err(error)) => return Err(Failure::Io("a client failed".to_owned(), error.into())),
                None => break,
            },
            () = sleep(Duration::from_millis(200)) => {
                bar.set_position(begin.elapsed().as_millis() as u64);
                bar.set_message(format!("{} requests", asked.over.load(Ordering::Relaxed)));
            }
            // A future that has completed must not be polled again, which the condition prevents.
            () = &mut interrupted, if !tally.is_interrupted => {
                // The clients end, and have their results until now.
                tally.is_interrupted = true;
                asked.stop.send_replace(true);
            }
        }
    }
    bar.finish_and_clear();
    // Clients may end a little later than the duration, and answers after it are not counted.
    tally.elapsed = begin.elapsed().min(asked.load.duration);
    Ok(tally)
}

/// Runs a client that sends its next request when the last is answered.
async fn closed(asked: Arc<LoadContext>, (client, lossy): (Client, Arc<Lossy>), end: Instant) -> LoadTally {
    let mut tally = LoadTally::default();
    let mut ended = std::pin::pin!(asked.ended(end));
    while !asked.is_over(end) {
        let begun = Instant::now();
        tokio::select! {
            // An answer that is there at the end of the time still counts.
            biased;
            result = asked.ask(&client) => {
                let failed = result.is_err();
                tally.add(&result, begun.elapsed(), asked.payload.len());
                if failed {
                    // A request that fails at once would otherwise be repeated without end.
                    sleep(Duration::from_millis(1)).await;
                }
            }
            () = &mut ended => {
                tally.unfinished += 1;
                break;
            }
        }
    }
    tally.close(&client, &lossy);
    tally
}

/// Runs a client that sends requests at fixed times, answered or not.
async fn open(
    asked: Arc<LoadContext>,
    (client, lossy): (Client, Arc<Lossy>),
    first: Instant,
    period: Duration,
    end: Instant,
) -> LoadTally {
    let mut tally = LoadTally::default();
    let mut due = interval_at(first, period);
    // A process that was held up sends the requests that were due, so the rate stays as asked.
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut under_way = JoinSet::new();
    let mut over = std::pin::pin!(asked.ended(end));
    loop {
        tokio::select! {
            // The end comes first, so that due requests cannot postpone it under overload.
            biased;
            () = &mut over => break,
            Some(Ok((result, latency))) = under_way.join_next() => {
                tally.add(&result, latency, asked.payload.len());
            }
            // `begun` is the time when the request was due, so a late departure counts as latency.
            begun = due.tick() => {
                let (asked, client) = (asked.clone(), client.clone());
                under_way.spawn(async move { (asked.ask(&client).await, begun.elapsed()) });
            }
        }
    }
    // Open requests are counted apart: they had no time to be answered, so they are not failures.
    tally.unfinished = under_way.len() as u64;
    tally.close(&client, &lossy);
    tally
}

/// The outcomes of the requests of one client, or of all clients.
#[derive(Debug, Default)]
struct LoadTally {
    latencies: Latencies,
    /// Responses other than 2.xx, by code.
    codes: BTreeMap<String, u64>,
    /// Requests without a response, by reason.
    failures: BTreeMap<String, u64>,
    /// Requests that were open at the end.
    unfinished: u64,
    /// Bytes of the payloads of answered requests and of their answers.
    bytes: u64,
    retransmissions: u64,
    /// Responses that arrived after their exchange had ended, such as a second response to a
    /// retransmitted request.
    late_replies: u64,
    /// Datagrams that `--loss` dropped.
    lost: u64,
    elapsed: Duration,
    /// Whether Ctrl-C came before the end.
    is_interrupted: bool,
}

impl LoadTally {
    /// Adds the outcome of a request with a payload of `sent` bytes.
    fn add(&mut self, result: &Result<Response, Error>, latency: Duration, sent: usize) {
        match result {
            Ok(response) => {
                self.latencies.add(latency);
                self.bytes += (sent + response.payload.len()) as u64;
                if !response.is_success() {
                    *self.codes.entry(response.code.to_string()).or_default() += 1;
                }
            }
            Err(error) => *self.failures.entry(error.to_string()).or_default() += 1,
        }
    }

    /// Adds the counters of a client that has ended.
    fn close(&mut self, client: &Client, lossy: &Lossy) {
        self.lost = lossy.lost();
        let counters = client.stats().endpoint;
        self.retransmissions = counters.retransmissions;
        self.late_replies = counters.late_replies;
    }

    fn merge(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies);
        other.codes.iter().for_each(|(code, count)| *self.codes.entry(code.clone()).or_default() += count);
        other
            .failures
            .iter()
            .for_each(|(why, count)| *self.failures.entry(why.clone()).or_default() += count);
        self.unfinished += other.unfinished;
        self.bytes += other.bytes;
        self.retransmissions += other.retransmissions;
        self.late_replies += other.late_replies;
        self.lost += other.lost;
    }

    fn print(&self, load: &Load) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let answered = self.latencies.len();
        let failed: u64 = self.failures.values().sum();
        // An interruption at once leaves an elapsed time of 0.
        let per_second = answered as f64 / self.elapsed.as_secs_f64().max(1e-9);
        let shares = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
        let times = shares.map(|(name, share)| (name, self.latencies.quantile(share)));
        let times = times.into_iter().chain([("longest", self.latencies.longest())]);
        // The same values for programs, with units in their names.
        if load.json {
            let ms = times.map(|(name, time)| (name.to_owned(), json!(time.as_micros() as f64 / 1e3)));
            let object = json!({
                "uri": load.uri, "cc": load.transmission.cc, "clients": load.clients, "rate": load.rate,
                "elapsed_s": self.elapsed.as_secs_f64(), "answered": answered, "answered_per_second": per_second,
                "bytes": self.bytes, "failed": failed, "unfinished": self.unfinished, "retransmissions": self.retransmissions,
                "late_replies": self.late_replies, "lost": self.lost, "codes": self.codes, "failures": self.failures,
                "latency_ms": ms.collect::<serde_json::Map<_, _>>(),
            });
            writeln!(out, "{object}")?;
        } else {
            let kilobytes = kilobytes_a_second(self.bytes, self.elapsed);
            writeln!(
                out,
                "{answered} answered in {}: {per_second:.0} a second, {kilobytes:.0} kB/s of payloads",
                short(self.elapsed)
            )?;
            let times = times.map(|(name, time)| format!("{name} {}", short(time)));
            writeln!(out, "latency: {}", times.collect::<Vec<_>>().join(", "))?;
            writeln!(
                out,
                "{} retransmissions, {} late replies, {} datagrams lost; {failed} failed, {} under way at the end",
                self.retransmissions, self.late_replies, self.lost, self.unfinished
            )?;
            for (what, count) in self.codes.iter().chain(&self.failures) {
                writeln!(out, "{count}: {what}")?;
            }
        }
        // The values are printed in any case. The exit code says that they are incomplete, or what went wrong.
        if self.is_interrupted {
            let (elapsed, planned) = (short(self.elapsed), short(load.duration));
            return Err(Failure::Interrupted(format!(
                "incomplete: interrupted after {elapsed} of {planned}"
            )));
        }
        if failed > 0 {
            return Err(Failure::Network(format!("{failed} requests got no answer")));
        }
        if !self.codes.is_empty() {
            return Err(Failure::Refused("some answers were errors".to_owned()));
        }
        Ok(())
    }
}
