//! All advice from a capture, as text and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::clock::ClockStep;
use super::findings::{Findings, LossMethod, OTHERS, SideBecause};
use super::lives::{Sign, Starts};
use super::replay::Replayed;
use super::traffic::CaptureEnd;

/// The mechanism whose replay is compared with the replay of the clients' own mechanism.
const EBB: &str = "ebb";

/// The number of steps of the clock that are printed in full.
const STEPS_SHOWN: usize = 3;

/// All results of `coapace advise`, which can be serialised as JSON.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AdviceReport<'a> {
    /// The name of the capture.
    pub capture: &'a str,
    /// The findings about the capture's traffic.
    pub findings: &'a Findings,
    /// Advice about packets that could not be read.
    pub advice: Option<&'a str>,
    /// The result of each mechanism in a replay.
    pub replays: &'a [Replayed],
    /// Remarks on the fitted scenario; empty if none was fitted.
    pub remarks: &'a [String],
}

impl AdviceReport<'_> {
    /// Writes all tables as text.
    ///
    /// # Errors
    /// Returns the first write error.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { findings, replays, remarks, .. } = self;
        reading(out, self)?;
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

    /// Returns a text that says why the capture contains no exchanges, with advice.
    pub fn nothing(&self) -> String {
        let read = &self.findings.reading;
        let mut parts = vec![format!("no confirmable CoAP requests in {} packets", read.packets)];
        if read.messages > 0 {
            parts.push(format!("{} are other CoAP messages", read.messages));
        }
        parts.extend(read.skipped.iter().map(|(reason, count)| format!("{count} {reason}")));
        if read.dtls > 0 {
            let dtls = read.dtls;
            parts.push(format!(
                "{dtls} are DTLS, which cannot be read: capture in the endpoint that decrypts it (coapace --pcap)"
            ));
        }
        parts.extend(self.advice.map(str::to_owned));
        if read.packets == 0 {
            parts.push("capture while CoAP clients send requests".to_owned());
        } else if read.dtls == 0 && read.skipped.contains_key(OTHERS) {
            parts.push("name the servers' ports with --port".to_owned());
        }
        parts.join("; ")
    }
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
    // The skipped packets above have reasons of their own. These were read, and are left out of everything else.
    let counted = [
        (read.again, "seen a second time, as on two interfaces or behind a bridge"),
        (read.dtls, "encrypted with DTLS, which cannot be read"),
        (read.malformed, "malformed at CoAP's port"),
        (read.unmatched, "answers or notifications without a request"),
        (read.torn, "unanswered at a step of the clock"),
        (read.left_out, "too many for the tables of this program"),
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
    // A simulation writes all places into one file, so it was not taken at one of them.
    let of = if read.simulated { "simulated, and read as if taken" } else { "taken" };
    writeln!(out, "  {of} {side} ({because})")
}

/// Returns the steps of the clock as text. The first [`STEPS_SHOWN`] are described, the others only counted.
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

