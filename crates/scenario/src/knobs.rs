//! Knobs: short names that a scenario gives to its settings.

use serde_json::{Value, json};

use crate::schema::document::{Item, TomlValue, is_name, joined, setting};
use crate::schema::error::{Fault, ValueOrigin, shown};
use crate::schema::json::any_of;
use crate::schema::kind::{KeyEntry, Lines, ValueKind, listed, near, refused};
use crate::schema::scalar::name_schema;
use crate::schema::unknown::resolve;

/// The knobs of a scenario, in the sequence of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Knobs(Vec<Knob>);

#[derive(Clone, Debug, PartialEq)]
struct Knob {
    name: String,
    at: ValueOrigin,
    effect: Effect,
}

#[derive(Clone, Debug, PartialEq)]
enum Effect {
    /// The knob gives its value to all these keys.
    Paths(Vec<String>),
    /// The value of the knob is the name of one of these choices, and the knob makes the settings of that choice.
    Choices(Vec<KnobChoice>),
}

#[derive(Clone, Debug, PartialEq)]
struct KnobChoice {
    name: String,
    settings: Vec<(String, Item)>,
}

const KNOB: &str = "a path, a list of paths, or a table of choices";
const CHOICE: &str = "a table of settings, such as { \"workload.kind\" = \"random\" }";

