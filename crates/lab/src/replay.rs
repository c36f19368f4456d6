//! Replays a script of events through one mechanism, event by event, for `coapace trace`.
//!
//! The script is CSV with the columns `at_ms` (milliseconds, to three places), `event` (`start`, `timeout`, `ack`, `reset`,
//! `giveup`), `draw` (from 0 to below 1, empty for 0), `answered` (the ordinal of the transmission that an `ack` answers, 0 for
//! the first, empty if unknown) and `exchange` (a name that distinguishes overlapping exchanges, which may be empty), in any
//! sequence. Other columns and lines that begin with `#` are skipped. `timeout` means that the timer fired and a retransmission
//! departed. With a bulk mechanism, a `timeout` before the timer fires means that the exchange was overtaken.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};

use coapace_control::{
    Answer, BULK, Controller, Cue, Draw, Duration, Exchange, Instant, Marking, Mechanism, Outcome, Sample,
    State,
};
use thiserror::Error;

/// The longest line of a script, in bytes. An exchange's name, a number and an event need far less.
const LONGEST: usize = 4096;

/// The reason why a replay ended early.
#[derive(Debug, Error)]
pub enum Failed {
    /// The script cannot be read or replayed. The text is one line, with the number of the script's line.
    #[error("{0}")]
    Script(String),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Output(#[source] io::Error),
}

/// Replays `script` through `mechanism` and writes `at_ms,event,timeout_ms,rto_ms,next_ms` for each event. `timeout_ms` is the
/// armed timeout, or empty. `rto_ms` is the RTO: the estimate that timeouts start from, before dither. `next_ms` is the time
/// until the next confirmable message may depart, or empty if the mechanism does not pace messages. For a bulk mechanism there
/// is another column, `window`: the number of exchanges that may be outstanding.
///
/// # Errors
/// A script that cannot be read or replayed, or an error of the output. Lines before an error in the script have been written.
/// If both occur, the error of the output is returned.
pub fn replay(mechanism: &Mechanism, script: impl io::Read, out: impl Write) -> Result<(), Failed> {
    let mut out = io::BufWriter::new(out);
    let played = play(mechanism, script, &mut out);
    // Flushed even if the script failed: the lines before the error help to find it.
    out.flush().map_err(Failed::Output)?;
    played
}

fn play(mechanism: &Mechanism, script: impl io::Read, out: &mut impl Write) -> Result<(), Failed> {
    // The csv crate does not count comments and blank lines. Nothing here is quoted, so lines are split by hand.
    let passed_over = |text: &str| text.trim().is_empty() || text.starts_with('#');
    let mut script = io::BufReader::new(script);
    let mut lines = (1u64..)
        .map_while(|number| {
            line(&mut script)
                .map_err(|problem| format!("line {number}: {problem}"))
                .transpose()
                .map(|line| (line, number))
        })
        .filter(|(line, _)| !line.as_ref().is_ok_and(|text| passed_over(text)));
    // An empty script has an empty header, whose error names the missing columns.
    let header = lines.next().map_or(Ok(String::new()), |(header, _)| header).map_err(Failed::Script)?;
    let columns = ScriptColumns::of(&header).map_err(Failed::Script)?;
    let mut player = Player::new(mechanism);
    // Only bulk mechanisms have a window, and a column without values would confuse.
    let window = if player.window().is_some() { ",window" } else { "" };
    writeln!(out, "at_ms,event,timeout_ms,rto_ms,next_ms{window}").map_err(Failed::Output)?;
    let field = |time: Option<Duration>| time.map_or_else(String::new, |time| millis(time.as_micros()));
    for (text, line) in lines {
        let text = text.map_err(Failed::Script)?;
        let (now, event, armed) = columns
            .step(&text)
            .and_then(|step| Ok((step.now, step.event, player.play(&step)?)))
            .map_err(|problem| Failed::Script(format!("line {line}: {problem}")))?;
        let at = millis(now.as_micros());
        let [armed, rto, next] =
            [armed, Some(mechanism.gauges(&player.state).rto), player.next(now)].map(field);
        let window = player.window().map_or_else(String::new, |window| format!(",{window}"));
        writeln!(out, "{at},{},{armed},{rto},{next}{window}", event.name()).map_err(Failed::Output)?;
    }
    Ok(())
}

/// Returns the next line without its end; `None` after the last one. A line that is too long is not read to its end.
fn line(script: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    // One byte more shows that a line is too long.
    let most = LONGEST as u64 + 1;
    let count =
        script.take(most).read_until(b'\n', &mut bytes).map_err(|error| format!("cannot read: {error}"))?;
    if count as u64 == most && !bytes.ends_with(b"\n") {
        return Err(format!("longer than {LONGEST} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "not UTF-8")?;
    // A script may come from Windows, with CR LF.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok((count > 0).then(|| text.strip_suffix('\r').unwrap_or(text).to_owned()))
}

/// The content of a line of a script.
struct ScriptStep<'a> {
    now: Instant,
    event: ScriptEvent,
    draw: Draw,
    answered: Option<u8>,
    exchange: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScriptEvent {
    Start,
    Timeout,
    Ack,
    Reset,
    GiveUp,
}

impl ScriptEvent {
    const ALL: [Self; 5] = [Self::Start, Self::Timeout, Self::Ack, Self::Reset, Self::GiveUp];

    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Timeout => "timeout",
            Self::Ack => "ack",
            Self::Reset => "reset",
            Self::GiveUp => "giveup",
        }
    }
}

/// The names of the columns, in the sequence of the header.
struct ScriptColumns<'a>(Vec<&'a str>);

impl<'a> ScriptColumns<'a> {
    fn of(header: &'a str) -> Result<Self, String> {
        // A spreadsheet may have written a byte order mark at the beginning.
        let names: Vec<_> = header.trim_start_matches('\u{feff}').split(',').map(str::trim).collect();
        match ["at_ms", "event"].into_iter().find(|name| !names.contains(name)) {
            None => Ok(Self(names)),
            Some(name) => Err(format!(
                "the header lacks {name}; it must name at_ms and event, and may name draw, answered and exchange"
            )),
        }
    }

