//! `coapace examine`.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coapace_inspect::examination::{
    Case, ClientCommand, ExaminationPlan, ExaminationTarget, Examined, ExaminedSide, Finding, News, Recorder,
    Severity, cases, examine, planned,
};
use coapace_net::uri::{Host, Scheme};
use coapace_net::{Options, Uri};
use coapace_wire::Lateness;
use serde_json::json;

use crate::arguments::{Arguments, Examine, Verdicts};
use crate::draft::Draft;
use crate::shown::{remark, shown, tell};
use crate::{COMMIT, Failure, interrupt};

/// The time that a case waits for the first request of a client that the user starts.
const PATIENCE: Duration = Duration::from_mins(1);

/// The maximum number of packet numbers that the text shows for a verdict. JSON shows all.
const LISTED: usize = 8;

pub(crate) fn conduct(arguments: &Arguments, options: &Examine) -> Result<(), Failure> {
    if options.list {
        return list(&mut io::stdout().lock());
    }
    let (plan, what) = plan(options)?;
    // The file is created before the cases run, so that an error costs no time.
    let capture = options.pcap.as_deref().map(Draft::create).transpose()?;
    let writer = capture.as_ref().map(Draft::writer).transpose()?;
    let recorder = Recorder::new(writer.map(|writer| Box::new(writer) as Box<dyn Write + Send>));
    let longest = planned(&plan.cases, options.quick, plan.at_once);
    remark(
        arguments,
        &format!("{what}: {} cases, which take at most {}", plan.cases.len(), minutes(longest)),
    );

    let stop = interrupt::watch();
    let news = |news: News<'_>| match news {
        _ if arguments.quiet => {}
        News::Ask(case, uri) => tell(&format!("{}: make the client ask {uri} now", case.name)),
        News::Done(examined) => {
            tell(&format!("{} done: {}", examined.case.name, worst(&examined.findings)));
        }
    };
    let examined =
        examine(&plan, &recorder, stop, &news).map_err(|error| Failure::Network(error.to_string()))?;
    let finished = recorder.finish();
    let is_complete = !stop.load(Ordering::Relaxed);
    let captured: Result<(), Failure> = capture.map_or(Ok(()), |draft| {
        finished.map_err(|error| draft.cannot_write(error))?;
        let path = draft.put(is_complete)?;
        remark(arguments, &format!("packets in {}", path.display()));
        Ok(())
    });

    let mut out = io::stdout().lock();
    let printed = match options.format {
        Verdicts::Table => page(&mut out, &what, &examined),
        Verdicts::Json => objects(&mut out, plan.side, &what, &examined),
    };
    // Verdicts are printed before a failed capture is reported.
    captured?;
    printed.and_then(|()| out.flush())?;
    let faults = findings(&examined).filter(|(_, finding)| finding.severity == Severity::Fault).count();
    match faults {
        _ if !is_complete => Err(Failure::Interrupted("interrupted: not every case was run".to_owned())),
        0 if findings(&examined).all(|(_, finding)| finding.severity == Severity::NotTested) => {
            Err(Failure::Network("no case could be tested; the verdicts give the reasons".to_owned()))
        }
        0 => Ok(()),
        1 => Err(Failure::Refused("1 fault".to_owned())),
        count => Err(Failure::Refused(format!("{count} faults"))),
    }
}

