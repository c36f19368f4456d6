//! Rows for programs: CSV and JSON lines with equal names and values.

use serde::Serialize;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An unknown value: empty in CSV, `null` in JSON.
    Nothing,
    /// A text.
    Text(String),
    /// A number, written with six decimals at most.
    Number(f64),
    /// A whole number.
    Count(u64),
    /// A truth value.
    Flag(bool),
    /// A list or an object, for JSON only.
    Nested(serde_json::Value),
}

impl Value {
    /// Makes a nested value of one that can be serialised.
    pub(crate) fn nested(value: &impl Serialize) -> Self {
        serde_json::to_value(value).map_or(Self::Nothing, Self::Nested)
    }

    /// Reads a text as a whole number if it is one.
    pub(crate) fn number_or_text(text: &str) -> Self {
        text.parse().map_or_else(|_| text.into(), Self::Count)
    }

    fn csv(self) -> String {
        match self {
            Self::Nothing | Self::Nested(_) => String::new(),
            Self::Text(text) => text,
            Self::Number(number) => super::number::field(Some(number)),
            Self::Count(count) => count.to_string(),
            Self::Flag(flag) => flag.to_string(),
        }
    }

    fn json(self) -> serde_json::Value {
        match self {
            Self::Nothing => serde_json::Value::Null,
            Self::Text(text) => text.into(),
            // Numbers have six decimals at most, like those of CSV. A whole number has none.
            Self::Number(number) => {
                let text = super::number::field(Some(number));
                text.parse::<i64>().map_or_else(|_| text.parse::<f64>().ok().into(), Into::into)
            }
            Self::Count(count) => count.into(),
            Self::Flag(flag) => flag.into(),
            Self::Nested(value) => value,
        }
    }
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Self {
        number.filter(|number| number.is_finite()).map_or(Self::Nothing, Self::Number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

/// A column that every row has: the name, the meaning, and the source of the value `F`.
pub(crate) type Always<F> = (&'static str, &'static str, F);

/// Columns in their order. `K` is the source of a column's value.
#[derive(Debug)]
pub(crate) struct Sheet<K> {
    columns: Vec<(String, K)>,
}

impl<K> Sheet<K> {
    pub(crate) fn new(columns: impl IntoIterator<Item = (String, K)>) -> Self {
        Self { columns: columns.into_iter().collect() }
    }

    /// Returns the names and the sources of the columns.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&str, &K)> {
        self.columns.iter().map(|(name, key)| (name.as_str(), key))
    }

    /// Returns the names of the columns as a line of CSV. Columns for which `is_nested` holds are in JSON only.
    pub(crate) fn header(&self, is_nested: impl Fn(&K) -> bool) -> String {
        line(self.columns.iter().filter(|(_, key)| !is_nested(key)).map(|(name, _)| name.clone()))
    }

    /// Returns a row as a line of CSV.
    pub(crate) fn csv(&self, value: impl Fn(&K) -> Value, is_nested: impl Fn(&K) -> bool) -> String {
        line(self.columns.iter().filter(|(_, key)| !is_nested(key)).map(|(_, key)| value(key).csv()))
    }

    /// Returns a row as a line of JSON.
    pub(crate) fn json(&self, value: impl Fn(&K) -> Value) -> String {
        let fields = self.columns.iter().map(|(name, key)| {
            // A name can always be written as JSON.
            let name = serde_json::Value::from(name.as_str());
            format!("{name}:{}", value(key).json())
        });
        format!("{{{}}}\n", fields.collect::<Vec<_>>().join(","))
    }
}

/// Writes fields as a line of CSV (RFC 4180).
fn line(fields: impl Iterator<Item = String>) -> String {
    let mut csv = csv::WriterBuilder::new().from_writer(Vec::new());
    // Writing to memory does not fail.
    let _ = csv.write_record(fields.collect::<Vec<_>>());
    csv.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_and_json_say_the_same() {
        let values = [
            ("a", Value::from("x,\"y\"\n")),
            ("b", Value::Number(0.123_456_7)),
            ("c", Value::Number(62.0)),
            ("d", Value::from(Some(f64::INFINITY))),
            ("e", Value::Count(u64::MAX)),
            ("f", Value::Flag(true)),
            ("g", Value::nested(&[1, 2])),
        ];
        let is_nested = |value: &Value| matches!(value, Value::Nested(_));
        let sheet = Sheet::new(values.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(sheet.header(is_nested), "a,b,c,d,e,f\n");
        assert_eq!(
            sheet.csv(Clone::clone, is_nested),
            "\"x,\"\"y\"\"\n\",0.123457,62,,18446744073709551615,true\n"
        );
        let json = sheet.json(Clone::clone);
        assert_eq!(
            json,
            "{\"a\":\"x,\\\"y\\\"\\n\",\"b\":0.123457,\"c\":62,\"d\":null,\"e\":18446744073709551615,\"f\":true,\"g\":[1,2]}\n"
        );
    }
}
