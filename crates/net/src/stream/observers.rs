//! The observers of one connection (RFC 7641, RFC 8323 §7).

use std::collections::{HashMap, VecDeque};

use coap_numbers::option;
use coapace_proto::{Code, Kind, Message, Options, Token};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::share::MemoryShare;
use crate::Resource;
use crate::conversation::{Format, Terms};

/// The memory of an observer in addition to its request, in bytes: a task and entries in tables.
const OBSERVER: usize = 1_024;

/// The observers of one connection. After a change of a resource, the handler is not called before the connection takes more
/// data. So no representation is queued, and the client gets the newest.
#[derive(Debug, Default)]
pub(super) struct ConnectionObservers {
    /// The observers whose resource has not changed.
    watching: JoinSet<ConnectionObserver>,
    /// The observers whose resource has changed, in the sequence of the changes.
    due: VecDeque<ConnectionObserver>,
    known: HashMap<Token, Registered>,
    begun: u64,
}

#[derive(Debug)]
struct Registered {
    /// Distinguishes the observer from an earlier one with the same token.
    number: u64,
    bytes: usize,
    watch: Option<AbortHandle>,
}

/// An observer, which is sent a notification with each change.
#[derive(Debug)]
pub(super) struct ConnectionObserver {
    number: u64,
    changes: watch::Receiver<u64>,
    code: Code,
    /// Options and payload of the request.
    tail: Vec<u8>,
    pub(super) terms: Terms,
    pub(super) format: Format,
}

impl ConnectionObservers {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Adds the sender of a request to the observers. Returns `None` if the memory of the connection is used up.
    pub(super) fn begin(
        &mut self,
        share: &mut MemoryShare,
        resource: &Resource,
        request: &Message<'_>,
        terms: Terms,
    ) -> Option<ConnectionObserver> {
        let mut tail = Vec::new();
        // The options of this one exchange do not belong to the later calls of the handler.
        let options = Options::of(request).without(option::OBSERVE).without(option::NO_RESPONSE);
        options.write(request.payload(), &mut tail);
        let bytes = OBSERVER + tail.len();
        if !share.observe(bytes) {
            return None;
        }
        self.begun += 1;
        let number = self.begun;
        self.known.insert(terms.token, Registered { number, bytes, watch: None });
        let (changes, code) = (resource.changes(), request.code);
        Some(ConnectionObserver { number, changes, code, tail, terms, format: Format::default() })
    }

    /// Returns whether an observer has been neither ended nor replaced.
    pub(super) fn has(&self, observer: &ConnectionObserver) -> bool {
        self.known.get(&observer.terms.token).is_some_and(|known| known.number == observer.number)
    }

    /// Starts to wait for the next change of the observer's resource. Does nothing if the observation has ended.
    pub(super) fn watch(&mut self, mut observer: ConnectionObserver) {
        if let Some(known) = self.known.get_mut(&observer.terms.token)
            && known.number == observer.number
        {
            known.watch = Some(self.watching.spawn(async move {
                // An error means that the resource is gone. The observer is then due for a last notification.
                let _ = observer.changes.changed().await;
                observer
            }));
        }
    }

    /// Returns once another observer may be due. The future may be dropped at any time.
    pub(super) async fn changed(&mut self) {
        // An error means that the watch was aborted, because the observation has ended.
        if let Some(Ok(observer)) = self.watching.join_next().await {
            self.due.push_back(observer);
        }
    }

    /// Returns whether any observer waits for a change.
    pub(super) fn are_watching(&self) -> bool {
        !self.watching.is_empty()
    }

    /// Returns the next observer whose resource has changed, if there is one.
    pub(super) fn next_due(&mut self) -> Option<ConnectionObserver> {
        // An observer may have ended, or have been replaced, while it was in this queue.
        while let Some(observer) = self.due.pop_front() {
            if self.has(&observer) {
                return Some(observer);
            }
        }
        None
    }

    /// Ends an observation.
    pub(super) fn end(&mut self, share: &mut MemoryShare, token: Token) {
        if let Some(Registered { bytes, watch, .. }) = self.known.remove(&token) {
            share.forget(bytes);
            watch.inspect(AbortHandle::abort);
        }
    }

    /// Ends all observations. Returns their tokens.
    pub(super) fn end_all(&mut self, share: &mut MemoryShare) -> Vec<Token> {
        self.watching.abort_all();
        self.due.clear();
        let ended = self.known.drain().inspect(|(_, known)| share.forget(known.bytes));
        ended.map(|(token, _)| token).collect()
    }
}

impl ConnectionObserver {
    /// Returns the request for the next call of the handler, or `None` if the resource is gone. Marks changes up to now as
    /// seen.
    pub(super) fn request(&mut self) -> Option<Message<'_>> {
        self.changes.has_changed().ok()?;
        // Before the call, so that a change during the call makes the observer due again.
        self.changes.mark_unchanged();
        Some(Message { code: self.code, tail: &self.tail, ..Message::empty(Kind::Confirmable, 0) })
    }
}
