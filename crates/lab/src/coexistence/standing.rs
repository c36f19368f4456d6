//! The share of each mechanism against all the others.

use super::{Encounter, Matrix};

/// The tolerance of fairness: two mechanisms share fairly if neither relative share differs from 1 by more than this.
const FAIR: f64 = 0.05;

/// The maximum number of mechanisms that a sentence lists by name.
const NAMED: usize = 3;

/// The results of one mechanism against each of the others. A relative share is the mechanism's share of the
/// throughput, or of the goodput of transfers, divided by its share of the clients: 1 is fair.
#[derive(Clone, Debug)]
pub struct ShareStanding {
    /// The index of the mechanism in [`Matrix::mechanisms`].
    pub mechanism: usize,
    /// The mean of the mechanism's relative shares.
    pub mean: f64,
    /// The smallest relative share, and the index of the mechanism beside which it occurs.
    pub least: (f64, usize),
    /// The greatest relative share, and the index of the mechanism beside which it occurs.
    pub most: (f64, usize),
    /// The mean distance of the mechanism's relative shares from 1, in either direction.
    pub distance: f64,
    /// The indices of the mechanisms that this one starves.
    pub starves: Vec<usize>,
    /// The indices of the mechanisms that starve this one.
    pub starved_by: Vec<usize>,
}

impl Matrix {
    /// Returns every mechanism with completed exchanges or transfers, sorted by mean share, the greatest first.
    pub fn standings(&self) -> Vec<ShareStanding> {
        let mut standings: Vec<_> = (0..self.mechanisms.len()).filter_map(|row| self.standing(row)).collect();
        standings.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        standings
    }

    fn standing(&self, row: usize) -> Option<ShareStanding> {
        let others = || (0..self.mechanisms.len()).filter(|&column| column != row);
        let shares: Vec<(f64, usize)> = others()
            .filter_map(|column| Some((self.encounter(row, column).own.relative_share?, column)))
            .collect();
        let by_share = |a: &&(f64, usize), b: &&(f64, usize)| a.0.total_cmp(&b.0);
        let count = shares.len() as f64;
        Some(ShareStanding {
            mechanism: row,
            mean: shares.iter().map(|(share, _)| share).sum::<f64>() / count,
            // Without a share this returns `None`, and the mean above, 0/0, is dropped.
            least: *shares.iter().min_by(by_share)?,
            most: *shares.iter().max_by(by_share)?,
            distance: shares.iter().map(|(share, _)| (share - 1.0).abs()).sum::<f64>() / count,
            starves: others().filter(|&column| self.encounter(column, row).is_starved()).collect(),
            starved_by: others().filter(|&column| self.encounter(row, column).is_starved()).collect(),
        })
    }

    /// Returns the matrix in sentences: the mechanisms with the largest and smallest shares, starvation, fairness, and the
    /// throughput of the pairs.
    pub fn sentences(&self) -> Vec<String> {
        let standings = self.standings();
        let (Some(first), Some(last)) = (standings.first(), standings.last()) else {
            return vec!["Nobody completed anything.".to_owned()];
        };
        let name = |mechanism: usize| self.mechanisms[mechanism].as_str();
        let extent = |standing: &ShareStanding| {
            format!(
                "{}, {:.2} of a fair share on average ({:.2} against {} to {:.2} against {})",
                name(standing.mechanism),
                standing.mean,
                standing.least.0,
                name(standing.least.1),
                standing.most.0,
                name(standing.most.1),
            )
        };
        let mut sentences = vec![
            format!("Takes the most: {}.", extent(first)),
            format!("Takes the least: {}.", extent(last)),
            self.starvation(&standings),
        ];
        let pairs = || {
            // Each pair has two encounters. An interrupted matrix has pairs without runs.
            let all = self.encounters().filter(|(row, column, _)| row < column).map(|(.., pair)| pair);
            all.filter(|pair| pair.pair.runs > 0)
        };
        // A pair that completed nothing has no share, and does not count as fair.
        let off =
            |pair: &Encounter| pair.own.relative_share.map_or(f64::INFINITY, |share| (share - 1.0).abs());
        let fair = pairs().filter(|pair| off(pair) <= FAIR).count();
        let off_least = standings.iter().min_by(|a, b| a.distance.total_cmp(&b.distance)).unwrap_or(first);
        sentences.push(format!(
            "Fair: {fair} of {} within {:.0} % of equal shares; closest to them is {}, off by {:.1} % on average.",
            if pairs().count() == 1 { "1 pair".to_owned() } else { format!("{} pairs", pairs().count()) },
            FAIR * 100.0,
            name(off_least.mechanism),
            off_least.distance * 100.0
        ));
        // Who wins a pair says nothing about the pair: two greedy mechanisms may carry less together.
        let by_rate = |a: &&Encounter, b: &&Encounter| a.together().total_cmp(&b.together());
        let (unit, word) = if self.is_of_transfers() {
            (" % of the link", "least")
        } else {
            (" exchanges a second", "fewest")
        };
        let together = |pair: &Encounter| match pair.own.transfers {
            None => format!("{} complete {:.1}", pair.cell.mechanism, pair.together()),
            Some(_) => format!("{} fill {:.1}", pair.cell.mechanism, pair.together() * 100.0),
        };
        match (pairs().min_by(by_rate), pairs().max_by(by_rate)) {
            // A link without a rate has no shares.
            (_, Some(best)) if self.is_of_transfers() && best.together() == 0.0 => {}
            (Some(worst), Some(best)) if worst.cell.mechanism != best.cell.mechanism => {
                sentences.push(format!(
                    "Together: {}{unit}, the {word} of all pairs; {}, the most.",
                    together(worst),
                    together(best)
                ));
            }
            // With one pair, the least and the most are the same.
            (Some(only), _) => sentences.push(format!("Together: {}{unit}.", together(only))),
            _ => {}
        }
        sentences
    }

