//! Kinds of values: each defines once how its values are read, checked, written and described.

use serde_json::{Value, json};

use super::document::{Item, TomlValue, quoted};
use super::error::{Fault, ValueOrigin, did_you_mean};
use super::json::any_of;

/// The dotted path and the effective value of every key, in the order in which the keys are declared.
pub(crate) type Lines = Vec<(String, String)>;

/// A key with its description, as the reference page lists it.
#[derive(Clone, Debug)]
pub(crate) struct KeyEntry {
    pub(crate) name: &'static str,
    pub(crate) doc: String,
    pub(crate) accepts: String,
    /// The default as a file would have it; `None` for a key without a default, and for a table.
    pub(crate) default: Option<String>,
    /// The keys inside of this key; empty unless it is a table or a list of tables.
    pub(crate) keys: Vec<KeyEntry>,
    /// Whether this is a list of tables, whose names are part of the path.
    pub(crate) is_list: bool,
}

impl KeyEntry {
    /// Returns whether a file without this key is refused: a table may be left out if all its keys may.
    pub(crate) fn is_required(&self) -> bool {
        // The keys of a list belong to its tables, so they do not make the list optional.
        let may_be_empty = !self.keys.is_empty() && !self.is_list;
        self.default.is_none() && !(may_be_empty && self.keys.iter().all(|key| !key.is_required()))
    }
}

/// The kind of values that a key accepts.
pub(crate) trait ValueKind {
    type Value;
    /// Returns the accepted values in words, for people.
    fn accepts(&self) -> String;
    /// Returns the accepted values as a JSON Schema, for editors.
    fn schema(&self) -> Value;
    /// Reads the value `item` of the key at `path`.
    fn read(&self, item: &Item, path: &str) -> Result<Self::Value, Fault>;
    /// Returns the value of a key that has no default and is missing in the file: an error, except for tables. `at` is
    /// the place of the table that lacks the key.
    fn missing(&self, path: &str, at: ValueOrigin) -> Result<Self::Value, Fault> {
        Err(Fault::new(at, format!("`{path}` is missing: it must be {}", self.accepts())))
    }
    /// Returns the error of an `item` with a refused value. It names the accepted values.
    fn refuse(&self, item: &Item, path: &str) -> Fault {
        refused(&self.accepts(), &self.hint(&item.value), item, path)
    }
    /// Returns a hint about the probable meaning of a refused value, which follows the error; empty if the meaning is
    /// not known.
    fn hint(&self, value: &TomlValue) -> String {
        near(&self.words(), value)
    }
    /// Adds the value of the key `path` to `lines`, in its canonical form.
    fn write(&self, value: &Self::Value, path: &str, lines: &mut Lines);
    /// Returns the keys inside of a table; empty for other values.
    fn keys(&self) -> Vec<KeyEntry> {
        Vec::new()
    }
    /// Returns whether the value is a table, or can be one.
    fn is_table(&self) -> bool {
        false
    }
    /// Returns whether this is a list of tables that have names.
    fn is_list(&self) -> bool {
        false
    }
    /// Returns the words that the value may be, so that errors can suggest one.
    fn words(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// Returns the words in quotes, with `or` between them, for an error message.
pub(crate) fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ")
}

/// Returns the fault of a refused value, in one line that names the values that the key `path` accepts, with the `hint`.
pub(crate) fn refused(accepts: &str, hint: &str, item: &Item, path: &str) -> Fault {
    Fault::new(item.at, format!("`{path}` must be {accepts}, not {}{hint}", item.show()))
}

/// Returns the hint that one of `words` was probably meant; empty if none resembles the value.
pub(crate) fn near(words: &[&str], value: &TomlValue) -> String {
    match value {
        TomlValue::Text(text) => did_you_mean(text, words.iter().copied()),
        _ => String::new(),
    }
}

/// The kind of values of `K`, or of a word that means `None`.
pub(crate) struct Or<K>(pub(crate) &'static str, pub(crate) K);

impl<K: ValueKind> ValueKind for Or<K> {
    type Value = Option<K::Value>;
    fn accepts(&self) -> String {
        format!("{}, or \"{}\"", self.1.accepts(), self.0)
    }
    fn read(&self, item: &Item, path: &str) -> Result<Self::Value, Fault> {
        match &item.value {
            TomlValue::Text(word) if word == self.0 => Ok(None),
            // A table describes its own faults better.
            TomlValue::Table(_) if self.1.is_table() => self.1.read(item, path).map(Some),
            // The error of the inner kind would not name the word among the accepted values.
            _ => self.1.read(item, path).map(Some).map_err(|_| self.refuse(item, path)),
        }
    }
    fn write(&self, value: &Self::Value, path: &str, lines: &mut Lines) {
        match value {
            Some(value) => self.1.write(value, path, lines),
            None => lines.push((path.to_owned(), quoted(self.0))),
        }
    }
    fn schema(&self) -> Value {
        any_of([self.1.schema(), json!({ "const": self.0 })])
    }
    fn keys(&self) -> Vec<KeyEntry> {
        self.1.keys()
    }
    fn hint(&self, value: &TomlValue) -> String {
        let inner = self.1.hint(value);
        // The hint of the inner kind knows units. The word alone is suggested where that has none.
        if inner.is_empty() { near(&self.words(), value) } else { inner }
    }
    fn words(&self) -> Vec<&'static str> {
        [self.1.words(), vec![self.0]].concat()
    }
}
