//! The advice of a ranking: which mechanism to use, and what it costs.

use coapace_control::{Controller, Marking};
use coapace_scenario::naming::{TCP, parse_mechanism};

use super::ranking::NEAR;
use super::table::times;
use super::{RankedCell, Ranking, Section, Standing};
use crate::results::number::significant;
use crate::results::{Better, Metric};

impl Ranking {
    /// Returns which mechanism to use, how far it is from the best, and what it costs: the dithered mechanism with the smallest
    /// worst ratio. Returns `None` if there is none.
    pub fn advice(&self) -> Option<String> {
        let is_usable = |standing: &&Standing| {
            standing.section != Section::Undithered
                && self.mechanisms[standing.mechanism] != TCP
                && standing.worst.is_some()
        };
        let mut usable = self.standings.iter().filter(is_usable);
        let (pick, next) = (usable.next()?, usable.next());
        let said = match self.cells.as_slice() {
            [cell] => self.in_one(cell, pick),
            _ => self.over_all(pick, next),
        };
        Some(said + &cost(&self.mechanisms[pick.mechanism]))
    }

    /// Returns the sentences about a single cell.
    fn in_one(&self, cell: &RankedCell, pick: &Standing) -> String {
        let name = |mechanism: usize| self.mechanisms[mechanism].as_str();
        let own = pick.mechanism;
        let Some(first) = cell.figures.first() else { return String::new() };
        let metric = first.metric;
        let title = metric.title();
        // A mechanism that does not finish with every seed has no mean.
        let figure = |mechanism: usize| {
            let value = first.values[mechanism].map(|value| significant(value, metric.digits()));
            value.map(|value| format!("{value} {}", metric.unit()).trim_end().to_owned())
        };
        let unknown = format!("which has no {title} in some runs");
        // If it is the best itself, what it sends is compared with the second best.
        let rivals = self.standings.iter().filter(|it| it.section.is_yardstick() && it.mechanism != own);
        let ratio = |it: &&Standing| first.ratios[it.mechanism].mean;
        let second = rivals.min_by(|a, b| ratio(a).total_cmp(&ratio(b))).map(|it| it.mechanism);
        let rival = if first.best == own { second } else { Some(first.best) };
        let sent = rival.and_then(|rival| sent(cell, own, rival));
        let place = if figure(own).is_none() {
            format!("it does best here, but has no {title} in some runs")
        } else if first.best == own {
            let extreme = if metric.better() == Better::Lower { "lowest" } else { "highest" };
            let before = second.map_or_else(String::new, |second| match figure(second) {
                Some(figure) => format!(", before {} with {figure}", name(second)),
                None => format!(", before {}, {unknown}", name(second)),
            });
            format!("it has the {extreme} {title} here ({}{before})", figure(own).unwrap_or_default())
        } else {
            let behind = first.ratios[own].mean - 1.0;
            let how = match (behind * 100.0 - 1e-6).ceil() {
                percent if percent <= 0.0 => format!("{:.0} % better than", (-behind * 100.0).floor()),
                percent => format!("within {percent:.0} % of"),
            };
            format!(
                "its {title} is {how} the best published here ({}, {})",
                name(first.best),
                figure(first.best).unwrap_or(unknown)
            )
        };
        let sent = match (sent, rival) {
            (Some(sent), Some(rival)) if first.best == own => format!(", with {sent} than {}", name(rival)),
            (Some(sent), _) => format!(", with {sent}"),
            _ => String::new(),
        };
        let others = pick.worst.filter(|worst| worst.figure > 0 && worst.ratio.mean > NEAR).map(|worst| {
            let figure = &cell.figures[worst.figure];
            let ratio = times(worst.ratio.mean);
            format!(
                " Its {} is {ratio} times worse than the best ({}).",
                figure.metric.title(),
                name(figure.best)
            )
        });
        format!("Use {}: {place}{sent}.{}", name(own), others.unwrap_or_default())
    }