    /// Returns a field of a line; empty if the line or the header lacks it.
    fn field<'b>(&self, line: &'b str, name: &str) -> &'b str {
        // Columns may come in any sequence, and scripts of other tools may have more.
        let place = self.0.iter().position(|other| *other == name);
        place.and_then(|place| line.split(',').nth(place)).unwrap_or_default().trim()
    }

    fn step<'b>(&self, line: &'b str) -> Result<ScriptStep<'b>, String> {
        let [at, event, draw, answered] =
            ["at_ms", "event", "draw", "answered"].map(|name| self.field(line, name));
        let known = || ScriptEvent::ALL.map(ScriptEvent::name).join(", ");
        let wrong_draw = || format!("draw is {draw:?}, but must be a decimal from 0 to below 1");
        Ok(ScriptStep {
            now: Instant::from_micros(parse_millis(at).ok_or_else(|| {
                format!("at_ms is {at:?}, but must be milliseconds with three decimal places at most")
            })?),
            event: ScriptEvent::ALL
                .into_iter()
                .find(|known| known.name() == event)
                .ok_or_else(|| format!("unknown event {event:?}; the events are {}", known()))?,
            draw: if draw.is_empty() { Draw::ZERO } else { parse_draw(draw).ok_or_else(wrong_draw)? },
            answered: match answered {
                "" => None,
                ordinal => Some(ordinal.parse().map_err(|_| {
                    format!(
                        "answered is {ordinal:?}, but must be the ordinal of a transmission, 0 for the first"
                    )
                })?),
            },
            exchange: self.field(line, "exchange"),
        })
    }
}

