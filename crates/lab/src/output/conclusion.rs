//! The conclusion from results in one or two sentences: which mechanism is best, and whether the choice matters.

use crate::lists::{capitalised, grouped, listed, tied};
use crate::number::{significant, thousands};
use crate::rank::{Section, times};
use crate::results::conditions::Conditions;
use crate::results::{Better, CellResult, Contest, Metric, NEAR, Placing};
use coapace_run::measured::RunResult;

/// The largest number of conditions that get a clause each. More conditions are summed up.
const MOST_CLAUSES: usize = 3;

/// The comparison of mechanisms by one metric under all conditions.
///
/// If there are at least two published mechanisms with random timeouts, only these are compared. Among all mechanisms,
/// the best one would often be one of this project, or one that wins by lock-step ([`Section`]).
pub struct Conclusion<'a> {
    metric: Metric,
    /// The noun for the mechanisms that are compared: `mechanisms` or `published mechanisms`.
    noun: &'static str,
    /// Each condition in words, with the contest of the mechanisms under this condition.
    contests: Vec<(String, Contest<'a>)>,
}

impl<'a> Conclusion<'a> {
    /// Compares the results; `None` if no two mechanisms have the metric under the same conditions.
    pub fn of(metric: Metric, results: &[&'a CellResult]) -> Option<Self> {
        let conditions = Conditions::of(results.iter().map(|result| &result.cell));
        let groups = grouped(results.iter().copied(), |a, b| a.cell.same_conditions(&b.cell));
        let is_published = |result: &&CellResult| Section::of(&result.cell.mechanism).is_yardstick();
        let compare = |published: bool| -> Vec<(String, Contest<'a>)> {
            let contest = |group: &Vec<&'a CellResult>| {
                let own = group.iter().copied().filter(|result| !published || is_published(result));
                // One mechanism alone is not a comparison.
                let contest = Contest::of(metric, own).filter(|contest| contest.known().count() > 1)?;
                Some((conditions.describe(&group[0].cell).replace(" · ", ", "), contest))
            };
            groups.iter().filter_map(contest).collect()
        };
        let of = |noun, contests: Vec<_>| (!contests.is_empty()).then_some(Self { metric, noun, contests });
        of("published mechanisms", compare(true)).or_else(|| of("mechanisms", compare(false)))
    }

    /// Returns each condition in words, with the contest of the mechanisms under this condition.
    pub fn contests(&self) -> impl Iterator<Item = (&str, &Contest<'a>)> {
        self.contests.iter().map(|(place, contest)| (place.as_str(), contest))
    }

    /// Returns the conclusion in one or two sentences.
    pub fn sentences(&self) -> Vec<String> {
        match self.contests.as_slice() {
            [(place, contest)] => self.of_one(place, contest),
            several => self.of_several(several),
        }
    }

    fn of_one(&self, place: &str, contest: &Contest) -> Vec<String> {
        let title = self.metric.title();
        let Some(best) = contest.placings.first() else { return Vec::new() };
        let count = contest.known().count();
        let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
        let alike: Vec<&str> = contest.leaders().skip(1).map(Placing::name).collect();
        // Without a decision naming one as the best alone would mislead, so all of them tie.
        let first = if contest.is_decided() {
            let also = match alike.as_slice() {
                [] => String::new(),
                several => format!("; {}", tied(several)),
            };
            format!("{place}{} {title}: {}, {}{also}.", self.extreme(), best.name(), self.value(best))
        } else {
            let all = if count == 2 { "both".to_owned() } else { format!("the {count}") };
            format!(
                "{place}{all} {} tie by their {title} over these seeds; {} has the {}, {}.",
                self.noun,
                best.name(),
                self.extreme(),
                self.value(best)
            )
        };
        let near = contest.near();
        // Significant differences may still be small, so the size of the differences follows.
        let second = if near == count {
            format!("All are within {} of it: the choice hardly matters here.", percent(NEAR))
        } else {
            let far = contest.farthest().map_or_else(String::new, |(far, ratio)| {
                format!("; {} is the farthest, with {}", far.name(), self.distance(far, ratio))
            });
            let among = among(near, count, self.noun);
            format!("{} within {} of it{far}.", capitalised(&among), percent(NEAR))
        };
        let unknown = match unknown(contest) {
            0 => String::new(),
            1 => format!(" One of the other {} has no {title} in some seed.", self.noun),
            others => format!(" {others} of the other {} have no {title} in some seed.", self.noun),
        };
        vec![capitalised(&first), second + &unknown]
    }

