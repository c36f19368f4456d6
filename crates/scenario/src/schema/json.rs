//! JSON Schemas (draft 7) of tables and values, from their declarations.

use serde_json::{Map, Value, json};

use super::kind::ValueKind;
use super::table::{KeyVisitor, Keys, key};

/// Returns the schema of the values that at least one of `schemas` accepts.
pub(crate) fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    json!({ "anyOf": schemas.into_iter().collect::<Vec<_>>() })
}

/// Adds the key `name` to the required keys of the schema `table`.
pub(crate) fn require(table: &mut Value, name: &str) {
    if let Some(required) = table["required"].as_array_mut() {
        required.push(name.into());
    }
}

/// Returns the schema of a table with the keys of `T` and no others.
pub(crate) fn object<T: Keys>() -> Value {
    let mut found = Properties::default();
    T::visit(&mut found);
    let Properties { properties, required } = found;
    json!({
        "type": "object", "description": T::DOC, "properties": properties, "required": required, "additionalProperties": false,
    })
}

#[derive(Default)]
struct Properties {
    properties: Map<String, Value>,
    required: Vec<&'static str>,
}

impl KeyVisitor for Properties {
    fn key<K: ValueKind>(&mut self, name: &'static str, doc: &str, kind: &K, default: Option<&K::Value>) {
        let (entry, mut schema) = (key(name, doc, kind, default), kind.schema());
        schema["description"] = entry.doc.as_str().into();
        // Values of scenarios are the same in TOML and JSON.
        let default = entry.default.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if let Some(default) = default {
            schema["default"] = default;
        }
        // Editors then report a missing key only where reading the file would.
        if entry.is_required() {
            self.required.push(name);
        }
        self.properties.insert(name.to_owned(), schema);
    }
}