    /// Returns the sentences about several cells.
    fn over_all(&self, pick: &Standing, next: Option<&Standing>) -> String {
        let name = |standing: &Standing| self.mechanisms[standing.mechanism].as_str();
        let Some(worst) = pick.worst else { return String::new() };
        let cell = &self.cells[worst.cell];
        let at = format!("{}, {}", cell.figures[worst.figure].metric.title(), cell.name);
        let next = next.and_then(|next| {
            let worst = next.worst?.ratio.mean;
            Some(format!(
                " Next is {}, with {} and {}.",
                name(next),
                times(worst),
                times(next.geometric_mean)
            ))
        });
        format!(
            "Use {}: over {} cells its figures are at worst {} times the best published ({at}), and {} times on average; in {} cells \
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

/// Returns how many transmissions fewer or more one mechanism makes than another for an exchange; `None` if that is not among
/// the figures, or hardly differs.
fn sent(cell: &RankedCell, own: usize, other: usize) -> Option<String> {
    let figure = cell.figures.iter().find(|it| it.metric == Metric::TransmissionsPerExchange)?;
    let share = figure.values[own]? / figure.values[other]? - 1.0;
    let percent = (share.abs() * 100.0).round();
    let word = if share < 0.0 { "fewer" } else { "more" };
    (percent >= 1.0).then(|| format!("{percent:.0} % {word} transmissions"))
}

/// Returns a sentence on what a mechanism needs at every destination and on the wire.
fn cost(label: &str) -> String {
    let Ok(mechanism) = parse_mechanism(label) else { return String::new() };
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
    fn one_cell_is_told_by_its_headline_and_what_is_sent() {
        let mut ranking = ranking(&["default", "cocoa", "linux-rto"], 2);
        ranking.cells.truncate(1);
        let [pick, other] = [0, 1].map(|place| ranking.standings[place].mechanism);
        let cell = &mut ranking.cells[0];
        let first = &mut cell.figures[0];
        (first.best, first.values[pick], first.values[other]) = (other, Some(10.4), Some(10.0));
        first.ratios[pick].mean = 1.04;
        let sent = cell.figures.iter_mut().find(|it| it.metric == Metric::TransmissionsPerExchange).unwrap();
        (sent.values[pick], sent.values[other]) = (Some(1.1), Some(1.25));
        ranking.standings[0].worst.as_mut().unwrap().figure = 0;
        let name = |place: usize| ranking.mechanisms[place].clone();
        let told = ranking.advice().unwrap();
        let start = format!(
            "Use {}: its median FCT is within 4 % of the best published here ({}, 10.00 s), with 12 % fewer transmissions. It takes ",
            name(pick),
            name(other)
        );
        assert!(told.starts_with(&start), "{told}");
        assert_ne!(name(pick), "linux-rto");
    }

    #[test]
    fn a_mechanism_without_a_figure_is_told_in_words() {
        let mut ranking = ranking(&["default", "cocoa", "linux-rto"], 2);
        ranking.cells.truncate(1);
        let pick = ranking.standings[0].mechanism;
        let first = &mut ranking.cells[0].figures[0];
        (first.best, first.values) = (pick, vec![None; 3]);
        first.values[pick] = Some(10.0);
        let told = ranking.advice().unwrap();
        assert!(told.contains("lowest median FCT here (10.00 s, before "), "{told}");
        assert!(told.contains(", which has no median FCT in some runs)") && !told.contains('–'), "{told}");
        ranking.cells[0].figures[0].values[pick] = None;
        let told = ranking.advice().unwrap();
        assert!(told.contains(": it does best here, but has no median FCT in some runs"), "{told}");
    }

    #[test]
    fn several_cells_are_told_by_the_worst_and_the_mean() {
        let ranking = ranking(&["linux-rto", "default", "fasor"], 2);
        let told = ranking.advice().unwrap();
        let pick = &ranking.standings[0];
        let name = &ranking.mechanisms[pick.mechanism];
        assert!(told.starts_with(&format!("Use {name}: over 2 cells its figures are at worst ")), "{told}");
        assert!(told.contains(" Next is ") && !told.contains("linux-rto"), "{told}");
        assert_eq!(Ranking::default().advice(), None);
    }

    #[test]
    fn what_a_mechanism_needs_is_said() {
        assert!(cost("default").contains("takes 0 bytes for a destination and changes nothing on the wire"));
        assert!(cost("fasor-token").contains("a byte in the token of retransmissions"));
        assert_eq!(cost("tcp"), "");
    }
}
