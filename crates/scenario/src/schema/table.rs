//! Tables of keys, each declared once: from the declaration come the struct, its reading and checking, the canonical
//! text, the reference page and the suggestions.

use coapace_control::nearest;

use super::document::{Item, Value, joined, setting};
use super::error::{Fault, shown};
use super::kind::{Kind, Lines};

/// One key as the reference lists it.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) doc: String,
    pub(crate) accepts: String,
    /// As in the file; `None` if the key must be there.
    pub(crate) default: Option<String>,
    /// The keys of a table.
    pub(crate) keys: Vec<Key>,
    /// Whether this is a list of tables, whose names are part of the path.
    pub(crate) is_list: bool,
}

impl Key {
    /// Whether a file without this key is refused: a table may be left out if all its keys may.
    pub(crate) fn is_required(&self) -> bool {
        let may_be_empty = !self.keys.is_empty() && !self.is_list;
        self.default.is_none() && !(may_be_empty && self.keys.iter().all(|key| !key.is_required()))
    }
}

/// A table of keys.
pub(crate) trait Keys: Sized {
    /// What the table is.
    const DOC: &'static str;
    /// The names of the keys.
    const NAMES: &'static [&'static str];
    fn keys() -> Vec<Key>;
    /// Reads the table `item`, which is one.
    fn read(item: &Item, path: &str) -> Result<Self, Fault>;
    /// Writes every key.
    fn write(&self, path: &str, lines: &mut Lines);
}

/// Declares a table: `key: type, kind => default;`, without a default if the key must be there. A table may be completed
/// before it is read, where what one key says decides the default of another, and checked after.
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

        impl $crate::schema::table::Keys for $name {
            const DOC: &'static str = concat!($($doc,)+).trim_ascii();
            const NAMES: &'static [&'static str] = &[$(stringify!($key)),*];

            fn keys() -> Vec<$crate::schema::table::Key> {
                vec![$({
                    let kind = $crate::schema::table::of::<$type, _>($kind);
                    #[allow(unused_mut, unused_assignments)]
                    let mut default: Option<$type> = None;
                    $(default = Some($default);)?
                    $crate::schema::table::key(
                        stringify!($key), concat!($($key_doc,)+), &kind, default.as_ref(),
                    )
                },)*]
            }

            fn read(
                item: &$crate::schema::document::Item, path: &str,
            ) -> Result<Self, $crate::schema::error::Fault> {
                #[allow(unused_imports)]
                use $crate::schema::kind::Kind as _;
                $crate::schema::table::all_known::<Self>(item, path)?;
                $(let item = &$complete(item);)?
                let table = Self { $($key: {
                    let kind = $crate::schema::table::of::<$type, _>($kind);
                    let path = $crate::schema::document::joined(path, stringify!($key));
                    match item.get(stringify!($key)) {
                        Some(item) => kind.read(item, &path)?,
                        None => $crate::schema::table::keys!(@absent kind, path, item $(, $default)?),
                    }
                },)* };
                $($check(&table).map_err(|misfit| misfit.fault(item, path))?;)?
                Ok(table)
            }

            #[allow(unused_variables)]
            fn write(&self, path: &str, lines: &mut $crate::schema::kind::Lines) {
                #[allow(unused_imports)]
                use $crate::schema::kind::Kind as _;
                $($kind.write(
                    &self.$key, &$crate::schema::document::joined(path, stringify!($key)), lines,
                );)*
            }
        }
    };
    (@absent $kind:ident, $path:ident, $item:ident, $default:expr) => { $default };
    (@absent $kind:ident, $path:ident, $item:ident) => { $kind.missing(&$path, $item.at)? };
}
pub(crate) use keys;

/// A value that does not go with the others.
pub(crate) struct Misfit {
    path: String,
    message: String,
}

impl Misfit {
    /// `path` within the table that was checked, and what is wrong, to be read after it.
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    pub(crate) fn fault(&self, item: &Item, path: &str) -> Fault {
        let message = format!("`{}` {}", joined(path, &self.path), self.message);
        Fault::new(item.nearest_to(&self.path).at, message)
    }
}

