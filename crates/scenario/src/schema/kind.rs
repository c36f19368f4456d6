//! What a key accepts: how a value is read, checked, written and described, said once.

use std::marker::PhantomData;

use super::document::{Item, Value};
use super::error::{Fault, Origin, did_you_mean};
use super::scalar::{is_name, quoted};
use super::table::{Key, Keys};

/// The effective value of every key under its dotted path, in the order of the schema.
pub(crate) type Lines = Vec<(String, String)>;

/// What a key accepts.
pub(crate) trait Kind {
    type Value;
    /// For people: what the value must be.
    fn accepts(&self) -> String;
    /// Reads the value of the key `path`.
    fn read(&self, item: &Item, path: &str) -> Result<Self::Value, Fault>;
    /// The value of a key that is not there and has no default; `at` is where its table is.
    fn missing(&self, path: &str, at: Origin) -> Result<Self::Value, Fault> {
        Err(Fault::new(at, format!("`{path}` is missing: it must be {}", self.accepts())))
    }
    /// The one line that says so of `item`.
    fn refuse(&self, item: &Item, path: &str) -> Fault {
        refused(&self.accepts(), &self.words(), item, path)
    }
    /// Writes the value the one way it is always written.
    fn write(&self, value: &Self::Value, path: &str, lines: &mut Lines);
    /// The keys of a table.
    fn keys(&self) -> Vec<Key> {
        Vec::new()
    }
    /// Whether the value is a table, or can be one.
    fn is_table(&self) -> bool {
        false
    }
    /// Whether this is a list of tables that have names.
    fn is_list(&self) -> bool {
        false
    }
    /// Words that the value may be, to suggest one.
    fn words(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// The one line that says what the key `path` accepts instead.
pub(crate) fn refused(accepts: &str, words: &[&str], item: &Item, path: &str) -> Fault {
    let near = match &item.value {
        Value::Text(text) => did_you_mean(text, words.iter().copied()),
        _ => String::new(),
    };
    Fault::new(item.at, format!("`{path}` must be {accepts}, not {}{near}", item.show()))
}

/// The inner kind, or a word that stands for its absence.
pub(crate) struct Or<K>(pub(crate) &'static str, pub(crate) K);

impl<K: Kind> Kind for Or<K> {
    type Value = Option<K::Value>;
    fn accepts(&self) -> String {
        format!("{}, or \"{}\"", self.1.accepts(), self.0)
    }
    fn read(&self, item: &Item, path: &str) -> Result<Self::Value, Fault> {
        match &item.value {
            Value::Text(word) if word == self.0 => Ok(None),
            // A table says better what is wrong inside it.
            Value::Table(_) if self.1.is_table() => self.1.read(item, path).map(Some),
            _ => self.1.read(item, path).map(Some).map_err(|_| self.refuse(item, path)),
        }
    }
    fn write(&self, value: &Self::Value, path: &str, lines: &mut Lines) {
        match value {
            Some(value) => self.1.write(value, path, lines),
            None => lines.push((path.to_owned(), quoted(self.0))),
        }
    }
    fn keys(&self) -> Vec<Key> {
        self.1.keys()
    }
    fn words(&self) -> Vec<&'static str> {
        [self.1.words(), vec![self.0]].concat()
    }
}

/// A table with the keys of `T`.
pub(crate) struct Table<T>(PhantomData<T>);

/// A table with the keys of `T`.
pub(crate) const fn table<T>() -> Table<T> {
    Table(PhantomData)
}

impl<T: Keys> Kind for Table<T> {
    type Value = T;
    fn accepts(&self) -> String {
        let keys: Vec<_> = T::keys().iter().map(|key| format!("`{}`", key.name)).collect();
        format!("a table of {}", keys.join(", "))
    }
    fn read(&self, item: &Item, path: &str) -> Result<T, Fault> {
        match &item.value {
            Value::Table(_) => T::read(item, path),
            _ => Err(self.refuse(item, path)),
        }
    }
    /// A table that is not there is an empty one: all its keys may have defaults.
    fn missing(&self, path: &str, at: Origin) -> Result<T, Fault> {
        T::read(&Item { at, value: Value::Table(Vec::new()) }, path)
    }
    fn write(&self, value: &T, path: &str, lines: &mut Lines) {
        value.write(path, lines);
    }
    fn keys(&self) -> Vec<Key> {
        T::keys()
    }
    fn is_table(&self) -> bool {
        true
    }
}

/// A table that is addressed by its name.
pub(crate) trait HasName {
    fn name(&self) -> &str;
}

/// Up to so many tables with the keys of `T`, each under a name of its own.
pub(crate) struct Named<T>(usize, PhantomData<T>);

/// Up to `most` tables with the keys of `T`, each under a name of its own. Where one is needed, the table around says so.
pub(crate) const fn named<T>(most: usize) -> Named<T> {
    Named(most, PhantomData)
}

impl<T: Keys + HasName> Kind for Named<T> {
    type Value = Vec<T>;
    fn accepts(&self) -> String {
        format!("1 to {} tables, each with a `name` of its own", self.0)
    }
    fn read(&self, item: &Item, path: &str) -> Result<Vec<T>, Fault> {
        let Value::List(list) = &item.value else { return Err(self.refuse(item, path)) };
        if list.len() > self.0 {
            return Err(self.refuse(item, path));
        }
        let mut names: Vec<&str> = Vec::new();
        let mut tables = Vec::new();
        for (place, item) in list.iter().enumerate() {
            let name = item.name().filter(|name| is_name(name));
            let path_of_item =
                name.map_or_else(|| format!("{path}[{place}]"), |name| format!("{path}.{name}"));
            if !matches!(item.value, Value::Table(_)) {
                return Err(table::<T>().refuse(item, &path_of_item));
            }
            tables.push(T::read(item, &path_of_item)?);
            let name = name.unwrap_or_default();
            if names.contains(&name) {
                let at = item.get("name").map_or(item.at, |name| name.at);
                return Err(Fault::new(at, format!("`{path}` has two of the name `{name}`")));
            }
            names.push(name);
        }
        Ok(tables)
    }
    fn write(&self, value: &Vec<T>, path: &str, lines: &mut Lines) {
        for table in value {
            table.write(&format!("{path}.{}", table.name()), lines);
        }
    }
    fn keys(&self) -> Vec<Key> {
        T::keys()
    }
    fn is_list(&self) -> bool {
        true
    }
}
