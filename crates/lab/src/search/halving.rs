//! Successive halving: many mechanisms are evaluated on a few scenarios, the best of them on more, and the best of
//! these on all.

use coapace_sim::{Luck, Stream};

use super::space::{Space, SpacePoint};
use crate::lists::distinct;

/// The number of mechanisms with which a bracket, one pass of successive halving, begins.
const FIRST: usize = 27;

/// The divisor from one rung, a step of a bracket, to the next: a third of the mechanisms continue, on three times the
/// scenarios.
const SHARE: usize = 3;

/// A search by successive halving, one bracket after another. The first bracket draws its points anywhere, each later
/// one mostly near the best point so far.
///
/// This type evaluates nothing itself. The caller takes the points of the next rung from [`ask`](Self::ask), and passes
/// their losses to [`tell`](Self::tell).
#[derive(Debug)]
pub struct Halving {
    space: Space,
    scenarios: usize,
    dice: Stream,
    bracket: u32,
    rung: usize,
    /// The points of the current rung.
    places: Vec<SpacePoint>,
    best: Option<(f64, SpacePoint)>,
}

impl Halving {
    /// The number of rungs of a bracket.
    pub const RUNGS: usize = 3;

    /// Starts a search of `space` over `scenarios` scenarios, with the random numbers of `seed`.
    pub fn new(space: Space, scenarios: usize, seed: u64) -> Self {
        let dice = Luck::new(seed).stream("search");
        let mut halving =
            Self { space, scenarios, dice, bracket: 0, rung: 0, places: Vec::new(), best: None };
        halving.places = halving.candidates();
        halving
    }

    /// Returns, for each rung of a bracket, the largest number of points and the number of scenarios, if a set has this
    /// many `scenarios`.
    pub fn rungs(scenarios: usize) -> [(usize, usize); Self::RUNGS] {
        [0, 1, 2].map(|rung| {
            // 27 points on a ninth of the scenarios, 9 on a third, 3 on all.
            let left = Self::RUNGS - 1 - rung;
            (FIRST / SHARE.pow(rung as u32), (scenarios / SHARE.pow(left as u32)).max(1))
        })
    }

    /// Returns the space to search.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Returns the number of completed brackets, and of completed rungs in the current one.
    pub fn over(&self) -> (u32, usize) {
        (self.bracket, self.rung)
    }

    /// Returns the best point so far and its loss.
    pub fn best(&self) -> Option<&(f64, SpacePoint)> {
        self.best.as_ref()
    }

    /// Returns the points of the next rung, and the number of scenarios on which each is to be evaluated.
    pub fn ask(&self) -> (&[SpacePoint], usize) {
        (&self.places, Self::rungs(self.scenarios)[self.rung].1)
    }

    /// Ends the rung with the losses of its points, in the same sequence. Returns whether there is a new best point, which only
    /// the last rung of a bracket can find.
    pub fn tell(&mut self, losses: &[f64]) -> bool {
        let places = std::mem::take(&mut self.places);
        let mut ranked: Vec<_> = losses.iter().copied().zip(places).collect();
        // The sort is stable, so equal losses keep the order of the points, and a search repeats.
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.rung += 1;
        if let Some(&(most, _)) = Self::rungs(self.scenarios).get(self.rung) {
            self.places = ranked.into_iter().take(most).map(|(_, place)| place).collect();
            return false;
        }
        let first = ranked.into_iter().next();
        // Only losses of the last rung are compared, because they are over all scenarios.
        let better = first.filter(|first| self.best.as_ref().is_none_or(|best| first.0 < best.0));
        let is_new = better.is_some();
        self.best = better.or(self.best.take());
        (self.bracket, self.rung) = (self.bracket + 1, 0);
        self.places = self.candidates();
        is_new
    }

    /// Returns the points with which a bracket begins, each once.
    fn candidates(&self) -> Vec<SpacePoint> {
        distinct((0..FIRST as u64).map(|candidate| self.candidate(candidate)))
    }

    /// Returns a point to evaluate: near the best point so far, or anywhere for every third candidate and while no best
    /// point is known.
    fn candidate(&self, candidate: u64) -> SpacePoint {
        // Every roll has a number of its own, so that the candidates of a bracket do not depend on each other.
        let roll = |below: usize, what: u64| {
            self.dice.below(below as u64, self.bracket.into(), candidate, what) as usize
        };
        let values = |parameter: usize| self.space.varied[parameter].values.len();
        let parameters = self.space.varied.len();
        // Every third candidate is drawn anywhere, so that a search does not stay at the first hill.
        let best = self.best.as_ref().filter(|_| !candidate.is_multiple_of(3));
        let Some((_, best)) = best else {
            return (0..parameters).map(|parameter| roll(values(parameter), parameter as u64)).collect();
        };
        let mut place = best.clone();
        // One to three parameters change.
        for change in 0..=roll(3, 1000) as u64 {
            let parameter = roll(parameters, 2000 + change);
            let last = values(parameter) - 1;
            // A quarter of the changes jump anywhere, a quarter go one value down, half go one up.
            place[parameter] = match roll(4, 3000 + change) {
                0 => roll(last + 1, 4000 + change),
                1 => place[parameter].saturating_sub(1),
                _ => (place[parameter] + 1).min(last),
            };
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::super::space::Varied;
    use super::*;

    fn space() -> Space {
        let varied = ["a=1|2|3|4|5|6|7|8|9", "b=1|2|3|4|5|6|7|8|9", "c=1|2|3|4|5"];
        Space { mechanism: "x".into(), varied: varied.map(|text| Varied::parse(text).unwrap()).into() }
    }

    /// A test function with its minimum at 6, 2, 3.
    fn loss(place: &SpacePoint) -> f64 {
        [6.0, 2.0, 3.0].iter().zip(place).map(|(at, place)| (*place as f64 - at).powi(2)).sum()
    }

    #[test]
    fn successive_halving_finds_the_minimum_of_a_bowl_with_few_full_evaluations() {
        let mut halving = Halving::new(space(), 90, 1);
        let (mut whole, mut all, mut found) = (0, 0, Vec::new());
        while halving.over().0 < 6 {
            let (places, scenarios) = halving.ask();
            assert!(Halving::rungs(90).iter().any(|rung| places.len() <= rung.0 && scenarios == rung.1));
            all += places.len();
            whole += if scenarios == 90 { places.len() } else { 0 };
            let losses: Vec<f64> = places.iter().map(loss).collect();
            if halving.tell(&losses) {
                found.push(halving.best().unwrap().0);
            }
        }
        assert_eq!(halving.best().unwrap().1, [6, 2, 3]);
        assert!(whole * 5 < all, "{whole} of {all}");
        assert!(found.windows(2).all(|two| two[1] < two[0]) && found.last() == Some(&0.0), "{found:?}");
    }

    #[test]
    fn equal_seeds_make_equal_searches() {
        let places = |seed| Halving::new(space(), 9, seed).ask().0.to_vec();
        assert_eq!(places(1), places(1));
        assert_ne!(places(1), places(2));
    }

    #[test]
    fn each_round_of_halving_keeps_a_third_of_the_candidates_on_three_times_the_scenarios() {
        assert_eq!(Halving::rungs(72), [(27, 8), (9, 24), (3, 72)]);
        assert_eq!(Halving::rungs(2), [(27, 1), (9, 1), (3, 2)]);
    }
}
