//! The scenarios and mechanisms that the page offers for choice.

use coapace_control::DefaultTimer;
use coapace_scenario::naming::{TCP, TCP_SUMMARY, mechanisms};
use coapace_scenario::{Scenario, WorkloadKind};
use serde::Serialize;

use crate::knobs::{Knob, knobs};
use crate::opened;
use crate::style::{DARK, DASHES, styles};

/// Everything that the page can start with: scenarios and mechanisms.
#[derive(Serialize)]
pub(crate) struct Catalogue {
    version: &'static str,
    scenarios: Vec<ScenarioEntry>,
    mechanisms: Vec<MechanismEntry>,
    /// The retransmission timers that CoAP stacks ship: presets of the mechanism `default`.
    stacks: Vec<StackEntry>,
}

#[derive(Serialize)]
struct StackEntry {
    /// The mechanism, as the command line names it.
    label: String,
    name: &'static str,
    summary: &'static str,
}

#[derive(Serialize)]
struct ScenarioEntry {
    name: &'static str,
    title: String,
    summary: String,
    text: &'static str,
}

#[derive(Serialize)]
struct MechanismEntry {
    name: String,
    summary: &'static str,
    /// The mechanism's colour on a light background, and its colour on a dark one.
    colours: [&'static str; 2],
    dash: &'static str,
    /// True for a bulk mechanism, which only decides how many blocks of a body are outstanding.
    is_bulk: bool,
}

impl Catalogue {
    pub(crate) fn new() -> Result<Self, String> {
        let scenario = |builtin: coapace_scenario::Builtin| {
            let (name, text) = (builtin.name, builtin.text);
            let read = opened::template(name, text)?.scenario(&[]).map_err(|error| error.to_string())?;
            Ok(ScenarioEntry { name, title: read.title.clone(), summary: read.summary.clone(), text })
        };
        let own = mechanisms().entries().map(|entry| (entry.name, entry.summary, false));
        let tcp = (TCP, TCP_SUMMARY, false);
        let bulk = mechanisms().bulk_entries().map(|entry| (entry.name, entry.summary, true));
        let mut all: Vec<_> = own.chain([tcp]).collect();
        // A mechanism for bodies as well as for single exchanges is listed once.
        for entry in bulk {
            if !all.iter().any(|known| known.0 == entry.0) {
                all.push(entry);
            }
        }
        // Styles are chosen for all names at once, so that no two mechanisms look alike.
        let names: Vec<&str> = all.iter().map(|entry| entry.0).collect();
        let mechanisms = (all.iter().zip(styles(&names)))
            .map(|(&(name, summary, is_bulk), style)| {
                // A panic would end the page's worker. An index out of range would only repeat a colour.
                let (light, dark) = DARK[style.colour % DARK.len()];
                let dash = DASHES[style.dash % DASHES.len()];
                MechanismEntry { name: name.to_owned(), summary, colours: [light, dark], dash, is_bulk }
            })
            .collect();
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            scenarios: Scenario::builtins().map(scenario).collect::<Result<_, String>>()?,
            mechanisms,
            stacks: DefaultTimer::PRESETS.iter().map(StackEntry::new).collect(),
        })
    }
}

impl StackEntry {
    fn new(preset: &coapace_control::Preset) -> Self {
        Self { label: format!("default:preset={}", preset.name), name: preset.name, summary: preset.doc }
    }
}

/// A scenario as the page shows it.
#[derive(Serialize)]
pub(crate) struct Description {
    title: String,
    summary: String,
    source: String,
    knobs: Vec<Knob>,
    /// The mechanisms that run if the user names none. The next field is their number of seeds.
    mechanisms: Vec<String>,
    seeds: u32,
    is_mesh: bool,
    has_transfers: bool,
    has_flows: bool,
}

impl Description {
    pub(crate) fn of(name: &str, text: &str) -> Result<Self, String> {
        let template = opened::template(name, text)?;
        let scenario = template.scenario(&[]).map_err(|error| error.to_string())?;
        Ok(Self {
            title: scenario.title.clone(),
            summary: scenario.summary.clone(),
            source: scenario.source.clone(),
            knobs: knobs(&template, &scenario),
            mechanisms: scenario.defaults.mechanisms.clone(),
            seeds: scenario.defaults.seeds,
            is_mesh: scenario.network.mesh.is_some(),
            has_transfers: !scenario.workload.transfers.is_empty(),
            has_flows: scenario.workload.kind == WorkloadKind::Flows,
        })
    }
}

/// The hash and the file of a scenario with its settings applied.
#[derive(Serialize)]
pub(crate) struct Checked {
    hash: String,
    toml: String,
}

impl Checked {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        Self { hash: scenario.hash(), toml: scenario.to_toml() }
    }
}
