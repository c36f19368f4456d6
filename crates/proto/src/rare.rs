//! The rare parts of an endpoint, which many endpoints never need. They are behind one pointer, so that a client takes less
//! memory.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::allowance::Allowance;
use crate::deduplication::Deduplication;
use crate::extended_tokens::ExtendedTokens;
use crate::listeners::Listeners;
use crate::measures::Measures;
use crate::outbox::Outbox;
use crate::registrations::Observers;
use crate::sluice::Sluice;

/// The rare parts of an endpoint, and the counters that only they need.
#[derive(Debug)]
pub(crate) struct Rare<A> {
    pub(crate) outbox: Outbox<A>,
    pub(crate) deduplication: Option<Deduplication<A>>,
    /// The requests whose copies may be left unanswered; `None` unless [`max_sluiced`](crate::Config::max_sluiced) is
    /// above 0.
    pub(crate) sluice: Option<Box<Sluice<A>>>,
    /// The bytes of long tokens; `None` before the first token of more than 8 bytes.
    pub(crate) tokens: Option<Box<ExtendedTokens<A>>>,
    /// The allowance of each limited exchange, by its slot.
    pub(crate) allowances: Vec<Allowance>,
    /// The clients that observe resources here; `None` before the first registration.
    pub(crate) observers: Option<Box<Observers<A>>>,
    /// The requests that may get further responses; `None` before the first observation or request to a group.
    pub(crate) listeners: Option<Box<Listeners<A>>>,
    /// The measures of the endpoint; `None` before a call of [`measure`](crate::Endpoint::measure).
    pub(crate) measures: Option<Box<Measures>>,
    pub(crate) malformed: u64,
    pub(crate) converted: u64,
    pub(crate) timed_out: u64,
    pub(crate) rejected: u64,
    pub(crate) peers_evicted: u64,
}

impl<A> Rare<A> {
    /// Subtracts a message of this length from the allowance of an exchange. Returns false if it exceeds the allowance.
    pub(crate) fn spend(rare: &mut Option<Box<Self>>, exchange: u32, length: usize) -> bool {
        let allowances = rare.as_mut().map(|rare| &mut rare.allowances);
        let allowance = allowances.and_then(|allowances| allowances.get_mut(exchange as usize));
        // Exchanges without an entry are not limited.
        allowance.is_none_or(|allowance| allowance.spend(length))
    }

    /// Returns the measures, if the endpoint collects them. The other fields of the endpoint are not borrowed.
    pub(crate) fn measures(rare: &mut Option<Box<Self>>) -> Option<&mut Measures> {
        rare.as_mut()?.measures.as_deref_mut()
    }
}

impl<A> Default for Rare<A> {
    fn default() -> Self {
        Self {
            outbox: Outbox::default(),
            deduplication: None,
            sluice: None,
            tokens: None,
            allowances: Vec::new(),
            observers: None,
            listeners: None,
            measures: None,
            malformed: 0,
            converted: 0,
            timed_out: 0,
            rejected: 0,
            peers_evicted: 0,
        }
    }
}