/// The kind of the table `knobs`. Each key of the table is the name of a knob. The function returns the keys that a
/// knob may set.
pub(crate) struct KnobsKind(pub(crate) fn() -> &'static [KeyEntry]);

/// Reads a file, and returns the effective value of every key that shapes a run.
pub(crate) type FileReader = fn(&Item) -> Result<Lines, Fault>;

impl ValueKind for KnobsKind {
    type Value = Knobs;

    fn accepts(&self) -> String {
        "a table of names, each of a path, a list of paths, or a table of choices".to_owned()
    }

    fn schema(&self) -> Value {
        let (name, path) = (name_schema(), json!({ "type": "string" }));
        let choices = json!({ "type": "object", "propertyNames": name, "additionalProperties": { "type": "object" }, "minProperties": 1 });
        let knob = any_of([path.clone(), json!({ "type": "array", "items": path, "minItems": 1 }), choices]);
        json!({ "type": "object", "propertyNames": name, "additionalProperties": knob })
    }

    fn read(&self, item: &Item, path: &str) -> Result<Knobs, Fault> {
        let TomlValue::Table(members) = &item.value else { return Err(self.refuse(item, path)) };
        let root = (self.0)();
        let knob = |(name, item): &(String, Item)| {
            let path = joined(path, name);
            named(name, item, &path)?;
            Ok(Knob { name: name.clone(), at: item.at, effect: effect(item, &path, root)? })
        };
        Ok(Knobs(members.iter().map(knob).collect::<Result<_, _>>()?))
    }

    fn write(&self, _: &Knobs, _: &str, _: &mut Lines) {}
}

impl Knobs {
    /// Returns the names of the knobs, in the sequence of the file.
    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|knob| knob.name.as_str()).collect()
    }

    fn effect(&self, name: &str) -> Option<&Effect> {
        self.0.iter().find(|knob| knob.name == name).map(|knob| &knob.effect)
    }

    /// Changes the value of a key in the file. The key is the name of a knob, or else a dotted path through the keys in `root`.
    pub(crate) fn set(
        &self,
        file: &mut Item,
        root: &[KeyEntry],
        (key, value): (&str, &str),
        at: ValueOrigin,
    ) -> Result<(), Fault> {
        match self.effect(key) {
            Some(Effect::Paths(paths)) => {
                paths.iter().try_for_each(|path| file.assign(path, setting(value, at)))
            }
            Some(Effect::Choices(choices)) => {
                let chosen = choices.iter().find(|choice| choice.name == value.trim()).ok_or_else(|| {
                    let names = self.choices(key);
                    let value = setting(value, at);
                    refused(&listed(&names), &near(&names, &value.value), &value, key)
                })?;
                chosen.set(file)
            }
            // Resolved first: `assign` would make tables for a path that no key has.
            None => {
                resolve(root, key, &self.names(), at)?;
                file.assign(key, setting(value, at))
            }
        }
    }

    /// Returns the number of names in the shortest dotted path that a setting of `key` writes. Settings with short
    /// paths are made first, because they may replace a whole table.
    pub(crate) fn depth(&self, key: &str) -> usize {
        let names = |path: &str| path.split('.').count();
        match self.effect(key) {
            Some(Effect::Paths(paths)) => paths.iter().map(|path| names(path)).min().unwrap_or(0),
            Some(Effect::Choices(choices)) => {
                // The choice is not known yet, so the shortest path of all choices decides.
                let settings = choices.iter().flat_map(|choice| &choice.settings);
                settings.map(|(path, _)| names(path)).min().unwrap_or(0)
            }
            None => names(key),
        }
    }

    /// Returns the names of the choices of a knob; empty if the knob has none, but gives its value to keys.
    pub(crate) fn choices(&self, name: &str) -> Vec<&str> {
        match self.effect(name) {
            Some(Effect::Choices(choices)) => choices.iter().map(|choice| choice.name.as_str()).collect(),
            Some(Effect::Paths(_)) | None => Vec::new(),
        }
    }

    /// Returns a description of the values that a knob accepts: the names of its choices, or else the values of its first key.
    pub(crate) fn accepts(&self, name: &str, root: &[KeyEntry]) -> String {
        match self.effect(name) {
            Some(Effect::Choices(_)) => listed(&self.choices(name)),
            Some(Effect::Paths(paths)) => {
                let first = paths.first().and_then(|path| {
                    // The paths of a knob were resolved when it was read.
                    resolve(root, path, &[], ValueOrigin::Setting(0)).ok().flatten()
                });
                first.map_or_else(String::new, |key| key.accepts.clone())
            }
            None => String::new(),
        }
    }

    /// Tries every knob on the file, so that a wrong knob is found even if it is not used.
    ///
    /// # Errors
    /// Returns the fault of the first knob that names an unknown key or makes a file that is refused.
    pub(crate) fn check(&self, file: &Item, read: FileReader) -> Result<(), Fault> {
        for knob in &self.0 {
            match &knob.effect {
                // The keys were found when the knob was read. Only names of hops and flows can still be missing.
                Effect::Paths(paths) => paths.iter().try_for_each(|path| file.leads(path, knob.at))?,
                Effect::Choices(choices) => {
                    choices.iter().try_for_each(|choice| choice.tried(file, read).map(drop))?;
                }
            }
        }
        Ok(())
    }

    /// Removes from `file`, in which settings were made, the knobs that [`check`](Self::check) would refuse: knobs for
    /// a hop that is gone, and choices that make an invalid file.
    pub(crate) fn leave_fitting(&self, file: &mut Item, read: FileReader) {
        // Choices are tried on the whole file, which must not change while knobs are removed.
        let whole = file.clone();
        let fits = |choice: &KnobChoice| choice.tried(&whole, read).is_ok();
        file.retain("knobs", |name, item| match self.effect(name) {
            None => false,
            Some(Effect::Paths(paths)) => paths.iter().all(|path| whole.leads(path, item.at).is_ok()),
            Some(Effect::Choices(choices)) => {
                let TomlValue::Table(members) = &mut item.value else { return false };
                members.retain(|(name, _)| choices.iter().any(|choice| choice.name == *name && fits(choice)));
                !members.is_empty()
            }
        });
    }

    /// Returns the name and the present value of every knob. If a knob has several keys with different values, its
    /// value is all of them, with `/` between. If a knob has choices, its value is the name of the choice in force,
    /// whose settings would change no run, or `custom` if no choice is in force. `all` has the effective values of all
    /// keys, and `run` only of the keys that shape a run.
    pub(crate) fn values(&self, file: &Item, all: &Lines, run: &Lines, read: FileReader) -> KnobValues {
        // Paths may disagree after a setting of one of them, so all values are shown then.
        let value = |knob: &Knob| match &knob.effect {
            Effect::Paths(paths) => {
                let mut values: Vec<_> = paths.iter().map(|path| value_of(path, all)).collect();
                values.dedup();
                values.join("/")
            }
            Effect::Choices(choices) => {
                // Compared by the lines that shape a run, so the way in which a choice is written does not matter.
                let in_force =
                    |choice: &&KnobChoice| choice.tried(file, read).is_ok_and(|tried| tried == *run);
                let choice = choices.iter().find(in_force);
                choice.map_or_else(|| CUSTOM.to_owned(), |choice| choice.name.clone())
            }
        };
        self.0.iter().map(|knob| (knob.name.clone(), value(knob))).collect()
    }
}