/// Returns a duration in seconds as text, in days from two days on.
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
    // Beside the server nothing shows which copies were spurious, so the sentence ends earlier there.
    let spurious = findings.spurious.map_or_else(String::new, |count| {
        format!(", {count} of them spurious: an earlier copy was answered, then or later")
    });
    if let Some(sentence) = starts(&findings.starts) {
        writeln!(out, "  {sentence}")?;
    }
    writeln!(
        out,
        "  {} transmissions, {} retransmissions{spurious}",
        findings.transmissions, findings.retransmissions
    )?;
    // Duplicated answers and Message IDs that come again are rare, and get a line only then.
    if findings.duplicates > 0 {
        writeln!(
            out,
            "  {} more answers than copies: the network or the server duplicated them",
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

/// Returns a sentence about the restarts of clients; `None` if they cannot be recognised.
fn starts(found: &Starts) -> Option<String> {
    let sign = match found.shown_by? {
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
        "  {} in all: {} certain, {} paired in order (as many answers as copies), {} paired by the closest times",
        rtt.count, rtt.unambiguous, rtt.in_order, rtt.likely
    )
}

fn losses(out: &mut impl Write, findings: &Findings) -> io::Result<()> {
    let Some(loss) = &findings.loss else { return Ok(()) };
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let method = match loss.method {
        LossMethod::RoundTrips => "round trips: transmissions without an answer of their own",
        LossMethod::UntilAnswered => {
            "round trips; copies after the answered one do not count, because the server answers only one copy"
        }
        LossMethod::Answers => {
            "answers (lost if another copy follows); requests lost before the capture point cannot be seen"
        }
    };
    writeln!(
        out,
        "\nLosses\n  {} (95 % interval {} to {}) of {} {method}",
        percent(loss.share),
        percent(loss.low),
        percent(loss.high),
        loss.of
    )?;
    // Answers show losses behind the capture only, and no round trips to set them against.
    if loss.method != LossMethod::Answers {
        // Losses that grow with the round trip come from full buffers. Two percentage points may be chance.
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
        return writeln!(out, "\nTimeouts\n  unknown, because no request was sent again");
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
    let none = "no known mechanism numbers its copies in the way that these clients do";
    writeln!(out, "  {}", timeouts.nearest.as_ref().map_or_else(|| none.to_owned(), ToString::to_string))
}

fn replayed(out: &mut impl Write, replays: &[Replayed], findings: &Findings) -> io::Result<()> {
    let loss = findings.loss.map_or(0.0, |loss| loss.share * 100.0);
    let width = replays.iter().map(|it| it.mechanism.len()).max().unwrap_or(0).max(20);
    writeln!(
        out,
        "\nReplayed on these round trips, with {loss:.1} % lost at random, the same for all mechanisms\n  {:<width$} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "mechanism", "first", "again", "spurious", "given up", "mean", "95 %"
    )?;
    // The quickest mechanism comes first.
    let mut sorted: Vec<&Replayed> = replays.iter().collect();
    sorted.sort_by(|a, b| a.mean_s.total_cmp(&b.mean_s));
    for result in sorted {
        // Shares of the exchanges, so that mechanisms can be compared with captures of another length.
        let share = |count: u64| format!("{:.1} %", 100.0 * count as f64 / result.exchanges.max(1) as f64);
        writeln!(
            out,
            "  {:<width$} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            result.mechanism,
            seconds(result.first_timeout_s),
            share(result.retransmissions),
            share(result.spurious),
            share(result.given_up),
            seconds(result.mean_s),
            seconds(result.p95_s)
        )?;
    }
    writeln!(
        out,
        "  first: median timeout of first copies; again: retransmissions per exchange; mean, 95 %: time to the answer\n  \
         A replay cannot know what more or fewer copies would have done to the queues; --scenario FILE and coapace rank FILE can."
    )?;
    // The answer to the reader's question, in one sentence.
    let own = findings.timeouts.as_ref().and_then(|it| it.nearest.as_ref()).filter(|it| it.is_near());
    let of = |name: &str| replays.iter().find(|it| it.mechanism == name);
    // Clients that act like `ebb` already need no comparison with it.
    let Some((own, ebb)) =
        own.and_then(|own| of(&own.mechanism)).zip(of(EBB)).filter(|(own, _)| own.mechanism != EBB)
    else {
        return Ok(());
    };
    let again = |it: &Replayed| 100.0 * it.retransmissions as f64 / it.exchanges.max(1) as f64;
    writeln!(
        out,
        "  These clients act like {}: an answer takes {} on average, and an exchange {:.1} % retransmissions. With {EBB} it would take {}, \
         with {:.1} %.",
        own.mechanism,
        seconds(own.mean_s),
        again(own),
        seconds(ebb.mean_s),
        again(ebb)
    )
}

/// Returns a duration in seconds as text with about three digits, in a suitable unit.
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
