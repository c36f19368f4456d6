//! Tables whose defaults come from one of several presets.

use super::document::{Item, joined};
use super::error::Fault;
use super::kind::{Lines, ValueKind};
use super::scalar::Choice;
use super::table::{KeyVisitor, Keys, Presets};

/// A configuration of the simulator: a preset, and the changes that a file makes to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset<T> {
    /// The name of the preset.
    pub preset: &'static str,
    /// The values of the preset, with the changes that the file makes.
    pub config: T,
}

const PRESET: &str = "preset";

fn kind<T: Presets>() -> Choice<&'static str> {
    Choice(|| T::PRESETS.iter().map(|(name, _)| (*name, *name)).collect())
}

impl<T: Presets> Keys for Preset<T> {
    const DOC: &'static str = T::DOC;

    fn has(name: &str) -> bool {
        name == PRESET || T::has(name)
    }

    fn visit(visitor: &mut impl KeyVisitor) {
        visitor.key(PRESET, T::PRESET_DOC, &kind::<T>(), Some(&T::PRESETS[0].0));
        T::visit(visitor);
    }

    fn take(item: &Item, path: &str) -> Result<Self, Fault> {
        let named = item.get(PRESET).map(|item| kind::<T>().read(item, &joined(path, PRESET))).transpose()?;
        // Without the key the first preset is the default.
        let of_name = |(name, _): &&(&str, T)| named.is_none_or(|named| named == *name);
        let (preset, config) = T::PRESETS.iter().find(of_name).unwrap_or(&T::PRESETS[0]);
        Ok(Self { preset, config: config.clone().with(item, path)? })
    }

    fn write(&self, path: &str, lines: &mut Lines) {
        kind::<T>().write(&self.preset, &joined(path, PRESET), lines);
        self.config.write(path, lines);
    }
}
