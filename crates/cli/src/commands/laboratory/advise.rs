//! `coapace advise`.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

use coapace_inspect::advice::capture::Ending;
use coapace_inspect::advice::fates::Fates;
use coapace_inspect::advice::findings::Findings;
use coapace_inspect::advice::fit::{Fit, TRIES};
use coapace_inspect::advice::measures::TrafficMeasures;
use coapace_inspect::advice::remarks;
use coapace_inspect::advice::replay::{Replay, Replayed};
use coapace_inspect::advice::report::AdviceReport;
use coapace_inspect::advice::scenario_file::ScenarioFile;
use coapace_inspect::advice::traffic::{self, CaptureEnd, Reading, Traffic};
use coapace_inspect::advice::tshark::Tshark;
use coapace_inspect::advice::workload::ObservedWorkload;
use coapace_run::contender::Contender;
use coapace_scenario::naming;
use indicatif::ProgressBar;

use crate::arguments::{Advise, Arguments, CaptureSide, OutputFormat};
use crate::draft::{Draft, need_a_file_each};
use crate::shown::remark;
use crate::{Failure, interrupt, progress};

pub(crate) fn advise(arguments: &Arguments, options: &Advise) -> Result<(), Failure> {
    let named = options.mechanism.iter().map(|label| Ok((label.clone(), naming::parse_mechanism(label)?)));
    let named: Vec<_> = named.collect::<Result<_, String>>().map_err(Failure::Usage)?;
    // The scenario must not overwrite the capture that it is made from.
    need_a_file_each("CAPTURE and --scenario", &[Some(&options.capture), options.scenario.as_deref()])?;
    let draft = options.scenario.as_deref().map(Draft::create).transpose()?;
    let name = options.capture.display().to_string();
    let side = options.side.map(|side| match side {
        CaptureSide::Client => CaptureEnd::Client,
        CaptureSide::Server => CaptureEnd::Server,
        CaptureSide::Middle => CaptureEnd::Middle,
    });
    let (traffic, advice) = read(arguments, options, side, &name)?;
    let fates = Fates::of(&traffic);
    let findings = Findings::of(&traffic, &fates, side);
    let advice = advice.as_deref();
    let report = AdviceReport { capture: &name, findings: &findings, advice, replays: &[], remarks: &[] };
    if findings.exchanges == 0 {
        return Err(Failure::Input(format!("{name}: {}", report.nothing())));
    }
    // Beside the server all answers seem to come at once, so replays would mean nothing.
    let has_round_trips = findings.side != CaptureEnd::Server;
    let loss = findings.loss.map_or(0.0, |loss| loss.share);
    let replays: Vec<Replayed> = if has_round_trips {
        let replay = Replay::new(&traffic, &fates, loss);
        if named.is_empty() {
            replay.all(findings.timeouts.as_ref().and_then(|it| it.nearest.as_ref()))
        } else {
            named.iter().map(|(label, mechanism)| replay.one(label, mechanism)).collect()
        }
    } else {
        Vec::new()
    };
    let was_stopped = traffic.ending == Ending::Stopped;
    // A scenario of a part of the capture would be useless.
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
    let printed = print(options.format, &AdviceReport { replays: &replays, remarks, ..report });
    fitted?;
    printed?;
    if was_stopped {
        return Err(Failure::Interrupted("incomplete: interrupted while the capture was read".to_owned()));
    }
    Ok(())
}

fn print(format: OutputFormat, report: &AdviceReport<'_>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match format {
        OutputFormat::Table => report.write(&mut out)?,
        OutputFormat::Csv => csv(&mut out, report.replays)?,
        OutputFormat::Json => writeln!(out, "{}", serde_json::to_string(report)?)?,
    }
    out.flush()
}

