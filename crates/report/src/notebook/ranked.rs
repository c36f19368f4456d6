//! A ranking as a heat map of cells and mechanisms.

use coapace_lab::rank::{Ranking, times};
use coapace_lab::results::{Metric, PairedRatio};
use serde_json::{Value, json};

use super::traces::square_axes;
use super::{described, plain};
use crate::ranking::{WORST_COLOUR, metrics, ratio};
use crate::style::{BLUE, INK, ORANGE, SHADE};

/// The name of the map of the worst ratios.
const WORST: &str = "worst";

/// Returns the names of the maps: the worst ratios, and each metric.
pub(super) fn names(ranking: &Ranking) -> Vec<String> {
    let metrics = metrics(ranking).into_iter().map(Metric::name);
    [WORST].into_iter().chain(metrics).map(str::to_owned).collect()
}

/// Returns the map of the worst ratios or of one metric; `None` if no cell has this metric.
pub(super) fn figure(ranking: &Ranking, name: Option<&str>) -> Option<Value> {
    let metric = match name {
        None | Some(WORST) => None,
        Some(name) => Some(metrics(ranking).into_iter().find(|metric| metric.name() == name)?),
    };
    // The best mechanism is on the left, as in the table of standings.
    let order: Vec<usize> = ranking.standings.iter().map(|standing| standing.mechanism).collect();
    // Hindsight is by the worst ratio, so maps of one metric have no column for it.
    let hindsight = if metric.is_none() { ranking.hindsight().into_iter().next() } else { None };
    let name = |&mechanism: &usize| plain(&ranking.mechanisms[mechanism]);
    let columns: Vec<String> =
        hindsight.iter().map(|it| it.name().to_owned()).chain(order.iter().map(name)).collect();
    let (mut rows, mut z, mut text, mut hover) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (cell, ranked) in ranking.cells.iter().enumerate() {
        let chosen = hindsight.as_ref().map(|it| it.choices[cell].mechanism);
        let shown: Vec<usize> = chosen.iter().chain(&order).copied().collect();
        let ratios: Vec<_> = shown.iter().map(|&mechanism| ratio(ranking, metric, cell, mechanism)).collect();
        // A cell without this metric would be an empty row.
        if ratios.iter().all(Option::is_none) {
            continue;
        }
        let row = if ranked.name.is_empty() { ranking.title.clone() } else { ranked.name.clone() };
        rows.push(plain(&row));
        // Logarithms make twice as good and twice as bad equally strong colours.
        let colour =
            |(ratio, _): (PairedRatio, Metric)| (ratio.mean.ln() / WORST_COLOUR.ln()).clamp(-1.0, 1.0);
        z.push(
            // The ratio of an unknown metric is NaN, and its square has no colour.
            ratios.iter().map(|it| it.map(colour).filter(|colour| colour.is_finite())).collect::<Vec<_>>(),
        );
        text.push(
            ratios
                .iter()
                .map(|it| it.map_or_else(|| "·".to_owned(), |it| times(it.0.mean)))
                .collect::<Vec<_>>(),
        );
        let words = |(mechanism, it): (&usize, &Option<(PairedRatio, Metric)>)| match it {
            Some((ratio, metric)) => {
                let (mean, interval) = ratio.words();
                format!(
                    "<b>{}</b><br>{}<br>{}: {mean} times the best ({interval})",
                    name(mechanism),
                    plain(&row),
                    metric.title()
                )
            }
            None => format!("<b>{}</b>", name(mechanism)),
        };
        hover.push(shown.iter().zip(&ratios).map(words).collect::<Vec<_>>());
    }
    let heat = json!({
        "type": "heatmap", "z": z, "text": text, "hovertext": hover, "hovertemplate": "%{hovertext}<extra></extra>",
        "texttemplate": "%{text}", "xgap": 2, "ygap": 2, "zmin": -1, "zmax": 1, "showscale": false,
        "colorscale": [[0, BLUE], [0.5, SHADE], [1, ORANGE]], "textfont": { "color": INK },
    });
    let what =
        metric.map_or_else(|| "worst ratio".to_owned(), |metric| format!("ratio of {}", metric.name()));
    let title = format!("{}: {what} to the best published mechanism; 1 is as good", ranking.title);
    Some(described(&title, 0, &[heat], square_axes(&columns, &rows)))
}

#[cfg(test)]
mod tests {
    use coapace_lab::experiment::conduct;
    use coapace_lab::rank::Suite;
    use coapace_run::contender::Contender;

    use super::*;
    use crate::Report;

    #[test]
    fn the_chart_of_a_ranking_has_a_square_for_each_cell_and_mechanism_in_order_of_rank() {
        let set = [("clients", "3,12"), ("workload.exchanges", "5")];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut suite = Suite::load(&["nb-iot".to_owned()], &set).unwrap();
        suite.cells.iter_mut().for_each(|cell| cell.seeds = 2);
        let contenders = ["default", "linux-rto", "fasor"].map(|name| Contender::parse(name).unwrap());
        let ranking = Ranking::of(&suite, conduct(&suite.trials(&contenders).unwrap(), 2, &|| {}));
        let report = Report { ranking: Some(ranking.clone()), ..Report::default() };
        assert_eq!(report.charts()[..2], ["worst", "median_fct_s"]);
        for name in report.charts() {
            let figure: Value = serde_json::from_str(&report.figure(Some(&name)).unwrap()).unwrap();
            assert_eq!(figure["data"][0]["z"].as_array().unwrap().len(), 2, "{name}");
            let columns = figure["layout"]["xaxis"]["ticktext"].as_array().unwrap();
            assert_eq!(columns.last().unwrap(), "linux-rto", "without dither, so the last");
            assert_eq!(columns.len(), if name == "worst" { 4 } else { 3 }, "{columns:?}");
        }
        // The first column is the smallest published square of each row, and hovering over it names the mechanism.
        let figure: Value = serde_json::from_str(&report.figure(None).unwrap()).unwrap();
        assert_eq!(figure["layout"]["xaxis"]["ticktext"][0], "hindsight");
        for (row, choice) in ranking.hindsight()[0].choices.iter().enumerate() {
            assert_eq!(figure["data"][0]["text"][row][0], times(choice.worst.ratio.mean));
            let hover = figure["data"][0]["hovertext"][row][0].as_str().unwrap();
            assert!(
                hover.starts_with(&format!("<b>{}</b>", ranking.mechanisms[choice.mechanism])),
                "{hover}"
            );
        }
        let worst = report.figure(None).unwrap();
        let best = ranking.standings[0].mechanism;
        assert!(worst.contains(&times(ranking.worst_in(1, best).unwrap().ratio.mean)));
        assert!(
            report
                .figure(Some("jain"))
                .unwrap_err()
                .starts_with("`jain` is not the name of a chart; the charts are worst, ")
        );
    }
}
