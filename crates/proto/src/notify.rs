//! Observe (RFC 7641) in the endpoint: registration and notifications.

use coapace_control::{Controller, Instant, Outcome};

use crate::code::Code;
use crate::endpoint::{Endpoint, Event, Request, Responder, SendError};
use crate::exchange::{ExchangeId, Failure, Purpose, Stage};
use crate::listeners::Listeners;
use crate::message::Token;
use crate::observers::{Observer, Observers};
use crate::peer::Address;

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Adds the sender of a request to the observers of `resource`, a number that is the application's. The response is
    /// to carry the Observe option, as is every notification. A registration of the same peer and token is replaced
    /// (RFC 7641 §4.1).
    ///
    /// # Errors
    /// [`SendError::ObserversFull`] or [`SendError::PeersFull`]: answer without the Observe option.
    pub fn register(
        &mut self,
        now: Instant,
        responder: &Responder<A>,
        resource: u64,
    ) -> Result<(), SendError> {
        self.register_as(now, responder, resource, false)
    }

    /// Adds the sender of a request whose address nobody has verified, as with an [Echo option](crate::echo). Such
    /// strangers have a sixty-fourth of all places, at least 8. They are strangers until they acknowledge a notification.
    /// One of whom nothing was heard for 30 s makes room for the next; one makes room for any other observer where
    /// there are as many as there may be.
    ///
    /// # Errors
    /// [`SendError::ObserversFull`]: answer without the Observe option, or ask for an Echo option.
    pub fn register_stranger(
        &mut self,
        now: Instant,
        responder: &Responder<A>,
        resource: u64,
    ) -> Result<(), SendError> {
        self.register_as(now, responder, resource, true)
    }

    fn register_as(
        &mut self,
        now: Instant,
        responder: &Responder<A>,
        resource: u64,
        is_stranger: bool,
    ) -> Result<(), SendError> {
        let observer = Observer { to: responder.to, token: responder.token, resource };
        self.deregister(now, observer.to, observer.token);
        let (seed, bound) = (self.peers.seed(), self.setup.config.max_observers);
        let observers = &mut self.rare.get_or_insert_default().observers;
        let observers = observers.get_or_insert_with(|| Observers::new(seed).into());
        let leaving =
            observers.whoever_leaves(now, bound, is_stranger).map_err(|_| SendError::ObserversFull)?;
        if let Some(slot) = leaving {
            observers.told.displaced += 1;
            self.remove_observer(now, slot);
        }
        // What is learnt of an observer is not forgotten for others.
        let peer = self.find_or_insert_peer(observer.to).ok_or(SendError::PeersFull)?;
        let Some(observers) = self.observers() else { return Err(SendError::ObserversFull) };
        if !observers.insert(now, bound, observer, is_stranger) {
            return Err(SendError::ObserversFull);
        }
        self.peers.hold(peer);
        Ok(())
    }

    /// Takes an observer out: it has asked for it (Observe 1), or the application wants it so. Its notification under way
    /// is not transmitted again. Returns whether it was there.
    pub fn deregister(&mut self, now: Instant, peer: A, token: Token) -> bool {
        let slot = self.observers().and_then(|observers| observers.find_token(peer, token));
        slot.and_then(|slot| self.remove_observer(now, slot)).is_some()
    }

    /// `resource` has changed: its observers are to be sent this response, in the order of their registration, as soon as
    /// NSTART, the mechanism and PROBING_RATE allow. Returns how many observers there are.
    ///
    /// What they have not been sent by then of earlier changes they will not be sent: a notification that waits, or waits
    /// to be retransmitted, departs with this representation (RFC 7641 §4.5.2). One that is not confirmable departs as
    /// such at most [`confirmable_every`](crate::Config::confirmable_every) − 1 times in a row and for at most 24 hours.
    /// With a code other than 2.xx it is the last (RFC 7641 §4.2).
    ///
    /// An observer that rejects a notification, or does not acknowledge it, is one no longer:
    /// [`Event::ObserverGone`].
    pub fn notify(&mut self, resource: u64, confirmable: bool, code: Code, tail: &[u8]) -> usize {
        let observers = self.rare.as_mut().and_then(|rare| rare.observers.as_mut());
        observers.map_or(0, |observers| observers.publish(resource, confirmable, code, tail))
    }

    /// Whether anybody observes `resource`.
    pub fn is_observed(&self, resource: u64) -> bool {
        let observers = self.rare.as_ref().and_then(|rare| rare.observers.as_ref());
        observers.is_some_and(|observers| observers.has(resource))
    }

    /// Observers there are.
    pub fn observer_count(&self) -> usize {
        let observers = self.rare.as_ref().and_then(|rare| rare.observers.as_ref());
        observers.map_or(0, |observers| observers.len())
    }

    /// Sends a request with the Observe option 0, as [`request`](Self::request) does. If the first response has the option
    /// too, later ones are [`Event::Notification`] with the exchange that is returned here, until one comes without it or
    /// the exchange is [cancelled](Self::cancel), after which a notification is rejected (RFC 7641 §3.6). To register
    /// again, ask again with the same token.
    ///
    /// # Errors
    /// [`SendError`] says which bound is reached.
    pub fn observe(&mut self, now: Instant, to: A, request: Request<'_>) -> Result<ExchangeId, SendError> {
        self.listen(now, to, Some(to), Purpose::Observation, request)
    }

    /// Sends a request for which more responses than one may come.
    pub(crate) fn listen(
        &mut self,
        now: Instant,
        to: A,
        from: Option<A>,
        purpose: Purpose,
        request: Request<'_>,
    ) -> Result<ExchangeId, SendError> {
        let (seed, bound) = (self.peers.seed(), self.setup.config.max_listeners);
        let listeners = &mut self.rare.get_or_insert_default().listeners;
        let listeners = listeners.get_or_insert_with(|| Listeners::new(seed).into());
        if listeners.len() >= bound as usize && !listeners.contains(from, request.token) {
            return Err(SendError::ListenersFull);
        }
        let Request { confirmable, code, token, tail, .. } = request;
        let id = self.begin(now, to, confirmable, purpose, code, token, tail)?;
        if let Some(listeners) = self.listeners() {
            listeners.insert(from, token, id);
        }
        Ok(id)
    }

    pub(crate) fn listeners(&mut self) -> Option<&mut Listeners<A>> {
        self.rare.as_mut()?.listeners.as_deref_mut()
    }

    fn observers(&mut self) -> Option<&mut Observers<A>> {
        self.rare.as_mut()?.observers.as_deref_mut()
    }

    /// Begins notifications, as long as they leave half of the exchanges to others.
    pub(crate) fn begin_notifications(&mut self, now: Instant) {
        let bound = self.setup.config.max_exchanges.div_ceil(2);
        while let Some(observers) = self.observers()
            && observers.under_way < bound
            && let Some((Observer { to, token, .. }, confirmable)) = observers.next(now)
            && let Ok(id) = self.begin(now, to, confirmable, Purpose::Notification, Code::EMPTY, token, &[])
            && let Some(observers) = self.observers()
        {
            observers.begun(id.index);
        }
    }

    /// Puts the present representation into a notification that is about to depart. Returns whether that is another than
    /// departed before, so that it needs another Message ID.
    #[cold]
    pub(crate) fn renew(&mut self, index: u32) -> bool {
        let observers = self.rare.as_mut().and_then(|rare| rare.observers.as_mut());
        let Some(observers) = observers else { return false };
        let Some(slot) = observers.of_exchange(index) else { return false };
        let Some((code, tail, confirmable)) = observers.news(slot) else { return false };
        let exchange = &mut self.exchanges[index];
        exchange.confirmable |= confirmable;
        exchange.code = code;
        exchange.tail = tail.into();
        true
    }

    /// A notification has departed: its Message ID is remembered, for a Reset.
    pub(crate) fn note_notification(&mut self, index: u32) {
        let message_id = self.exchanges[index].message_id;
        if let Some(observers) = self.observers()
            && let Some(slot) = observers.of_exchange(index)
        {
            observers.departed(slot, message_id);
        }
    }

    /// A notification is over, acknowledged or not to be. Its exchange is released.
    pub(crate) fn notification_over(&mut self, now: Instant, index: u32, acknowledged: bool) {
        let Some(observers) = self.observers() else { return };
        let Some(slot) = observers.of_exchange(index) else { return };
        if acknowledged {
            observers.confirm(now, slot);
        }
        if observers.settle(slot) {
            self.take_out(slot);
        }
    }

    /// Takes the observer out whose notification has failed.
    pub(crate) fn observer_failed(&mut self, index: u32, failure: Failure) -> Option<Event<'static, A>> {
        let observers = self.observers()?;
        let slot = observers.of_exchange(index)?;
        let observer = observers.get(slot)?.observer;
        match failure {
            Failure::Reset => observers.told.rejected += 1,
            Failure::GivenUp | Failure::TimedOut => observers.told.given_up += 1,
        }
        observers.settle(slot);
        self.take_out(slot);
        Some(Event::ObserverGone { observer, failure })
    }

    /// A Reset that belongs to no exchange may be for a notification that was not confirmable (RFC 7641 §4.5).
    pub(crate) fn reset_observer(&mut self, now: Instant, from: A, message_id: u16) -> Option<Observer<A>> {
        let observers = self.observers()?;
        let slot = observers.find_message_id(from, message_id)?;
        observers.told.rejected += 1;
        self.remove_observer(now, slot)
    }

    /// Takes an observer out of the table; what is known of its peer may be forgotten if it observes nothing else.
    fn take_out(&mut self, slot: u32) {
        let Some(observers) = self.observers() else { return };
        let Some(peer) = observers.get(slot).map(|entry| entry.observer.to) else { return };
        observers.remove(slot);
        if !observers.has_peer(peer)
            && let Some(peer) = self.peers.find(peer)
        {
            self.peers.release(peer);
        }
    }

    fn remove_observer(&mut self, now: Instant, slot: u32) -> Option<Observer<A>> {
        let observers = self.observers()?;
        let entry = observers.get(slot)?;
        let (observer, exchange) = (entry.observer, entry.exchange);
        observers.settle(slot);
        self.take_out(slot);
        let under_way = self.exchanges.get(exchange).map(|exchange| exchange.stage);
        // One that has failed is released when that is told.
        if under_way.is_some_and(|stage| !matches!(stage, Stage::Ended | Stage::Failed(_))) {
            self.finish(now, exchange, Outcome::Cancelled);
            self.release(exchange);
        }
        Some(observer)
    }
}
