//! Tables of keys, each declared once: from the declaration come the struct, its reading and checking, the canonical
//! text, the reference page and the suggestions.

use std::marker::PhantomData;

use serde_json::{Value, json};

use super::document::{Item, TomlValue, is_name, joined};
use super::error::{Fault, ValueOrigin};
use super::json::object;
use super::kind::{KeyEntry, Lines, ValueKind};
use super::unknown::unknown;

/// A table of keys.
pub(crate) trait Keys: Sized {
    /// The sentence that describes the table.
    const DOC: &'static str;
    /// Returns whether the table has a key of this name.
    fn has(name: &str) -> bool;
    /// Visits each key with its kind and its default, in the sequence of their declaration.
    fn visit(visitor: &mut impl KeyVisitor);
    /// Returns the table's keys, in the sequence of their declaration.
    fn keys() -> Vec<KeyEntry> {
        let mut keys = Vec::new();
        Self::visit(&mut keys);
        keys
    }
    /// Reads the keys of this table from `item`, and ignores other keys.
    fn take(item: &Item, path: &str) -> Result<Self, Fault>;
    /// Reads the table `item`, in which other keys are an error.
    fn read(item: &Item, path: &str) -> Result<Self, Fault> {
        // Unknown keys come first: a mistyped key would otherwise be reported as missing.
        if let TomlValue::Table(members) = &item.value
            && let Some((name, member)) = members.iter().find(|(name, _)| !Self::has(name))
        {
            return Err(unknown(path, name, &Self::keys(), &[], member.at));
        }
        Self::take(item, path)
    }
    /// Adds every key with its value to `lines`. `path` is the path of the table.
    fn write(&self, path: &str, lines: &mut Lines);
}

/// Gets the keys of a table one by one, and makes their entries or a JSON Schema of them.
pub(crate) trait KeyVisitor {
    fn key<K: ValueKind>(&mut self, name: &'static str, doc: &str, kind: &K, default: Option<&K::Value>);
}

impl KeyVisitor for Vec<KeyEntry> {
    fn key<K: ValueKind>(&mut self, name: &'static str, doc: &str, kind: &K, default: Option<&K::Value>) {
        self.push(key(name, doc, kind, default));
    }
}

/// A table whose keys are fields of a struct of the simulator.
pub(crate) trait Fields: Keys {
    /// The values of keys that a file leaves out.
    const BASE: Self;
    /// Returns this table with the values of the keys that `item` sets.
    fn with(self, item: &Item, path: &str) -> Result<Self, Fault>;
}

/// A table whose defaults come from one of several presets.
pub(crate) trait Presets: Fields + Clone + 'static {
    /// The sentence that describes the key `preset`.
    const PRESET_DOC: &'static str;
    /// The presets by name. The first is the default.
    const PRESETS: &'static [(&'static str, Self)];
}

