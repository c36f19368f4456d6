//! `coapace advise`.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

use coapace_lab::contender::Contender;
use coapace_scenario::naming;
use coapace_wire::advice::capture::Ending;
use coapace_wire::advice::fates::Fates;
use coapace_wire::advice::findings::{Findings, LossMethod, SideBecause};
use coapace_wire::advice::fit::{Fit, TRIES};
use coapace_wire::advice::lives::{Sign, Starts};
use coapace_wire::advice::measures::Measures;
use coapace_wire::advice::replay::{Replay, Replayed};
use coapace_wire::advice::scenario_file::ScenarioFile;
use coapace_wire::advice::told;
use coapace_wire::advice::traffic::{self, Reading, Side, Traffic};
use coapace_wire::advice::workload::Workload;
use indicatif::ProgressBar;
use serde::Serialize;

use super::output::remark;
use crate::arguments::{Advise, Arguments, CaptureSide, Format};
use crate::draft::{Draft, need_a_file_each};
use crate::{Failure, interrupt, progress};

/// Clients whose timeouts differ from a mechanism's by more than this factor have another one.
const NEAR: f64 = 1.3;

/// Everything that is told, for programs.
#[derive(Serialize)]
struct Told<'a> {
    capture: &'a str,
    findings: &'a Findings,
    replays: &'a [Replayed],
    remarks: &'a [String],
}

pub(crate) fn advise(arguments: &Arguments, options: &Advise) -> Result<(), Failure> {
    let named = options.mechanism.iter().map(|label| Ok((label.clone(), naming::parse_mechanism(label)?)));
    let named: Vec<_> = named.collect::<Result<_, String>>().map_err(Failure::Usage)?;
    need_a_file_each("CAPTURE and --scenario", &[Some(&options.capture), options.scenario.as_deref()])?;
    let draft = options.scenario.as_deref().map(Draft::create).transpose()?;
    let name = options.capture.display().to_string();
    let side = options.side.map(|side| match side {
        CaptureSide::Client => Side::Client,
        CaptureSide::Server => Side::Server,
        CaptureSide::Middle => Side::Middle,
    });
    let traffic = read(arguments, options, side, &name)?;
    let fates = Fates::of(&traffic);
    let findings = Findings::of(&traffic, &fates, side);
    if findings.exchanges == 0 {
        return Err(Failure::Input(format!("{name}: {}", nothing(&findings))));
    }
    let has_round_trips = findings.side != Side::Server;
    let loss = findings.loss.map_or(0.0, |loss| loss.share);
    let replays: Vec<Replayed> = if has_round_trips {
        let replay = Replay::new(&traffic, &fates, loss);
        if named.is_empty() {
            replay.all()
        } else {
            named.iter().map(|(label, mechanism)| replay.one(label, mechanism)).collect()
        }
    } else {
        Vec::new()
    };
    let was_stopped = traffic.ending == Ending::Stopped;
    // A scenario of a part of the capture would be of no use.
    let fitted = match draft.filter(|_| !was_stopped) {
        Some(draft) if has_round_trips => fit(arguments, options, &traffic, &fates, &findings, draft),
        Some(_) => Err(Failure::Input(format!(
            "{name}: the server's side shows no round trips, so no scenario can be fitted; capture beside the clients, or say \
             --side client"
        ))),
        None => Ok(Vec::new()),
    };
    let remarks = match &fitted {
        Ok(remarks) => remarks.as_slice(),
        Err(Failure::Usage(_)) => return fitted.map(drop),
        // Findings and replays need no scenario, so they are printed.
        Err(_) => &[],
    };
    let told = Told { capture: &name, findings: &findings, replays: &replays, remarks };
    let printed = print(options.format, &told);
    fitted?;
    printed?;
    if was_stopped {
        return Err(Failure::Interrupted("incomplete: interrupted while the capture was read".to_owned()));
    }
    Ok(())
}

fn print(format: Format, told: &Told<'_>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match format {
        Format::Table => table(&mut out, told.capture, told.findings, told.replays, told.remarks)?,
        Format::Csv => csv(&mut out, told.replays)?,
        Format::Json => writeln!(out, "{}", serde_json::to_string(told)?)?,
    }
    out.flush()
}