    /// Returns a sentence on the mechanisms that starve others, the most harmful first, and on the mechanism that keeps the
    /// least of its throughput.
    fn starvation(&self, standings: &[ShareStanding]) -> String {
        let name = |mechanism: usize| self.mechanisms[mechanism].as_str();
        let kept = (self.encounters())
            .filter(|(row, column, _)| row != column)
            .filter_map(|(row, column, encounter)| Some((encounter.kept?, row, column)));
        let Some((worst, row, column)) = kept.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return "Starves: nobody. No mechanism completed anything alone, so there is nothing to compare with.".to_owned();
        };
        let mut starvers: Vec<_> = standings.iter().filter(|standing| !standing.starves.is_empty()).collect();
        // The sort is stable: mechanisms that starve equally many keep the order of their shares.
        starvers.sort_by_key(|standing| std::cmp::Reverse(standing.starves.len()));
        let starved = |standing: &&ShareStanding| {
            let victims =
                listed(standing.starves.iter().map(|&place| name(place).to_owned()).collect(), ", ");
            format!("{} starves {victims}", name(standing.mechanism))
        };
        let all = match starvers.as_slice() {
            [] => "nobody".to_owned(),
            starvers => listed(starvers.iter().map(starved).collect(), "; "),
        };
        format!(
            "Starves: {all}. Worst off is {} beside {}, with {worst:.2} of what it has among its own kind.",
            name(row),
            name(column)
        )
    }
}

/// Returns the first [`NAMED`] texts joined by `gap`, and the number of the others: `a, b, c and 4 more`.
fn listed(mut all: Vec<String>, gap: &str) -> String {
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    let named = all.join(gap);
    if more == 0 { named } else { format!("{named} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::super::tests::matrix;
    use super::*;

    #[test]
    fn mechanisms_are_sorted_by_their_mean_share_beside_all_others() {
        let matrix = matrix(&["default", "cocoa", "linux-rto"], 2);
        let standings = matrix.standings();
        assert!(standings.is_sorted_by(|a, b| a.mean >= b.mean), "{standings:?}");
        // In each pair, one mechanism has as much more than a fair share as the other has less.
        let sum: f64 = standings.iter().map(|standing| standing.mean).sum();
        assert!((sum - 3.0).abs() < 1e-9, "{sum}");
        for ShareStanding { mechanism, mean, least, most, .. } in standings {
            let share = |column| matrix.encounter(mechanism, column).own.relative_share.unwrap();
            let others: Vec<f64> = (0..3).filter(|&column| column != mechanism).map(share).collect();
            assert!((mean - others.iter().sum::<f64>() / 2.0).abs() < 1e-12);
            assert!(least.0 <= most.0 && others.contains(&least.0) && others.contains(&most.0));
            assert_eq!((share(least.1), share(most.1)), (least.0, most.0));
        }
    }

    #[test]
    fn a_mechanism_is_starved_if_it_keeps_less_than_half_of_its_throughput_alone() {
        let mut matrix = matrix(&["default", "cocoa"], 2);
        let [takes, least, starves, fair, together] = matrix.sentences().try_into().unwrap();
        assert!(takes.starts_with("Takes the most: ") && least.starts_with("Takes the least: "));
        assert!(starves.starts_with("Starves: nobody. Worst off is "), "{starves}");
        assert!(fair.contains(" of 1 pair within 5 % "), "{fair}");
        assert!(together.contains("default+cocoa complete ") && !together.contains("fewest"), "{together}");

        matrix.encounters[1].kept = Some(0.49);
        assert_eq!(
            matrix.sentences()[2],
            "Starves: cocoa starves default. Worst off is default beside cocoa, with 0.49 of what it has among its own kind."
        );
        let standings = matrix.standings();
        let of = |mechanism| standings.iter().find(|standing| standing.mechanism == mechanism).unwrap();
        assert_eq!((of(0).starved_by.as_slice(), of(1).starves.as_slice()), (&[1][..], &[0][..]));
        assert!(of(0).starves.is_empty() && of(1).starved_by.is_empty());
    }

    #[test]
    fn a_long_list_of_starved_mechanisms_is_shortened() {
        let list = |count: usize| listed((1..=count).map(|number| number.to_string()).collect(), ", ");
        assert_eq!((list(3), list(5)), ("1, 2, 3".to_owned(), "1, 2, 3 and 2 more".to_owned()));
    }

    #[test]
    fn a_matrix_without_pairs_says_that_it_is_empty() {
        assert_eq!(Matrix::default().sentences(), ["Nobody completed anything."]);
    }
}