/// The state of one mechanism for one destination.
struct Player<'a> {
    mechanism: &'a Mechanism,
    state: State,
    now: Instant,
    /// The outstanding exchanges by name.
    open: BTreeMap<String, Open>,
}

/// An outstanding exchange.
struct Open {
    exchange: Exchange,
    /// The times at which transmissions departed, as many as an ordinal can count.
    departures: Vec<Instant>,
    retransmits: u8,
    last: Instant,
}

impl<'a> Player<'a> {
    fn new(mechanism: &'a Mechanism) -> Self {
        Self { mechanism, state: mechanism.state(), now: Instant::ZERO, open: BTreeMap::new() }
    }

    /// Replays one event. Returns the timeout that it arms, if any.
    fn play(&mut self, step: &ScriptStep) -> Result<Option<Duration>, String> {
        let &ScriptStep { now, event, draw, answered, exchange: name } = step;
        // Mechanisms rely on a clock that does not go back, as an endpoint's does.
        if now < self.now {
            let [now, before] = [now, self.now].map(|time| millis(time.as_micros()));
            return Err(format!("time goes backwards, from {before} to {now} ms"));
        }
        if answered.is_some() && event != ScriptEvent::Ack {
            return Err(format!("{} answers no transmission; only ack does", event.name()));
        }
        self.now = now;
        // Removed even if the step fails: a script ends with its first error.
        let open = self.open.remove(name);
        // The exchange of this step was removed above, so it is added here.
        let outstanding = u16::try_from(self.open.len() + 1).map_err(|_| "too many exchanges are open")?;
        let cue = Cue { now, draw, outstanding };
        let called = if name.is_empty() { "exchange".to_owned() } else { format!("exchange {name}") };
        match (event, open) {
            (ScriptEvent::Start, None) => {
                let (exchange, timeout) = self.mechanism.on_start(&mut self.state, cue);
                let open = Open { exchange, departures: vec![now], retransmits: 0, last: now };
                self.open.insert(name.to_owned(), open);
                Ok(Some(timeout))
            }
            (ScriptEvent::Start, Some(_)) if name.is_empty() => {
                Err("a start before the end of the exchange before it".to_owned())
            }
            (ScriptEvent::Start, Some(_)) => Err(format!("a start before the end of {called}")),
            // Every event but a start needs an exchange.
            (event, None) => Err(format!("{} without an open {called}", event.name())),
            (ScriptEvent::Timeout, Some(mut open)) => {
                let timeout = self.mechanism.on_retransmit(&mut self.state, &mut open.exchange, cue);
                open.retransmitted(now);
                self.open.insert(name.to_owned(), open);
                Ok(Some(timeout))
            }
            (event, Some(open)) => {
                let outcome = match event {
                    ScriptEvent::Reset => Outcome::Reset,
                    ScriptEvent::GiveUp => Outcome::GivenUp,
                    // Start and timeout were matched above, so this is an answer.
                    _ => Outcome::Acked(self.sample(&open, answered)?),
                };
                self.mechanism.on_end(&mut self.state, open.exchange, outcome, cue);
                Ok(None)
            }
        }
    }

    /// Returns the time until the next confirmable message may depart, if the mechanism paces messages.
    fn next(&self, now: Instant) -> Option<Duration> {
        let next = self.mechanism.limits(&self.state).next_confirmable;
        // Mechanisms without pacing return zero.
        (next > Instant::ZERO).then(|| next.since(now))
    }

    /// Returns the number of exchanges that may be outstanding, if the mechanism is a bulk mechanism.
    fn window(&self) -> Option<u16> {
        let kind = self.mechanism.kind();
        let is_bulk = BULK.iter().any(|entry| entry.mechanism.kind() == kind);
        self.mechanism.limits(&self.state).nstart.filter(|_| is_bulk)
    }

