//! The results in a few sentences.

use coapace_lab::lists::{grouped, listed};
use coapace_lab::results::number::percent;
use coapace_lab::results::{Better, Contest, Metric, Placing, Ratio, tally};

use super::measure::{Measure, measures};
use super::view::{View, metrics};
use super::words::capitalised;

/// The relative error up to which a published figure counts as met.
pub(super) const MET: f64 = coapace_lab::results::Compared::MET;

/// Returns plain sentences, computed from the results.
pub(super) fn headline(view: &View) -> Vec<String> {
    if view.groups.is_empty() {
        return vec!["There are no results.".into()];
    }
    if let Some(matrix) = view.coexistence {
        return matrix.sentences();
    }
    let published = [reproduction(view), tables(view), orders(view)];
    (published.into_iter().flatten()).chain(contests(view)).chain(unfinished(view)).collect()
}

/// Returns a sentence on how many published figures are met; `None` if no figure was published outside of tables.
fn reproduction(view: &View) -> Option<String> {
    let compared = view.plain();
    let worst = compared.first()?;
    let met = compared.iter().filter(|compared| compared.figure.is_met()).count();
    let all = compared.len();
    let metrics = metrics(&compared);
    let (one, many) =
        if metrics == [Metric::MedianFct] { ("median", "medians") } else { ("figure", "figures") };
    let figures = if all == 1 { one } else { many };
    let start = format!("{met} of {all} published {figures} are met within {:.0} %", MET * 100.0);
    let place = place(worst.title);
    Some(match worst.error() {
        Some(error) => format!("{start}; farthest off is {}{place}, at {}.", worst.cell.name, percent(error)),
        None if worst.figure.metric == Metric::MedianFct => {
            format!("{start}; {}{place} has no median, for too many clients gave up.", worst.cell.name)
        }
        None => format!("{start}; {}{place} has no {}.", worst.cell.name, worst.figure.metric.title()),
    })
}

/// Returns a sentence on how many figures of published tables are within the factor of their table; `None` if there are none.
fn tables(view: &View) -> Option<String> {
    let tabled = view.tabled();
    let within = tabled.iter().filter(|one| one.judged.within()).count();
    (!tabled.is_empty()).then(|| {
        format!("{within} of {} figures of published tables are within the factors asked for.", tabled.len())
    })
}

/// Returns a sentence on how many published orders held; `None` if none was published.
fn orders(view: &View) -> Option<String> {
    let verdicts: Vec<_> = view.verdicts().into_iter().map(|(_, verdict)| verdict).collect();
    (!verdicts.is_empty()).then(|| format!("Published orders: {}.", tally(&verdicts)))
}

/// Returns a sentence for each measure that leads.
fn contests(view: &View) -> Vec<String> {
    let measures = measures(view);
    measures.iter().filter(|measure| measure.leads).filter_map(|measure| contest(view, measure)).collect()
}

/// Returns a sentence on which mechanism is ahead and by how much, or that the seeds show none ahead.
fn contest(view: &View, measure: &Measure) -> Option<String> {
    let contests: Vec<(&str, Contest)> = (view.groups.iter())
        .filter_map(|group| Some((group.title, Contest::of(measure.metric, group.results)?)))
        .collect();
    let title = capitalised(measure.metric.title());
    let estimates =
        || contests.iter().flat_map(|(_, contest)| &contest.placings).filter_map(|it| it.estimate);
    if estimates().next().is_some() && estimates().all(|it| it.mean == 0.0) {
        return Some(format!("{title}: none with any mechanism."));
    }
    match contests.as_slice() {
        [] => None,
        [(place, contest)] => Some(format!("{title}{}: {}.", self::place(place), said(measure, contest))),
        several => Some(format!("{title}: {}.", said_of_several(measure, several))),
    }
}

/// Returns what the seeds show of one group.
fn said(measure: &Measure, contest: &Contest) -> String {
    let figure =
        |placing: &Placing| placing.estimate.map(|estimate| measure.words(estimate)).unwrap_or_default();
    let best = &contest.placings[0];
    let unknown = contest.placings.iter().filter(|placing| placing.estimate.is_none()).count();
    let unknown = match unknown {
        0 => String::new(),
        n => format!("; {n} of {} mechanisms have no value in some seed", contest.placings.len()),
    };
    if contest.placings.len() == 1 {
        return format!("{} with {}", figure(best), best.name());
    }
    let superlative = if measure.metric.better() == Better::Lower { "lowest" } else { "highest" };
    let rivals: Vec<&str> = contest.leaders().skip(1).map(Placing::name).collect();
    let Some((far, ratio)) = contest.behind().next_back().and_then(|placing| Some((placing, placing.ratio?)))
    else {
        let last = contest.leaders().last().map_or_else(String::new, figure);
        return format!(
            "{} no order between the mechanisms, from {} to {last}{unknown}",
            shown(best.result.runs.len()),
            figure(best)
        );
    };
    let times = format!("{}’s is {} that", far.name(), times(ratio));
    let (name, figure) = (best.name(), figure(best));
    match rivals.as_slice() {
        [] => format!("{superlative} with {name}, {figure}; {times}{unknown}"),
        rivals => format!(
            "{superlative} on average with {name}, {figure}, which the seeds do not tell from {}; {times}{unknown}",
            listed(rivals, 3, "more")
        ),
    }
}

