//! Handlers of an endpoint that wait for something, by resource: who may have how many of the places there are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The places of one endpoint. Its copies are the same.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    max: u32,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: u32,
    by_resource: HashMap<usize, Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    all: u32,
    strangers: u32,
}

/// A place, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    waiting: Waiting,
    resource: usize,
    stranger: bool,
}

/// Why a handler may not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// The resource has as many as it may have.
    Full,
    /// Strangers have; a client that shows its address has room.
    Strangers,
}

impl Waiting {
    pub(crate) fn new(max: u32) -> Self {
        Self { max, taken: Arc::default() }
    }

    /// A place for a handler of a resource, whose client is verified or a `stranger`. A resource may have as many places as
    /// are left free; so of many resources that are asked for without end each has as much as another, and as much is left.
    /// Strangers may have half as many.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn take(&self, resource: usize, stranger: bool) -> Result<Place, NoPlace> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.max.saturating_sub(taken.all);
        let counts = taken.by_resource.entry(resource).or_default();
        if counts.all >= free {
            return Err(NoPlace::Full);
        }
        if stranger && counts.strangers >= free.div_ceil(2) {
            return Err(NoPlace::Strangers);
        }
        counts.all += 1;
        counts.strangers += u32::from(stranger);
        taken.all += 1;
        Ok(Place { waiting: self.clone(), resource, stranger })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.waiting.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        if let Some(counts) = taken.by_resource.get_mut(&self.resource) {
            counts.all -= 1;
            counts.strangers -= u32::from(self.stranger);
            if counts.all == 0 {
                taken.by_resource.remove(&self.resource);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(waiting: &Waiting, resource: usize, stranger: bool) -> (Vec<Place>, NoPlace) {
        let mut places = Vec::new();
        loop {
            match waiting.take(resource, stranger) {
                Ok(place) => places.push(place),
                Err(why) => return (places, why),
            }
        }
    }

    #[test]
    fn strangers_at_one_resource_leave_room_for_others_there_and_for_other_resources() {
        let waiting = Waiting::new(900);
        let (strangers, why) = fill(&waiting, 1, true);
        assert_eq!((strangers.len(), why), (300, NoPlace::Strangers));
        let (files, _) = fill(&waiting, 2, true);
        assert_eq!(files.len(), 200);
        drop(files);
        let (verified, why) = fill(&waiting, 1, false);
        assert_eq!((verified.len(), why), (150, NoPlace::Full), "as many as are free, with the strangers");
        assert!(waiting.take(2, true).is_ok());
    }

    #[test]
    fn every_resource_that_is_asked_for_without_end_leaves_some_to_others() {
        let waiting = Waiting::new(1_024);
        let filled: Vec<_> = (0..5).map(|resource| fill(&waiting, resource, false)).collect();
        assert!(filled.iter().all(|(places, why)| !places.is_empty() && *why == NoPlace::Full));
        assert!(waiting.take(9, true).is_ok());
        drop(filled);
        assert!(waiting.taken.lock().unwrap().by_resource.is_empty());
    }

    #[test]
    fn the_only_place_there_is_can_be_had_by_anyone() {
        let waiting = Waiting::new(1);
        let place = waiting.take(1, true).unwrap();
        assert_eq!(waiting.take(1, true).unwrap_err(), NoPlace::Full);
        drop(place);
        assert!(waiting.take(2, true).is_ok());
    }
}
