//! Tables of keys, each declared once: from the declaration come the struct, its reading and checking, the canonical
//! text, the reference page and the suggestions.

use std::marker::PhantomData;

use super::document::{Item, TomlValue, is_name, joined};
use super::error::{Fault, ValueOrigin};
use super::kind::{KeyEntry, Lines, ValueKind};
use super::unknown::unknown;

/// A table of keys.
pub(crate) trait Keys: Sized {
    /// A sentence about the table.
    const DOC: &'static str;
    /// Returns whether the table has a key of this name.
    fn has(name: &str) -> bool;
    /// Returns its keys, in order.
    fn keys() -> Vec<KeyEntry>;
    /// Reads the keys of this table from `item`, which may have others.
    fn take(item: &Item, path: &str) -> Result<Self, Fault>;
    /// Reads the table `item`, which has no other keys.
    fn read(item: &Item, path: &str) -> Result<Self, Fault> {
        if let TomlValue::Table(members) = &item.value
            && let Some((name, member)) = members.iter().find(|(name, _)| !Self::has(name))
        {
            return Err(unknown(path, name, &Self::keys(), &[], member.at));
        }
        Self::take(item, path)
    }
    /// Writes every key.
    fn write(&self, path: &str, lines: &mut Lines);
}

/// A table whose keys are fields of a struct of the simulator.
pub(crate) trait Fields: Keys {
    /// The values of keys that a file leaves out.
    const BASE: Self;
    /// Returns this value with the keys of `item` in place of its own.
    fn with(self, item: &Item, path: &str) -> Result<Self, Fault>;
}

/// A table with several bases.
pub(crate) trait Presets: Fields + Clone + 'static {
    /// A sentence about the key `preset`.
    const PRESET_DOC: &'static str;
    /// The bases by name; the first is the default.
    const PRESETS: &'static [(&'static str, Self)];
}

/// Declares a table, in one of two ways.
///
/// * `struct Name { key: type, kind => default; }` makes a struct, and `for Name { … }` describes one of the simulator in the same
///   way. A key without a default must be there. A table may be completed before it is read, where what one key says
///   decides the default of another, and checked after.
/// * `for Name = BASE { key: kind; }` describes a struct of the simulator. Its fields in `BASE` are the defaults. `key as field`
///   names a field that is not called like its key; `..field: Table;` takes in the keys of a table within. `presets` are
///   other bases, which the key `preset` of a [`Preset`](super::preset::Preset) chooses by name.
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

                fn keys() -> Vec<KeyEntry> {
                    vec![$({
                        let kind = of::<$type, _>($kind);
                        #[allow(unused_mut, unused_assignments)]
                        let mut default: Option<$type> = None;
                        $(default = Some($default);)?
                        key(stringify!($key), concat!($($key_doc,)+), &kind, default.as_ref())
                    },)*]
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

                fn keys() -> Vec<KeyEntry> {
                    let base = <Self as Fields>::BASE;
                    let own = [$({
                        let default = &$crate::schema::table::keys!(@field base $key $($($field).+)?);
                        let kind = like(default, $kind);
                        key(stringify!($key), concat!($($key_doc,)+), &kind, Some(default))
                    },)*];
                    #[allow(unused_mut)]
                    let mut keys = Vec::new();
                    $(keys.extend(<$table>::keys());)?
                    keys.extend(own);
                    keys
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

/// Names that a declaration needs.
pub(crate) mod declared {
    pub(crate) use super::{Fields, Keys, Presets, key, like, of};
    pub(crate) use crate::schema::document::{Item, joined};
    pub(crate) use crate::schema::error::Fault;
    pub(crate) use crate::schema::kind::{KeyEntry, Lines, ValueKind};
}

/// A value that does not go with the others.
pub(crate) struct Misfit {
    path: String,
    message: String,
}

impl Misfit {
    /// Makes a misfit. `path` begins in the checked table, and errors have the `message` after it.
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    /// Returns the misfit, unless the value `fits`.
    pub(crate) fn unless(
        fits: bool,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Result<(), Self> {
        if fits { Ok(()) } else { Err(Self::new(path, message)) }
    }

    pub(crate) fn fault(&self, item: &Item, path: &str) -> Fault {
        let message = format!("`{}` {}", joined(path, &self.path), self.message);
        Fault::new(item.nearest_to(&self.path).at, message)
    }
}

/// Fixes the type of value of a kind.
pub(crate) fn of<V, K: ValueKind<Value = V>>(kind: K) -> K {
    kind
}

/// Fixes the type of value of a kind: the type of `_value`.
pub(crate) fn like<V, K: ValueKind<Value = V>>(_value: &V, kind: K) -> K {
    kind
}

/// Returns the entry of a key in the reference.
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

/// Returns the kind of a table with the keys of `T`.
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
    fn keys(&self) -> Vec<KeyEntry> {
        T::keys()
    }
    fn is_table(&self) -> bool {
        true
    }
}

keys! {
    /// A table without keys.
    pub struct Bare {}
}

/// The kind of a list of tables with the keys of `T`, each under a name of its own.
pub(crate) struct Named<T> {
    most: usize,
    name: fn(&T) -> &str,
}

/// Returns the kind of up to `most` tables with the keys of `T`, where `name` returns the name of one. If one is needed, the
/// table around checks it.
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
            let name = item.name().filter(|name| is_name(name));
            let path_of_item =
                name.map_or_else(|| format!("{path}[{place}]"), |name| format!("{path}.{name}"));
            tables.push(table().read(item, &path_of_item)?);
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
            table.write(&format!("{path}.{}", (self.name)(table)), lines);
        }
    }
    fn keys(&self) -> Vec<KeyEntry> {
        T::keys()
    }
    fn is_list(&self) -> bool {
        true
    }
}
