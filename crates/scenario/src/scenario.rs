//! A scenario that is read and checked.

use std::ops::Deref;
use std::sync::Arc;

use coapace_sim::Layout;

use crate::file::File;
use crate::hash::Hash64;
use crate::knobs::KnobValues;
use crate::places::Places;
use crate::schema::document::Item;
use crate::schema::document::setting_of;
use crate::schema::kind::Lines;

/// The files in `scenarios/`, by name.
const BUILTINS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/builtins.rs"));

/// A network and a workload that were read and checked.
///
/// Every key of the [`File`] is a field of the scenario, too: `scenario.clients`.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The name of the built-in scenario, or of the file without its ending.
    pub name: String,
    /// The values of all keys, with the settings made.
    pub(crate) file: File,
    pub(crate) places: Option<Arc<Places>>,
    pub(crate) knob_values: KnobValues,
    /// The effective value of every key that shapes a run.
    pub(crate) lines: Lines,
    /// The file with its settings made, as a tree. The names of files in it are absolute.
    pub(crate) item: Arc<Item>,
}

impl Deref for Scenario {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
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

    /// Returns the positions, the root and the sinks of the mesh, if the scenario has one.
    pub fn layout(&self) -> Option<&Layout> {
        self.places.as_ref().map(|places| &places.layout)
    }

    /// Returns the positions and movements of the nodes of the mesh, if the scenario has one.
    pub fn places(&self) -> Option<&Places> {
        self.places.as_deref()
    }

    /// Returns the name and the present value of every knob, in the sequence of the file, and of the keys added by
    /// [`showing`](Self::showing). A knob with choices has the name of the choice in force, or `custom` if there is none. A
    /// knob of several keys with different values has all of them, with `/` between.
    pub fn knob_values(&self) -> &[(String, String)] {
        &self.knob_values
    }

    /// Returns the names of the choices of a knob; empty if the knob has none, but gives its value to keys.
    pub fn knob_choices(&self, name: &str) -> Vec<&str> {
        self.file.knobs.choices(name)
    }

    /// Returns a description of the values that a knob accepts, as errors show it: `"none" or "low"`, or `a whole
    /// number from 1 to 100`. For a knob of several keys it describes the values of the first.
    pub fn knob_accepts(&self, name: &str) -> String {
        self.file.knobs.accepts(name, File::all_keys())
    }

    /// Returns the present value of the knob `name`; `None` if the scenario has no such knob.
    pub fn knob(&self, name: &str) -> Option<&str> {
        self.knob_values.iter().find(|(knob, _)| knob == name).map(|(_, value)| value.as_str())
    }

    /// Adds the values of these keys to [`knob_values`](Self::knob_values), so that results show them. Knobs are always shown.
    /// A key without an [`effective`](Self::effective) value is shown with its value in `settings`, and is left out if
    /// `settings` has none.
    #[must_use]
    pub fn showing(mut self, keys: &[&str], settings: &[(String, String)]) -> Self {
        // Collected first, because the loop adds to the values that the filter reads.
        for key in keys.iter().filter(|key| self.knob(key).is_none()).collect::<Vec<_>>() {
            let value = self.effective(key).or_else(|| setting_of(settings, key).map(str::to_owned));
            self.knob_values.extend(value.map(|value| ((*key).to_owned(), value)));
        }
        self
    }

    /// Returns the effective value of a key as in [`canonical`](Self::canonical), text without its quotes; `None` for a table,
    /// the name of a preset, and a key that does not shape a run.
    pub fn effective(&self, key: &str) -> Option<String> {
        let (_, value) = self.lines.iter().find(|(path, _)| path == key)?;
        Some(value.trim_matches('"').to_owned())
    }

    /// Returns every key that shapes a run with its effective value, defaults included, one `path = value` a line, always in
    /// the same sequence and the same units. Names of presets are left out, because the keys that they fill are listed. The
    /// name of a file is replaced by a hash of its content.
    ///
    /// Titles, comments, knobs and `[defaults]` are left out: they do not change what happens in a run.
    pub fn canonical(&self) -> String {
        self.lines.iter().flat_map(|(path, value)| [path, " = ", value, "\n"]).collect()
    }

    /// Returns this scenario as a scenario file with all settings applied. Its [`hash`](Self::hash) is the same. The file keeps the
    /// title, the defaults and the knobs, except for knobs and choices that do not fit the settings. It has no comments, and
    /// the files that it names have absolute paths.
    pub fn to_toml(&self) -> String {
        let mut item = (*self.item).clone();
        self.file.knobs.leave_fitting(&mut item, File::run_lines_of);
        item.document()
    }

    /// Returns the FNV-1a hash of [`canonical`](Self::canonical), in 16 hexadecimal digits. Scenarios with equal hashes run
    /// alike, however they were written, so their results may be compared. The hash does not protect against forgery.
    pub fn hash(&self) -> String {
        Hash64::of(self.canonical().bytes()).to_string()
    }
}