    /// Returns the sample that the mechanism gets from an answer. The sample names the answered transmission only if
    /// the mechanism marks transmissions, because otherwise an answer does not show to which transmission it belongs.
    /// So one script serves every mechanism.
    fn sample(&self, open: &Open, answered: Option<u8>) -> Result<Sample, String> {
        let answered = match answered {
            None => None,
            Some(ordinal) => {
                let &departure = open.departures.get(usize::from(ordinal)).ok_or_else(|| {
                    format!(
                        "transmission {ordinal} is answered, but the last one made was {}",
                        open.retransmits
                    )
                })?;
                Some(Answer { ordinal, since: self.now.since(departure) })
            }
        };
        Ok(Sample {
            since_first: self.now.since(open.departures[0]),
            since_last: self.now.since(open.last),
            retransmits: open.retransmits,
            answered: answered.filter(|_| self.mechanism.limits(&self.state).marking != Marking::None),
        })
    }
}

impl Open {
    fn retransmitted(&mut self, now: Instant) {
        self.last = now;
        self.retransmits = self.retransmits.saturating_add(1);
        // Ordinals are bytes, so later departures cannot be answered.
        if self.departures.len() <= u8::MAX.into() {
            self.departures.push(now);
        }
    }
}

/// Returns microseconds as milliseconds with three decimal places.
fn millis(us: u64) -> String {
    format!("{}.{:03}", us / 1_000, us % 1_000)
}

