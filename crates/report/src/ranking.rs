//! A ranking on the page: the standings, a heat map of cells and mechanisms, and a section for each cell.

use std::fmt::Write;
use std::io;

use coapace_lab::lists::{capitalised, distinct};
use coapace_lab::number::{significant, significant_or_dash};
use coapace_lab::rank::{
    Hindsight, HindsightChoice, RankedCell, RankedMetric, Ranking, Section, Standing, Worst, times,
};
use coapace_lab::results::{Metric, PairedRatio};

use super::html::{escape, folded, headings, section, table};
use super::tables::number;

/// The ratio from which on a square has the full colour.
pub(super) const WORST_COLOUR: f64 = 4.0;

/// Writes the sections of a ranking.
pub(super) fn write(out: &mut impl io::Write, ranking: &Ranking) -> io::Result<()> {
    let chance = ranking.chance().map_or_else(String::new, |chance| format!(" {chance}"));
    section(out, "standings", "Standings", &(STANDINGS.to_owned() + &chance), &standings(ranking))?;
    section(out, "map", "How far each mechanism is behind in each cell", MAP, &maps(ranking))?;
    if !ranking.left_out.is_empty() {
        let names: Vec<String> =
            ranking.left_out.iter().map(|name| format!("<li>{}</li>", escape(name))).collect();
        section(out, "left-out", "Not compared", LEFT_OUT, &format!("<ul>{}</ul>", names.concat()))?;
    }
    for (place, cell) in ranking.cells.iter().enumerate() {
        let title = format!("{}. {}", place + 1, escape(&cell.name));
        section(out, &anchor(place), &title, "", &cell_table(ranking, cell))?;
    }
    Ok(())
}

/// Returns the HTML id of a cell's section.
fn anchor(cell: usize) -> String {
    format!("cell-{}", cell + 1)
}

fn standings(ranking: &Ranking) -> String {
    const HEADER: [(&str, &str); 6] = [
        ("Mechanism", ""),
        ("Worst", "ratio, 95 %"),
        ("in", ""),
        ("Mean", "geometric"),
        ("Cells", "within 5\u{a0}%"),
        ("Metrics", "within 5\u{a0}%"),
    ];
    let mut html = String::from("<tbody>");
    // Standings are sorted by section, so its heading comes before its first mechanism.
    let mut undithered = false;
    for standing in &ranking.standings {
        if standing.section == Section::Undithered && !undithered {
            undithered = true;
            group(&mut html, HEADER.len(), Section::Undithered.heading());
        }
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", named(ranking, standing));
        worst(&mut html, ranking, standing.worst);
        number(&mut html, "", Some(standing.geometric_mean), &times(standing.geometric_mean));
        for (near, all) in [(standing.cells_near, standing.cells), (standing.metrics_near, standing.metrics)]
        {
            number(&mut html, "", Some(near as f64), &format!("{near} of {all}"));
        }
        html.push_str("</tr>");
    }
    // Below all mechanisms, because nobody can choose in hindsight.
    hindsight(&mut html, ranking, HEADER.len());
    let head = headings(HEADER.map(|(name, below)| format!("{name}<small>{below}</small>")));
    table("results", &head, &(html + "</tbody>"))
}

/// Begins a group of rows with a heading over all columns.
fn group(html: &mut String, columns: usize, heading: &str) {
    let _ = write!(
        html,
        "</tbody><tbody><tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{columns}\">{heading}</th></tr>"
    );
}

/// Writes the rows of the results in hindsight: with the best mechanism of each cell.
fn hindsight(html: &mut String, ranking: &Ranking, columns: usize) {
    let all = ranking.hindsight_rows();
    if !all.is_empty() {
        group(html, columns, Hindsight::HEADING);
    }
    for hindsight in &all {
        let among = if hindsight.has_own { "with those made here" } else { "published" };
        let _ = write!(html, "<tr><th scope=\"row\">hindsight<small> {among}</small></th>");
        worst(html, ranking, Some(hindsight.worst));
        number(html, "", Some(hindsight.geometric_mean), &times(hindsight.geometric_mean));
        let (near, cells) = (hindsight.cells_near, ranking.cells.len());
        number(html, "", Some(near as f64), &format!("{near} of {cells}"));
        // Hindsight is chosen by cell, so it has no count of metrics.
        html.push_str("<td></td></tr>");
    }
}

