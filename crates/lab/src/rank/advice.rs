//! The advice of a ranking: which mechanism to use, and what it costs.

use coapace_control::{Controller, Marking};
use coapace_scenario::naming::{TCP, parse_any};

use super::ranking::NEAR;
use super::table::times;
use super::{RankedCell, RankedMetric, Ranking, Section, Standing};
use crate::lists::tied;
use crate::number::significant;
use crate::results::{Better, Contest, Metric, Placing};

impl Ranking {
    /// Returns which mechanism to use, how far it is from the best, and what it costs: the mechanism with random
    /// timeouts and the smallest worst ratio. If most mechanisms are about equally good, the advice says that the
    /// choice hardly matters, what would make a difference, and which of these mechanisms is the simplest. Returns
    /// `None` without a mechanism to choose.
    pub fn advice(&self) -> Option<String> {
        let is_usable = |standing: &&Standing| {
            standing.section != Section::Undithered
                && self.mechanisms[standing.mechanism] != TCP
                && standing.worst.is_some()
        };
        let usable: Vec<&Standing> = self.standings.iter().filter(is_usable).collect();
        // Standings are sorted, so the first usable one is the best.
        let (pick, next) = (usable.first()?, usable.get(1));
        let (said, named) = match self.cells.as_slice() {
            [cell] => match self.alike_in_one(cell, &usable) {
                Some((said, simplest)) => (said, simplest),
                None => (self.in_one(cell, pick, &usable), pick.mechanism),
            },
            _ => match self.alike_in_all(&usable) {
                Some((said, simplest)) => (said, simplest),
                None => (self.over_all(pick, next.copied()), pick.mechanism),
            },
        };
        Some(said + &cost(&self.mechanisms[named]))
    }

    /// Returns sentences for a single cell in which most mechanisms are about equal in the main metric, and the index
    /// of the simplest of these mechanisms; `None` if they are not about equal.
    fn alike_in_one(&self, cell: &RankedCell, usable: &[&Standing]) -> Option<(String, usize)> {
        let first = cell.metrics.first()?;
        let is_near = |ranked: &RankedMetric, mechanism: usize| {
            ranked.values[mechanism].is_some() && ranked.ratios[mechanism].mean <= NEAR
        };
        // Only usable mechanisms count: a good one without dither is not an alternative.
        let alike: Vec<usize> =
            usable.iter().map(|standing| standing.mechanism).filter(|own| is_near(first, *own)).collect();
        if !are_most(alike.len(), usable.len()) {
            return None;
        }
        // A mechanism that is near in everything is advised, if there is one.
        // Alike in the headline metric may still differ in others, such as transmissions.
        let near_in_all = |own: &usize| cell.metrics.iter().all(|ranked| is_near(ranked, *own));
        let mut best: Vec<usize> = alike.iter().copied().filter(near_in_all).collect();
        if best.is_empty() {
            best.push(usable.first()?.mechanism);
        }
        let simplest = self.simplest(&best)?;
        let title = first.metric.title();
        let said = format!(
            "Use any of {} mechanisms (of {}): their {title} is within {:.0} % of the best published here ({}, {}), so the choice hardly \
             matters.",
            alike.len(),
            usable.len(),
            (NEAR - 1.0) * 100.0,
            self.mechanisms[first.best],
            value_of(first, first.best).unwrap_or_default()
        );
        Some((
            format!(
                "{said}{}{} {} is the simplest of those that are near the best in {}.",
                self.difference(cell, &alike),
                limit(first),
                self.mechanisms[simplest],
                if near_in_all(&simplest) { "every metric" } else { "most metrics" }
            ),
            simplest,
        ))
    }

