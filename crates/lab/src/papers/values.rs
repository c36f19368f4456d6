//! Published values: a row for each mechanism under each condition, a column for each metric.

use std::collections::BTreeMap;

use super::PaperSource;
use super::claim::Claim;
use crate::papers::{Published, Witness};
use crate::results::Metric;

/// The meaning of a column of `published.csv`.
enum PaperColumn {
    /// The value of the knob with this name, which is part of the condition.
    Knob(String),
    /// The scenario, if it is not the paper's main scenario.
    Scenario,
    /// The table of the paper that prints the values.
    Table,
    /// The name of the mechanism in the paper.
    Mechanism,
    /// The value measured by an independent witness for the only published value of the row.
    Witness,
    Metric(Metric),
}

/// Reads `published.csv`. An empty field means, depending on its column: an unpublished value, a condition as in the scenario,
/// the paper's scenario, no table, or no witness.
pub(super) fn read(text: &str, source: &PaperSource) -> Result<Vec<Claim>, String> {
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    // The names of these four columns are fixed. A knob may have the name of a metric, so knobs come before metrics.
    let columns: Vec<PaperColumn> = csv
        .headers()
        .map_err(|error| error.to_string())?
        .iter()
        .map(|name| match (name, source.columns.get(name)) {
            ("mechanism", _) => Ok(PaperColumn::Mechanism),
            ("scenario", _) => Ok(PaperColumn::Scenario),
            ("table", _) => Ok(PaperColumn::Table),
            ("witness", _) => Ok(PaperColumn::Witness),
            (_, Some(knob)) => Ok(PaperColumn::Knob(knob.clone())),
            (_, None) => name
                .parse()
                .map(PaperColumn::Metric)
                .map_err(|error| format!("source.toml has no knob for the column `{name}`, and {error}")),
        })
        .collect::<Result<_, String>>()?;
    // A paper may publish rankings only, and then its file is empty.
    if !text.is_empty() && !columns.iter().any(|column| matches!(column, PaperColumn::Mechanism)) {
        return Err("the column `mechanism` is missing".to_owned());
    }
    let claim = |record: csv::Result<csv::StringRecord>| {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        claim(&columns, &record, source).map_err(|error| format!("line {line}: {error}"))
    };
    csv.records().map(claim).collect()
}

fn claim(columns: &[PaperColumn], record: &csv::StringRecord, source: &PaperSource) -> Result<Claim, String> {
    let (mut settings, mut mechanism, mut values) = (Vec::new(), "", BTreeMap::new());
    let (mut scenario, mut table, mut witness) = (source.scenario.as_str(), None, None::<Witness>);
    for (column, field) in columns.iter().zip(record) {
        match column {
            PaperColumn::Mechanism => mechanism = source.mechanism(field)?,
            // Papers leave out values. An empty mechanism is refused above, because every row needs one.
            _ if field.is_empty() => {}
            PaperColumn::Knob(knob) => settings.push((knob.clone(), field.to_owned())),
            PaperColumn::Scenario => scenario = field,
            PaperColumn::Table => table = Some(source.table(field)?),
            PaperColumn::Witness => witness = Some(field.parse()?),
            PaperColumn::Metric(metric) => {
                let value = field.parse().ok().filter(|value: &f64| value.is_finite());
                values
                    .insert(*metric, value.ok_or_else(|| format!("the {metric} `{field}` is not a number"))?);
            }
        }
    }
    // The table of a row holds for all values of the row.
    let tables = table
        .map_or_else(BTreeMap::new, |table| values.keys().map(|metric| (*metric, table.clone())).collect());
    // With two values in a row it would be unknown which of them the witness has.
    if witness.is_some() && (values.len() != 1 || table.is_none_or(|table| table.witness.is_empty())) {
        return Err("a row with a `witness` needs exactly one metric, and a `table` that names the witness in source.toml".to_owned());
    }
    let witnesses = values.keys().copied().zip(witness).collect();
    let published = Published { values, tables, witnesses, source: source.place(), ..Published::default() };
    let (scenario, mechanism) = (scenario.to_owned(), mechanism.to_owned());
    Ok(Claim { scenario, settings, mechanism, seeds: None, published })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Trial;
    use crate::papers::tests::paper;

    #[test]
    fn published_values_may_be_of_any_metric_and_may_be_missing() {
        let csv = "loss,mechanism,throughput,jain\n4 %,ours,650,\n4 %,plain,190,0.97\n";
        let (trials, references) = paper("", csv).trials(true, &[]).unwrap();
        let published = |trial: &Trial| references.published(&trial.cell()).unwrap();
        let values: Vec<_> = trials.iter().map(|trial| published(trial).values.clone()).collect();
        assert_eq!(values[0], BTreeMap::from([(Metric::Throughput, 650.0)]));
        assert_eq!(values[1], BTreeMap::from([(Metric::Throughput, 190.0), (Metric::Jain, 0.97)]));
        assert_eq!(trials[0].scenario.knob("loss"), Some("4 %"));
    }

    #[test]
    fn a_row_of_published_values_has_the_value_of_the_independent_witness() {
        let read = |table: &'static str, row: &str| {
            let csv = format!("table,loss,mechanism,throughput,jain,witness\n{row}\n");
            paper(table, csv.leak()).trials(true, &[])
        };
        let table = "[tables.3]\ntitle = 'T'\nfactor = 2\nwitness = 'another simulator'";
        let (trials, references) = read(table, "3,4 %,ours,650,,600 to 700").unwrap();
        let witness = references.published(&trials[0].cell()).unwrap().witnesses[&Metric::Throughput];
        assert_eq!(witness, Witness { low: 600.0, high: 700.0 });
        let lacks = "line 2: a row with a `witness` needs exactly one metric, and a `table` that names the witness in source.toml";
        let bare = "[tables.3]\ntitle = 'T'\nfactor = 2";
        for (table, row) in
            [(bare, "3,4 %,ours,650,,600"), (table, ",4 %,ours,650,,600"), (table, "3,4 %,ours,650,1,600")]
        {
            assert!(read(table, row).unwrap_err().ends_with(lacks));
        }
    }

    #[test]
    fn rows_and_experiments_use_the_scenario_of_the_paper_unless_they_name_one() {
        let experiments = "[[experiments]]\nscenario = 'lte-m'\norders = { throughput = 'ours > plain' }\n\
                           [[experiments]]\norders = { throughput = 'ours > plain' }";
        let csv = "scenario,loss,mechanism,throughput\nnb-iot,,ours,9\n,4 %,ours,650\n";
        let (trials, references) = paper(experiments, csv).trials(false, &[]).unwrap();
        let names: Vec<_> = trials.iter().map(|trial| trial.scenario.name.as_str()).collect();
        assert_eq!(names, ["nb-iot", "lossy-switch", "lte-m", "lte-m", "lossy-switch", "lossy-switch"]);
        assert_eq!(references.value(&trials[0].cell(), Metric::Throughput), Some(9.0));
    }
}
