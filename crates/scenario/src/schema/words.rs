//! Enumerations by their words, and tables whose keys depend on the word that one of them says.

use std::marker::PhantomData;

use super::document::{Item, TomlValue, joined, quoted};
use super::error::{Fault, ValueOrigin};
use super::kind::{KeyEntry, Lines, ValueKind, listed, near, refused};

/// Declares an enumeration by its words, or describes one of the simulator (`for`).
macro_rules! words {
    ($(#[doc = $doc:literal])+ pub enum $name:ident { $($(#[doc = $word_doc:literal])+ $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $word_doc])+ $variant,)+ }

        impl $name {
            /// Returns the word that a scenario file has for it.
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

/// Declares an enumeration of tables: the key `kind` says which it is, and so what its other keys are. The first is what a
/// table without that key is. The enumeration may be one of the simulator (`for`).
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

/// Tables of several kinds.
pub(crate) trait TaggedTable: Sized {
    const WORDS: &'static [&'static str];
    /// Returns a sentence about the table of a kind, and its keys beside `kind`.
    fn table_of(word: &str) -> (&'static str, Vec<KeyEntry>);
    /// Reads a table without its `kind`; `None` if the kind is unknown.
    fn read(word: &str, item: &Item, path: &str) -> Option<Result<Self, Fault>>;
    /// Writes all keys except `kind`, whose word is returned.
    fn write(&self, path: &str, lines: &mut Lines) -> &'static str;
}

/// A table whose keys depend on its `kind`.
pub(crate) struct Tagged<T> {
    /// Whether the word of a kind may stand alone, in place of a table.
    is_word_enough: bool,
    table: PhantomData<T>,
}

/// Returns the kind of a table whose keys depend on its `kind`.
pub(crate) const fn tagged_table<T>() -> Tagged<T> {
    Tagged { is_word_enough: false, table: PhantomData }
}

/// Returns the kind of a table whose keys depend on its `kind`, or the word of that kind alone.
pub(crate) const fn word_or_table<T>() -> Tagged<T> {
    Tagged { is_word_enough: true, table: PhantomData }
}

const KIND: &str = "kind";

impl<T: TaggedTable> Tagged<T> {
    /// Returns the fault of the first of `members` that is a key of other kinds than `word`, if `word` is a kind.
    fn misplaced(word: &str, members: &[(String, Item)], path: &str) -> Option<Fault> {
        let has = |kind: &str, name: &str| T::table_of(kind).1.iter().any(|key| key.name == name);
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

    fn read(&self, item: &Item, path: &str) -> Result<T, Fault> {
        let members = match &item.value {
            TomlValue::Table(members) => members,
            TomlValue::Text(word) if self.is_word_enough => {
                let read = T::read(word, &Item::empty_table(item.at), path);
                return read.unwrap_or_else(|| Err(self.refuse(item, path)));
            }
            _ => return Err(self.refuse(item, path)),
        };
        let (kind, others): (Vec<_>, Vec<_>) = members.iter().cloned().partition(|(name, _)| name == KIND);
        let kind = kind.first().map(|(_, kind)| kind);
        let word = match kind.map(|kind| &kind.value) {
            None => T::WORDS.first().copied().unwrap_or_default(),
            Some(TomlValue::Text(word)) => word,
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
            doc: "Which of them it is; the other keys depend on it.".to_owned(),
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
