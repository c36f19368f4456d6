//! What only some endpoints ever need, behind one pointer: a hundred thousand clients pay for the pointer alone.

use alloc::boxed::Box;

use crate::deduplication::Deduplication;
use crate::listeners::Listeners;
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
    pub(crate) malformed: u64,
    pub(crate) converted: u64,
}

impl<A> Default for Rare<A> {
    fn default() -> Self {
        Self {
            outbox: Outbox::default(),
            deduplication: None,
            tokens: None,
            observers: None,
            listeners: None,
            malformed: 0,
            converted: 0,
        }
    }
}