/// Writes a worst ratio, and a link to its cell.
fn worst(html: &mut String, ranking: &Ranking, worst: Option<Worst>) {
    let ratio = worst.map(|worst| worst.ratio);
    let interval = ratio.map_or_else(String::new, |ratio| ratio.words().1);
    let mean = ratio.map(|ratio| ratio.mean);
    // `times` prints a dash for NaN, here a missing ratio.
    number(html, "", mean, &format!("{}<small> {interval}</small>", times(mean.unwrap_or(f64::NAN))));
    let Some(worst) = worst else { return html.push_str("<td></td>") };
    let cell = &ranking.cells[worst.cell];
    let metric = cell.metrics[worst.metric].metric.title();
    let (anchor, name) = (anchor(worst.cell), escape(&cell.name));
    let gap = if name.is_empty() { "" } else { ": " };
    let _ = write!(html, "<td><a href=\"#{anchor}\">{name}{gap}{metric}</a></td>");
}

/// Returns the name of a mechanism, and a note if it is not a published mechanism.
fn named(ranking: &Ranking, standing: &Standing) -> String {
    let word = match standing.section {
        Section::Coapace => "<small> made here</small>",
        Section::Other => "<small> other</small>",
        Section::Published | Section::Undithered => "",
    };
    escape(&ranking.mechanisms[standing.mechanism]) + word
}

/// Returns the metrics that count in any cell.
pub(super) fn metrics(ranking: &Ranking) -> Vec<Metric> {
    distinct(ranking.cells.iter().flat_map(|cell| &cell.metrics).map(|ranked| ranked.metric))
}

/// Returns a mechanism's ratio by `metric` in a cell, together with this metric. Without `metric`, returns the worst
/// ratio by any metric, together with that metric. Returns `None` if the mechanism has no such ratio in the cell.
pub(super) fn ratio(
    ranking: &Ranking,
    metric: Option<Metric>,
    cell: usize,
    mechanism: usize,
) -> Option<(PairedRatio, Metric)> {
    let metrics = &ranking.cells[cell].metrics;
    let Some(metric) = metric else {
        let worst = ranking.worst_in(cell, mechanism)?;
        return Some((worst.ratio, metrics[worst.metric].metric));
    };
    let ranked = metrics.iter().find(|ranked| ranked.metric == metric)?;
    Some((ranked.ratios[mechanism], metric))
}

/// Returns the map of the worst ratios, and folded, a map for each metric.
fn maps(ranking: &Ranking) -> String {
    let hindsight = ranking.hindsight();
    let mut html = map(ranking, None, hindsight.first().map_or(&[], |it| &it.choices));
    let metrics = metrics(ranking);
    // The map of the only metric would be the map of the worst ratios again.
    for &metric in metrics.iter().filter(|_| metrics.len() > 1) {
        let line = format!("{} alone", capitalised(metric.title()));
        html += &folded(&line, &map(ranking, Some(metric), &[]));
    }
    html
}

