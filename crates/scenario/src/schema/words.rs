//! Enumerations written as words, and tables whose keys depend on one of their words.

use std::marker::PhantomData;

use serde_json::{Value, json};

use super::document::{Item, TomlValue, joined, quoted};
use super::error::{Fault, ValueOrigin};
use super::json::{any_of, require};
use super::kind::{KeyEntry, Lines, ValueKind, listed, near, refused};

/// Declares an enumeration with a word for each value. With `for`, the enumeration is one of the simulator.
macro_rules! words {
    ($(#[doc = $doc:literal])+ pub enum $name:ident { $($(#[doc = $word_doc:literal])+ $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $word_doc])+ $variant,)+ }

        impl $name {
            /// Returns the word for the value in a scenario file.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        $crate::schema::words::words! { for $name { $($variant = $word,)+ } }
    };
    (for $name:ident { $($variant:ident = $word:literal,)+ }) => {
        impl $crate::schema::scalar::Words for $name {
            const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];
        }
    };
}
pub(crate) use words;

/// Declares an enumeration of tables. The key `kind` of a table selects the variant, which decides the other keys. A table
/// without `kind` is of the first variant. With `for`, the enumeration is one of the simulator.
macro_rules! tagged {
    ($(#[doc = $doc:literal])+ pub enum $name:ident {
        $($(#[doc = $variant_doc:literal])+ $variant:ident($table:ty) = $word:literal,)+
    }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name { $($(#[doc = $variant_doc])+ $variant($table),)+ }

        $crate::schema::words::tagged! { for $name { $($variant($table) = $word,)+ } }
    };
    (for $name:ident { $($variant:ident($table:ty) = $word:literal,)+ }) => {
        impl $crate::schema::words::TaggedTable for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];
            fn table_of(word: &str) -> (&'static str, Vec<$crate::schema::kind::KeyEntry>) {
                use $crate::schema::table::Keys;
                match word { $($word => (<$table>::DOC, <$table>::keys()),)+ _ => Default::default() }
            }
            fn schema_of(word: &str) -> serde_json::Value {
                match word { $($word => $crate::schema::json::object::<$table>(),)+ _ => serde_json::Value::Bool(false) }
            }
            fn read(
                word: &str, item: &$crate::schema::document::Item, path: &str,
            ) -> Option<Result<Self, $crate::schema::error::Fault>> {
                use $crate::schema::table::Keys as _;
                match word {
                    $($word => Some(<$table>::read(item, path).map(Self::$variant)),)+
                    _ => None,
                }
            }
            fn write(&self, path: &str, lines: &mut $crate::schema::kind::Lines) -> &'static str {
                use $crate::schema::table::Keys as _;
                match self { $(Self::$variant(table) => { table.write(path, lines); $word })+ }
            }
        }
    };
}
pub(crate) use tagged;

/// An enumeration of tables, one of which the key `kind` selects.
pub(crate) trait TaggedTable: Sized {
    const WORDS: &'static [&'static str];
    /// Returns the sentence that describes the table of a kind, and the keys of this table except `kind`.
    fn table_of(word: &str) -> (&'static str, Vec<KeyEntry>);
    /// Returns the JSON Schema of the table of a kind, without the key `kind`.
    fn schema_of(word: &str) -> Value;
    /// Reads a table without its `kind`; `None` if the kind is unknown.
    fn read(word: &str, item: &Item, path: &str) -> Option<Result<Self, Fault>>;
    /// Adds all keys except `kind` to `lines`. Returns the word of the kind.
    fn write(&self, path: &str, lines: &mut Lines) -> &'static str;
}

/// The kind of a value that is a table. The key `kind` of the table decides its other keys.
pub(crate) struct Tagged<T> {
    /// Whether a file may have the word of a kind alone, in place of a table.
    is_word_enough: bool,
    table: PhantomData<T>,
}

/// Returns the kind of a value that is a table whose keys depend on its key `kind`.
pub(crate) const fn tagged_table<T>() -> Tagged<T> {
    Tagged { is_word_enough: false, table: PhantomData }
}

/// Returns the kind of a value that is a table whose keys depend on its key `kind`, or only the word of this `kind`.
pub(crate) const fn word_or_table<T>() -> Tagged<T> {
    Tagged { is_word_enough: true, table: PhantomData }
}

const KIND: &str = "kind";

impl<T: TaggedTable> Tagged<T> {
    /// Returns the error about the first of `members` that belongs to other kinds than `word`; `None` if all fit, or if
    /// `word` is not a kind.
    fn misplaced(word: &str, members: &[(String, Item)], path: &str) -> Option<Fault> {
        let has = |kind: &str, name: &str| T::table_of(kind).1.iter().any(|key| key.name == name);
        // An unknown kind is reported itself, before its keys.
        members.iter().filter(|(name, _)| T::WORDS.contains(&word) && !has(word, name)).find_map(
            |(name, member)| {
                let kinds: Vec<_> = T::WORDS.iter().copied().filter(|kind| has(kind, name)).collect();
                let message =
                    format!("unknown key `{}`; it needs the kind {}", joined(path, name), listed(&kinds));
                (!kinds.is_empty()).then(|| Fault::new(member.at, message))
            },
        )
    }
}

impl<T: TaggedTable> ValueKind for Tagged<T> {
    type Value = T;

    fn accepts(&self) -> String {
        let kinds = listed(T::WORDS);
        if self.is_word_enough {
            return format!("{kinds}, or a table of that `kind` and its parameters");
        }
        format!("a table whose `kind` is {kinds}, with the keys of that kind")
    }

    fn schema(&self) -> Value {
        let table = |(place, word): (usize, &&'static str)| {
            let mut table = T::schema_of(word);
            table["properties"][KIND] = json!({ "const": word });
            // A table without `kind` is of the first one.
            if place > 0 {
                require(&mut table, KIND);
            }
            table
        };
        let words = self.is_word_enough.then(|| json!({ "enum": T::WORDS }));
        any_of(words.into_iter().chain(T::WORDS.iter().enumerate().map(table)))
    }

    fn read(&self, item: &Item, path: &str) -> Result<T, Fault> {
        let members = match &item.value {
            TomlValue::Table(members) => members,
            TomlValue::Text(word) if self.is_word_enough => {
                // A word alone is a table in which every key has its default.
                let read = T::read(word, &Item::empty_table(item.at), path);
                return read.unwrap_or_else(|| Err(self.refuse(item, path)));
            }
            _ => return Err(self.refuse(item, path)),
        };
        // The tables of the kinds do not declare `kind`, and would refuse it.
        let (kind, others): (Vec<_>, Vec<_>) = members.iter().cloned().partition(|(name, _)| name == KIND);
        let kind = kind.first().map(|(_, kind)| kind);
        let word = match kind.map(|kind| &kind.value) {
            None => T::WORDS.first().copied().unwrap_or_default(),
            Some(TomlValue::Text(word)) => word,
            // The empty word is not a kind, so the value is refused below.
            Some(_) => "",
        };
        // A key of another kind gets a better message than an unknown key.
        if let Some(fault) = Self::misplaced(word, &others, path) {
            return Err(fault);
        }
        let table = Item { at: item.at, value: TomlValue::Table(others) };
        let refuse = || {
            let kind = kind.unwrap_or(item);
            refused(&listed(T::WORDS), &near(T::WORDS, &kind.value), kind, &joined(path, KIND))
        };
        T::read(word, &table, path).unwrap_or_else(|| Err(refuse()))
    }

    fn missing(&self, path: &str, at: ValueOrigin) -> Result<T, Fault> {
        self.read(&Item::empty_table(at), path)
    }

    /// Writes the word alone if that is enough and its table has no keys.
    fn write(&self, value: &T, path: &str, lines: &mut Lines) {
        let mut inner = Lines::new();
        let word = value.write(path, &mut inner);
        let is_alone = self.is_word_enough && inner.is_empty();
        let name = if is_alone { path.to_owned() } else { joined(path, KIND) };
        lines.push((name, quoted(word)));
        lines.append(&mut inner);
    }

    fn keys(&self) -> Vec<KeyEntry> {
        let kind = KeyEntry {
            name: KIND,
            doc: "The kind of the table; the other keys depend on it.".to_owned(),
            accepts: listed(T::WORDS),
            default: T::WORDS.first().map(|word| quoted(word)),
            keys: Vec::new(),
            is_list: false,
        };
        let mut keys = vec![kind];
        for (place, word) in T::WORDS.iter().enumerate() {
            for mut key in T::table_of(word).1 {
                if place > 0 {
                    // A table without `kind` is of the first kind, and needs no keys of others.
                    key.default.get_or_insert_default();
                }
                // Kinds may share a key. It is listed once.
                if keys.iter().all(|known| known.name != key.name) {
                    keys.push(key);
                }
            }
        }
        keys
    }

    fn is_table(&self) -> bool {
        true
    }

    fn words(&self) -> Vec<&'static str> {
        if self.is_word_enough { T::WORDS.to_vec() } else { Vec::new() }
    }
}
