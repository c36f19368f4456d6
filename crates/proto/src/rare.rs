//! What only some endpoints ever need, behind one pointer: a hundred thousand clients pay for the pointer alone.

use alloc::boxed::Box;

use crate::deduplication::Deduplication;
use crate::listeners::Listeners;
use crate::measures::Measures;
use crate::observers::Observers;
use crate::outbox::Outbox;
use crate::tokens::ExtendedTokens;

#[derive(Debug)]
pub(crate) struct Rare<A> {
    pub(crate) outbox: Outbox<A>,
    pub(crate) deduplication: Option<Deduplication<A>>,
    /// Made by the first token that is longer than 8 bytes.
    pub(crate) tokens: Option<Box<ExtendedTokens<A>>>,
    /// Who is told when a resource changes.
    pub(crate) observers: Option<Box<Observers<A>>>,
    /// Tokens for which more than one response may come.
    pub(crate) listeners: Option<Box<Listeners<A>>>,
    /// If the application wants them.
    pub(crate) measures: Option<Box<Measures>>,
    pub(crate) malformed: u64,
    pub(crate) converted: u64,
    pub(crate) timed_out: u64,
    pub(crate) rejected: u64,
    pub(crate) peers_evicted: u64,
}

impl<A> Rare<A> {
    /// What is measured, of an endpoint that measures.
    pub(crate) fn measures(rare: &mut Option<Box<Self>>) -> Option<&mut Measures> {
        rare.as_mut()?.measures.as_deref_mut()
    }
}

impl<A> Default for Rare<A> {
    fn default() -> Self {
        Self {
            outbox: Outbox::default(),
            deduplication: None,
            tokens: None,
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
