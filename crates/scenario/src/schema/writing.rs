//! Writing of a tree as TOML.

use std::fmt::Write;

use super::document::{Item, Value, quoted};

impl Item {
    /// Returns a table as a document of TOML. Tables have headers, and so have tables in lists. Other values are on one line each.
    pub(crate) fn document(&self) -> String {
        let mut text = String::new();
        self.write_members("", &mut text);
        text.trim_start().to_owned()
    }

    /// Writes the members of the table at `path`: those with a line of their own, then those with a header.
    fn write_members(&self, path: &str, text: &mut String) {
        let Value::Table(members) = &self.value else { return };
        for (name, item) in members.iter().filter(|(_, item)| item.headers(path) == Headers::None) {
            let _ = writeln!(text, "{} = {}", key(name), item.inline());
        }
        for (name, item) in members {
            let inner = if path.is_empty() { key(name) } else { format!("{path}.{}", key(name)) };
            match (item.headers(path), &item.value) {
                (Headers::One, _) => {
                    // A table without lines of its own needs no header, because those within it name it.
                    let header = format!("\n[{inner}]\n");
                    let mut members = String::new();
                    item.write_members(&inner, &mut members);
                    let is_implied = members.starts_with("\n[");
                    text.push_str(if is_implied { "" } else { &header });
                    text.push_str(&members);
                }
                (Headers::Each, Value::List(items)) => {
                    for item in items {
                        let _ = writeln!(text, "\n[[{inner}]]");
                        item.write_lines(text);
                    }
                }
                _ => {}
            }
        }
    }

    /// Writes every member of a table on a line.
    fn write_lines(&self, text: &mut String) {
        let Value::Table(members) = &self.value else { return };
        for (name, item) in members {
            let _ = writeln!(text, "{} = {}", key(name), item.inline());
        }
    }

    /// Returns how a member of the table at `path` is written. Tables that lie deeper than four names are on one line.
    fn headers(&self, path: &str) -> Headers {
        let is_table = |item: &Self| matches!(item.value, Value::Table(_));
        match &self.value {
            Value::Table(_) if path.split('.').count() < 4 => Headers::One,
            Value::List(items) if !items.is_empty() && items.iter().all(is_table) => Headers::Each,
            _ => Headers::None,
        }
    }

    /// Returns a value on one line.
    fn inline(&self) -> String {
        match &self.value {
            Value::Text(text) => quoted(text),
            Value::Integer(integer) => integer.to_string(),
            Value::Switch(switch) => switch.to_string(),
            Value::List(items) => {
                let items: Vec<_> = items.iter().map(Self::inline).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Table(members) => {
                let member = |(name, item): &(String, Self)| format!("{} = {}", key(name), item.inline());
                let members: Vec<_> = members.iter().map(member).collect();
                if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join(", ")) }
            }
            Value::Other(text) => text.clone(),
        }
    }
}

/// The headers that a member of a table is written with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Headers {
    /// None: the member is a line.
    None,
    /// One: the member is a table.
    One,
    /// One for each item of a list of tables.
    Each,
}

/// Returns a key, in quotes if it needs them.
fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(is_bare) { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use super::super::document::parse;

    /// Returns a document written, read and written again.
    fn rewritten(text: &str) -> [String; 2] {
        let once = parse(text).unwrap().document();
        let twice = parse(&once).unwrap_or_else(|fault| panic!("{}\n{once}", fault.message)).document();
        [once, twice]
    }

    #[test]
    fn a_document_is_written_as_people_write_it() {
        let text = "title = 'a \"b\"'\n\n[x]\nn = 3\nlist = [\"a\", 2]\n\n[x.y]\non = true\n\n[[x.hops]]\nname = \"one\"\n\
                    loss = { mean = \"1 %\" }\n\n[[x.hops]]\nname = \"two\"\n";
        let [once, twice] = rewritten(text);
        assert_eq!((once.as_str(), twice.as_str()), (text, text));
    }

    #[test]
    fn whatever_a_document_holds_comes_back() {
        let text = "'a.b' = ''\nx = {y = {z = {deep = {deeper = {deepest = 1}}}}}\n[k.errors.none]\n\"n.up.loss\" = '0 %'\nempty = []\n[e]\n";
        let [once, twice] = rewritten(text);
        assert_eq!(once, twice);
        for part in [
            "\"a.b\" = \"\"",
            "deepest = 1",
            "[k.errors.none]\n\"n.up.loss\" = \"0 %\"",
            "empty = []",
            "[e]\n",
        ] {
            assert!(once.contains(part), "{part}\n{once}");
        }
        assert!(!once.contains("[k]\n"), "{once}");
    }
}