/// Returns a table of coloured squares: a row for each cell that has this [`ratio`], and a column for each mechanism.
/// If there are `choices`, the first column of squares has the best mechanism in hindsight. Each square links to the
/// section of its cell.
fn map(ranking: &Ranking, metric: Option<Metric>, choices: &[HindsightChoice]) -> String {
    let mut head = headings(["", "Cell"]);
    if !choices.is_empty() {
        head += "<th scope=\"col\"><span>hindsight</span></th>";
    }
    for standing in &ranking.standings {
        // Mechanisms without dither are not compared with the others, and are set apart.
        let class = if standing.section == Section::Undithered { " class=\"apart\"" } else { "" };
        let _ = write!(head, "<th scope=\"col\"{class}><span>{}</span></th>", named(ranking, standing));
    }
    let mut html = String::from("<tbody>");
    for (place, cell) in ranking.cells.iter().enumerate() {
        let of = |mechanism: usize| (mechanism, ratio(ranking, metric, place, mechanism));
        let all: Vec<_> = ranking.standings.iter().map(|standing| of(standing.mechanism)).collect();
        // A cell without this metric would be an empty row.
        if all.iter().all(|(_, ratio)| ratio.is_none()) {
            continue;
        }
        // The choice of hindsight is a copy of one of the columns, so that it can be read beside them.
        let chosen = choices.get(place).map(|choice| of(choice.mechanism));
        let (anchor, name) = (anchor(place), escape(&cell.name));
        let number = place + 1;
        let _ = write!(html, "<tr><th scope=\"row\">{number}</th><td><a href=\"#{anchor}\">{name}</a></td>");
        for (mechanism, ratio) in chosen.into_iter().chain(all) {
            let Some((ratio, metric)) = ratio else {
                html.push_str("<td>·</td>");
                continue;
            };
            let (mean, interval) = ratio.words();
            let (name, metric) = (&ranking.mechanisms[mechanism], metric.title());
            let title = format!("{name}: {metric}, {mean} ({interval})");
            let _ = write!(
                html,
                "<td style=\"background:{}\"><a href=\"#{anchor}\" title=\"{}\">{}</a></td>",
                colour(ratio.mean),
                escape(&title),
                times(ratio.mean)
            );
        }
        html.push_str("</tr>");
    }
    table("heat", &head, &(html + "</tbody>"))
}

/// Returns the colour of a ratio: orange above 1 and blue below, the stronger the further its logarithm is from 0.
fn colour(ratio: f64) -> String {
    // At most 70 %, so that black text stays legible.
    let strength = (ratio.ln().abs() / WORST_COLOUR.ln()).min(1.0) * 70.0;
    let colour = if ratio < 1.0 { "#2a7fc0" } else { "#e07b1a" };
    format!("color-mix(in srgb, {colour} {strength:.0}%, transparent)")
}

/// Returns the table of a cell: every metric that counts, with its ratio and interval. The best is bold.
fn cell_table(ranking: &Ranking, cell: &RankedCell) -> String {
    let columns = |ranked: &RankedMetric| {
        let title = capitalised(ranked.metric.title());
        [format!("{title}<small>{}</small>", ranked.metric.unit()), "Ratio".to_owned()]
    };
    let head = headings(["Mechanism"]) + &headings(cell.metrics.iter().flat_map(columns));
    let mut html = String::from("<tbody>");
    for standing in &ranking.standings {
        let own = standing.mechanism;
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", named(ranking, standing));
        for ranked in &cell.metrics {
            // The best is one of the published mechanisms with dither: the one with the ratio 1.
            let class = if ranked.best == own { " class=\"best\"" } else { "" };
            let value = ranked.values[own];
            number(&mut html, class, value, &significant_or_dash(value, ranked.metric.digits()));
            let ratio = ranked.ratios[own];
            let (_, interval) = ratio.words();
            let text = format!("{}<small> {interval}</small>", times(ratio.mean));
            number(&mut html, class, Some(ratio.mean), &text);
        }
        html.push_str("</tr>");
    }
    // The bound comes last: it limits all mechanisms and is not one of them.
    if cell.metrics.iter().any(|ranked| ranked.bound.is_some()) {
        html.push_str("<tr class=\"bound\"><th scope=\"row\">bound</th>");
        for ranked in &cell.metrics {
            match ranked.bound {
                Some(bound) => {
                    let value = significant(bound.value, ranked.metric.digits());
                    let _ = write!(html, "<td>{value}</td><td></td>");
                }
                None => html.push_str("<td></td><td></td>"),
            }
        }
        html.push_str("</tr>");
    }
    table("results", &head, &(html + "</tbody>")) + "<p><a href=\"#map\">to the map</a></p>"
}

