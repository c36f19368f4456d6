//! Published figures: a row for each mechanism under each condition, a column for each metric.

use std::collections::BTreeMap;

use super::PaperSource;
use super::claim::Claim;
use crate::papers::Published;
use crate::results::Metric;

/// The meaning of a column of the file.
enum PaperColumn {
    /// A condition, by the knob that it sets.
    Knob(String),
    /// The scenario.
    Scenario,
    /// The table of the paper that prints the figures.
    Table,
    /// The name of the row in the paper.
    Mechanism,
    Metric(Metric),
}

/// Reads `published.csv`. An empty field means, by its column: a figure that was not published, a condition that stays as the
/// scenario has it, the scenario of the paper, or no table.
pub(super) fn read(text: &str, source: &PaperSource) -> Result<Vec<Claim>, String> {
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let columns: Vec<PaperColumn> = csv
        .headers()
        .map_err(|error| error.to_string())?
        .iter()
        .map(|name| match (name, source.columns.get(name)) {
            ("mechanism", _) => Ok(PaperColumn::Mechanism),
            ("scenario", _) => Ok(PaperColumn::Scenario),
            ("table", _) => Ok(PaperColumn::Table),
            (_, Some(knob)) => Ok(PaperColumn::Knob(knob.clone())),
            (_, None) => name
                .parse()
                .map(PaperColumn::Metric)
                .map_err(|error| format!("source.toml has no knob for the column `{name}`, and {error}")),
        })
        .collect::<Result<_, String>>()?;
    if !text.is_empty() && !columns.iter().any(|column| matches!(column, PaperColumn::Mechanism)) {
        return Err("there is no column `mechanism`".to_owned());
    }
    let claim = |record: csv::Result<csv::StringRecord>| {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        claim(&columns, &record, source).map_err(|error| format!("line {line}: {error}"))
    };
    csv.records().map(claim).collect()
}

fn claim(columns: &[PaperColumn], record: &csv::StringRecord, source: &PaperSource) -> Result<Claim, String> {
    let (mut settings, mut mechanism, mut figures) = (Vec::new(), "", BTreeMap::new());
    let (mut scenario, mut table) = (source.scenario.as_str(), None);
    for (column, field) in columns.iter().zip(record) {
        match column {
            PaperColumn::Mechanism => mechanism = source.mechanism(field)?,
            _ if field.is_empty() => {}
            PaperColumn::Knob(knob) => settings.push((knob.clone(), field.to_owned())),
            PaperColumn::Scenario => scenario = field,
            PaperColumn::Table => table = Some(source.table(field)?),
            PaperColumn::Metric(metric) => {
                let value = field.parse().ok().filter(|value: &f64| value.is_finite());
                figures.insert(*metric, value.ok_or_else(|| format!("the {metric} `{field}` is no number"))?);
            }
        }
    }
    let tables = table
        .map_or_else(BTreeMap::new, |table| figures.keys().map(|metric| (*metric, table.clone())).collect());
    let published = Published { figures, tables, source: source.place(), ..Published::default() };
    let (scenario, mechanism) = (scenario.to_owned(), mechanism.to_owned());
    Ok(Claim { scenario, settings, mechanism, seeds: None, published })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Trial;
    use crate::papers::tests::paper;

    #[test]
    fn a_figure_of_any_metric_can_be_published_and_some_can_be_missing() {
        let csv = "loss,mechanism,throughput,jain\n4 %,ours,650,\n4 %,plain,190,0.97\n";
        let (trials, references) = paper("", csv).trials(true, &[]).unwrap();
        let published = |trial: &Trial| references.published(&trial.cell()).unwrap();
        let figures: Vec<_> = trials.iter().map(|trial| published(trial).figures.clone()).collect();
        assert_eq!(figures[0], BTreeMap::from([(Metric::Throughput, 650.0)]));
        assert_eq!(figures[1], BTreeMap::from([(Metric::Throughput, 190.0), (Metric::Jain, 0.97)]));
        assert_eq!(trials[0].scenario.knob("loss"), Some("4 %"));
    }

    #[test]
    fn rows_and_experiments_name_their_scenario_or_have_that_of_the_paper() {
        let experiments = "[[experiments]]\nscenario = 'lte-m'\norders = { throughput = 'ours > plain' }\n\
                           [[experiments]]\norders = { throughput = 'ours > plain' }";
        let csv = "scenario,loss,mechanism,throughput\nnb-iot,,ours,9\n,4 %,ours,650\n";
        let (trials, references) = paper(experiments, csv).trials(false, &[]).unwrap();
        let names: Vec<_> = trials.iter().map(|trial| trial.scenario.name.as_str()).collect();
        assert_eq!(names, ["nb-iot", "lossy-switch", "lte-m", "lte-m", "lossy-switch", "lossy-switch"]);
        assert_eq!(references.figure(&trials[0].cell(), Metric::Throughput), Some(9.0));
    }
}