/// Returns the examination that the arguments ask for, and its description.
fn plan(options: &Examine) -> Result<(ExaminationPlan, String), Failure> {
    let side = if options.uri.is_some() { ExaminedSide::Server } else { ExaminedSide::Client };
    let command = ClientCommand::new(options.command.clone());
    if command.is_none() && !options.command.is_empty() {
        let text = "the command does not say where to ask: put {uri}, or {host} and {port}, into it";
        return Err(Failure::Usage(text.to_owned()));
    }
    let mut target = ExaminationTarget {
        is_quick: options.quick,
        has_command: command.is_some(),
        may_ask_group: options.group,
        ..ExaminationTarget::default()
    };
    let (address, what) = match (&options.uri, options.listen, &command) {
        (Some(text), ..) => {
            let uri: Uri = text.parse().map_err(|error| Failure::Usage(format!("{text}: {error}")))?;
            // The cases are about messages of UDP, and examine stacks without keys.
            if uri.scheme != Scheme::Coap {
                return Err(Failure::Usage(format!("{text}: only coap:// can be examined")));
            }
            target.resource = resource(&uri);
            for (argument, place) in [
                (&options.observe, &mut target.observable),
                (&options.slow, &mut target.slow),
                (&options.large, &mut target.large),
                (&options.counter, &mut target.counter),
            ] {
                *place = argument.as_deref().map(path_of).transpose()?;
            }
            // Message IDs of an examination before this one may still be remembered.
            target.first_message_id = RandomState::new().hash_one(0) as u16;
            (resolve(&uri)?, format!("server {text}"))
        }
        (None, Some(address), None) => (address, format!("client that asks {address}")),
        (None, address, Some(_)) => {
            // With port 0 each case gets a free port, so that several can run at a time.
            let address = address.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
            (address, format!("client {}", options.command.join(" ")))
        }
        (None, None, None) => {
            let text =
                "name a server as coap://HOST/PATH, or a client with --listen ADDRESS:PORT or -- COMMAND";
            return Err(Failure::Usage(text.to_owned()));
        }
    };
    let plan = ExaminationPlan {
        side,
        address,
        cases: selected(side, &options.only)?,
        target,
        command,
        at_once: options.at_once.into(),
        patience: PATIENCE,
    };
    Ok((plan, what))
}

fn selected(side: ExaminedSide, only: &[String]) -> Result<Vec<&'static Case>, Failure> {
    let all = cases(side);
    for name in only {
        if all.iter().all(|case| case.name != name) {
            let known = all.iter().map(|case| case.name).collect::<Vec<_>>().join(", ");
            return Err(Failure::Usage(format!("unknown case `{name}`; the cases are {known}")));
        }
    }
    Ok(all.iter().filter(|case| only.is_empty() || only.iter().any(|name| name == case.name)).collect())
}

fn resource(uri: &Uri) -> Options {
    let mut options = Options::new();
    for segment in &uri.path {
        options = options.with(coap_numbers::option::URI_PATH, segment.as_bytes());
    }
    for argument in &uri.query {
        options = options.uri_query(argument);
    }
    options
}

/// Parses a path with an optional query into the options of a request.
fn path_of(text: &str) -> Result<Options, Failure> {
    // The host is a placeholder: only path and query are used.
    let uri = format!("coap://h/{}", text.trim_start_matches('/')).parse::<Uri>();
    uri.map(|uri| resource(&uri)).map_err(|error| Failure::Usage(format!("{text}: {error}")))
}

fn resolve(uri: &Uri) -> Result<SocketAddr, Failure> {
    let text = match &uri.host {
        Host::Address(address, None) => SocketAddr::new(*address, uri.port).to_string(),
        Host::Address(address, Some(zone)) => format!("[{address}%{zone}]:{}", uri.port),
        Host::Name(name) => format!("{name}:{}", uri.port),
    };
    let found = coapace_net::addresses(&text);
    let found = found.map_err(|error| Failure::Network(format!("{text} has no address: {error}")))?;
    found.first().copied().ok_or_else(|| Failure::Network(format!("{text} has no address")))
}

fn findings(examined: &[Examined]) -> impl Iterator<Item = (&Examined, &Finding)> {
    examined.iter().flat_map(|one| one.findings.iter().map(move |finding| (one, finding)))
}

fn worst(findings: &[Finding]) -> Severity {
    findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::NotTested)
}

fn clause(examined: &Examined, finding: &Finding) -> &'static str {
    if finding.clause.is_empty() { examined.case.clause } else { finding.clause }
}