    fn of_several(&self, contests: &[(String, Contest)]) -> Vec<String> {
        let title = self.metric.title();
        let mut safest: Vec<(f64, &str)> = Vec::new();
        // `of` leaves out conclusions without a contest. A mechanism without a value here has none in one condition, and is not safe.
        for placing in contests[0].1.known() {
            // A mechanism that lacks the value under one condition is not a safe choice: its ratio is infinite.
            let ratios = contests.iter().map(|(_, contest)| {
                let own = contest.placings.iter().find(|own| own.name() == placing.name());
                own.filter(|own| own.estimate.is_some()).map_or(f64::INFINITY, |own| own.worse(self.metric))
            });
            // Ratios are 1 or more, so 0 is below them all.
            safest.push((ratios.fold(0.0, f64::max), placing.name()));
        }
        safest.sort_by(|a, b| a.0.total_cmp(&b.0));
        let first = match safest.first() {
            Some((worst, name)) if worst.is_finite() => {
                // Mechanisms within 5 % of the best under all conditions are equally safe.
                let alike: Vec<&str> =
                    safest.iter().skip(1).take_while(|it| it.0 <= NEAR).map(|it| it.1).collect();
                let bound = if *worst <= NEAR { NEAR } else { *worst };
                let also = match alike.as_slice() {
                    [] => String::new(),
                    several => format!("; the same holds for {}", listed(several, 3, "others")),
                };
                // A factor reads better than a hundred per cent and more.
                let within = if bound < 2.0 {
                    format!("within {} of the {}", percent(bound), self.extreme())
                } else {
                    format!("at most {} times the {}", times(bound), self.extreme())
                };
                format!(
                    "The safest choice is {name}: its {title} is {within} under {} conditions{also}.",
                    all(contests.len())
                )
            }
            _ => format!("No mechanism has a {title} under {} conditions.", all(contests.len())),
        };
        vec![first, capitalised(&self.spread(contests))]
    }

    /// Returns a sentence on the conditions under which the choice of a mechanism matters, and on how much it matters.
    fn spread(&self, contests: &[(String, Contest)]) -> String {
        let extreme = self.extreme();
        // Few conditions have a clause each. Many are summed up by the one where the choice matters most.
        if contests.len() <= MOST_CLAUSES {
            let clause = |(place, contest): &(String, Contest)| {
                let (near, count, best) = (contest.near(), contest.known().count(), &contest.placings[0]);
                let far = contest.farthest().filter(|(far, _)| far.worse(self.metric) > NEAR);
                let far = far.map_or_else(String::new, |(far, ratio)| {
                    format!(", and {} has {}", far.name(), self.distance(far, ratio))
                });
                format!(
                    "with {place}, {} within {} of the {extreme}, {} ({}){far}{}",
                    among(near, count, "mechanisms"),
                    percent(NEAR),
                    self.value(best),
                    best.name(),
                    match unknown(contest) {
                        0 => String::new(),
                        others => format!(" ({others} more have no {})", self.metric.title()),
                    }
                )
            };
            return contests.iter().map(clause).collect::<Vec<_>>().join("; ") + ".";
        }
        // A reader should know how often the choice hardly matters before the worst case.
        let alike = contests.iter().filter(|(_, contest)| contest.near() == contest.known().count()).count();
        let alike = if alike == 0 { "none".to_owned() } else { alike.to_string() };
        let alike = format!(
            "in {alike} of {} conditions all {} are within {} of the {extreme}",
            contests.len(),
            self.noun,
            percent(NEAR)
        );
        let widest =
            contests.iter().filter_map(|(place, contest)| Some((place, contest, contest.farthest()?)));
        let worse = |far: &Placing| far.worse(self.metric);
        match widest.max_by(|a, b| worse(a.2.0).total_cmp(&worse(b.2.0))) {
            Some((place, contest, (far, ratio))) => format!(
                "{alike}; the choice matters most with {place}, where the {extreme} is {} ({}), and {} has {}.",
                self.value(&contest.placings[0]),
                contest.placings[0].name(),
                far.name(),
                self.distance(far, ratio)
            ),
            None => alike + ".",
        }
    }