/// The table `item` with the keys of `table` where it has none of its own.
pub(crate) fn filled(item: &Item, table: &impl Keys) -> Item {
    let mut lines = Lines::new();
    table.write("", &mut lines);
    let mut item = item.clone();
    if let Value::Table(members) = &mut item.value {
        for (name, text) in lines {
            if members.iter().all(|(known, _)| *known != name) {
                members.push((name, setting(&text, item.at)));
            }
        }
    }
    item
}

/// Fixes the type of value of a kind.
pub(crate) fn of<V, K: Kind<Value = V>>(kind: K) -> K {
    kind
}

/// What the reference says of a key.
pub(crate) fn key<K: Kind>(name: &'static str, doc: &str, kind: &K, default: Option<&K::Value>) -> Key {
    let mut lines = Lines::new();
    if let Some(default) = default {
        kind.write(default, "", &mut lines);
    }
    Key {
        name,
        doc: doc.trim().to_owned(),
        accepts: kind.accepts(),
        default: default.map(|_| lines.into_iter().map(|(_, text)| text).collect()),
        keys: kind.keys(),
        is_list: kind.is_list(),
    }
}

/// Finds the first key of the table `item` that is not one of `T`.
pub(crate) fn all_known<T: Keys>(item: &Item, path: &str) -> Result<(), Fault> {
    let Value::Table(members) = &item.value else { return Ok(()) };
    match members.iter().find(|(name, _)| T::NAMES.iter().all(|key| key != name)) {
        Some((name, member)) => Err(Fault::new(member.at, unknown(path, name, &T::keys(), &[]))),
        None => Ok(()),
    }
}

/// Follows `path` through the keys of a scenario; the names in `others` would also do.
pub(crate) fn resolve(path: &str, others: &[&str]) -> Result<(), String> {
    let mut keys = crate::keys::File::keys();
    let mut walked = String::new();
    let mut parts = path.split('.');
    while let Some(part) = parts.next() {
        let Some(key) = keys.iter().find(|key| key.name == part) else {
            return Err(unknown(&walked, part, &keys, if walked.is_empty() { others } else { &[] }));
        };
        walked = joined(&walked, part);
        if key.is_list
            && let Some(name) = parts.next()
        {
            walked = joined(&walked, name);
        }
        keys = key.keys.clone();
    }
    Ok(())
}

/// The line about the unknown key `name` of the table at `path`: the nearest of the table's keys, else the same name
/// elsewhere, else what the table takes.
fn unknown(path: &str, name: &str, keys: &[Key], others: &[&str]) -> String {
    let unknown = format!("unknown key `{}`", shown(&joined(path, name)));
    let here = keys.iter().map(|key| key.name).chain(others.iter().copied());
    if let Some(near) = nearest(name, here) {
        let near = if others.contains(&near) { near.to_owned() } else { joined(path, near) };
        return format!("{unknown}; did you mean `{near}`?");
    }
    let mut paths = Vec::new();
    all_paths(&crate::keys::File::keys(), "", &mut paths);
    if let Some(near) = paths.iter().find(|path| path.rsplit('.').next() == Some(name)) {
        return format!("{unknown}; did you mean `{near}`?");
    }
    let names: Vec<_> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
    match (path, names.is_empty()) {
        (_, true) => format!("{unknown}; `{path}` has no keys"),
        ("", _) => format!("{unknown}; a scenario has {}", names.join(", ")),
        _ => format!("{unknown}; `{path}` has {}", names.join(", ")),
    }
}

/// The dotted path of every key that is no table; `HOP` stands for a name.
fn all_paths(keys: &[Key], table: &str, paths: &mut Vec<String>) {
    for key in keys {
        let path = joined(table, key.name);
        match (key.keys.is_empty(), key.is_list) {
            (true, _) => paths.push(path),
            (false, false) => all_paths(&key.keys, &path, paths),
            (false, true) => all_paths(&key.keys, &format!("{path}.HOP"), paths),
        }
    }
}
