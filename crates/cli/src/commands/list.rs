//! `coapace list`.

use std::io::{self, Write};

use coapace_control::REGISTRY;
use coapace_lab::contender::TCP;
use coapace_lab::{papers, scenario::Scenario};

use crate::arguments::Listed;

pub(crate) fn list(what: Listed, out: &mut impl Write) -> io::Result<()> {
    match what {
        Listed::Mechanisms => mechanisms(out),
        Listed::Scenarios => scenarios(out),
        Listed::Papers => papers(out),
    }
}

fn mechanisms(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:<18} {:>11}  summary", "mechanism", "state bytes")?;
    for entry in REGISTRY {
        writeln!(out, "{:<18} {:>11}  {}", entry.name, entry.mechanism.state_bytes(), entry.summary)?;
    }
    writeln!(out, "{:<18} {:>11}  CoAP over TCP (RFC 8323), simulated with a real TCP", TCP, "-")?;
    for entry in REGISTRY {
        writeln!(out, "\n{}  ({})", entry.name, entry.source)?;
        for parameter in entry.mechanism.parameters() {
            let value = entry.mechanism.get(parameter.name).map(ToString::to_string).unwrap_or_default();
            writeln!(out, "  {:<20} {:<10} {}", parameter.name, value, parameter.doc)?;
        }
        for preset in entry.mechanism.presets() {
            writeln!(out, "  {:<31} {}", format!("preset={}", preset.name), preset.doc)?;
        }
    }
    writeln!(
        out,
        "\nA mechanism is named as NAME or NAME:parameter=value,parameter=value; settings apply from left to right."
    )
}

fn scenarios(out: &mut impl Write) -> io::Result<()> {
    for builtin in Scenario::builtins() {
        let scenario = Scenario::load(builtin.name, &[]).map_err(io::Error::other)?;
        writeln!(out, "{:<12} {}", builtin.name, scenario.summary)?;
        for (knob, value) in scenario.knob_values() {
            let choices = scenario.knob_choices(knob).iter().map(String::as_str);
            let others: Vec<_> = choices.filter(|choice| choice != value).collect();
            let others =
                if others.is_empty() { String::new() } else { format!("  (or {})", others.join(", ")) };
            writeln!(out, "{:<12}   --set {knob}={value}{others}", "")?;
        }
    }
    writeln!(
        out,
        "\nThe values shown are the defaults of the knobs. Every key of a scenario is described in docs/scenarios.md."
    )
}

fn papers(out: &mut impl Write) -> io::Result<()> {
    for paper in papers::PAPERS {
        let source = paper.source().map_err(io::Error::other)?;
        writeln!(out, "{:<16} {}\n{:<16} {}", paper.key, source.title, "", source.source)?;
    }
    Ok(())
}