/// Parses milliseconds with up to three decimal places, as microseconds.
fn parse_millis(text: &str) -> Option<u64> {
    let (whole, fraction) = decimal(text)?;
    if fraction.len() > 3 {
        return None;
    }
    // Padded on the right: `.5` ms are 500 µs.
    let micros: u64 = format!("{fraction:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(micros)
}

/// Parses a decimal in [0, 1) as the nearest draw. Digits after the eighteenth are ignored.
fn parse_draw(text: &str) -> Option<Draw> {
    let (whole, fraction) = decimal(text)?;
    if whole.bytes().any(|digit| digit != b'0') {
        return None;
    }
    // Eighteen digits and 32 bits fit into 128 bits.
    let fraction: u128 = format!("{:0<18}", &fraction[..fraction.len().min(18)]).parse().ok()?;
    let scale = 10u128.pow(18);
    // Rounding may give 2^32, one more than the largest draw.
    Some(Draw::from_bits(u32::try_from(((fraction << 32) + scale / 2) / scale).unwrap_or(u32::MAX)))
}

/// Returns the digits before and after the decimal point, at least one before it.
fn decimal(text: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!whole.is_empty() && digits(whole) && digits(fraction)).then_some((whole, fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mechanism: &str, script: &str) -> Result<String, String> {
        let mut out = Vec::new();
        replay(&mechanism.parse().unwrap(), script.as_bytes(), &mut out)
            .map_err(|failed| failed.to_string())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn trace_replays_an_exchange_event_by_event() {
        let script = "event,at_ms,draw\nstart,0,0.5\ntimeout,2500,\nack,2600.25,\n";
        let expected = "at_ms,event,timeout_ms,rto_ms,next_ms\n0.000,start,2500.000,2000.000,\n\
                        2500.000,timeout,5000.000,2000.000,\n2600.250,ack,,2000.000,\n";
        assert_eq!(run("default", script).unwrap(), expected);
    }

    #[test]
    fn trace_prints_the_window_of_a_bulk_mechanism_in_another_column() {
        let mechanism = coapace_control::Mechanisms::BUILT_IN.parse_bulk("newreno").unwrap();
        let mut out = Vec::new();
        replay(&mechanism, "at_ms,event\n0,start\n2000,timeout\n2100,ack\n".as_bytes(), &mut out).unwrap();
        let expected = "at_ms,event,timeout_ms,rto_ms,next_ms,window\n0.000,start,2000.000,2000.000,,10\n\
                        2000.000,timeout,4000.000,4000.000,,1\n2100.000,ack,,4000.000,,2\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn overlapping_exchanges_of_a_script_are_named_and_their_number_is_printed() {
        let script = "at_ms,event,exchange\n0,start,a\n1,start,b\n2,start,\n3,ack,b\n4,start,c\n";
        let rows = run("cocoa", script).unwrap();
        let armed: Vec<_> = rows.lines().skip(1).map(|row| row.split(',').nth(2).unwrap()).collect();
        assert_eq!(
            armed,
            ["2000.000", "4000.000", "6000.000", "", "1003.000"],
            "2, 4 and 6 s, then measured"
        );
        let problem = |rows: &str| run("default", &format!("at_ms,event,exchange\n{rows}")).unwrap_err();
        assert_eq!(problem("0,start,a\n1,start,a\n"), "line 3: a start before the end of exchange a");
        assert_eq!(problem("0,start,a\n1,ack,b\n"), "line 3: ack without an open exchange b");
    }

    #[test]
    fn trace_prints_when_a_pacing_mechanism_allows_the_next_exchange() {
        let script = "at_ms,event\n0,start\n500,ack\n9000,start\n";
        let rows = run("rtt-coap:omega_slow=0", script).unwrap();
        let next: Vec<_> = rows.lines().skip(1).map(|row| row.rsplit(',').next().unwrap()).collect();
        assert_eq!(next, ["2000.000", "1500.000", "2000.000"]);
    }

    #[test]
    fn trace_uses_the_ordinal_of_an_answer_only_if_the_mechanism_marks_transmissions() {
        let script = "at_ms,event,answered\n0,start,\n3000,timeout,\n3400,ack,1\n";
        assert!(run("fasor-token", script).unwrap().ends_with("3400.000,ack,,600.000,\n"));
        assert!(run("fasor", script).unwrap().ends_with("3400.000,ack,,2000.000,\n"));
    }

    #[test]
    fn an_impossible_event_in_a_script_is_reported_with_its_line() {
        let problem = |rows: &str| run("default", &format!("at_ms,event,draw,answered\n{rows}")).unwrap_err();
        assert_eq!(
            problem("0,start,,\n1,start,,\n"),
            "line 3: a start before the end of the exchange before it"
        );
        assert_eq!(problem("# a word\n0,timeout,,\n"), "line 3: timeout without an open exchange");
        assert_eq!(problem("0,ack,,\n"), "line 2: ack without an open exchange");
        assert_eq!(problem("5,start,,\n4.5,ack,,\n"), "line 3: time goes backwards, from 5.000 to 4.500 ms");
        assert_eq!(
            problem("0,start,,\n1,timeout,,\n2,ack,,2\n"),
            "line 4: transmission 2 is answered, but the last one made was 1"
        );
        assert_eq!(
            problem("0,stat,,\n"),
            "line 2: unknown event \"stat\"; the events are start, timeout, ack, reset, giveup"
        );
        assert!(problem("0.0001,start,,\n").starts_with("line 2: at_ms is \"0.0001\""));
        assert!(problem("-1,start,,\n").starts_with("line 2: at_ms is"));
        assert!(problem("0,start,1,\n").starts_with("line 2: draw is \"1\""));
        assert!(problem("0,start,0.x,\n").starts_with("line 2: draw is"));
        assert!(problem("0,start,,0\n").starts_with("line 2: start answers no transmission"));
    }

    #[test]
    fn a_script_header_without_the_required_columns_is_refused() {
        assert!(run("default", "0,start\n").unwrap_err().starts_with("the header lacks at_ms"));
        assert!(run("default", "").unwrap_err().starts_with("the header lacks at_ms"));
    }

    #[test]
    fn a_random_draw_in_a_script_is_rounded_to_the_nearest_fraction_below_one() {
        assert_eq!(parse_draw("0.5"), Some(Draw::from_bits(1 << 31)));
        assert_eq!(parse_draw("0.99999999999999999999"), Some(Draw::from_bits(u32::MAX)));
        assert_eq!(parse_draw(".5"), None);
    }
}