/// Declares a table, in one of two ways.
///
/// * `struct Name { key: type, kind => default; }` makes a struct. `for Name { … }` describes a struct of the simulator
///   in the same way. A key without a default is required. `completed by` names a function that is called before the
///   table is read, where the value of one key decides the default of another. `checked by` names a function that is
///   called after.
/// * `for Name = BASE { key: kind; }` describes a struct of the simulator, whose fields in `BASE` are the defaults.
///   `key as field` is for a field with another name than its key. `..field: Table;` adds the keys of an inner table.
///   `presets` are other bases, which the key `preset` of a [`Preset`](super::preset::Preset) chooses by name.
macro_rules! keys {
    (
        $(#[doc = $doc:literal])+
        $vis:vis struct $name:ident $(completed by $complete:path,)? $(checked by $check:path)? {
            $(
                $(#[doc = $key_doc:literal])+
                $key:ident: $type:ty, $kind:expr $(=> $default:expr)?;
            )*
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name { $($(#[doc = $key_doc])+ $vis $key: $type,)* }

        $crate::schema::table::keys! {
            $(#[doc = $doc])+
            for $name $(completed by $complete,)? $(checked by $check)? {
                $($(#[doc = $key_doc])+ $key: $type, $kind $(=> $default)?;)*
            }
        }
    };
    (
        $(#[doc = $doc:literal])+
        for $name:ident $(completed by $complete:path,)? $(checked by $check:path)? {
            $(
                $(#[doc = $key_doc:literal])+
                $key:ident: $type:ty, $kind:expr $(=> $default:expr)?;
            )*
        }
    ) => {
        const _: () = {
            #[allow(clippy::wildcard_imports, unused_imports)]
            use $crate::schema::table::declared::*;

            impl Keys for $name {
                const DOC: &'static str = concat!($($doc,)+).trim_ascii();

                fn has(name: &str) -> bool {
                    [$(stringify!($key)),*].contains(&name)
                }

                #[allow(unused_variables)]
                fn visit(visitor: &mut impl KeyVisitor) {
                    $({
                        let kind = of::<$type, _>($kind);
                        #[allow(unused_mut, unused_assignments)]
                        let mut default: Option<$type> = None;
                        $(default = Some($default);)?
                        visitor.key(stringify!($key), concat!($($key_doc,)+), &kind, default.as_ref());
                    })*
                }

                #[allow(unused_variables)]
                fn take(item: &Item, path: &str) -> Result<Self, Fault> {
                    $(let item = &$complete(item);)?
                    let table = Self { $($key: {
                        let kind = of::<$type, _>($kind);
                        let path = joined(path, stringify!($key));
                        match item.get(stringify!($key)) {
                            Some(item) => kind.read(item, &path)?,
                            None => $crate::schema::table::keys!(@absent kind, path, item $(, $default)?),
                        }
                    },)* };
                    // A check compares keys, so it comes after all are read.
                    $($check(&table).map_err(|misfit| misfit.fault(item, path))?;)?
                    Ok(table)
                }

                #[allow(unused_variables)]
                fn write(&self, path: &str, lines: &mut Lines) {
                    $($kind.write(&self.$key, &joined(path, stringify!($key)), lines);)*
                }
            }
        };
    };
    (
        $(#[doc = $doc:literal])+
        for $name:ident = $base:path $(, checked by $check:path)? {
            $(..$inner:ident: $table:ty;)?
            $(
                $(#[doc = $key_doc:literal])+
                $key:ident $(as $($field:tt).+)?: $kind:expr;
            )*
        }
        $(presets {
            $(#[doc = $preset_doc:literal])+
            $($word:literal => $preset:path,)+
        })?
    ) => {
        const _: () = {
            #[allow(clippy::wildcard_imports, unused_imports)]
            use $crate::schema::table::declared::*;

            impl Keys for $name {
                const DOC: &'static str = concat!($($doc,)+).trim_ascii();

                fn has(name: &str) -> bool {
                    [$(stringify!($key)),*].contains(&name) $(|| <$table>::has(name))?
                }

                fn visit(visitor: &mut impl KeyVisitor) {
                    let base = <Self as Fields>::BASE;
                    $(<$table>::visit(visitor);)?
                    $({
                        let default = &$crate::schema::table::keys!(@field base $key $($($field).+)?);
                        let kind = like(default, $kind);
                        visitor.key(stringify!($key), concat!($($key_doc,)+), &kind, Some(default));
                    })*
                }

                fn take(item: &Item, path: &str) -> Result<Self, Fault> {
                    Self::BASE.with(item, path)
                }

                fn write(&self, path: &str, lines: &mut Lines) {
                    $(self.$inner.write(path, lines);)?
                    let table = self;
                    $(
                        let value = &$crate::schema::table::keys!(@field table $key $($($field).+)?);
                        like(value, $kind).write(value, &joined(path, stringify!($key)), lines);
                    )*
                }
            }

            impl Fields for $name {
                const BASE: Self = $base;

                fn with(self, item: &Item, path: &str) -> Result<Self, Fault> {
                    let mut table = self;
                    $(table.$inner = table.$inner.with(item, path)?;)?
                    $(
                        let value = &mut $crate::schema::table::keys!(@field table $key $($($field).+)?);
                        let kind = like(&*value, $kind);
                        if let Some(item) = item.get(stringify!($key)) {
                            *value = kind.read(item, &joined(path, stringify!($key)))?;
                        }
                    )*
                    // A check compares keys, so it comes after all are read.
                    $($check(&table).map_err(|misfit| misfit.fault(item, path))?;)?
                    Ok(table)
                }
            }

            $(impl Presets for $name {
                const PRESET_DOC: &'static str = concat!($($preset_doc,)+);
                const PRESETS: &'static [(&'static str, Self)] = &[$(($word, $preset)),+];
            })?
        };
    };
    (@absent $kind:ident, $path:ident, $item:ident, $default:expr) => { $default };
    (@absent $kind:ident, $path:ident, $item:ident) => { $kind.missing(&$path, $item.at)? };
    (@field $table:ident $key:ident) => { $table.$key };
    (@field $table:ident $key:ident $($field:tt).+) => { $table.$($field).+ };
}
pub(crate) use keys;

/// The imports that the code of a declaration needs.
pub(crate) mod declared {
    pub(crate) use super::{Fields, KeyVisitor, Keys, Presets, like, of};
    pub(crate) use crate::schema::document::{Item, joined};
    pub(crate) use crate::schema::error::Fault;
    pub(crate) use crate::schema::kind::{Lines, ValueKind};
}

/// A value that contradicts other values of its table.
pub(crate) struct Misfit {
    path: String,
    message: String,
}

impl Misfit {
    /// Makes a misfit. `path` begins in the checked table. In errors, the `message` follows the path.
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    /// Returns a misfit as an error, unless `fits` is true.
    pub(crate) fn unless(
        fits: bool,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Result<(), Self> {
        if fits { Ok(()) } else { Err(Self::new(path, message)) }
    }

    pub(crate) fn fault(&self, item: &Item, path: &str) -> Fault {
        let message = format!("`{}` {}", joined(path, &self.path), self.message);
        // A missing key has no line. The nearest table around it has one.
        Fault::new(item.nearest_to(&self.path).at, message)
    }
}

/// Returns the kind unchanged. The compiler learns from the call that its values have the type `V`.
pub(crate) fn of<V, K: ValueKind<Value = V>>(kind: K) -> K {
    kind
}

/// Returns the kind unchanged. The compiler learns from the call that its values have the type of `_value`.
pub(crate) fn like<V, K: ValueKind<Value = V>>(_value: &V, kind: K) -> K {
    kind
}

/// Returns the entry of a key for the reference page.
pub(crate) fn key<K: ValueKind>(
    name: &'static str,
    doc: &str,
    kind: &K,
    default: Option<&K::Value>,
) -> KeyEntry {
    let mut lines = Lines::new();
    if let Some(default) = default {
        kind.write(default, "", &mut lines);
    }
    KeyEntry {
        name,
        doc: doc.trim().to_owned(),
        accepts: kind.accepts(),
        // A table has no default of its own, because its keys have theirs.
        default: default
            .filter(|_| lines.len() < 2)
            .map(|_| lines.into_iter().map(|(_, text)| text).collect()),
        keys: kind.keys(),
        is_list: kind.is_list(),
    }
}

/// The kind of a table with the keys of `T`.
pub(crate) struct TableKind<T>(PhantomData<T>);

/// Returns the kind of a table whose keys are those declared for `T`.
pub(crate) const fn table<T>() -> TableKind<T> {
    TableKind(PhantomData)
}

impl<T: Keys> ValueKind for TableKind<T> {
    type Value = T;
    fn accepts(&self) -> String {
        let keys: Vec<_> = T::keys().iter().map(|key| format!("`{}`", key.name)).collect();
        format!("a table of {}", keys.join(", "))
    }
    fn read(&self, item: &Item, path: &str) -> Result<T, Fault> {
        match &item.value {
            TomlValue::Table(_) => T::read(item, path),
            _ => Err(self.refuse(item, path)),
        }
    }
    /// A missing table is an empty one, because all its keys may have defaults.
    fn missing(&self, path: &str, at: ValueOrigin) -> Result<T, Fault> {
        T::read(&Item::empty_table(at), path)
    }
    fn write(&self, value: &T, path: &str, lines: &mut Lines) {
        value.write(path, lines);
    }
    fn schema(&self) -> Value {
        object::<T>()
    }
    fn keys(&self) -> Vec<KeyEntry> {
        T::keys()
    }
    fn is_table(&self) -> bool {
        true
    }
}

keys! {
    /// A table without keys besides `kind`.
    pub struct Bare {}
}

/// The kind of a list of tables with the keys of `T`, each under a name of its own.
pub(crate) struct Named<T> {
    most: usize,
    name: fn(&T) -> &str,
}

/// Returns the kind of up to `most` tables with the keys of `T`, where `name` returns the name of a table. The surrounding
/// table checks whether the list may be empty.
pub(crate) const fn named<T>(most: usize, name: fn(&T) -> &str) -> Named<T> {
    Named { most, name }
}

impl<T: Keys> ValueKind for Named<T> {
    type Value = Vec<T>;
    fn accepts(&self) -> String {
        format!("1 to {} tables, each with a `name` of its own", self.most)
    }
    fn read(&self, item: &Item, path: &str) -> Result<Vec<T>, Fault> {
        let TomlValue::List(list) = &item.value else { return Err(self.refuse(item, path)) };
        if list.len() > self.most {
            return Err(self.refuse(item, path));
        }
        let mut names: Vec<&str> = Vec::new();
        let mut tables = Vec::new();
        for (place, item) in list.iter().enumerate() {
            // A missing or malformed name is reported by its key below. Until then the path has the place in the list.
            let name = item.name().filter(|name| is_name(name));
            let path_of_item =
                name.map_or_else(|| format!("{path}[{place}]"), |name| format!("{path}.{name}"));
            tables.push(table().read(item, &path_of_item)?);
            let name = name.unwrap_or_default();
            // A path names one table, so two must not share a name.
            if names.contains(&name) {
                let at = item.get("name").map_or(item.at, |name| name.at);
                return Err(Fault::new(at, format!("`{path}` has two tables with the name `{name}`")));
            }
            names.push(name);
        }
        Ok(tables)
    }
    fn write(&self, value: &Vec<T>, path: &str, lines: &mut Lines) {
        for table in value {
            table.write(&format!("{path}.{}", (self.name)(table)), lines);
        }
    }
    fn schema(&self) -> Value {
        json!({ "type": "array", "maxItems": self.most, "items": object::<T>() })
    }
    fn keys(&self) -> Vec<KeyEntry> {
        T::keys()
    }
    fn is_list(&self) -> bool {
        true
    }
}
