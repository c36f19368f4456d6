//! A scenario that is read and checked.

use std::sync::Arc;

use coapace_sim::Layout;

use crate::cross_checks;
use crate::file::{Defaults, File};
use crate::hash::Hash64;
use crate::hosts::{Clients, Server};
use crate::knobs::Values;
use crate::network::{Network, Tcp};
use crate::places::Places;
use crate::schema::document::Item;
use crate::schema::kind::Lines;
use crate::workload::Workload;

/// The files in `scenarios/`, by name.
const BUILTINS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/builtins.rs"));

/// A network and a workload that were read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The name of the built-in scenario, or of the file without its ending.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// The purpose, in one sentence.
    pub summary: String,
    /// The source of the numbers.
    pub source: String,
    /// The hosts that ask.
    pub clients: Clients,
    /// The hosts that answer.
    pub server: Server,
    /// The requests or flows of the clients.
    pub workload: Workload,
    /// The hops or the mesh between the clients and the servers.
    pub network: Network,
    /// CoAP over TCP.
    pub tcp: Tcp,
    /// The mechanisms and the number of seeds of a run if the command line names none.
    pub defaults: Defaults,
    places: Option<Arc<Places>>,
    knob_values: Values,
    knob_choices: Vec<(String, Vec<String>)>,
    /// The effective value of every key that shapes a run.
    lines: Lines,
    /// The file with its settings made. The names of files in it are absolute.
    file: Arc<Item>,
}

/// A scenario that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The name by which it can be loaded.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

impl Scenario {
    /// Returns the scenarios that come with the program.
    pub fn builtins() -> impl ExactSizeIterator<Item = Builtin> {
        BUILTINS.iter().map(|(name, text)| Builtin { name, text })
    }

    /// Returns the built-in scenario of this name.
    pub fn builtin(name: &str) -> Option<Builtin> {
        Self::builtins().find(|builtin| builtin.name == name)
    }

    /// Returns a scenario of a file that was read, with its settings made.
    pub(crate) fn new(
        name: &str,
        item: Arc<Item>,
        file: File,
        places: Option<Arc<Places>>,
        knob_values: Values,
    ) -> Self {
        Self {
            name: name.to_owned(),
            knob_values,
            knob_choices: file.knobs.choices(),
            lines: cross_checks::with_contents(file.run_lines(), places.as_deref()),
            places,
            file: item,
            title: file.title,
            summary: file.summary,
            source: file.source,
            clients: file.clients,
            server: file.server,
            workload: file.workload,
            network: file.network,
            tcp: file.tcp,
            defaults: file.defaults,
        }
    }

    /// Returns the positions, the root and the sinks of the mesh, if the scenario has one.
    pub fn layout(&self) -> Option<&Layout> {
        self.places.as_ref().map(|places| &places.layout)
    }

    /// Returns the positions and movements of the nodes of the mesh, if the scenario has one.
    pub fn places(&self) -> Option<&Places> {
        self.places.as_deref()
    }

    /// Returns the name and the present value of every knob, in the order of the file. A knob with choices has the name of the
    /// choice in force, or `custom` if there is none. A knob of several keys with different values has all of them, with `/`
    /// between.
    pub fn knob_values(&self) -> &[(String, String)] {
        &self.knob_values
    }

    /// Returns the choices of a knob; empty if it takes the values of its keys.
    pub fn knob_choices(&self, name: &str) -> &[String] {
        self.knob_choices.iter().find(|(knob, _)| knob == name).map_or(&[], |(_, choices)| choices)
    }

    /// Returns the present value of one knob.
    pub fn knob(&self, name: &str) -> Option<&str> {
        self.knob_values.iter().find(|(knob, _)| knob == name).map(|(_, value)| value.as_str())
    }

    /// Returns every key that shapes a run with its effective value, defaults included, one `path = value` a line, always in
    /// the same order and the same units. Keys that later versions added (`server.count`, `workload.duration`, …) are left out
    /// where they have their defaults. Names of presets are left out, because the keys that they fill are not. The name of a
    /// file is replaced by a hash of its content.
    ///
    /// Titles, comments, knobs and `[defaults]` are left out: they do not change what happens in a run.
    pub fn canonical(&self) -> String {
        self.lines.iter().flat_map(|(path, value)| [path, " = ", value, "\n"]).collect()
    }

    /// Returns a scenario file with all settings made, which reads back to a scenario of the same [`hash`](Self::hash). It has the
    /// title, the defaults and the knobs, except for knobs and choices that the settings leave no room for. It has no comments. Files
    /// that it names have absolute paths.
    pub fn to_toml(&self) -> String {
        let mut file = (*self.file).clone();
        // It was read before.
        if let Ok(read) = File::of(&file) {
            read.knobs.leave_fitting(&mut file, File::run_lines_of);
        }
        file.document()
    }

    /// Returns the FNV-1a hash of [`canonical`](Self::canonical), in 16 hexadecimal digits. Scenarios with equal hashes run
    /// alike, however they were written, so their results may be compared. The hash does not protect against forgery.
    pub fn hash(&self) -> String {
        Hash64::of(self.canonical().bytes()).to_string()
    }
}