fn read(arguments: &Arguments, options: &Advise, side: Option<Side>, name: &str) -> Result<Traffic, Failure> {
    let stop = interrupt::watch();
    let bar = progress::bytes(arguments.quiet);
    let cannot_read = |error| Failure::Io(format!("cannot read {name}"), error);
    let input: Box<dyn Read + Send> = if options.capture == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(&options.capture).map_err(cannot_read)?;
        bar.set_length(file.metadata().map_err(cannot_read)?.len());
        Box::new(file)
    };
    let counting = Counting { input, bar: bar.clone() };
    let reading = Reading { ports: options.ports.clone(), side };
    let traffic = traffic::read(counting, &reading, &mut || {
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.finish_and_clear();
    traffic.map_err(|error| Failure::Input(format!("{name}: {error}")))
}

/// A reader that moves a progress bar.
struct Counting {
    input: Box<dyn Read + Send>,
    bar: ProgressBar,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.bar.inc(count as u64);
        Ok(count)
    }
}

/// Fits a scenario and writes its file. Returns remarks on it.
fn fit(
    arguments: &Arguments,
    options: &Advise,
    traffic: &Traffic,
    fates: &Fates,
    findings: &Findings,
    draft: Draft,
) -> Result<Vec<String>, Failure> {
    let Some(workload) = Workload::of(traffic) else { return Ok(Vec::new()) };
    let capture = options.capture.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy());
    let file = ScenarioFile { workload: &workload, capture: &capture, settings: &options.set };
    let nearest = findings.timeouts.as_ref().filter(|timeouts| timeouts.difference < NEAR);
    let label = nearest.map_or("default", |timeouts| &timeouts.nearest);
    let contender = Contender::parse(label).map_err(Failure::Input)?;
    let measured = Measures::of(traffic, fates);
    let stop = interrupt::watch();
    let bar = progress::bar(TRIES as usize, arguments.quiet);
    let fitted =
        Fit { measured: &measured, contender: &contender, file: file.clone() }.search(&mut |tried| {
            bar.set_position(tried);
            stop.load(Ordering::Relaxed)
        });
    bar.finish_and_clear();
    let fitted = fitted?.ok_or_else(|| Failure::Input("no path behaves like the capture".to_owned()))?;
    let mut remarks = told::remarks(&workload, &measured, &fitted, label);
    if nearest.is_none() && findings.timeouts.is_some() {
        remarks.push(
            "Guessed: that clients act like default. No mechanism is close to their timeouts.".to_owned(),
        );
    }
    if stop.load(Ordering::Relaxed) {
        remarks.push("Incomplete: the fit was interrupted.".to_owned());
    }
    let text = file.text(&fitted.link, &remarks)?;
    let path = draft.write(true, |out| out.write_all(text.as_bytes()))?;
    remark(arguments, &format!("scenario: {}", path.display()));
    Ok(remarks)
}

/// Returns why there is nothing to tell.
fn nothing(findings: &Findings) -> String {
    let read = &findings.reading;
    let mut parts = vec![format!("no confirmable CoAP requests in {} packets", read.packets)];
    if read.dtls > 0 {
        let dtls = read.dtls;
        parts.push(format!(
            "{dtls} are DTLS, which cannot be read: capture inside its endpoint (coapace --pcap)"
        ));
    }
    if read.messages > 0 {
        parts.push(format!("{} are other CoAP messages", read.messages));
    }
    parts.extend(read.skipped.iter().map(|(reason, count)| format!("{count}: {reason}")));
    if read.dtls == 0 {
        parts.push("name the servers' ports with --port".to_owned());
    }
    parts.join("; ")
}

fn table(
    out: &mut impl Write,
    name: &str,
    findings: &Findings,
    replays: &[Replayed],
    remarks: &[String],
) -> io::Result<()> {
    reading(out, name, findings)?;
    exchanges(out, findings)?;
    round_trips(out, findings)?;
    losses(out, findings)?;
    timeouts(out, findings)?;
    if !replays.is_empty() {
        replayed(out, replays, findings)?;
    }
    if !remarks.is_empty() {
        writeln!(out, "\nThe scenario")?;
        for text in remarks {
            writeln!(out, "  {text}")?;
        }
    }
    Ok(())
}

