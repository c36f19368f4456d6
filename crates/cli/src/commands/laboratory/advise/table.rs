//! The findings of a capture for people.

use std::io::{self, Write};

use coapace_inspect::advice::clock::ClockStep;
use coapace_inspect::advice::findings::{Findings, LossMethod, SideBecause};
use coapace_inspect::advice::lives::{Sign, Starts};
use coapace_inspect::advice::replay::Replayed;
use coapace_inspect::advice::traffic::CaptureEnd;

use super::AdviceReport;

/// The steps of a clock that are printed in full.
const STEPS_SHOWN: usize = 3;

/// Writes all tables.
pub(super) fn write(out: &mut impl Write, report: &AdviceReport<'_>) -> io::Result<()> {
    let AdviceReport { findings, replays, remarks, .. } = report;
    reading(out, report)?;
    exchanges(out, findings)?;
    round_trips(out, findings)?;
    losses(out, findings)?;
    timeouts(out, findings)?;
    if !replays.is_empty() {
        replayed(out, replays, findings)?;
    }
    if !remarks.is_empty() {
        writeln!(out, "\nThe scenario")?;
        for text in *remarks {
            writeln!(out, "  {text}")?;
        }
    }
    Ok(())
}

fn reading(out: &mut impl Write, report: &AdviceReport<'_>) -> io::Result<()> {
    let AdviceReport { capture: name, findings, .. } = report;
    let read = &findings.reading;
    writeln!(
        out,
        "{name}: {} packets in {}, {} CoAP messages",
        read.packets,
        seconds(read.seconds),
        read.messages
    )?;
    if read.by_tshark > 0 {
        writeln!(
            out,
            "  tshark read {} datagrams in link types or tunnels that are not known here",
            read.by_tshark
        )?;
    }
    let mut left: Vec<String> =
        read.skipped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let counted = [
        (read.again, "seen a second time, as on two interfaces or behind a bridge"),
        (read.dtls, "encrypted with DTLS, which cannot be read"),
        (read.malformed, "malformed at CoAP's port"),
        (read.unmatched, "answers or notifications without a request"),
        (read.torn, "open at a step of the clock"),
        (read.left_out, "beyond what is kept"),
    ];
    left.extend(
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
    );
    if !left.is_empty() {
        writeln!(out, "  left out: {}", left.join("; "))?;
    }
    if let Some(advice) = report.advice {
        writeln!(out, "  {advice}")?;
    }
    if !read.steps.is_empty() {
        writeln!(out, "  left out of all times: {}", steps(&read.steps))?;
    }
    if let Some(damage) = &read.damage {
        writeln!(out, "  the file is damaged: {damage}")?;
    }
    let side = match findings.side {
        CaptureEnd::Client => "beside the clients",
        CaptureEnd::Server => "beside the server",
        CaptureEnd::Middle => "between clients and servers",
    };
    let because = match findings.side_because {
        SideBecause::Said => "as you say",
        SideBecause::Looks => "by its copies and answers",
        SideBecause::Assumed => {
            "assumed: the capture does not show where it was taken; correct it with --side"
        }
    };
    let of = if read.simulated { "simulated and looked at" } else { "taken" };
    writeln!(out, "  {of} {side} ({because})")
}

/// Says how the clock of a capture stepped.
fn steps(all: &[ClockStep]) -> String {
    let one = |step: &ClockStep| {
        let (way, by_s) = if step.by_s < 0.0 { ("back", -step.by_s) } else { ("forward", step.by_s) };
        format!("a step of the clock {way} by {} after {}", long(by_s), long(step.at_s))
    };
    let mut parts: Vec<String> = all.iter().take(STEPS_SHOWN).map(one).collect();
    if let Some(more) = all.len().checked_sub(STEPS_SHOWN).filter(|more| *more > 0) {
        parts.push(format!("and {more} more steps"));
    }
    parts.join("; ")
}

/// Returns a time, in days if there are several.
fn long(time: f64) -> String {
    const DAY_S: f64 = 86_400.0;
    if time >= 2.0 * DAY_S { format!("{:.1} days", time / DAY_S) } else { seconds(time) }
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
    if let Some(sentence) = starts(&findings.starts) {
        writeln!(out, "  {sentence}")?;
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

/// Returns a sentence about the restarts of clients.
fn starts(found: &Starts) -> Option<String> {
    let sign = match found.told_by? {
        Sign::MessageIds => "Message IDs jump",
        Sign::Tokens => "tokens jump",
        Sign::Ports => "ports change; neither Message IDs nor tokens count",
    };
    if found.restarts == 0 {
        return Some("no client restarted: Message IDs or tokens count on".to_owned());
    }
    let pause =
        found.pause_s.map_or_else(String::new, |pause_s| format!(", after a pause of {}", seconds(pause_s)));
    Some(format!(
        "{} clients restarted, {} times in all, {} of them at another port{pause}: their {sign}",
        found.did, found.restarts, found.other_ports
    ))
}

fn round_trips(out: &mut impl Write, findings: &Findings) -> io::Result<()> {
    let Some(rtt) = &findings.round_trips else { return Ok(()) };
    let of = if findings.side == CaptureEnd::Server { "Times of the server" } else { "Round trips" };
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
    let values: Vec<String> =
        quantiles.iter().map(|(name, value)| format!("{name} {}", seconds(*value))).collect();
    writeln!(out, "\n{of}\n  {}", values.join(", "))?;
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
    let none = "no known mechanism marks its copies as these clients do";
    writeln!(out, "  {}", timeouts.nearest.as_ref().map_or_else(|| none.to_owned(), ToString::to_string))
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
