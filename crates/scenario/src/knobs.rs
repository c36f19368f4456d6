//! Knobs: short names that a scenario gives to its settings.

use crate::schema::document::{Item, TomlValue, is_name, joined, setting};
use crate::schema::error::{Fault, ValueOrigin, shown};
use crate::schema::kind::{KeyEntry, Lines, ValueKind, listed, near, refused};
use crate::schema::unknown::resolve;

/// The knobs of a scenario, in the order of the file.
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
    /// Sets all these keys to the value of the knob.
    Paths(Vec<String>),
    /// Sets the keys of the choice that the value names.
    Choices(Vec<KnobChoice>),
}

#[derive(Clone, Debug, PartialEq)]
struct KnobChoice {
    name: String,
    settings: Vec<(String, Item)>,
}

const KNOB: &str = "a path, a list of paths, or a table of choices";
const CHOICE: &str = "a table of settings, such as { \"workload.kind\" = \"random\" }";

/// The kind of the table of knobs. Each key of the table is the name of a knob. The function returns the keys that a knob may
/// set.
pub(crate) struct KnobsKind(pub(crate) fn() -> Vec<KeyEntry>);

/// Reads a file, and returns the effective value of every key that shapes a run.
pub(crate) type FileReader = fn(&Item) -> Result<Lines, Fault>;

impl ValueKind for KnobsKind {
    type Value = Knobs;

    fn accepts(&self) -> String {
        "a table of names, each of a path, a list of paths, or a table of choices".to_owned()
    }

    fn read(&self, item: &Item, path: &str) -> Result<Knobs, Fault> {
        let TomlValue::Table(members) = &item.value else { return Err(self.refuse(item, path)) };
        let root = (self.0)();
        let knob = |(name, item): &(String, Item)| {
            let path = joined(path, name);
            named(name, item, &path)?;
            Ok(Knob { name: name.clone(), at: item.at, effect: effect(item, &path, &root)? })
        };
        Ok(Knobs(members.iter().map(knob).collect::<Result<_, _>>()?))
    }

    fn write(&self, _: &Knobs, _: &str, _: &mut Lines) {}
}

impl Knobs {
    /// Returns the names of the knobs, in the order of the file.
    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|knob| knob.name.as_str()).collect()
    }

    fn effect(&self, name: &str) -> Option<&Effect> {
        self.0.iter().find(|knob| knob.name == name).map(|knob| &knob.effect)
    }

    /// Makes a setting in the file. Its key is the name of a knob, or else a dotted path through the keys in `root`.
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
            None => {
                resolve(root, key, &self.names(), at)?;
                file.assign(key, setting(value, at))
            }
        }
    }

    /// Returns the number of names in the shortest path that a setting writes. A shorter path may replace a whole table.
    pub(crate) fn depth(&self, key: &str) -> usize {
        let names = |path: &str| path.split('.').count();
        match self.effect(key) {
            Some(Effect::Paths(paths)) => paths.iter().map(|path| names(path)).min().unwrap_or(0),
            Some(Effect::Choices(choices)) => {
                let settings = choices.iter().flat_map(|choice| &choice.settings);
                settings.map(|(path, _)| names(path)).min().unwrap_or(0)
            }
            None => names(key),
        }
    }

    /// Returns the names of the choices of a knob; none if it takes the values of its keys.
    pub(crate) fn choices(&self, name: &str) -> Vec<&str> {
        match self.effect(name) {
            Some(Effect::Choices(choices)) => choices.iter().map(|choice| choice.name.as_str()).collect(),
            Some(Effect::Paths(_)) | None => Vec::new(),
        }
    }

    /// Tries every knob on the file, so that a wrong one is found even if it is not used.
    ///
    /// # Errors
    /// Returns the first knob that names an unknown key or makes a file that is refused.
    pub(crate) fn check(&self, file: &Item, read: FileReader) -> Result<(), Fault> {
        for knob in &self.0 {
            match &knob.effect {
                Effect::Paths(paths) => paths.iter().try_for_each(|path| file.leads(path, knob.at))?,
                Effect::Choices(choices) => {
                    choices.iter().try_for_each(|choice| choice.tried(file, read).map(drop))?;
                }
            }
        }
        Ok(())
    }

    /// Removes the knobs from `file` that [`check`](Self::check) would refuse after settings: knobs that lead to a hop that is
    /// gone, and choices that make an invalid file.
    pub(crate) fn leave_fitting(&self, file: &mut Item, read: FileReader) {
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

    /// Returns the name and the present value of every knob. If its paths have different values, it has all of them, with `/`
    /// between. A knob with choices has the name of the choice that would change nothing, or `custom`. `all` has the effective
    /// values of the file, and `run` only the keys that shape a run.
    pub(crate) fn values(&self, file: &Item, all: &Lines, run: &Lines, read: FileReader) -> KnobValues {
        let value = |knob: &Knob| match &knob.effect {
            Effect::Paths(paths) => {
                let mut values: Vec<_> = paths.iter().map(|path| value_of(path, all)).collect();
                values.dedup();
                values.join("/")
            }
            Effect::Choices(choices) => {
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

/// The value of a knob with choices if every choice would change something.
const CUSTOM: &str = "custom";

impl KnobChoice {
    fn set(&self, file: &mut Item) -> Result<(), Fault> {
        self.settings.iter().try_for_each(|(path, item)| file.assign(path, item.clone()))
    }

    /// Reads the file as it would be with this choice.
    fn tried(&self, file: &Item, read: FileReader) -> Result<Lines, Fault> {
        let mut file = file.clone();
        self.set(&mut file)?;
        read(&file)
    }
}

/// Returns the text of the key at `path` without quotes, or the keys of the table at `path`; empty if neither is there.
fn value_of(path: &str, lines: &Lines) -> String {
    if let Some((_, text)) = lines.iter().find(|(key, _)| key == path) {
        return text.trim_matches('"').to_owned();
    }
    let inside = |(key, text): &(String, String)| {
        key.strip_prefix(path)?.strip_prefix('.').map(|key| format!("{key} = {text}"))
    };
    lines.iter().filter_map(inside).collect::<Vec<_>>().join(", ")
}

fn effect(item: &Item, path: &str, root: &[KeyEntry]) -> Result<Effect, Fault> {
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
    resolve(root, target, &[], at).map_err(|fault| Fault::new(at, format!("`{path}`: {}", fault.message)))
}
