//! The heat maps of the conditions that a paper does not state.

use std::fmt::Write;

use coapace_lab::lists::capitalised;
use coapace_lab::papers::{Count, Sensitivity, SensitivityScore};

use super::html::{escape, headings, table};

/// Returns a sentence on how many results of the paper are met with the chosen values of its unpublished conditions,
/// and how many at least and at most with other values.
pub(super) fn headline(sensitivity: &Sensitivity) -> String {
    let part = |(name, of): Count| {
        let (met, all) = of(&sensitivity.base);
        let counts = || sensitivity.scores.values().map(|score| of(score).0);
        // Without any other value there is nothing but the count as chosen.
        let (least, most) = (counts().min().unwrap_or(met), counts().max().unwrap_or(met));
        let others = if least == most { least.to_string() } else { format!("{least} to {most}") };
        (all > 0).then(|| format!("{name}: {met} of {all} as chosen, {others} under other values"))
    };
    capitalised(&(SensitivityScore::COUNTS.into_iter().filter_map(part).collect::<Vec<_>>().join("; ") + "."))
}

/// Returns a heat map of the values that are met, and a heat map of the rankings that are confirmed, if the paper has any.
pub(super) fn heat_maps(sensitivity: &Sensitivity) -> String {
    let map = |(title, of): Count| {
        let (met, all) = of(&sensitivity.base);
        let title = capitalised(title);
        (all > 0).then(|| format!("<h3>{title}, of {all}; {met} as chosen</h3>{}", heat_map(sensitivity, of)))
    };
    SensitivityScore::COUNTS.into_iter().filter_map(map).collect()
}

/// Returns a table with a square for each pair of values: blue if more results are met than with the chosen values,
/// orange if fewer are.
fn heat_map(sensitivity: &Sensitivity, of: fn(&SensitivityScore) -> (usize, usize)) -> String {
    let (values, (base, _)) = (&sensitivity.values, of(&sensitivity.base));
    // The strongest colour is the largest change in this table, because tables differ in the number of values.
    let furthest = sensitivity.scores.values().map(|score| of(score).0.abs_diff(base)).max().unwrap_or(0);
    let mut html = String::from("<tbody>");
    for (row, value) in values.iter().enumerate() {
        // A condition with several values has its name once.
        let is_first = row == 0 || values[row - 1].condition != value.condition;
        let chosen = sensitivity.chosen.iter().find(|(name, _)| *name == value.condition);
        let chosen = chosen.map_or("", |(_, chosen)| chosen.as_str());
        let condition = if is_first {
            format!("{}<small> (chosen: {})</small>", escape(&value.condition), escape(chosen))
        } else {
            String::new()
        };
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{condition}</th><td>{}: {}</td>",
            row + 1,
            escape(&value.value)
        );
        for (column, other) in values.iter().enumerate() {
            // Two values of one condition cannot be in force together.
            let Some(score) = sensitivity.score(row, column) else {
                html.push_str("<td>·</td>");
                continue;
            };
            let (count, _) = of(&score);
            // At most 70 %, so that black text stays legible.
            let strength = (count.abs_diff(base) * 70).checked_div(furthest).unwrap_or(0);
            let colour = if count < base { "#e07b1a" } else { "#2a7fc0" };
            let title = if row == column {
                value.value.clone()
            } else {
                format!("{} and {}", value.value, other.value)
            };
            let _ = write!(
                html,
                "<td title=\"{}\" style=\"background:color-mix(in srgb, {colour} {strength}%, transparent)\">{count}</td>",
                escape(&title)
            );
        }
        html.push_str("</tr>");
    }
    let head = headings(["Condition", "Value"]) + &headings(1..=values.len());
    table("heat", &head, &(html + "</tbody>"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use coapace_lab::papers::VariedValue;

    use super::*;

    #[test]
    fn sensitivity_tables_colour_values_that_differ_from_the_chosen_conditions() {
        let score = |met| SensitivityScore { values: (met, 9), ..SensitivityScore::default() };
        let value = |value: &str| VariedValue { condition: "a < b".into(), value: value.into() };
        let sensitivity = Sensitivity {
            chosen: vec![("a < b".into(), "1".into())],
            values: vec![value("2"), value("3")],
            base: score(5),
            scores: BTreeMap::from([((0, 0), score(3)), ((1, 1), score(6))]),
        };
        assert_eq!(headline(&sensitivity), "Values met: 5 of 9 as chosen, 3 to 6 under other values.");
        let html = heat_maps(&sensitivity);
        assert!(
            html.contains("<h3>Values met, of 9; 5 as chosen</h3>") && !html.contains("Orders"),
            "{html}"
        );
        assert!(html.contains("a &lt; b<small> (chosen: 1)</small>"), "{html}");
        for (colour, count) in [("#e07b1a 70%", 3), ("#2a7fc0 35%", 6)] {
            assert!(html.contains(&format!("{colour}, transparent)\">{count}</td>")), "{html}");
        }
        assert_eq!(html.matches("<td>·</td>").count(), 2, "two values of a condition do not go together");
    }
}