    /// Returns the value of the mechanism `far` as text: as a multiple of the best value, or by itself if the best
    /// value is zero.
    fn distance(&self, far: &Placing, ratio: f64) -> String {
        // A best value of 0 has no ratio that says anything.
        if ratio.is_finite() && ratio > 0.0 {
            format!("{} times that", times(ratio))
        } else {
            self.value(far)
        }
    }

    const fn extreme(&self) -> &'static str {
        if matches!(self.metric.better(), Better::Lower) { "lowest" } else { "highest" }
    }

    fn value(&self, placing: &Placing) -> String {
        let mean = placing.estimate.map_or(f64::NAN, |estimate| estimate.mean);
        let text = format!("{}\u{a0}{}", significant(mean, self.metric.digits()), self.metric.unit());
        text.trim_end().to_owned()
    }
}

/// Returns the number of mechanisms that have no value in at least one seed.
fn unknown(contest: &Contest) -> usize {
    contest.placings.len() - contest.known().count()
}

fn all(count: usize) -> String {
    if count == 2 { "both".to_owned() } else { format!("all {count}") }
}

/// Returns the start of a sentence, such as `3 of 8 mechanisms are`, on how many mechanisms are near the best.
fn among(near: usize, count: usize, noun: &str) -> String {
    match near {
        1 => "no other is".to_owned(),
        _ if near == count => format!("{} are", all(count)),
        _ => format!("{near} of {count} {noun} are"),
    }
}

/// Returns by how many per cent a ratio exceeds 1, rounded up.
fn percent(ratio: f64) -> String {
    // Rounded up, so that `within` is true. 1e-6 keeps an error of the subtraction from adding a per cent.
    format!("{:.0} %", ((ratio - 1.0) * 100.0 - 1e-6).ceil())
}