fn reading(out: &mut impl Write, name: &str, findings: &Findings) -> io::Result<()> {
    let read = &findings.reading;
    writeln!(
        out,
        "{name}: {} packets in {}, {} CoAP messages",
        read.packets,
        seconds(read.seconds),
        read.messages
    )?;
    let mut left: Vec<String> =
        read.skipped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let told = [
        (read.dtls, "encrypted with DTLS, which cannot be read"),
        (read.malformed, "malformed at CoAP's port"),
        (read.unmatched, "answers or notifications without a request"),
        (read.left_out, "beyond what is kept"),
    ];
    left.extend(told.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    if !left.is_empty() {
        writeln!(out, "  left out: {}", left.join("; "))?;
    }
    if let Some(damage) = &read.damage {
        writeln!(out, "  the file is damaged: {damage}")?;
    }
    let side = match findings.side {
        Side::Client => "beside the clients",
        Side::Server => "beside the server",
        Side::Middle => "between clients and servers",
    };
    let because = match findings.side_because {
        SideBecause::Said => "as you say",
        SideBecause::Looks => "by its copies and answers",
        SideBecause::Assumed => "assumed, for nothing tells; --side says otherwise",
    };
    let of = if read.simulated { "simulated and looked at" } else { "taken" };
    writeln!(out, "  {of} {side} ({because})")
}

fn exchanges(out: &mut impl Write, findings: &Findings) -> io::Result<()> {
    writeln!(
        out,
        "\nExchanges\n  {} of {} clients with {} servers: {} answered, {} given up; {} other messages",
        findings.exchanges,
        findings.clients,
        findings.servers,
        findings.completed,
        findings.given_up,
        findings.others
    )?;
    let needless = findings.needless.map_or_else(String::new, |count| {
        format!(", {count} of them needless: an earlier copy was answered, then or later")
    });
    if let Some(told) = starts(&findings.starts) {
        writeln!(out, "  {told}")?;
    }
    writeln!(
        out,
        "  {} transmissions, {} retransmissions{needless}",
        findings.transmissions, findings.retransmissions
    )?;
    if findings.duplicates > 0 {
        writeln!(
            out,
            "  {} answers beyond one for each copy: the network or the server doubled them",
            findings.duplicates
        )?;
    }
    if findings.reused_ids > 0 {
        writeln!(
            out,
            "  {} Message IDs came again within 247 s (RFC 7252 §4.4 forbids it)",
            findings.reused_ids
        )?;
    }
    Ok(())
}

/// Returns what is told of the new starts of clients.
fn starts(found: &Starts) -> Option<String> {
    let sign = match found.told_by? {
        Sign::MessageIds => "Message IDs jump",
        Sign::Tokens => "tokens jump",
        Sign::Ports => "ports change; neither Message IDs nor tokens count",
    };
    if found.anew == 0 {
        return Some("no client started anew: Message IDs or tokens count on".to_owned());
    }
    let pause =
        found.pause_s.map_or_else(String::new, |pause_s| format!(", after a pause of {}", seconds(pause_s)));
    Some(format!(
        "{} clients started anew, {} times in all, {} of them at another port{pause}: their {sign}",
        found.did, found.anew, found.other_ports
    ))
}

fn round_trips(out: &mut impl Write, findings: &Findings) -> io::Result<()> {
    let Some(rtt) = &findings.round_trips else { return Ok(()) };
    let of = if findings.side == Side::Server { "Times of the server" } else { "Round trips" };
    let quantiles = [
        ("least", rtt.min_s),
        ("5 %", rtt.p5_s),
        ("25 %", rtt.p25_s),
        ("median", rtt.p50_s),
        ("75 %", rtt.p75_s),
        ("95 %", rtt.p95_s),
        ("99 %", rtt.p99_s),
        ("most", rtt.max_s),
    ];
    let told: Vec<String> =
        quantiles.iter().map(|(name, value)| format!("{name} {}", seconds(*value))).collect();
    writeln!(out, "\n{of}\n  {}", told.join(", "))?;
    writeln!(
        out,
        "  {} in all: {} beyond doubt, {} of as many answers as copies in their order, {} paired as is likely",
        rtt.count, rtt.unambiguous, rtt.in_order, rtt.likely
    )
}

fn losses(out: &mut impl Write, findings: &Findings) -> io::Result<()> {
    let Some(loss) = &findings.loss else { return Ok(()) };
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let method = match loss.method {
        LossMethod::RoundTrips => "round trips: transmissions without an answer of their own",
        LossMethod::UntilAnswered => {
            "round trips: copies before the one that is answered, because the server answers one copy only"
        }
        LossMethod::Answers => "answers that a copy follows; requests lost before this side cannot be seen",
    };
    writeln!(
        out,
        "\nLosses\n  {} (95 % interval {} to {}) of {} {method}",
        percent(loss.share),
        percent(loss.low),
        percent(loss.high),
        loss.of
    )?;
    if loss.method != LossMethod::Answers {
        let queues = if loss.busy > loss.quiet + 0.02 { ": full queues lose packets" } else { "" };
        let bursts = if loss.burstiness > 0.1 { "come in bursts" } else { "are single" };
        writeln!(
            out,
            "  {} while round trips were short, {} while they were long{queues}; losses {bursts} (correlation {:.2})",
            percent(loss.quiet),
            percent(loss.busy),
            loss.burstiness
        )?;
    }
    Ok(())
}

fn timeouts(out: &mut impl Write, findings: &Findings) -> io::Result<()> {
    let Some(timeouts) = &findings.timeouts else {
        return writeln!(out, "\nTimeouts\n  no retransmission shows any");
    };
    let growth =
        timeouts.growth.map_or_else(String::new, |growth| format!(", each {growth:.2} times the one before"));
    writeln!(
        out,
        "\nTimeouts\n  first: {} to {}, median {}{growth}; at most {} retransmissions",
        seconds(timeouts.first_min_s),
        seconds(timeouts.first_max_s),
        seconds(timeouts.first_p50_s),
        timeouts.retransmissions
    )?;
    writeln!(
        out,
        "  closest to {}, whose timeouts would have differed by a factor of {:.2}",
        timeouts.nearest, timeouts.difference
    )
}

fn replayed(out: &mut impl Write, replays: &[Replayed], findings: &Findings) -> io::Result<()> {
    let loss = findings.loss.map_or(0.0, |loss| loss.share * 100.0);
    writeln!(
        out,
        "\nReplayed on these round trips, with {loss:.1} % lost at random, alike for all\n  {:<20} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "mechanism", "first", "again", "needless", "given up", "mean", "95 %"
    )?;
    let mut sorted: Vec<&Replayed> = replays.iter().collect();
    sorted.sort_by(|a, b| a.mean_s.total_cmp(&b.mean_s));
    for result in sorted {
        let share = |count: u64| format!("{:.1} %", 100.0 * count as f64 / result.exchanges.max(1) as f64);
        writeln!(
            out,
            "  {:<20} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            result.mechanism,
            seconds(result.first_timeout_s),
            share(result.retransmissions),
            share(result.needless),
            share(result.given_up),
            seconds(result.mean_s),
            seconds(result.p95_s)
        )?;
    }
    writeln!(
        out,
        "  first: median timeout of first copies; again: retransmissions per exchange; mean, 95 %: time to the answer\n  \
         A replay cannot know what more or fewer copies would have done to the queues; --scenario FILE and coapace rank FILE can."
    )
}

fn csv(out: &mut impl Write, replays: &[Replayed]) -> io::Result<()> {
    writeln!(out, "mechanism,exchanges,first_timeout_s,retransmissions,needless,given_up,mean_s,p95_s")?;
    for it in replays {
        // A name has no comma, but a list of parameters has.
        let quote = if it.mechanism.contains(',') { "\"" } else { "" };
        writeln!(
            out,
            "{quote}{}{quote},{},{:.6},{},{},{},{:.6},{:.6}",
            it.mechanism,
            it.exchanges,
            it.first_timeout_s,
            it.retransmissions,
            it.needless,
            it.given_up,
            it.mean_s,
            it.p95_s
        )?;
    }
    Ok(())
}

/// Returns a time with three digits or so, in a unit that suits it.
fn seconds(time: f64) -> String {
    match time {
        time if time >= 100.0 => format!("{time:.0} s"),
        time if time >= 10.0 => format!("{time:.1} s"),
        time if time >= 1.0 => format!("{time:.2} s"),
        time if time >= 0.1 => format!("{:.0} ms", time * 1e3),
        time if time >= 0.01 => format!("{:.1} ms", time * 1e3),
        time => format!("{:.2} ms", time * 1e3),
    }
}
