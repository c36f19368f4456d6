//! Published figures: a row for each mechanism under conditions, a column for each metric.

use std::collections::BTreeMap;

use super::{Claim, Source};
use crate::results::{Metric, Published};

/// What a column of the file is.
enum Column {
    /// A condition: the knob that it sets.
    Knob(String),
    /// The row of the paper.
    Mechanism,
    Metric(Metric),
}

/// Reads `published.csv`. An empty field is a figure that was not published.
pub(super) fn read(text: &str, source: &Source) -> Result<Vec<Claim>, String> {
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let columns: Vec<Column> = csv
        .headers()
        .map_err(|error| error.to_string())?
        .iter()
        .map(|name| match (name, source.columns.get(name)) {
            ("mechanism", _) => Ok(Column::Mechanism),
            (_, Some(knob)) => Ok(Column::Knob(knob.clone())),
            (_, None) => name
                .parse()
                .map(Column::Metric)
                .map_err(|error| format!("source.toml has no knob for the column `{name}`, and {error}")),
        })
        .collect::<Result<_, String>>()?;
    if !text.is_empty() && !columns.iter().any(|column| matches!(column, Column::Mechanism)) {
        return Err("there is no column `mechanism`".to_owned());
    }
    let claim = |record: csv::Result<csv::StringRecord>| {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        claim(&columns, &record, source).map_err(|error| format!("line {line}: {error}"))
    };
    csv.records().map(claim).collect()
}

fn claim(columns: &[Column], record: &csv::StringRecord, source: &Source) -> Result<Claim, String> {
    let (mut settings, mut mechanism, mut figures) = (Vec::new(), "", BTreeMap::new());
    for (column, field) in columns.iter().zip(record) {
        match column {
            Column::Knob(knob) => settings.push((knob.clone(), field.to_owned())),
            Column::Mechanism => mechanism = source.mechanism(field)?,
            Column::Metric(_) if field.is_empty() => {}
            Column::Metric(metric) => {
                let value = field.parse().ok().filter(|value: &f64| value.is_finite());
                figures.insert(*metric, value.ok_or_else(|| format!("the {metric} `{field}` is no number"))?);
            }
        }
    }
    let published = Published { figures, source: source.place(), ..Published::default() };
    Ok(Claim { settings, mechanism: mechanism.to_owned(), published })
}
