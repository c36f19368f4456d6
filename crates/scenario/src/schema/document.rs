//! A scenario file as a tree in which every value knows where it was written.
//!
//! Settings change the tree before any key is read, so values from the command line are checked like values in the file.

use toml::de::{DeTable, DeValue};

use super::amount::Amount;
use super::error::{Fault, ValueOrigin, did_you_mean, shown};

/// A value, and the line of the file or the setting where it was written. A member of a table has the line of its key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) at: ValueOrigin,
    pub(crate) value: TomlValue,
}

/// A value of TOML, of a kind that a scenario can use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TomlValue {
    Text(String),
    Integer(i64),
    Switch(bool),
    List(Vec<Item>),
    /// The members of a table, in the order of the file.
    Table(Vec<(String, Item)>),
    /// Floating-point numbers, dates and integers beyond 64 bits, written as in the file. Only quantities accept them.
    Other(String),
}

/// Parses the text of a file to a tree.
pub(crate) fn parse(text: &str) -> Result<Item, Fault> {
    // Every value asks for its line, so the ends of lines are found once.
    let ends: Vec<_> =
        text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(end, _)| end).collect();
    let line = |offset: usize| ValueOrigin::Line(1 + ends.partition_point(|end| *end < offset));
    match DeTable::parse(text) {
        Ok(table) => {
            Ok(Item { at: ValueOrigin::Line(1), value: tree(&DeValue::Table(table.into_inner()), &line) })
        }
        Err(error) => {
            // An error without a place is reported on the first line.
            let span = error.span().unwrap_or_default();
            let at = line(span.start);
            // The parser reports only the place of a repeated key.
            if let Some(twice) = text.get(span.clone()).filter(|_| error.message() == "duplicate key") {
                return Err(Fault::new(at, format!("the key `{}` is there twice", shown(twice))));
            }
            let start = text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
            let hint = text.get(start..).and_then(|rest| rest.lines().next()).and_then(bare_amount);
            let hint = hint.unwrap_or_default();
            Err(Fault::new(at, format!("not TOML: {}{hint}", shown(error.message()))))
        }
    }
}

/// Returns the hint to put the value of this line in quotes; `None` unless the value is a number with a unit and
/// without quotes.
fn bare_amount(line: &str) -> Option<String> {
    let (_, value) = line.split_once('=')?;
    // A comment may follow the value.
    let value = value.split('#').next().unwrap_or_default().trim();
    Amount::parse(value).map(|_| format!("; put a value with a unit in quotes: \"{value}\""))
}

/// Reads the value of a setting: as TOML if it is TOML, or else as text, so that `random` and `200 ms` need no quotes.
pub(crate) fn setting(text: &str, at: ValueOrigin) -> Item {
    let text = text.trim();
    let value = match DeValue::parse(text) {
        // No key takes a date of TOML. As text it may still be a title.
        Ok(value) if !value.get_ref().is_datetime() => tree(value.get_ref(), &|_| at),
        _ => TomlValue::Text(text.to_owned()),
    };
    Item { at, value }
}

/// Returns the value that `settings` give a key: the last one, if the key is set several times; `None` if it is not
/// set.
pub fn setting_of<'a>(settings: &'a [(String, String)], key: &str) -> Option<&'a str> {
    settings.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
}

