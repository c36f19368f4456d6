//! Successive halving: many mechanisms on a few scenarios, the best of them on more, the best of those on all.

use coapace_sim::{Luck, Stream};

use super::space::{Point, Space};

/// The mechanisms that a bracket begins with.
const FIRST: usize = 27;

/// The share of the mechanisms that a rung leaves, and of the scenarios that it takes: a third each.
const SHARE: usize = 3;

/// The rungs of a bracket.
const RUNGS: usize = 3;

/// A search: bracket after bracket. The first draws places anywhere, each further one mostly near the best so far.
#[derive(Debug)]
pub struct Halving<'a> {
    space: &'a Space,
    scenarios: usize,
    dice: Stream,
    bracket: u64,
    best: Option<(f64, Point)>,
}

impl<'a> Halving<'a> {
    /// Begins a search of `space` over so many scenarios, with the random numbers of `seed`.
    pub fn new(space: &'a Space, scenarios: usize, seed: u64) -> Self {
        Self { space, scenarios, dice: Luck::new(seed).stream("search"), bracket: 0, best: None }
    }

    /// Returns the best place so far and its loss.
    pub fn best(&self) -> Option<&(f64, Point)> {
        self.best.as_ref()
    }

    /// Makes the next bracket. `loss` evaluates a place on so many scenarios, the first ones.
    ///
    /// # Errors
    /// Returns the error of `loss`, which leaves the bracket unfinished.
    pub fn bracket<E>(&mut self, loss: &mut dyn FnMut(&Point, usize) -> Result<f64, E>) -> Result<(), E> {
        let mut places: Vec<Point> = Vec::new();
        for candidate in 0..FIRST as u64 {
            let place = self.candidate(candidate);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        for rung in (0..RUNGS).rev() {
            let scenarios = (self.scenarios / SHARE.pow(rung as u32)).max(1);
            let mut ranked = Vec::new();
            for place in places {
                ranked.push((loss(&place, scenarios)?, place));
            }
            ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
            if rung == 0 {
                let first = ranked.into_iter().next();
                if let Some(first) =
                    first.filter(|first| self.best.as_ref().is_none_or(|best| first.0 < best.0))
                {
                    self.best = Some(first);
                }
                break;
            }
            places = ranked
                .into_iter()
                .take(FIRST / SHARE.pow((RUNGS - rung) as u32))
                .map(|(_, place)| place)
                .collect();
        }
        self.bracket += 1;
        Ok(())
    }

    /// Returns a place: near the best one, or anywhere for every third candidate and while there is none.
    fn candidate(&self, candidate: u64) -> Point {
        let roll =
            |below: usize, what: u64| self.dice.below(below as u64, self.bracket, candidate, what) as usize;
        let values = |parameter: usize| self.space.varied[parameter].values.len();
        let parameters = self.space.varied.len();
        let best = self.best.as_ref().filter(|_| !candidate.is_multiple_of(3));
        let Some((_, best)) = best else {
            return (0..parameters).map(|parameter| roll(values(parameter), parameter as u64)).collect();
        };
        let mut place = best.clone();
        for change in 0..=roll(3, 1000) as u64 {
            let parameter = roll(parameters, 2000 + change);
            let last = values(parameter) - 1;
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

    #[test]
    fn a_search_finds_the_bottom_of_a_bowl_and_takes_few_evaluations_on_all_scenarios() {
        let (space, mut whole, mut all) = (space(), 0, 0);
        let mut halving = Halving::new(&space, 90, 1);
        for _ in 0..6 {
            let done = halving.bracket(&mut |place, scenarios| {
                all += 1;
                whole += usize::from(scenarios == 90);
                let away = |parameter: usize, at: f64| (place[parameter] as f64 - at).powi(2);
                Ok::<_, ()>(away(0, 6.0) + away(1, 2.0) + away(2, 3.0))
            });
            assert_eq!(done, Ok(()));
        }
        assert_eq!(halving.best().unwrap().1, [6, 2, 3]);
        assert!(whole * 5 < all, "{whole} of {all}");
    }

    #[test]
    fn a_search_that_is_ended_stops_at_once_and_a_seed_makes_it_again() {
        let space = space();
        let places = |seed| {
            let mut halving = Halving::new(&space, 9, seed);
            let mut seen = Vec::new();
            assert_eq!(
                halving.bracket(&mut |place, _| {
                    seen.push(place.clone());
                    if seen.len() < 5 { Ok(1.0) } else { Err("ended") }
                }),
                Err("ended")
            );
            seen
        };
        assert_eq!(places(1).len(), 5);
        assert_eq!(places(1), places(1));
        assert_ne!(places(1), places(2));
    }
}