    /// Returns a sentence on the metric in which the mechanisms `alike`, which are about equal in the main metric,
    /// differ most.
    fn difference(&self, cell: &RankedCell, alike: &[usize]) -> String {
        let widest = |ranked: &RankedMetric| {
            let ratio = |own: &usize| ranked.ratios[*own].mean;
            // A ratio counts only if every seed has a value. Otherwise it is infinite.
            let known = || alike.iter().copied().filter(|own| ranked.values[*own].is_some());
            let least = known().min_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
            let most = known().max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
            Some((ratio(&most) / ratio(&least), least, most))
        };
        let all = cell.metrics.iter().filter_map(|ranked| Some((ranked, widest(ranked)?)));
        match all.max_by(|a, b| a.1.0.total_cmp(&b.1.0)) {
            Some((own, (spread, least, most))) if spread > NEAR => format!(
                " They differ most in {}: {} with {}, {} with {}.",
                own.metric.title(),
                value_of(own, least).unwrap_or_default(),
                self.mechanisms[least],
                value_of(own, most).unwrap_or_default(),
                self.mechanisms[most]
            ),
            _ => " Their other metrics are as near.".to_owned(),
        }
    }

    /// Returns sentences for several cells in all of which most mechanisms are about equally good, and the index of the
    /// simplest of these mechanisms; `None` if they are not about equally good.
    fn alike_in_all(&self, usable: &[&Standing]) -> Option<(String, usize)> {
        let near = usable.iter().filter(|standing| standing.cells_near == standing.cells);
        let alike: Vec<usize> = near.map(|standing| standing.mechanism).collect();
        let simplest = self.simplest(&alike).filter(|_| are_most(alike.len(), usable.len()))?;
        let said = format!(
            "Use any of {} mechanisms (of {}): every value of theirs is within {:.0} % of the best published in every one of {} cells, so the choice \
             hardly matters. More clients, smaller buffers or more losses would show a difference. {} is the simplest of them.",
            alike.len(),
            usable.len(),
            (NEAR - 1.0) * 100.0,
            self.cells.len(),
            self.mechanisms[simplest]
        );
        Some((said, simplest))
    }

    /// Returns the index of the simplest mechanism: one that marks no transmissions, if there is one, and among these
    /// the one with the fewest bytes of state; `None` if `among` is empty.
    fn simplest(&self, among: &[usize]) -> Option<usize> {
        let needs = |own: &usize| {
            let (mechanism, _) = parse_any(&self.mechanisms[*own]).ok()?;
            let marks = mechanism.limits(&mechanism.state()).marking != Marking::None;
            Some((marks, mechanism.state_bytes(), *own))
        };
        // Equals are decided by the sequence in which mechanisms were named.
        among.iter().filter_map(needs).min().map(|(_, _, own)| own)
    }

    /// Returns the advice for a single cell.
    fn in_one(&self, cell: &RankedCell, pick: &Standing, usable: &[&Standing]) -> String {
        let name = |mechanism: usize| self.mechanisms[mechanism].as_str();
        let own = pick.mechanism;
        let Some(first) = cell.metrics.first() else { return String::new() };
        let metric = first.metric;
        let title = metric.title();
        // The sentence is about the first metric, the headline of the cell. Others follow only if they are worse.
        let unknown = format!("which has no {title} in some runs");
        // If it is the best itself, its transmissions are compared with the second best baseline.
        let rivals = self.standings.iter().filter(|it| it.section.is_yardstick() && it.mechanism != own);
        let ratio = |it: &&Standing| first.ratios[it.mechanism].mean;
        let second = rivals.min_by(|a, b| ratio(a).total_cmp(&ratio(b))).map(|it| it.mechanism);
        let rival = if first.best == own { second } else { Some(first.best) };
        let sent = rival.and_then(|rival| sent(cell, own, rival));
        let extreme = if metric.better() == Better::Lower { "lowest" } else { "highest" };
        let place = if value_of(first, own).is_none() {
            format!("it does best here, but has no {title} in some runs")
        } else if first.best == own {
            let value = value_of(first, own).unwrap_or_default();
            let ties = ties(cell, first, own, usable);
            if ties.is_empty() {
                let before = second.map_or_else(String::new, |second| match value_of(first, second) {
                    Some(own) if own == value => format!(", just before {}", name(second)),
                    Some(own) => format!(", before {} with {own}", name(second)),
                    None => format!(", before {}, {unknown}", name(second)),
                });
                format!("it has the {extreme} {title} here ({value}{before})")
            } else {
                format!("it has the {extreme} {title} here ({value}), and {}", tied(&ties))
            }
        } else {
            let behind = first.ratios[own].mean - 1.0;
            // Rounded against the advice: 4.2 % worse is within 5 %. 1e-6 keeps a rounding error from adding a per cent.
            let how = match (behind * 100.0 - 1e-6).ceil() {
                // A ratio below 1: a mechanism that cannot be the baseline may beat the best baseline.
                percent if percent <= 0.0 => format!("{:.0} % better than", (-behind * 100.0).floor()),
                percent => format!("within {percent:.0} % of"),
            };
            format!(
                "its {title} is {how} the best published here ({}, {})",
                name(first.best),
                value_of(first, first.best).unwrap_or(unknown)
            )
        };
        let sent = match (sent, rival) {
            (Some(sent), Some(rival)) if first.best == own => format!(", with {sent} than {}", name(rival)),
            (Some(sent), _) => format!(", with {sent}"),
            _ => String::new(),
        };
        let others = pick.worst.filter(|worst| worst.metric > 0 && worst.ratio.mean > NEAR).map(|worst| {
            let ranked = &cell.metrics[worst.metric];
            let ratio = times(worst.ratio.mean);
            format!(
                " Its {} is {ratio} times worse than the best ({}).",
                ranked.metric.title(),
                name(ranked.best)
            )
        });
        format!("Use {}: {place}{sent}.{}", name(own), others.unwrap_or_default())
    }