/// Returns a sentence on how often something was given up, and with which mechanisms; `None` if nothing was. It counts
/// transfers if all results have them, clients if these finish, and otherwise exchanges.
pub fn gave_up(results: &[&CellResult]) -> Option<String> {
    // One unit is counted for all results: the largest thing that a mechanism can give up here.
    let has_fct = results.iter().any(|result| result.has_fct());
    let has_transfers = results.iter().all(|result| !result.cell.transfers.is_empty());
    let count = |result: &CellResult| {
        let runs = || result.runs.iter();
        if has_transfers {
            let transfers = || runs().flat_map(|run| &run.transfers);
            let failed = transfers().map(|own| own.failed).sum::<u64>();
            (failed, failed + transfers().map(|own| own.completed_s.len() as u64).sum::<u64>())
        } else if has_fct {
            let clients = runs().flat_map(|run| &run.fct_s);
            (clients.clone().filter(|fct| fct.is_none()).count() as u64, clients.count() as u64)
        } else {
            let given_up = runs().map(|run| run.given_up).sum::<u64>();
            (given_up, given_up + runs().map(RunResult::completed).sum::<u64>())
        }
    };
    let counts: Vec<(&str, (u64, u64))> =
        results.iter().map(|result| (result.cell.label(), count(result))).collect();
    let of =
        |all: &[(&str, (u64, u64))]| all.iter().fold((0, 0), |sum, (_, it)| (sum.0 + it.0, sum.1 + it.1));
    let (gave_up, all) = of(&counts);
    if gave_up == 0 {
        return None;
    }
    // Several conditions may have the same mechanism, and a sentence on each would be long.
    let mut by_mechanism: Vec<(&str, (u64, u64))> = grouped(counts, |a, b| a.0 == b.0)
        .into_iter()
        .map(|own| (own[0].0, of(&own)))
        .filter(|(_, (gave_up, _))| *gave_up > 0)
        .collect();
    // The most failures first, because the list below is cut.
    by_mechanism.sort_by_key(|(_, (gave_up, _))| std::cmp::Reverse(*gave_up));
    let share = |(part, whole): (u64, u64)| {
        // Whole per cents from 10 on. Below, rare failures would all read as 0.
        // The whole includes the part, which is above 0 wherever this is called.
        let percent = part as f64 / whole as f64 * 100.0;
        if percent < 10.0 { significant(percent, 2) } else { format!("{percent:.0}") }
    };
    let named: Vec<String> = by_mechanism
        .iter()
        .map(|(name, own)| format!("{} with {name} ({} %)", thousands(own.0), share(*own)))
        .collect();
    let named = listed(&named.iter().map(String::as_str).collect::<Vec<_>>(), 4, "others");
    let (what, then) = if has_transfers {
        ("transfers failed", "They count in no transfer time")
    } else if has_fct {
        ("clients gave up", "They have no FCT, so a median or a last client that would be theirs is a dash")
    } else {
        ("exchanges were given up", "They count in no time of an exchange")
    };
    Some(format!("{} of {} {what}: {named}. {then}.", thousands(gave_up), thousands(all)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::contest::tests::result;

    fn said(results: &[CellResult]) -> String {
        let results: Vec<_> = results.iter().collect();
        Conclusion::of(Metric::MedianFct, &results).map_or_else(String::new, |it| it.sentences().join(" "))
    }

    fn gave_up(results: &[CellResult]) -> Option<String> {
        super::gave_up(&results.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_conclusion_on_one_condition_names_the_best_mechanism_its_ties_and_the_worst() {
        let results = [
            result("default", 1, &[20.0, 21.0, 22.0]),
            result("cocoa", 1, &[10.0, 11.0, 12.0]),
            result("fasor", 1, &[10.1, 11.1, 12.3]),
            result("linux-rto", 1, &[5.0, 6.0, 7.0]),
            result("ebb", 1, &[5.0, 6.0, 7.0]),
        ];
        assert_eq!(
            said(&results),
            "Lowest median FCT: cocoa, 11.00\u{a0}s; fasor ties with it. \
             2 of 3 published mechanisms are within 5 % of it; default is the farthest, with 1.91 times that."
        );
        assert_eq!(said(&results[..1]), "");
    }

    #[test]
    fn the_conclusion_says_when_the_choice_of_mechanism_hardly_matters() {
        let results = [result("default", 1, &[10.0, 11.0, 12.0]), result("cocoa", 1, &[10.1, 11.2, 12.0])];
        assert_eq!(
            said(&results),
            "Both published mechanisms tie by their median FCT over these seeds; default has the lowest, 11.00\u{a0}s. \
             All are within 5 % of it: the choice hardly matters here."
        );
    }

    #[test]
    fn the_conclusion_on_several_conditions_names_the_safest_mechanism_and_each_spread() {
        let few = [result("default", 1, &[10.0, 11.0]), result("cocoa", 1, &[10.1, 11.1])];
        let many = [result("default", 9, &[40.0, 41.0]), result("cocoa", 9, &[20.0, 20.5])];
        let both = [few, many].concat();
        assert_eq!(
            said(&both),
            "The safest choice is cocoa: its median FCT is within 5 % of the lowest under both conditions. \
             With 1 client, both are within 5 % of the lowest, 10.50\u{a0}s (default); \
             with 9 clients, no other is within 5 % of the lowest, 20.25\u{a0}s (cocoa), and default has 2.00 times that."
        );
        let five: Vec<_> = (1..=5)
            .flat_map(|clients| {
                let far = 10.0 * f64::from(clients);
                [result("default", clients, &[far, far + 1.0]), result("cocoa", clients, &[10.0, 11.0])]
            })
            .collect();
        let text = said(&five);
        assert!(
            text.ends_with(
                "In 1 of 5 conditions all published mechanisms are within 5 % of the lowest; the choice matters most with \
                 5 clients, where the lowest is 10.50\u{a0}s (cocoa), and default has 4.81 times that."
            ),
            "{text}"
        );
    }

    #[test]
    fn the_conclusion_names_the_share_of_clients_that_gave_up() {
        let mut results = [result("default", 1, &[1.0, 2.0]), result("cocoa", 1, &[1.0, 2.0])];
        assert_eq!(gave_up(&results), None);
        results[0].runs[1].fct_s = vec![None];
        let text = gave_up(&results).unwrap();
        assert!(text.starts_with("1 of 4 clients gave up: 1 with default (50 %). "), "{text}");
        for run in results.iter_mut().flat_map(|result| &mut result.runs) {
            (run.fct_s, run.given_up) = (Vec::new(), 3);
        }
        let text = gave_up(&results).unwrap();
        assert!(
            text.starts_with("12 of 16 exchanges were given up: 6 with default (75 %) and 6 with"),
            "{text}"
        );
    }
}