fn page(out: &mut impl Write, what: &str, examined: &[Examined]) -> io::Result<()> {
    writeln!(out, "{}", shown(what))?;
    for one in examined {
        writeln!(out, "\n{} ({})", one.case.name, one.case.summary)?;
        for finding in &one.findings {
            let clause = clause(one, finding);
            write!(out, "  {:<11} {}  [{clause}", finding.severity, shown(&finding.measured))?;
            if !finding.packets.is_empty() {
                let numbers: Vec<String> =
                    finding.packets.iter().take(LISTED).map(ToString::to_string).collect();
                let more = if finding.packets.len() > LISTED { ", …" } else { "" };
                write!(out, "; packets {}{more}", numbers.join(", "))?;
            }
            writeln!(out, "]")?;
        }
        // A machine that is too busy makes timeouts look longer than they were.
        if one.lateness.is_overloaded() {
            writeln!(out, "  overload    {}; examine again on an idle machine", one.lateness)?;
        }
    }
    let count =
        |severity| findings(examined).filter(move |(_, finding)| finding.severity == severity).count();
    writeln!(
        out,
        "\n{} cases: {} faults, {} warnings, {} notes, {} ok, {} not tested",
        examined.len(),
        count(Severity::Fault),
        count(Severity::Warning),
        count(Severity::Note),
        count(Severity::Ok),
        count(Severity::NotTested)
    )?;
    // Measured times are too long by this at most, so a reader has to know it.
    let mut lateness = Lateness::default();
    for one in examined {
        lateness.merge(one.lateness);
    }
    writeln!(out, "examiner: {lateness}")
}

fn objects(out: &mut impl Write, side: ExaminedSide, what: &str, examined: &[Examined]) -> io::Result<()> {
    let side = match side {
        ExaminedSide::Client => "client",
        ExaminedSide::Server => "server",
    };
    for (one, finding) in findings(examined) {
        let object = json!({
            "side": side,
            "examined": what,
            "case": one.case.name,
            "severity": finding.severity,
            "measured": finding.measured,
            "clause": clause(one, finding),
            "packets": finding.packets,
            "examiner_late_ms": one.lateness.longest.as_secs_f64() * 1e3,
            "overloaded": one.lateness.is_overloaded(),
            "commit": COMMIT,
        });
        writeln!(out, "{object}")?;
    }
    Ok(())
}

fn list(out: &mut impl Write) -> Result<(), Failure> {
    for (side, title) in [(ExaminedSide::Client, "Clients"), (ExaminedSide::Server, "Servers")] {
        writeln!(out, "{title}:")?;
        for case in cases(side) {
            let [quick, thorough] = case.seconds;
            writeln!(
                out,
                "  {:<24} {:>3}/{:>3} s  {} ({})",
                case.name, quick, thorough, case.summary, case.clause
            )?;
        }
    }
    Ok(writeln!(out, "Seconds are the longest time with --quick and without.")?)
}

fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02} min", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Command, Laboratory};
    use clap::Parser;

    fn planned_with(words: &str) -> Result<ExaminationPlan, Failure> {
        let arguments = Arguments::try_parse_from(["coapace", "examine"].into_iter().chain(words.split(' ')));
        match arguments.expect("the arguments are read").command {
            Some(Command::Laboratory(Laboratory::Examine(options))) => plan(&options).map(|(plan, _)| plan),
            _ => panic!("another command"),
        }
    }

    #[test]
    fn examine_takes_a_uri_as_a_server_and_a_command_as_a_client() {
        let server = planned_with("coap://127.0.0.1:5690/a?b=c --observe /clock").expect("a plan");
        assert_eq!(server.side, ExaminedSide::Server);
        assert_eq!(server.address.port(), 5690);
        assert_eq!(server.target.observable, Some(Options::new().uri_path("clock")));
        let client = planned_with("--only backoff -- get {uri}").expect("a plan");
        assert_eq!((client.side, client.cases.len()), (ExaminedSide::Client, 1));
        assert!(client.address.ip().is_loopback());
    }

    #[test]
    fn examine_refuses_a_target_that_it_cannot_examine() {
        for words in ["--quick", "coaps://127.0.0.1/", "coap://127.0.0.1/ --only backoff", "-- get coap://x"]
        {
            assert!(matches!(planned_with(words), Err(Failure::Usage(_))), "{words}");
        }
    }
}