const STANDINGS: &str = "Ratios of the metrics of a mechanism to the metrics of the best published mechanism with random timeouts, in each cell and by each metric \
    that counts there: 1 is as good, 2 is twice as slow or half as much. The worst ratio is the risk of choosing the mechanism without knowing the \
    network. Mechanisms without dither win by lock-step where clients begin together; they are listed below, and no mechanism is compared with them. \
    Hindsight is an oracle that chooses a mechanism for each cell. The distance of a mechanism from it is its regret.";

const MAP: &str = "Each square is the worst ratio of all metrics of a mechanism in a cell; the maps below have one metric each. Orange is worse than \
    the best published mechanism of the cell, blue is better. Hindsight is the smallest square of the published ones that dither; hover over it for its mechanism. \
    A square leads to its cell.";

const LEFT_OUT: &str = "No published mechanism with random timeouts has a result in these cells.";

#[cfg(test)]
mod tests {
    use coapace_lab::experiment::conduct;
    use coapace_lab::rank::Suite;
    use coapace_run::contender::Contender;

    use super::*;
    use crate::Report;

    fn ranking() -> Ranking {
        let set = [("clients", "3,12"), ("workload.exchanges", "5"), ("errors", "high")];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut suite = Suite::load(&["nb-iot".to_owned()], &set).unwrap();
        suite.cells.iter_mut().for_each(|cell| cell.seeds = 2);
        let contenders = ["default", "linux-rto", "fasor"].map(|name| Contender::parse(name).unwrap());
        Ranking::of(&suite, conduct(&suite.trials(&contenders).unwrap(), 2, &|| {}))
    }

    #[test]
    fn a_square_of_the_ranking_map_links_to_the_section_of_its_cell() {
        let report = Report { ranking: Some(ranking()), ..Report::default() };
        let mut out = Vec::new();
        report.write_html(&mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        for cell in ["cell-1", "cell-2"] {
            assert_eq!(page.matches(&format!("<section id=\"{cell}\">")).count(), 1);
            assert!(
                page.matches(&format!("<a href=\"#{cell}\" title=")).count() >= 3,
                "a square for each mechanism"
            );
        }
        assert!(page.contains("Without dither") && page.contains("Use "), "{page}");
        assert!(page.contains("<code>coapace list mechanisms "), "text between backticks is code");
        assert!(page.len() < 200_000, "the page needs no chart library");
        for address in ["http:", "https:", "src="] {
            assert!(!page.contains(address), "the page has {address}");
        }
    }

    #[test]
    fn the_first_column_of_the_ranking_map_is_the_best_published_value_of_each_cell() {
        let ranking = ranking();
        let page = maps(&ranking);
        let row = page.split("<th scope=\"row\">2</th>").nth(1).expect("the second cell");
        let squares: Vec<&str> = row.split("title=\"").skip(1).take(4).collect();
        let best = ranking.hindsight()[0].choices[1];
        let name = &ranking.mechanisms[best.mechanism];
        assert!(squares[0].starts_with(&format!("{name}: ")) && name != "linux-rto", "{squares:?}");
        assert!(squares[0].contains(&format!(">{}</a>", times(best.worst.ratio.mean))), "{squares:?}");
        assert!(
            squares[1..].iter().any(|square| square.split("</a>").next() == squares[0].split("</a>").next())
        );
        assert_eq!(page.matches("<span>hindsight</span>").count(), 1, "maps of one metric have none");
        assert!(standings(&ranking).contains("hindsight<small> published</small>"));
    }

    #[test]
    fn squares_of_the_ranking_map_are_darker_the_worse_the_ratio() {
        assert_eq!(colour(1.0), "color-mix(in srgb, #e07b1a 0%, transparent)");
        assert_eq!(colour(2.0), "color-mix(in srgb, #e07b1a 35%, transparent)");
        assert_eq!(colour(f64::INFINITY), "color-mix(in srgb, #e07b1a 70%, transparent)");
        assert_eq!(colour(0.5), "color-mix(in srgb, #2a7fc0 35%, transparent)");
    }
}
