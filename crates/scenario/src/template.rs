//! A scenario file that is read once, for many scenarios with different settings.

use std::path::Path;
use std::sync::Arc;

use coapace_control::nearest;

use crate::cross_checks;
use crate::file::File;
use crate::knobs::KnobValues;
use crate::scenario::Scenario;
use crate::schema::document::{self, Item, TomlValue};
use crate::schema::error::{Fault, ScenarioError, ValueOrigin};
use crate::schema::table::Keys;

/// The largest scenario file that is read, in bytes.
pub(crate) const LARGEST: usize = 1 << 16;

/// Returns whether a file has keys, but none that is a key of scenarios or resembles one. Errors quote nothing of such
/// a file, because it may be any file and contain secrets.
fn is_foreign(item: &Item) -> bool {
    let TomlValue::Table(members) = &item.value else { return false };
    let keys = File::all_keys();
    let is_ours = |name: &str| File::has(name) || nearest(name, keys.iter().map(|key| key.name)).is_some();
    !members.is_empty() && !members.iter().any(|(name, _)| is_ours(name))
}

/// A scenario file that was read and checked once, with all its knobs, so that many scenarios can be made from it.
#[derive(Clone, Debug)]
pub struct Template {
    name: String,
    /// The path of the file, which errors show.
    path: String,
    item: Item,
    file: File,
    knob_values: KnobValues,
}

impl Template {
    /// Reads the `text` of a file. Errors show `path` as the path of the file.
    ///
    /// # Errors
    /// Returns a [`ScenarioError`] that names the line that is wrong.
    pub fn parse(name: &str, path: &str, text: &str) -> Result<Self, ScenarioError> {
        Self::read(name, path, text).map_err(|fault| fault.named(path, &[]))
    }

    fn read(name: &str, path: &str, text: &str) -> Result<Self, Fault> {
        // Before the text is parsed, which takes time and memory in proportion to it.
        if text.len() > LARGEST {
            return Err(Fault::new(ValueOrigin::Line(1), format!("longer than {LARGEST} bytes")));
        }
        let item = document::parse(text)?;
        if is_foreign(&item) {
            let names: Vec<_> = File::all_keys().iter().map(|key| format!("`{}`", key.name)).collect();
            let message = format!("this is not a scenario: it has none of {}", names.join(", "));
            return Err(Fault::new(ValueOrigin::Line(1), message));
        }
        let file = File::of(&item)?;
        // The clients of a mesh are not counted yet. The file of a choice has uncounted clients, too, so both can be compared.
        file.knobs.check(&item, File::run_lines_of)?;
        let knob_values = file.knob_values(&item);
        Ok(Self { name: name.to_owned(), path: path.to_owned(), item, file, knob_values })
    }

    /// Makes a scenario with these `settings`, each a key and a value; see [`Scenario::load`].
    ///
    /// # Errors
    /// Returns a [`ScenarioError`] that names the wrong setting. An error that depends on the positions of a mesh names
    /// the line of the scenario file instead.
    pub fn scenario(&self, settings: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        self.with(settings).map_err(|fault| self.blamed(fault, settings).named(&self.path, settings))
    }

    /// Returns the error of the setting that causes `fault`, if `fault` is in a line of the file that is valid without
    /// the settings. Returns the other faults unchanged.
    fn blamed(&self, fault: Fault, settings: &[(String, String)]) -> Fault {
        if matches!(fault.at, ValueOrigin::Setting(_)) {
            return fault;
        }
        // The longest run of settings that is right: the next setting spoils the file, though its own value may be valid.
        let right = (0..settings.len()).rev().find(|&count| self.with(&settings[..count]).is_ok());
        match right.and_then(|place| Some((place, self.with(&settings[..=place]).err()?))) {
            Some((place, Fault { at: ValueOrigin::Line(_), message, .. })) => {
                Fault::new(ValueOrigin::Setting(place), message)
            }
            spoilt => spoilt.map_or(fault, |(_, fault)| fault),
        }
    }

    fn with(&self, settings: &[(String, String)]) -> Result<Scenario, Fault> {
        let Self { name, path, mut item, mut file, mut knob_values } = self.clone();
        if !settings.is_empty() {
            let root = File::all_keys();
            // A setting that replaces a whole table comes before those within the table, in whatever order they are given.
            let mut settings: Vec<_> = settings.iter().enumerate().collect();
            // The sort is stable, so settings of one depth keep the order of the command.
            settings.sort_by_key(|(_, (key, _))| file.knobs.depth(key.trim()));
            for (place, (key, value)) in settings {
                file.knobs.set(&mut item, root, (key.trim(), value), ValueOrigin::Setting(place))?;
            }
            file = File::of(&item)?;
            knob_values = file.knob_values(&item);
        }
        let folder = Path::new(&path).parent();
        // Places are found after all settings, which may name other files.
        let places =
            cross_checks::place(&mut file, &item, folder).map_err(|misfit| misfit.fault(&item, ""))?;
        cross_checks::name_files(&mut item, folder, places.as_ref());
        // Lines come from the file after the clients are counted, or a mesh would show the count that was assumed.
        let lines = cross_checks::with_contents(file.run_lines(), places.as_ref());
        let (places, item) = (places.map(Arc::new), Arc::new(item));
        Ok(Scenario { name, file, places, knob_values, lines, item })
    }
}
