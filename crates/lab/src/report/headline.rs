//! What the results say, in a few sentences.

use super::view::{Measured, View, metrics};
use crate::results::number::{count, percent, significant};
use crate::results::{Metric, tally};

/// Medians closer than this are called equal.
const TIE: f64 = 1.01;
/// Published medians count as met within this relative error.
pub(super) const MET: f64 = 0.05;

/// Plain sentences, computed from the results.
pub(super) fn headline(view: &View) -> Vec<String> {
    if view.groups.is_empty() {
        return vec!["There are no results.".into()];
    }
    if let Some(matrix) = view.coexistence {
        return matrix.sentences();
    }
    [reproduction(view), tables(view), orders(view), contest(view), needless(view), unfinished(view)]
        .into_iter()
        .flatten()
        .collect()
}

/// How many published figures are met.
fn reproduction(view: &View) -> Option<String> {
    let compared = view.plain();
    let worst = compared.first()?;
    let met = compared.iter().filter(|c| c.error().is_some_and(|error| error.abs() <= MET)).count();
    let all = compared.len();
    let metrics = metrics(&compared);
    let (one, many) =
        if metrics == [Metric::MedianFct] { ("median", "medians") } else { ("figure", "figures") };
    let figures = if all == 1 { one } else { many };
    let start = format!("{met} of {all} published {figures} are met within {:.0} %", MET * 100.0);
    let place = place(worst.title);
    Some(match worst.error() {
        Some(error) => format!("{start}; farthest off is {}{place}, at {}.", worst.name, percent(error)),
        None if worst.figure.metric == Metric::MedianFct => {
            format!("{start}; {}{place} has no median, for too many clients gave up.", worst.name)
        }
        None => format!("{start}; {}{place} has no {}.", worst.name, worst.figure.metric.title()),
    })
}

/// How many figures of published tables are within the factors of these.
fn tables(view: &View) -> Option<String> {
    let tabled = view.tabled();
    let within = tabled.iter().filter(|one| one.judged.within()).count();
    (!tabled.is_empty()).then(|| {
        format!("{within} of {} figures of published tables are within the factors asked for.", tabled.len())
    })
}

/// How many published orders held.
fn orders(view: &View) -> Option<String> {
    let verdicts: Vec<_> = view.verdicts().into_iter().map(|(_, verdict)| verdict).collect();
    (!verdicts.is_empty()).then(|| format!("Published orders: {}.", tally(&verdicts)))
}

/// Who is fastest, and by what factor; by goodput where nothing has an end to reach.
fn contest(view: &View) -> Option<String> {
    let by_fct = view.cells().any(|(_, cell)| cell.summary.fct.median.is_some());
    // A cost: seconds, or seconds per bit.
    let cost = |cell: &Measured| -> Option<f64> {
        let goodput = cell.summary.goodput_bps;
        if by_fct { cell.summary.fct.median } else { (goodput > 0.0).then(|| 1.0 / goodput) }
    };
    let figure = |cost: f64| {
        if by_fct {
            format!("{} s", significant(cost, 4))
        } else {
            format!("{} kbit/s", significant(1e-3 / cost, 3))
        }
    };
    let measure = if by_fct { "median FCT" } else { "goodput" };

    // For each mechanism: conditions won, and where it is ahead of the slowest by most.
    let mut wins = vec![0_usize; view.mechanisms.len()];
    let mut ties = vec![false; view.mechanisms.len()];
    let mut leads: Vec<Option<Lead>> = vec![None; view.mechanisms.len()];
    let mut contests = 0;
    for group in &view.groups {
        let mut ranked: Vec<_> = group.cells.iter().filter_map(|cell| Some((cost(cell)?, cell))).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (Some(&(best, _)), Some(&(slowest, last))) = (ranked.first(), ranked.last()) else { continue };
        contests += 1;
        for &(cost, cell) in &ranked {
            wins[cell.mechanism] += usize::from(cost <= best * TIE);
            ties[cell.mechanism] |= cost > best && cost <= best * TIE;
            let lead = Lead { factor: slowest / cost, cost, slowest, behind: last.name, title: group.title };
            let known = &mut leads[cell.mechanism];
            if known.is_none_or(|known| lead.factor > known.factor) {
                *known = Some(lead);
            }
        }
    }
    let leader = (0..wins.len()).max_by(|&a, &b| {
        let factor = |i: usize| leads[i].map_or(0.0, |lead| lead.factor);
        wins[a].cmp(&wins[b]).then(factor(a).total_cmp(&factor(b)))
    })?;
    let lead = leads[leader]?;
    let name = view.mechanisms[leader];
    let (own, other, place) = (figure(lead.cost), figure(lead.slowest), place(lead.title));
    if view.mechanisms.len() == 1 {
        return Some(format!("{name} has a {measure} of {own}{place}."));
    }
    if lead.factor <= TIE {
        return Some(format!("All mechanisms are equally fast, with a {measure} of {own}{place}."));
    }
    let equals: Vec<_> = (0..wins.len()).filter(|&i| i != leader && wins[i] == wins[leader]).collect();
    let mut won = match (wins[leader], contests) {
        (_, 1) => String::new(),
        (2, 2) => " in both conditions".into(),
        (won, all) if won == all => format!(" in all {all} conditions"),
        (won, all) => format!(" in {won} of {all} conditions"),
    };
    if ties[leader] && contests > 1 {
        won += ", to within 1 %,";
    }
    let start = match (equals.as_slice(), contests) {
        (_, 1) => format!("Fastest is {name},"),
        ([], _) => format!("Fastest{won} is {name}, up to"),
        ([other], _) => {
            format!("Fastest{won} each are {name} and {}; {name} is up to", view.mechanisms[*other])
        }
        (others, _) => format!("Fastest{won} each are {name} and {} others; {name} is up to", others.len()),
    };
    let factor = significant(lead.factor, 2);
    Some(format!(
        "{start} {factor} times as fast as {}{place}: a {measure} of {own} against {other}.",
        lead.behind
    ))
}

