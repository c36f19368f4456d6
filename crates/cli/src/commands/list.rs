//! `coapace list`.

use std::io::{self, Write};

use coapace_control::Entry;
#[cfg(feature = "lab")]
use coapace_lab::papers::{self, Paper};
use coapace_scenario::naming::TCP;
use coapace_scenario::{Scenario, naming};

use crate::Failure;
use crate::arguments::Listed;

pub(crate) fn list(what: Listed, name: Option<&str>, out: &mut impl Write) -> Result<(), Failure> {
    match (what, name) {
        (Listed::Mechanisms, None) => mechanisms(out)?,
        (Listed::Mechanisms, Some(name)) => one_mechanism(name, out)?,
        (Listed::Scenarios, None) => scenarios(out)?,
        (Listed::Scenarios, Some(name)) => one_scenario(name, out)?,
        #[cfg(feature = "lab")]
        (Listed::Papers, None) => papers(out)?,
        #[cfg(feature = "lab")]
        (Listed::Papers, Some(name)) => {
            let known = || papers::PAPERS.iter().map(|paper| paper.key).collect::<Vec<_>>().join(", ");
            let paper = Paper::find(name)
                .ok_or_else(|| Failure::Usage(format!("there is no paper `{name}`; there is {}", known())))?;
            one_paper(paper, out)?;
        }
    }
    Ok(())
}

fn mechanisms(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:<18} {:>11}  summary", "mechanism", "state bytes")?;
    for entry in naming::mechanisms().entries() {
        writeln!(out, "{:<18} {:>11}  {}", entry.name, entry.mechanism.state_bytes(), entry.summary)?;
    }
    writeln!(out, "{:<18} {:>11}  CoAP over TCP (RFC 8323), simulated with a real TCP", TCP, "-")?;
    for entry in naming::mechanisms().entries() {
        described(entry, out)?;
    }
    writeln!(
        out,
        "\nA mechanism is named as NAME or NAME:parameter=value,parameter=value; settings apply from left to right.\n\
         coapace list mechanisms NAME says when to use one, and what can go wrong with it."
    )
}

/// Writes the source of a mechanism, its parameters with their values, and its presets.
fn described(entry: &Entry, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n{}  ({})", entry.name, entry.source)?;
    for parameter in entry.mechanism.parameters() {
        let value = entry.mechanism.get(parameter.name).map_or_else(String::new, |value| value.to_string());
        writeln!(out, "  {:<20} {:<10} {}", parameter.name, value, parameter.doc)?;
    }
    for preset in entry.mechanism.presets() {
        writeln!(out, "  {:<31} {}", format!("preset={}", preset.name), preset.doc)?;
    }
    Ok(())
}

/// Writes everything about one mechanism. Settings after its name change the values of its parameters.
fn one_mechanism(name: &str, out: &mut impl Write) -> Result<(), Failure> {
    let (mechanism, entry) = naming::parse_any(name).map_err(Failure::Usage)?;
    let entry = Entry { mechanism, ..*entry };
    writeln!(out, "{}: {}", entry.name, entry.summary)?;
    writeln!(out, "State of a destination: {} bytes.", mechanism.state_bytes())?;
    described(&entry, out)?;
    let notes = entry.notes;
    for (heading, text) in [
        ("Status", notes.status),
        ("Use it when", notes.use_when),
        ("Use another when", notes.avoid_when),
        ("Hazards", notes.hazards),
    ] {
        writeln!(out, "\n{heading}: {text}")?;
    }
    Ok(())
}

fn one_scenario(name: &str, out: &mut impl Write) -> Result<(), Failure> {
    let scenario = Scenario::load(name, &[])?;
    writeln!(
        out,
        "{}: {}\n{}\nSource: {}\n",
        scenario.name, scenario.title, scenario.summary, scenario.source
    )?;
    knobs(&scenario, "", out)?;
    let defaults = &scenario.defaults;
    writeln!(out, "\nBy default {} seeds of: {}.", defaults.seeds, defaults.mechanisms.join(", "))?;
    writeln!(
        out,
        "\nEvery key that shapes a run, to be set by its path (docs/scenarios.md):\n\n{}",
        scenario.canonical().trim_end()
    )?;
    Ok(())
}

#[cfg(feature = "lab")]
fn one_paper(paper: &Paper, out: &mut impl Write) -> io::Result<()> {
    let source = paper.source().map_err(io::Error::other)?;
    writeln!(out, "{:<16} {}\n{:<16} {}", paper.key, source.title, "", source.source)
}

/// Writes the knobs of a scenario (the values that `--set` names) with their values and choices.
fn knobs(scenario: &Scenario, indent: &str, out: &mut impl Write) -> io::Result<()> {
    for (knob, value) in scenario.knob_values() {
        let choices = scenario.knob_choices(knob).into_iter();
        let others: Vec<_> = choices.filter(|choice| choice != value).collect();
        let others = if others.is_empty() { String::new() } else { format!("  (or {})", others.join(", ")) };
        writeln!(out, "{indent}--set {knob}={value}{others}")?;
    }
    Ok(())
}

fn scenarios(out: &mut impl Write) -> io::Result<()> {
    for builtin in Scenario::builtins() {
        let scenario = Scenario::load(builtin.name, &[]).map_err(io::Error::other)?;
        writeln!(out, "{:<12} {}", builtin.name, scenario.summary)?;
        knobs(&scenario, &format!("{:<12}   ", ""), out)?;
    }
    writeln!(
        out,
        "\nThe values shown are the defaults of the knobs. Every key of a scenario is described in docs/scenarios.md."
    )
}

#[cfg(feature = "lab")]
fn papers(out: &mut impl Write) -> io::Result<()> {
    for paper in papers::PAPERS {
        one_paper(paper, out)?;
    }
    Ok(())
}
