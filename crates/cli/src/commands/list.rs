//! `coapace list`.

use std::io::{self, Write};

use coapace_control::REGISTRY;
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
    writeln!(out, "{:<14} {:>11}  summary", "mechanism", "state bytes")?;
    for entry in REGISTRY {
        writeln!(out, "{:<14} {:>11}  {}", entry.name, entry.mechanism.state_bytes(), entry.summary)?;
    }
    writeln!(out, "{:<14} {:>11}  CoAP over TCP (RFC 8323), simulated with a real TCP", "tcp", "-")?;
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
    writeln!(out, "\nA mechanism is named as NAME or NAME:parameter=value,parameter=value; settings apply from left to right.")
}

fn scenarios(out: &mut impl Write) -> io::Result<()> {
    for builtin in Scenario::builtins() {
        writeln!(out, "{:<14} {}", builtin.name, builtin.summary)?;
    }
    writeln!(out, "\nEvery key of a scenario is described in docs/scenarios.md.")
}

fn papers(out: &mut impl Write) -> io::Result<()> {
    for paper in papers::PAPERS {
        writeln!(out, "{:<16} {}\n{:<16} {}", paper.key, paper.title, "", paper.source)?;
    }
    Ok(())
}