/// The names of knobs with their values.
pub(crate) type KnobValues = Vec<(String, String)>;

/// The value of a knob with choices if none of its choices is in force.
const CUSTOM: &str = "custom";

impl KnobChoice {
    fn set(&self, file: &mut Item) -> Result<(), Fault> {
        self.settings.iter().try_for_each(|(path, item)| file.assign(path, item.clone()))
    }

    /// Reads a copy of the file in which the settings of this choice are made.
    fn tried(&self, file: &Item, read: FileReader) -> Result<Lines, Fault> {
        let mut file = file.clone();
        self.set(&mut file)?;
        read(&file)
    }
}

/// Returns the value of the key at `path` without quotes. For a table, returns its keys with their values; for an
/// unknown path, an empty text.
fn value_of(path: &str, lines: &Lines) -> String {
    if let Some((_, text)) = lines.iter().find(|(key, _)| key == path) {
        return text.trim_matches('"').to_owned();
    }
    let inside = |(key, text): &(String, String)| {
        // A dot must follow, or `up.radio` would find the keys of `up.radio2`.
        key.strip_prefix(path)?.strip_prefix('.').map(|key| format!("{key} = {text}"))
    };
    lines.iter().filter_map(inside).collect::<Vec<_>>().join(", ")
}

fn effect(item: &Item, path: &str, root: &[KeyEntry]) -> Result<Effect, Fault> {
    // An empty list or table is refused below: the knob would change nothing.
    let one_path = |item: &Item| match &item.value {
        TomlValue::Text(target) => known(target, item.at, path, root).map(|()| target.clone()),
        _ => Err(refused(KNOB, "", item, path)),
    };
    match &item.value {
        TomlValue::Text(_) => Ok(Effect::Paths(vec![one_path(item)?])),
        TomlValue::List(list) if !list.is_empty() => {
            Ok(Effect::Paths(list.iter().map(one_path).collect::<Result<_, _>>()?))
        }
        TomlValue::Table(members) if !members.is_empty() => Ok(Effect::Choices(
            members.iter().map(|member| choice(member, path, root)).collect::<Result<_, _>>()?,
        )),
        _ => Err(refused(KNOB, "", item, path)),
    }
}

fn choice((name, item): &(String, Item), path: &str, root: &[KeyEntry]) -> Result<KnobChoice, Fault> {
    let path = joined(path, name);
    named(name, item, &path)?;
    let TomlValue::Table(settings) = &item.value else { return Err(refused(CHOICE, "", item, &path)) };
    settings.iter().try_for_each(|(target, item)| known(target, item.at, &path, root))?;
    Ok(KnobChoice { name: name.clone(), settings: settings.clone() })
}

fn named(name: &str, item: &Item, path: &str) -> Result<(), Fault> {
    if is_name(name) {
        return Ok(());
    }
    let accepts = ValueKind::accepts(&crate::schema::scalar::NAME);
    Err(Fault::new(item.at, format!("`{}` must be {accepts}", shown(path))))
}

fn known(target: &str, at: ValueOrigin, path: &str, root: &[KeyEntry]) -> Result<(), Fault> {
    // The line of the error is the knob's, so the message names the knob before the key that it gets wrong.
    let renamed = |fault: Fault| Fault::new(at, format!("`{path}`: {}", fault.message));
    resolve(root, target, &[], at).map(drop).map_err(renamed)
}
