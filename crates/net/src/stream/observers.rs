//! What a client observes over one connection (RFC 7641, RFC 8323 §7).

use std::collections::{HashMap, VecDeque};

use coap_numbers::option;
use coapace_proto::{Code, Kind, Message, Options, Token};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::share::Share;
use crate::Resource;
use crate::terms::Terms;

/// Bytes that an observer takes, beside its request: a task, its places in tables, and what it waits with.
const OBSERVER: usize = 1_024;

/// The observers of one connection. Nothing is made for one whose resource has changed until the client can be sent it:
/// what waits is the observer and not a representation, so the newest is what it gets.
#[derive(Debug, Default)]
pub(super) struct Observers {
    /// Those whose resource has not changed.
    watching: JoinSet<Observer>,
    /// Those that are to be told, the first to be told first.
    due: VecDeque<Observer>,
    known: HashMap<Token, Known>,
    begun: u64,
}

#[derive(Debug)]
struct Known {
    /// Tells it from an earlier one with the same token.
    number: u64,
    bytes: usize,
    watch: Option<AbortHandle>,
}

/// One that is told again and again.
#[derive(Debug)]
pub(super) struct Observer {
    number: u64,
    changes: watch::Receiver<u64>,
    code: Code,
    /// Options and payload of the request.
    tail: Vec<u8>,
    pub(super) terms: Terms,
}

impl Observers {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// One who asks to observe; nothing if there is no room.
    pub(super) fn begin(
        &mut self,
        share: &mut Share,
        resource: &Resource,
        request: &Message<'_>,
        terms: Terms,
    ) -> Option<Observer> {
        let mut tail = Vec::new();
        let options = Options::of(request).without(option::OBSERVE).without(option::NO_RESPONSE);
        options.write(request.payload(), &mut tail);
        let bytes = OBSERVER + tail.len();
        if !share.observe(bytes) {
            return None;
        }
        self.begun += 1;
        let number = self.begun;
        self.known.insert(terms.token, Known { number, bytes, watch: None });
        Some(Observer { number, changes: resource.changes(), code: request.code, tail, terms })
    }

    /// Whether it is still to be told.
    pub(super) fn has(&self, observer: &Observer) -> bool {
        self.known.get(&observer.terms.token).is_some_and(|known| known.number == observer.number)
    }

    /// Waits for the next change of its resource.
    pub(super) fn watch(&mut self, mut observer: Observer) {
        if let Some(known) = self.known.get_mut(&observer.terms.token)
            && known.number == observer.number
        {
            known.watch = Some(self.watching.spawn(async move {
                // That there will be no more is to be told as well.
                let _ = observer.changes.changed().await;
                observer
            }));
        }
    }

    /// Returns once one more is to be told. To be dropped at will.
    pub(super) async fn changed(&mut self) {
        if let Some(Ok(observer)) = self.watching.join_next().await {
            self.due.push_back(observer);
        }
    }

    /// Whether any waits for a change.
    pub(super) fn are_watching(&self) -> bool {
        !self.watching.is_empty()
    }

    /// The next to be told.
    pub(super) fn next_due(&mut self) -> Option<Observer> {
        while let Some(observer) = self.due.pop_front() {
            if self.has(&observer) {
                return Some(observer);
            }
        }
        None
    }

    /// Ends an observation.
    pub(super) fn end(&mut self, share: &mut Share, token: Token) {
        if let Some(Known { bytes, watch, .. }) = self.known.remove(&token) {
            share.forget(bytes);
            watch.inspect(AbortHandle::abort);
        }
    }

    /// Ends all of them; returns their tokens.
    pub(super) fn end_all(&mut self, share: &mut Share) -> Vec<Token> {
        self.watching.abort_all();
        self.due.clear();
        let ended = self.known.drain().inspect(|(_, known)| share.forget(known.bytes));
        ended.map(|(token, _)| token).collect()
    }
}

impl Observer {
    /// The request that the handler is called with again. What changes meanwhile is in what it says now.
    ///
    /// Returns nothing if the resource has ended.
    pub(super) fn request(&mut self) -> Option<Message<'_>> {
        self.changes.has_changed().ok()?;
        self.changes.mark_unchanged();
        Some(Message { code: self.code, tail: &self.tail, ..Message::empty(Kind::Confirmable, 0) })
    }
}
