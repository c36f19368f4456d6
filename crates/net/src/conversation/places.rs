//! The limit of running handlers, with shares for each resource and for unverified clients.

use std::sync::{Arc, Mutex};

use foldhash::HashMap;

use crate::lock::lock;

/// The slots for running handlers of one endpoint. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct HandlerPlaces {
    max: u32,
    taken: Arc<Mutex<Occupied>>,
}

#[derive(Debug, Default)]
struct Occupied {
    all: u32,
    by_resource: HashMap<usize, Occupancy>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Occupancy {
    all: u32,
    strangers: u32,
}

/// The slot of a running handler, taken before it is called. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct HandlerPlace {
    places: HandlerPlaces,
    resource: usize,
    stranger: bool,
}

/// The reason why a handler is not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// The resource has no slots left.
    Full,
    /// Unverified clients have no slots left, but verified clients have.
    Strangers,
}

impl HandlerPlaces {
    /// Returns `max` slots, but at least one.
    pub(crate) fn new(max: u32) -> Self {
        Self { max: max.max(1), taken: Arc::default() }
    }

    /// Takes a slot for a handler of a resource, if the resource uses fewer slots than are free. So several flooded
    /// resources get equal parts, and one such part stays free. Handlers for unverified clients (`stranger`) may use
    /// half as many slots.
    pub(crate) fn take(&self, resource: usize, stranger: bool) -> Result<HandlerPlace, NoPlace> {
        let mut taken = lock(&self.taken);
        let free = self.max.saturating_sub(taken.all);
        let counts = taken.by_resource.entry(resource).or_default();
        // A resource that has as many places as are free must leave the rest to others.
        if counts.all >= free {
            return Err(NoPlace::Full);
        }
        // Rounded up, so that a stranger may take the last slot.
        if stranger && counts.strangers >= free.div_ceil(2) {
            return Err(NoPlace::Strangers);
        }
        counts.all += 1;
        counts.strangers += u32::from(stranger);
        taken.all += 1;
        Ok(HandlerPlace { places: self.clone(), resource, stranger })
    }
}

impl HandlerPlace {
    /// Records that the client is verified, so that the slot no longer counts as one of an unverified client.
    pub(crate) fn verify(&mut self) {
        // Reset, so that dropping the slot does not count the stranger a second time.
        if std::mem::take(&mut self.stranger)
            && let Some(counts) = lock(&self.places.taken).by_resource.get_mut(&self.resource)
        {
            counts.strangers -= 1;
        }
    }
}

impl Drop for HandlerPlace {
    fn drop(&mut self) {
        let mut taken = lock(&self.places.taken);
        taken.all -= 1;
        if let Some(counts) = taken.by_resource.get_mut(&self.resource) {
            counts.all -= 1;
            counts.strangers -= u32::from(self.stranger);
            // The table has only resources with handlers under way.
            if counts.all == 0 {
                taken.by_resource.remove(&self.resource);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(places: &HandlerPlaces, resource: usize, stranger: bool) -> (Vec<HandlerPlace>, NoPlace) {
        let mut taken = Vec::new();
        loop {
            match places.take(resource, stranger) {
                Ok(place) => taken.push(place),
                Err(why) => return (taken, why),
            }
        }
    }

    #[test]
    fn unverified_clients_of_one_resource_leave_handler_slots_to_others() {
        let places = HandlerPlaces::new(900);
        let (strangers, why) = fill(&places, 1, true);
        assert_eq!((strangers.len(), why), (300, NoPlace::Strangers));
        let (files, _) = fill(&places, 2, true);
        assert_eq!(files.len(), 200);
        drop(files);
        let (verified, why) = fill(&places, 1, false);
        assert_eq!((verified.len(), why), (150, NoPlace::Full), "as many as are free, with the strangers");
        assert!(places.take(2, true).is_ok());
    }

    #[test]
    fn several_flooded_resources_leave_handler_slots_to_others() {
        let places = HandlerPlaces::new(1_024);
        let filled: Vec<_> = (0..5).map(|resource| fill(&places, resource, false)).collect();
        assert!(filled.iter().all(|(places, why)| !places.is_empty() && *why == NoPlace::Full));
        assert!(places.take(9, true).is_ok());
        drop(filled);
        assert!(places.taken.lock().unwrap().by_resource.is_empty());
    }

    #[test]
    fn a_client_that_becomes_verified_frees_its_slot_for_unverified_clients() {
        let places = HandlerPlaces::new(90);
        let (mut strangers, _) = fill(&places, 1, true);
        assert_eq!(places.take(1, true).unwrap_err(), NoPlace::Strangers);
        strangers[0].verify();
        strangers[0].verify();
        let (again, _) = fill(&places, 1, true);
        assert_eq!((strangers.len(), again.len()), (30, 1));
        drop((strangers, again));
        assert!(places.taken.lock().unwrap().by_resource.is_empty());
    }

    #[test]
    fn a_single_handler_slot_is_open_to_unverified_clients() {
        let places = HandlerPlaces::new(1);
        let place = places.take(1, true).unwrap();
        assert_eq!(places.take(1, true).unwrap_err(), NoPlace::Full);
        drop(place);
        assert!(places.take(2, true).is_ok());
    }
}