    /// Returns the advice for several cells.
    fn over_all(&self, pick: &Standing, next: Option<&Standing>) -> String {
        let name = |standing: &Standing| self.mechanisms[standing.mechanism].as_str();
        let Some(worst) = pick.worst else { return String::new() };
        let cell = &self.cells[worst.cell];
        let at = format!("{}, {}", cell.metrics[worst.metric].metric.title(), cell.name);
        let next = next.and_then(|next| {
            let both = |it: &Standing| Some((times(it.worst?.ratio.mean), times(it.geometric_mean)));
            let (worst, mean) = both(next)?;
            // Compared as printed: a reader would look for a difference between equal numbers.
            if both(pick).as_ref() == Some(&(worst.clone(), mean.clone())) {
                return Some(format!(" {} is level with it.", name(next)));
            }
            Some(format!(" Next is {}, with {worst} and {mean}.", name(next)))
        });
        format!(
            "Use {}: over {} cells its values are at worst {} times the best published ({at}), and {} times on average; in {} cells \
             all are within {:.0} %.{}",
            name(pick),
            self.cells.len(),
            times(worst.ratio.mean),
            times(pick.geometric_mean),
            pick.cells_near,
            (NEAR - 1.0) * 100.0,
            next.unwrap_or_default()
        )
    }
}

/// Returns whether `some` mechanisms are more than half of `all`, and more than two.
fn are_most(some: usize, all: usize) -> bool {
    some > 2 && 2 * some > all
}

/// Returns the value of a mechanism with its unit; `None` if some seed has no value.
fn value_of(of: &RankedMetric, mechanism: usize) -> Option<String> {
    let value = significant(of.values[mechanism]?, of.metric.digits());
    Some(format!("{value} {}", of.metric.unit()).trim_end().to_owned())
}

/// Returns the names of the mechanisms that tie with `own`, if `own` is among the best; otherwise none.
fn ties<'a>(cell: &'a RankedCell, by: &RankedMetric, own: usize, usable: &[&Standing]) -> Vec<&'a str> {
    let known = usable.iter().map(|standing| standing.mechanism).filter(|it| by.values[*it].is_some());
    let Some(contest) = Contest::of(by.metric, known.map(|it| &cell.results[it])) else { return Vec::new() };
    let leaders: Vec<&'a str> = contest.leaders().map(Placing::name).collect();
    let own = cell.results[own].cell.label();
    if leaders.contains(&own) {
        leaders.into_iter().filter(|name| *name != own).collect()
    } else {
        Vec::new()
    }
}