/// Reads the capture, and again with tshark if some packets cannot be read. Also returns advice about packets that are still
/// unread.
fn read(
    arguments: &Arguments,
    options: &Advise,
    side: Option<CaptureEnd>,
    name: &str,
) -> Result<(Traffic, Option<String>), Failure> {
    let reading = Reading { ports: options.ports.clone(), side };
    let traffic = read_once(arguments, options, &reading, None, name)?;
    // Most captures need no tshark, so it is started only for a second reading.
    if !traffic.counts.needs_tshark() || traffic.ending == Ending::Stopped {
        return Ok((traffic, None));
    }
    // The capture is read a second time, which a pipe does not allow.
    if !options.capture.is_file() {
        let advice =
            "name a regular file, so that tshark can read it, too: it knows more link types and tunnels";
        return Ok((traffic, Some(advice.to_owned())));
    }
    match Tshark::start(&options.capture, &options.ports) {
        Ok(tshark) => {
            let traffic = read_once(arguments, options, &reading, Some(tshark), name)?;
            let advice = traffic.counts.needs_tshark().then(|| {
                let either = if traffic.counts.by_tshark == 0 { " either" } else { "" };
                format!("tshark finds no CoAP in the packets that were not read{either}")
            });
            Ok((traffic, advice))
        }
        // A capture without tshark's packets may still be useful, so this is advice and no failure.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let advice = "install tshark (Debian: apt install tshark), which reads more link types and tunnels, and run this again";
            Ok((traffic, Some(advice.to_owned())))
        }
        Err(error) => Ok((traffic, Some(format!("tshark, which reads more, cannot be started: {error}")))),
    }
}

fn read_once(
    arguments: &Arguments,
    options: &Advise,
    reading: &Reading,
    tshark: Option<Tshark>,
    name: &str,
) -> Result<Traffic, Failure> {
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
    let traffic = traffic::read(counting, reading, tshark, &mut || {
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.finish_and_clear();
    traffic.map_err(|error| Failure::Input(format!("{name}: {error}")))
}

/// A reader that advances a progress bar.
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

/// Fits a scenario to the traffic of the capture, and writes it to a file. Returns remarks on the fit.
fn fit(
    arguments: &Arguments,
    options: &Advise,
    traffic: &Traffic,
    fates: &Fates,
    findings: &Findings,
    draft: Draft,
) -> Result<Vec<String>, Failure> {
    let Some(workload) = ObservedWorkload::of(traffic) else { return Ok(Vec::new()) };
    let capture = options.capture.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy());
    let file = ScenarioFile { workload: &workload, capture: &capture, settings: &options.set };
    let nearest = findings.timeouts.as_ref().and_then(|timeouts| timeouts.nearest.as_ref());
    // A mechanism that is far away explains nothing, so the fit then assumes RFC 7252.
    let nearest = nearest.filter(|nearest| nearest.is_near());
    let label = nearest.map_or("default", |nearest| &nearest.mechanism);
    let contender = Contender::parse(label).map_err(Failure::Input)?;
    let measured = TrafficMeasures::of(traffic, fates);
    let stop = interrupt::watch();
    let bar = progress::bar(TRIES as usize, arguments.quiet);
    let fitted =
        Fit { measured: &measured, contender: &contender, file: file.clone() }.search(&mut |tried| {
            bar.set_position(tried);
            stop.load(Ordering::Relaxed)
        });
    bar.finish_and_clear();
    let fitted =
        fitted?.ok_or_else(|| Failure::Input("no simulated path reproduces the capture".to_owned()))?;
    let mut remarks = remarks::remarks(&workload, &measured, &fitted, label);
    if nearest.is_none() && findings.timeouts.is_some() {
        remarks.push(
            "Assumed: clients act like default, because no mechanism is close to their timeouts.".to_owned(),
        );
    }
    if stop.load(Ordering::Relaxed) {
        remarks.push("Incomplete: the fit was interrupted.".to_owned());
    }
    // An interrupted fit is written, too: the best path so far may do.
    let text = file.text(&fitted.link, &remarks)?;
    let path = draft.write(true, |out| out.write_all(text.as_bytes()))?;
    remark(arguments, &format!("scenario: {}", path.display()));
    Ok(remarks)
}

fn csv(out: &mut impl Write, replays: &[Replayed]) -> io::Result<()> {
    writeln!(out, "mechanism,exchanges,first_timeout_s,retransmissions,spurious,given_up,mean_s,p95_s")?;
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
            it.spurious,
            it.given_up,
            it.mean_s,
            it.p95_s
        )?;
    }
    Ok(())
}
