//! Writing of a tree as TOML.

use serde::ser::{Error, Serialize, Serializer};

use super::document::{Item, TomlValue};

impl Item {
    /// Returns a table as a TOML document, its members in sequence.
    pub(crate) fn document(&self) -> String {
        // A tree that was read from TOML can be written as TOML.
        toml::to_string(self).unwrap_or_default()
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            TomlValue::Text(text) => serializer.serialize_str(text),
            TomlValue::Integer(integer) => serializer.serialize_i64(*integer),
            TomlValue::Switch(switch) => serializer.serialize_bool(*switch),
            TomlValue::List(items) => serializer.collect_seq(items),
            TomlValue::Table(members) => {
                serializer.collect_map(members.iter().map(|(name, item)| (name, item)))
            }
            // No key of a scenario takes one, so no scenario has one.
            TomlValue::Other(text) => Err(S::Error::custom(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::parse;

    /// Returns a document that was written, read and written again.
    fn rewritten(text: &str) -> [String; 2] {
        let once = parse(text).unwrap().document();
        let twice = parse(&once).unwrap_or_else(|fault| panic!("{}\n{once}", fault.message)).document();
        [once, twice]
    }

    #[test]
    fn a_scenario_is_written_in_the_usual_layout_of_toml() {
        let text = "title = 'a \"b\"'\n\n[x]\nn = 3\nlist = [\"a\", 2]\n\n[x.y]\non = true\n\n[[x.hops]]\nname = \"one\"\n\n\
                    [[x.hops]]\nname = \"two\"\n";
        let [once, twice] = rewritten(text);
        assert_eq!((once.as_str(), twice.as_str()), (text, text));
    }

    #[test]
    fn every_written_value_of_a_scenario_parses_back() {
        let text = "'a.b' = ''\nx = {y = {z = {deep = {deeper = {deepest = 1}}}}}\n[k.errors.none]\n\"n.up.loss\" = '0 %'\nempty = []\n[e]\n";
        let [once, twice] = rewritten(text);
        assert_eq!(once, twice);
        for part in ["\"a.b\" = \"\"", "deepest = 1", "\"n.up.loss\" = \"0 %\"", "empty = []", "[e]\n"] {
            assert!(once.contains(part), "{part}\n{once}");
        }
    }
}
