//! The text of a scenario, before it is read.

use std::path::Path;

use crate::scenario::Scenario;
use crate::schema::error::{ScenarioError, did_you_mean};
use crate::template::{LARGEST, Template};
use crate::text;

/// The name and the text of a scenario's file. It can be handed to another machine, and read there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name of the built-in scenario, or of the file without its ending.
    pub name: String,
    /// The path of the file, which errors show. Other files that the text names are looked for in the folder of this
    /// file.
    pub file: String,
    /// The text of the file.
    pub text: String,
}

impl Source {
    /// Finds the built-in scenario or the file that `name_or_path` names.
    ///
    /// # Errors
    /// Returns a [`ScenarioError`] if there is none, or the file cannot be read.
    pub fn find(name_or_path: &str) -> Result<Self, ScenarioError> {
        // A built-in scenario is preferred to a file of its name, which `./NAME` reaches.
        if let Some(builtin) = Scenario::builtin(name_or_path) {
            let file = format!("scenarios/{}.toml", builtin.name);
            return Ok(Self { name: builtin.name.to_owned(), file, text: builtin.text.to_owned() });
        }
        let path = Path::new(name_or_path);
        // Only a bare word may be a mistyped name. The error for a missing path comes from reading it.
        let is_path = path.extension().is_some() || path.components().count() > 1;
        if !is_path && !path.exists() {
            let names: Vec<_> = Scenario::builtins().map(|builtin| builtin.name).collect();
            let mut help = did_you_mean(name_or_path, names.iter().copied());
            if help.is_empty() {
                help = format!("; built in are {}", names.join(", "));
            }
            let message = format!("neither a built-in scenario nor a file{help}");
            return Err(ScenarioError::new(name_or_path, &message).of_usage());
        }
        let text = text::read(path, LARGEST).map_err(|problem| ScenarioError::new(name_or_path, &problem))?;
        let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Ok(Self { name, file: name_or_path.to_owned(), text })
    }

    /// Reads and checks the file once, so that many scenarios with different settings can be made from it.
    ///
    /// # Errors
    /// Returns a [`ScenarioError`] that names the line that is wrong.
    pub fn template(&self) -> Result<Template, ScenarioError> {
        Template::parse(&self.name, &self.file, &self.text)
    }

    /// Reads the scenario, and makes the `settings`; see [`Scenario::load`].
    ///
    /// # Errors
    /// Returns a [`ScenarioError`] that names the line or the setting that is wrong.
    pub fn scenario(&self, settings: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        self.template()?.scenario(settings)
    }
}

impl Scenario {
    /// Reads the built-in scenario or the file that `name_or_path` names, and makes the `settings`. Each setting has a
    /// key and a value. A key is the name of a knob, or the dotted path of any key. The path of a hop has the hop's
    /// name (`network.up.radio.delay`). A value is written as in the file; text needs no quotes.
    ///
    /// The file must be valid without the settings, too.
    ///
    /// # Errors
    /// Returns a [`ScenarioError`] that names the line or the setting that is wrong.
    pub fn load(name_or_path: &str, settings: &[(String, String)]) -> Result<Self, ScenarioError> {
        Source::find(name_or_path)?.scenario(settings)
    }

    /// Reads a scenario from the `text` of a file, and makes the `settings`. Errors show `file` as the path of the
    /// file.
    ///
    /// # Errors
    /// Returns a [`ScenarioError`] that names the line or the setting that is wrong.
    pub fn parse(
        name: &str,
        file: &str,
        text: &str,
        settings: &[(String, String)],
    ) -> Result<Self, ScenarioError> {
        Template::parse(name, file, text)?.scenario(settings)
    }
}