/// Returns what the seeds show of several groups: in how many of them a mechanism is ahead alone, and the widest gap.
fn said_of_several(measure: &Measure, contests: &[(&str, Contest)]) -> String {
    let all = contests.len();
    let superlative = if measure.metric.better() == Better::Lower { "lowest" } else { "highest" };
    let winner = |(_, contest): &(&str, Contest)| {
        let mut leaders = contest.leaders();
        let first = leaders.next().filter(|_| contest.is_decided())?.name();
        leaders.next().is_none().then(|| first.to_owned())
    };
    // The contests that each mechanism won, by its name.
    let mut alone = grouped(contests.iter().filter_map(winner), |a, b| a == b);
    alone.sort_by_key(|won| std::cmp::Reverse(won.len()));
    let undecided = all - alone.iter().map(Vec::len).sum::<usize>();
    let won = |(place, won): (usize, &Vec<String>)| {
        let (name, won) = (&won[0], won.len());
        if place == 0 {
            format!("{superlative} with {name} in {won} of {all} conditions")
        } else {
            format!("with {name} in {won}")
        }
    };
    let mut parts: Vec<String> = alone.iter().take(3).enumerate().map(won).collect();
    match alone.get(3..).unwrap_or_default() {
        [] => {}
        others => parts.push(format!(
            "with one of {} others in {}",
            others.len(),
            others.iter().map(Vec::len).sum::<usize>()
        )),
    }
    if undecided == all {
        parts
            .push(format!("in none of {all} conditions do the seeds show one mechanism ahead of all others"));
    } else if undecided > 0 {
        parts.push(format!("in {undecided} the seeds show no mechanism ahead of all others"));
    }
    let gaps = contests.iter().filter_map(|(place, contest)| {
        let far = contest.behind().next_back()?;
        let ratio = far.ratio.filter(|ratio| ratio.mean.is_finite() && ratio.mean > 0.0)?;
        Some((ratio.mean.ln().abs(), place, contest.placings[0].name(), far.name(), ratio))
    });
    if let Some((_, place, best, far, ratio)) = gaps.max_by(|a, b| a.0.total_cmp(&b.0)) {
        parts.push(format!("at most {far}’s is {} {best}’s{}", times(ratio), self::place(place)));
    }
    parts.join("; ")
}

/// Returns the beginning of a clause on what so many seeds show.
fn shown(seeds: usize) -> String {
    match seeds {
        1 => "one seed shows".into(),
        seeds => format!("{seeds} seeds show"),
    }
}

/// Returns a ratio in words, with its interval.
fn times(ratio: Ratio) -> String {
    let (mean, interval) = ratio.words();
    if interval == "–" { format!("{mean} times") } else { format!("{mean} times ({interval})") }
}

/// Returns a sentence on how many clients gave up: they have no FCT. `None` if none did.
fn unfinished(view: &View) -> Option<String> {
    let count = |metric| view.cells().map(|(_, cell)| cell.clients(metric)).sum::<u64>();
    let gave_up = count(Metric::ClientsGaveUp);
    let clients = gave_up + count(Metric::ClientsFinished);
    (gave_up > 0).then(|| format!("{gave_up} of {clients} clients gave up; they count as never finishing."))
}