/// Splits the values of a setting at its commas, except commas within quotes, brackets and braces.
pub fn split_values(text: &str) -> Vec<&str> {
    let (mut values, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let mut quote = None;
    let mut is_escaped = false;
    for (place, c) in text.char_indices() {
        match (c, quote) {
            // TOML has escapes between double quotes only.
            (_, Some('"')) if is_escaped => is_escaped = false,
            ('\\', Some('"')) => is_escaped = true,
            (c, Some(open)) => quote = (c != open).then_some(open),
            ('"' | '\'', None) => quote = Some(c),
            ('[' | '{', None) => depth += 1,
            // A bracket too many is left to the error of the value.
            (']' | '}', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                values.push(text[start..place].trim());
                start = place + 1;
            }
            _ => {}
        }
    }
    values.push(text[start..].trim());
    values
}

fn tree(value: &DeValue<'_>, place: &dyn Fn(usize) -> ValueOrigin) -> TomlValue {
    match value {
        DeValue::String(text) => TomlValue::Text(text.to_string()),
        DeValue::Boolean(switch) => TomlValue::Switch(*switch),
        // A number beyond 64 bits is kept as text, so that the error of its key can show it.
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(integer) => TomlValue::Integer(integer),
            Err(_) => TomlValue::Other(integer.as_str().to_owned()),
        },
        // As text, because quantities are read exactly: 0.1 has no exact binary number.
        DeValue::Float(float) => TomlValue::Other(float.as_str().to_owned()),
        // No key takes a date. Its text is kept for the error of the key.
        DeValue::Datetime(datetime) => TomlValue::Other(datetime.to_string()),
        DeValue::Array(array) => TomlValue::List(
            array
                .iter()
                .map(|item| Item { at: place(item.span().start), value: tree(item.get_ref(), place) })
                .collect(),
        ),
        DeValue::Table(table) => {
            let mut members: Vec<_> = table.iter().collect();
            // Knobs keep the order of the file.
            members.sort_by_key(|(key, _)| key.span().start);
            TomlValue::Table(
                members
                    .into_iter()
                    .map(|(key, item)| {
                        let (at, value) = (place(key.span().start), tree(item.get_ref(), place));
                        (key.get_ref().to_string(), Item { at, value })
                    })
                    .collect(),
            )
        }
    }
}

impl Item {
    /// Returns a table without members.
    pub(crate) const fn empty_table(at: ValueOrigin) -> Self {
        Self { at, value: TomlValue::Table(Vec::new()) }
    }

    /// Returns the member `name` of this table, or `None` if this is not a table. If the member is missing, it is first
    /// added with this `value`.
    pub(crate) fn get_or_insert(
        &mut self,
        name: &str,
        at: ValueOrigin,
        value: TomlValue,
    ) -> Option<&mut Self> {
        let TomlValue::Table(members) = &mut self.value else { return None };
        Some(member_or_insert(members, name, at, value))
    }

    /// Handles two keys that exclude each other. Returns a copy of the table in which `other` is "none" if the file
    /// sets `said` but not `other`, because the default of `other` would contradict `said`.
    pub(crate) fn with_either(&self, said: &str, other: &str) -> Self {
        let mut table = self.clone();
        // "none" is a default written out, and contradicts nothing.
        let is_said = |item: &&Self| !matches!(&item.value, TomlValue::Text(text) if text == "none");
        if let Some(at) = self.get(said).filter(is_said).map(|item| item.at) {
            table.get_or_insert(other, at, TomlValue::Text("none".to_owned()));
        }
        table
    }

    /// Returns the place where this item was written, if it is a table.
    pub(crate) fn place_of_table(&self) -> Option<ValueOrigin> {
        matches!(self.value, TomlValue::Table(_)).then_some(self.at)
    }