#[derive(Clone, Copy)]
struct Lead<'a> {
    factor: f64,
    cost: f64,
    slowest: f64,
    behind: &'a str,
    title: &'a str,
}

/// Who retransmits needlessly least, and who most, over all conditions.
fn needless(view: &View) -> Option<String> {
    let mut means: Vec<(f64, &str)> = (view.mechanisms.iter().enumerate())
        .filter_map(|(mechanism, &name)| {
            let of_it = view.cells().filter(|(_, cell)| cell.mechanism == mechanism && cell.summary.runs > 0);
            let (n, sum) =
                of_it.fold((0_u32, 0.0), |(n, sum), (_, c)| (n + 1, sum + c.summary.unnecessary_per_client));
            (n > 0).then(|| (sum / f64::from(n), name))
        })
        .collect();
    means.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (means.first()?, means.last()?);
    Some(if most.0 == 0.0 {
        "No retransmission was needless.".into()
    } else if most.0 < 0.005 {
        "Hardly any retransmission was needless.".into()
    } else if means.len() == 1 {
        format!("A client retransmits needlessly {} times on average.", count(most.0))
    } else {
        format!(
            "On average a client retransmits needlessly {} times with {}, and {} times with {}.",
            count(least.0),
            least.1,
            count(most.0),
            most.1
        )
    })
}

/// How many clients gave up: their FCT is missing above.
fn unfinished(view: &View) -> Option<String> {
    let gave_up: u64 = view.cells().map(|(_, cell)| cell.summary.clients_gave_up).sum();
    let clients: u64 = gave_up + view.cells().map(|(_, cell)| cell.summary.clients_finished).sum::<u64>();
    (gave_up > 0).then(|| format!("{gave_up} of {clients} clients gave up; they count as never finishing."))
}

fn place(title: &str) -> String {
    if title.is_empty() { String::new() } else { format!(" ({})", title.replace(" · ", ", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Group, Report};
    use crate::results::{Cell, CellResult, Published, RunResult};

    fn result(mechanism: &str, clients: u32, fct_s: f64, unnecessary: u64) -> CellResult {
        let run =
            RunResult { fct_s: vec![Some(fct_s)], unnecessary, goodput_bps: 960.0, ..RunResult::default() };
        let cell = Cell { mechanism: mechanism.into(), clients, ..Cell::default() };
        CellResult { cell, runs: vec![run], published: None }
    }

    fn said(results: Vec<CellResult>) -> String {
        let report = Report { groups: Group::by_conditions(results), ..Report::default() };
        headline(&View::of(&report)).join(" ")
    }

    #[test]
    fn the_fastest_and_its_factor_are_named() {
        assert_eq!(
            said(vec![result("default", 1, 2425.0, 40), result("fasor", 1, 550.0, 1)]),
            "Fastest is fasor, 4.4 times as fast as default: a median FCT of 550.0 s against 2425 s. \
             On average a client retransmits needlessly 1.00 times with fasor, and 40.0 times with default."
        );
    }

    #[test]
    fn wins_are_counted_over_conditions() {
        let text = said(vec![
            result("default", 1, 33.0, 0),
            result("cocoa", 1, 33.0, 0),
            result("default", 400, 300.0, 0),
            result("cocoa", 400, 200.0, 0),
        ]);
        assert_eq!(
            text,
            "Fastest in both conditions is cocoa, up to 1.5 times as fast as default (400 clients): a median FCT of 200.0 s against 300.0 s. No retransmission was needless."
        );
    }

    #[test]
    fn the_published_median_met_worst_is_named() {
        let mut results = vec![result("default", 1, 33.0, 0), result("cocoa", 1, 44.0, 0)];
        for result in &mut results {
            result.published = Some(Published::figure(Metric::MedianFct, 33.0, ""));
        }
        let text = said(results);
        assert!(
            text.starts_with(
                "1 of 2 published medians are met within 5 %; farthest off is cocoa, at +33.3\u{a0}%."
            ),
            "{text}"
        );
    }

    #[test]
    fn without_an_end_to_reach_goodput_decides() {
        let mut results = vec![result("default", 1, 1.0, 0), result("cocoa", 1, 1.0, 0)];
        for run in results.iter_mut().flat_map(|result| &mut result.runs) {
            run.fct_s.clear();
        }
        results[1].runs[0].goodput_bps = 4800.0;
        let text = said(results);
        assert!(
            text.contains("Fastest is cocoa, 5.0 times as fast as default: a goodput of 4.80 kbit/s"),
            "{text}"
        );
    }

    #[test]
    fn clients_that_gave_up_are_mentioned() {
        let mut results = vec![result("default", 1, 1.0, 0)];
        results[0].runs[0].fct_s.push(None);
        results[0].runs[0].fct_s.push(Some(2.0));
        assert!(said(results).ends_with("1 of 3 clients gave up; they count as never finishing."));
    }
}