fn place(title: &str) -> String {
    if title.is_empty() { String::new() } else { format!(" ({})", title.replace(" · ", ", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Group, Report};
    use coapace_lab::results::{Cell, CellResult, FlowResult, Published, RunResult};

    /// Makes a cell with a run of one client for each of these completion times.
    fn result(mechanism: &str, clients: u32, fct_s: &[f64], unnecessary: u64) -> CellResult {
        let run = |(seed, fct_s): (u64, &f64)| RunResult {
            seed,
            fct_s: vec![Some(*fct_s)],
            unnecessary,
            goodput_bps: 960.0,
            ..RunResult::default()
        };
        let cell = Cell { mechanism: mechanism.into(), clients, ..Cell::default() };
        CellResult { cell, runs: (1..).zip(fct_s).map(run).collect(), published: None, bounds: Vec::new() }
    }

    fn said(results: Vec<CellResult>) -> String {
        let report = Report { groups: Group::by_conditions(results), ..Report::default() };
        headline(&View::of(&report)).join(" ")
    }

    const LONG: [f64; 4] = [118.0, 116.0, 114.0, 116.0];
    const SHORT: [f64; 4] = [68.0, 67.0, 66.0, 67.0];
    /// About as long as [`SHORT`]: longer with some seeds, shorter with others.
    const ALIKE: [f64; 4] = [67.5, 67.6, 65.8, 67.3];

    #[test]
    fn who_is_ahead_is_said_where_the_seeds_show_it() {
        let text = said(vec![result("default", 1, &LONG, 40), result("fasor", 1, &SHORT, 1)]);
        assert!(
            text.starts_with("Median FCT: lowest with fasor, 67.0\u{a0}±\u{a0}1.3\u{a0}s; default’s is 1.73 times (1.73–1.74) that. "),
            "{text}"
        );
        assert!(text.contains("Spurious retransmissions: lowest with fasor, 1.00\u{a0}±\u{a0}0.00\u{a0}per client; default’s is 40.0 times"), "{text}");
    }

    #[test]
    fn no_order_is_said_that_the_seeds_do_not_show() {
        let text = said(vec![result("default", 1, &SHORT, 0), result("fasor", 1, &ALIKE, 0)]);
        assert!(
            text.starts_with("Median FCT: 4 seeds show no order between the mechanisms, from 67.0"),
            "{text}"
        );
        assert!(!text.contains("lowest") && !text.contains("fast"), "{text}");
        assert!(text.ends_with("Spurious retransmissions: none with any mechanism."), "{text}");
    }

    #[test]
    fn overlapping_intervals_are_an_order_where_every_seed_has_it() {
        // The seeds differ by far more than the mechanisms do. The second mechanism is 3 % faster with every seed.
        let wide: [f64; 4] = [50.0, 100.0, 150.0, 200.0];
        let text = said(vec![result("default", 1, &wide.map(|x| x * 1.03), 0), result("fasor", 1, &wide, 0)]);
        assert!(
            text.contains("lowest with fasor") && text.contains("default’s is 1.03 times (1.03–1.03)"),
            "{text}"
        );
    }

    #[test]
    fn the_best_of_two_that_are_alike_is_said_to_be_alike() {
        let results = vec![
            result("default", 1, &LONG, 0),
            result("cocoa", 1, &ALIKE, 0),
            result("fasor", 1, &SHORT, 0),
        ];
        let text = said(results);
        assert!(
            text.contains("lowest on average with fasor")
                && text.contains("which the seeds do not tell from cocoa; default’s is"),
            "{text}"
        );
    }

    #[test]
    fn one_seed_shows_no_order() {
        let text = said(vec![result("default", 1, &LONG[..1], 0), result("fasor", 1, &SHORT[..1], 0)]);
        assert!(
            text.starts_with(
                "Median FCT: one seed shows no order between the mechanisms, from 68.0\u{a0}s to 118\u{a0}s."
            ),
            "{text}"
        );
    }

    #[test]
    fn a_mechanism_without_a_figure_in_some_seed_is_not_ahead() {
        let mut results = vec![result("default", 1, &LONG, 0), result("fasor", 1, &SHORT, 0)];
        results[1].runs[2].fct_s = vec![None];
        let text = said(results);
        assert!(
            !text.contains("lowest with fasor")
                && text.contains("1 of 2 mechanisms have no value in some seed"),
            "{text}"
        );
    }

    #[test]
    fn conditions_are_counted_by_who_is_ahead_alone() {
        let text = said(vec![
            result("default", 1, &SHORT, 0),
            result("cocoa", 1, &ALIKE, 0),
            result("default", 400, &LONG, 0),
            result("cocoa", 400, &SHORT, 0),
        ]);
        assert!(
            text.starts_with(
                "Median FCT: lowest with cocoa in 1 of 2 conditions; in 1 the seeds show no mechanism ahead of all others; \
                 at most default’s is 1.73 times (1.73–1.74) cocoa’s (400 clients)."
            ),
            "{text}"
        );
    }

    /// Makes runs with one flow whose messages take about this many milliseconds, a run for each number.
    fn flowing(mechanism: &str, delays_ms: &[u64]) -> CellResult {
        let mut result = result(mechanism, 1, &[0.0; 4], 0);
        for (run, ms) in result.runs.iter_mut().zip(delays_ms) {
            run.fct_s.clear();
            run.duration_s = 10.0;
            let mut flow =
                FlowResult { offered: 20, reached: 20, message_bytes: 50, ..FlowResult::default() };
            (0..20).for_each(|i| flow.delays.add((ms + i) * 1_000));
            run.flows = vec![flow];
        }
        result
    }

    #[test]
    fn flows_are_compared_by_delay_delivery_and_load() {
        let text = said(vec![flowing("default", &[116, 117, 115, 116]), flowing("fasor", &[67, 68, 66, 67])]);
        assert!(text.starts_with("Delay: lowest with fasor, 0.076"), "{text}");
        assert!(text.contains("99 % quantile of the delay: lowest with fasor"), "{text}");
        assert!(text.contains("Packet delivery ratio: 4 seeds show no order"), "{text}");
        assert!(text.contains("Carried load: 4 seeds show no order"), "{text}");
    }

    #[test]
    fn the_published_median_met_worst_is_named() {
        let mut results = vec![result("default", 1, &[33.0], 0), result("cocoa", 1, &[44.0], 0)];
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
    fn clients_that_gave_up_are_mentioned() {
        let mut results = vec![result("default", 1, &[1.0], 0)];
        results[0].runs[0].fct_s.push(None);
        results[0].runs[0].fct_s.push(Some(2.0));
        assert!(said(results).ends_with("1 of 3 clients gave up; they count as never finishing."));
    }
}