/// Returns a sentence on what would make a difference if mechanisms hardly differ: more clients, smaller buffers or
/// more losses. If the best value is near its bound, the sentence also names a better network.
fn limit(ranked: &RankedMetric) -> String {
    const HARDER: &str = "more clients, smaller buffers or more losses would show a difference";
    let best = ranked.values[ranked.best].filter(|best| *best > 0.0);
    let near = ranked
        .bound
        .zip(best)
        // A bound may be a lower or an upper one, so the larger quotient counts.
        .filter(|(bound, best)| bound.value > 0.0 && (bound.value / best).max(best / bound.value) <= NEAR);
    match near {
        Some((bound, _)) => {
            let value = significant(bound.value, ranked.metric.digits());
            let bound = format!("{value} {}", ranked.metric.unit());
            format!(
                " The network itself allows no better than {}: a better network would change more than a mechanism, and {HARDER}.",
                bound.trim_end()
            )
        }
        // ASCII, so the first byte is the first letter.
        None => format!(" {}{}.", HARDER[..1].to_uppercase(), &HARDER[1..]),
    }
}

/// Returns a text such as `8 % fewer transmissions`: how many transmissions mechanism `own` needs for an exchange,
/// compared with `other`. Returns `None` if transmissions are not among the metrics, or hardly differ.
fn sent(cell: &RankedCell, own: usize, other: usize) -> Option<String> {
    let ranked = cell.metrics.iter().find(|it| it.metric == Metric::TransmissionsPerExchange)?;
    let share = ranked.values[own]? / ranked.values[other]? - 1.0;
    let percent = (share.abs() * 100.0).round();
    let word = if share < 0.0 { "fewer" } else { "more" };
    (percent >= 1.0).then(|| format!("{percent:.0} % {word} transmissions"))
}

/// Returns a sentence on a mechanism's bytes of state for each destination, and on the bytes by which it marks
/// transmissions; empty for a mix.
fn cost(label: &str) -> String {
    // A mix has several states, so no cost is named.
    let Ok((mechanism, _)) = parse_any(label) else { return String::new() };
    let marks = match mechanism.limits(&mechanism.state()).marking {
        Marking::None => "and changes nothing on the wire",
        Marking::Token => "and a byte of every token",
        Marking::TokenOnRetransmit => "and a byte in the token of retransmissions",
        Marking::Option => "and an option that the peer has to echo",
        Marking::FreshMessageId => {
            "and a Message ID for every retransmission, which suits idempotent requests alone"
        }
    };
    let bytes = mechanism.state_bytes();
    format!(
        " It takes {bytes} bytes for a destination {marks}. `coapace list mechanisms {label}` has its hazards."
    )
}

#[cfg(test)]
mod tests {
    use super::super::ranking::tests::ranking;
    use super::*;

    #[test]
    fn advice_on_one_cell_names_the_main_metric_and_the_number_of_transmissions() {
        let mut ranking = ranking(&["default", "cocoa", "linux-rto"], 2);
        ranking.cells.truncate(1);
        let [pick, other] = [0, 1].map(|place| ranking.standings[place].mechanism);
        let cell = &mut ranking.cells[0];
        let first = &mut cell.metrics[0];
        (first.best, first.values[pick], first.values[other]) = (other, Some(10.4), Some(10.0));
        first.ratios[pick].mean = 1.04;
        let sent = cell.metrics.iter_mut().find(|it| it.metric == Metric::TransmissionsPerExchange).unwrap();
        (sent.values[pick], sent.values[other]) = (Some(1.1), Some(1.25));
        ranking.standings[0].worst.as_mut().unwrap().metric = 0;
        let name = |place: usize| ranking.mechanisms[place].clone();
        let text = ranking.advice().unwrap();
        let start = format!(
            "Use {}: its median FCT is within 4 % of the best published here ({}, 10.00 s), with 12 % fewer transmissions. It takes ",
            name(pick),
            name(other)
        );
        assert!(text.starts_with(&start), "{text}");
        assert_ne!(name(pick), "linux-rto");
    }

