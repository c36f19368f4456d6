//! `coapace list`.

use std::io::{self, Write};

use coapace_control::Entry;
#[cfg(feature = "lab")]
use coapace_lab::papers::{self, Paper};
use coapace_scenario::naming::{TCP, TCP_SUMMARY};
use coapace_scenario::{Scenario, Source, json_schema, naming};

use crate::Failure;
use crate::arguments::Listed;

pub(crate) fn list(
    what: Listed,
    name: Option<&str>,
    toml: bool,
    schema: bool,
    out: &mut impl Write,
) -> Result<(), Failure> {
    match (what, name) {
        // The order of these arms refuses --schema and --toml for things that have neither.
        (Listed::Scenarios, _) if schema => out.write_all(json_schema().as_bytes())?,
        _ if schema => {
            return Err(Failure::Usage(
                "--schema goes with scenarios: coapace list scenarios --schema".to_owned(),
            ));
        }
        // The text of the file keeps its comments, which `to_toml` would not have.
        (Listed::Scenarios, Some(name)) if toml => out.write_all(Source::find(name)?.text.as_bytes())?,
        _ if toml => {
            return Err(Failure::Usage(
                "--toml needs a scenario, as in: coapace list scenarios nb-iot --toml".to_owned(),
            ));
        }
        (Listed::Mechanisms, None) => mechanisms(out)?,
        (Listed::Mechanisms, Some(name)) => one_mechanism(name, out)?,
        (Listed::Scenarios, None) => scenarios(out)?,
        (Listed::Scenarios, Some(name)) => one_scenario(name, out)?,
        #[cfg(feature = "lab")]
        (Listed::Papers, None) => papers(out)?,
        #[cfg(feature = "lab")]
        (Listed::Papers, Some(name)) => {
            one_paper(Paper::named(name).map_err(Failure::Usage)?, out)?;
        }
    }
    Ok(())
}

fn mechanisms(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:<18} {:>11}  summary", "mechanism", "state bytes")?;
    for entry in naming::mechanisms().entries() {
        writeln!(out, "{:<18} {:>11}  {}", entry.name, entry.mechanism.state_bytes(), entry.summary)?;
    }
    writeln!(out, "{TCP:<18} {:>11}  {TCP_SUMMARY}", "-")?;
    for entry in naming::mechanisms().entries() {
        described(entry, out)?;
    }
    writeln!(
        out,
        "\nA mechanism is named as NAME or NAME:parameter=value,parameter=value; settings apply from left to right.\n\
         NAME:form=parameters is a stack that retransmits by itself, from an ACK_TIMEOUT and a factor for each exchange (run, rank, search).\n\
         default:preset=NAME has the timer that a stack ships.\n\
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