    /// Returns the member `name` of a table.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match &self.value {
            TomlValue::Table(members) => members.iter().find(|(key, _)| key == name).map(|(_, item)| item),
            _ => None,
        }
    }

    /// Returns the `name` of this table, by which paths find it in a list of tables.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.get("name")?.value {
            TomlValue::Text(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the member `name` of a table, or of a list of named tables.
    fn member(&self, name: &str) -> Option<&Self> {
        match &self.value {
            // The tables of a list are found by their names.
            TomlValue::List(list) => list.iter().find(|item| item.name() == Some(name)),
            _ => self.get(name),
        }
    }

    /// Returns the item at the dotted `path`, or the last item on the path that exists.
    pub(crate) fn nearest_to(&self, path: &str) -> &Self {
        path.split('.')
            .try_fold(self, |place, part| place.member(part).ok_or(place))
            .unwrap_or_else(|last| last)
    }

    /// Checks, for every list on the dotted `path`, that the list has the member that the path names.
    pub(crate) fn leads(&self, path: &str, at: ValueOrigin) -> Result<(), Fault> {
        let mut place = self;
        let mut walked = String::new();
        for part in path.split('.') {
            place = match (place.member(part), &place.value) {
                (Some(item), _) => item,
                (None, TomlValue::List(list)) => return Err(unnamed(list, part, &walked, at)),
                // Other missing names are made or refused when the setting is assigned.
                (None, _) => break,
            };
            walked = joined(&walked, part);
        }
        Ok(())
    }

    /// Puts `item` at the dotted `path`. A member of a list is found by its name; a missing table on the path is made.
    pub(crate) fn assign(&mut self, path: &str, item: Self) -> Result<(), Fault> {
        let at = item.at;
        let mut place = self;
        let mut walked = String::new();
        for part in path.split('.') {
            place = place.step(part, &walked, at)?;
            walked = joined(&walked, part);
        }
        *place = item;
        Ok(())
    }

    /// Removes from the table `name` of the file all members for which `is_kept` returns false.
    pub(crate) fn retain(&mut self, name: &str, is_kept: impl Fn(&str, &mut Self) -> bool) {
        let TomlValue::Table(members) = &mut self.value else { return };
        let Some((_, table)) = members.iter_mut().find(|(key, _)| key == name) else { return };
        if let TomlValue::Table(members) = &mut table.value {
            members.retain_mut(|(key, item)| is_kept(key, item));
        }
    }

    fn step(&mut self, part: &str, walked: &str, at: ValueOrigin) -> Result<&mut Self, Fault> {
        // Taken before the match, which borrows the value.
        let here = self.show();
        match &mut self.value {
            TomlValue::List(list) => {
                let unnamed = unnamed(list, part, walked, at);
                list.iter_mut().find(|item| item.name() == Some(part)).ok_or(unnamed)
            }
            TomlValue::Table(members) => {
                Ok(member_or_insert(members, part, at, TomlValue::Table(Vec::new())))
            }
            _ => Err(Fault::new(at, format!("`{walked}` is {here} and has no key `{}`", shown(part)))),
        }
    }

    /// Returns the text that an error shows for the value.
    pub(crate) fn show(&self) -> String {
        match &self.value {
            TomlValue::Text(text) | TomlValue::Other(text) => format!("`{}`", shown(text)),
            TomlValue::Integer(integer) => format!("`{integer}`"),
            TomlValue::Switch(switch) => format!("`{switch}`"),
            // A list or a table may be too long for an error of one line.
            TomlValue::List(_) => "a list".to_owned(),
            TomlValue::Table(_) => "a table".to_owned(),
        }
    }
}

fn member_or_insert<'a>(
    members: &'a mut Vec<(String, Item)>,
    name: &str,
    at: ValueOrigin,
    value: TomlValue,
) -> &'a mut Item {
    // Tables are short lists and not maps, so that they keep the order of the file.
    let place = members.iter().position(|(key, _)| key == name).unwrap_or_else(|| {
        members.push((name.to_owned(), Item { at, value }));
        members.len() - 1
    });
    &mut members[place].1
}

fn unnamed(list: &[Item], part: &str, walked: &str, at: ValueOrigin) -> Fault {
    let near = did_you_mean(part, list.iter().filter_map(Item::name));
    Fault::new(at, format!("no key `{}` in `{walked}`{near}", shown(part)))
}

/// Returns the dotted path of the key `name` of `table`; the file itself has the empty path.
pub(crate) fn joined(table: &str, name: &str) -> String {
    if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") }
}

/// Returns whether `text` can be part of a dotted path.
pub(crate) fn is_name(text: &str) -> bool {
    // No dot, which separates the names of a path.
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    text.len() <= 32 && text.bytes().all(inner) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Returns `text` as a string of TOML, with quotes.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