    #[test]
    fn advice_says_if_a_mechanism_has_no_value_of_a_metric() {
        let mut ranking = ranking(&["default", "cocoa", "linux-rto"], 2);
        ranking.cells.truncate(1);
        let pick = ranking.standings[0].mechanism;
        let first = &mut ranking.cells[0].metrics[0];
        (first.best, first.values) = (pick, vec![None; 3]);
        first.values[pick] = Some(10.0);
        let text = ranking.advice().unwrap();
        assert!(text.contains("lowest median FCT here (10.00 s, before "), "{text}");
        assert!(text.contains(", which has no median FCT in some runs)") && !text.contains('–'), "{text}");
        ranking.cells[0].metrics[0].values[pick] = None;
        let text = ranking.advice().unwrap();
        assert!(text.contains(": it does best here, but has no median FCT in some runs"), "{text}");
    }

    #[test]
    fn advice_on_several_cells_names_the_worst_and_the_mean_ratio() {
        let ranking = ranking(&["linux-rto", "default", "fasor"], 2);
        let text = ranking.advice().unwrap();
        let pick = &ranking.standings[0];
        let name = &ranking.mechanisms[pick.mechanism];
        assert!(text.starts_with(&format!("Use {name}: over 2 cells its values are at worst ")), "{text}");
        assert!(text.contains(" Next is ") && !text.contains("linux-rto"), "{text}");
        assert_eq!(Ranking::default().advice(), None);
    }

    #[test]
    fn advice_names_the_simplest_mechanism_if_most_are_equally_good() {
        let mut ranking = ranking(&["fasor", "default", "cocoa", "ebb", "linux-rto"], 2);
        ranking.cells.truncate(1);
        for ranked in &mut ranking.cells[0].metrics {
            (ranked.best, ranked.values) = (0, vec![Some(33.18); 5]);
            ranked.bound = None;
            ranked.ratios.iter_mut().for_each(|ratio| ratio.mean = 1.0);
        }
        let last = ranking.cells[0].metrics.last_mut().unwrap();
        (last.values[2], last.ratios[2].mean) = (Some(40.0), 1.2);
        let text = ranking.advice().unwrap();
        assert!(
            text.starts_with("Use any of 4 mechanisms (of 4): their median FCT is within 5 % of the best published here (fasor, 33.18 s), so the choice"),
            "{text}"
        );
        assert!(text.contains("They differ most in transmissions per exchange: 33.2 with "), "{text}");
        assert!(
            text.contains(", 40.0 with cocoa. More clients, smaller buffers or more losses would show"),
            "{text}"
        );
        assert!(
            text.contains(" default is the simplest of those that are near the best in every metric."),
            "{text}"
        );
        assert!(text.contains("takes 0 bytes"), "{text}");
        let first = &mut ranking.cells[0].metrics[0];
        first.bound = Some(crate::results::Bound { metric: first.metric, value: 33.0 });
        let text = ranking.advice().unwrap();
        assert!(
            text.contains(
                " The network itself allows no better than 33.00 s: a better network would change more"
            ),
            "{text}"
        );
    }

    #[test]
    fn advice_does_not_call_one_of_two_equal_mechanisms_better() {
        let mut ranking = ranking(&["default", "cocoa", "linux-rto"], 2);
        ranking.cells.truncate(1);
        let pick = ranking.standings[0].mechanism;
        let cell = &mut ranking.cells[0];
        (cell.metrics[0].best, cell.metrics[0].values) = (pick, vec![Some(33.18); 3]);
        let same = cell.results[pick].runs.clone();
        cell.results.iter_mut().for_each(|result| result.runs.clone_from(&same));
        let text = ranking.advice().unwrap();
        assert!(
            text.contains("(33.18 s), and ") && text.contains(" with it") && !text.contains("before"),
            "{text}"
        );
    }

    #[test]
    fn advice_lists_the_memory_and_markings_that_a_mechanism_needs() {
        assert!(cost("default").contains("takes 0 bytes for a destination and changes nothing on the wire"));
        assert!(cost("fasor-token").contains("a byte in the token of retransmissions"));
        assert_eq!(cost("tcp"), "");
    }
}
