//! The server's side of Observe in the endpoint: registration, and notifications.

use coapace_control::{Controller, Instant};

use crate::Tail;
use crate::allowance::Allowance;
use crate::code::Code;
use crate::endpoint::Endpoint;
use crate::event::{Event, Responder};
use crate::exchange::{ExchangeEnd, ExchangePurpose, Failure, OpenExchange};
use crate::message::{Kind, Message, Token};
use crate::peer::Address;
use crate::registrations::{HEAD, Observer, Observers};
use crate::request::SendError;

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Adds the client that sent a request to the observers of `resource`, a number that the application
    /// chooses. A registration of the same client and token is replaced (RFC 7641 §4.1). The response and
    /// every notification must carry the Observe option.
    ///
    /// # Errors
    /// [`SendError::ObserversFull`] or [`SendError::PeersFull`]: answer without the Observe option.
    pub fn register(
        &mut self,
        now: Instant,
        responder: &Responder<A>,
        resource: u64,
    ) -> Result<(), SendError> {
        self.register_as(now, responder, resource, None)
    }

    /// Adds an observer whose address was not verified, for example with an [Echo option](crate::echo). Such an
    /// observer is called a stranger. It remains one until it acknowledges a message.
    ///
    /// Until then, the [allowance](Responder::limited) of its request limits the messages to it: the response to the
    /// registration, and one confirmable notification with as many copies as the remaining allowance permits.
    /// [`dismiss_strangers`](Self::dismiss_strangers) removes strangers whose remaining allowance is too small.
    ///
    /// Strangers may have a sixty-fourth of all slots, at least 8. A stranger that was silent for 30 s is displaced by
    /// the next stranger. If all slots are taken, the oldest stranger is displaced by an observer with a verified
    /// address.
    ///
    /// # Errors
    /// [`SendError::ObserversFull`]: answer without the Observe option, or ask for an Echo option.
    /// [`SendError::PeersFull`]: answer without the Observe option.
    pub fn register_stranger(
        &mut self,
        now: Instant,
        responder: &Responder<A>,
        resource: u64,
    ) -> Result<(), SendError> {
        self.register_as(now, responder, resource, Some(responder.allowance))
    }

    fn register_as(
        &mut self,
        now: Instant,
        responder: &Responder<A>,
        resource: u64,
        stranger: Option<Allowance>,
    ) -> Result<(), SendError> {
        let observer = Observer { to: responder.to, token: responder.token, resource };
        // This comes first, because the new registration may take the slot of the old one.
        self.deregister(now, observer.to, observer.token);
        let (seed, bound) = (self.peers.seed(), self.setup.config.max_observers);
        let observers = &mut self.rare.get_or_insert_default().observers;
        let observers = observers.get_or_insert_with(|| Observers::new(seed).into());
        let leaving =
            observers.make_room(now, bound, stranger.is_some()).map_err(|_| SendError::ObserversFull)?;
        if let Some(slot) = leaving {
            observers.counts.displaced += 1;
            self.remove_observer(now, slot);
        }
        // The peer of an observer is held: the path to it stays known, whatever room other peers need.
        let peer = self.find_or_insert_peer(observer.to).ok_or(SendError::PeersFull)?;
        let Some(observers) = self.observers() else { return Err(SendError::ObserversFull) };
        // Removed observers that are still in the queue occupy slots, too, so this may fail although there was room.
        if !observers.insert(now, bound, observer, stranger) {
            return Err(SendError::ObserversFull);
        }
        self.peers.hold(peer);
        Ok(())
    }

    /// Removes an observer, because it has deregistered (Observe 1) or the application requests it. An outstanding
    /// notification to it is not retransmitted. Returns false if the observer was not registered.
    pub fn deregister(&mut self, now: Instant, peer: A, token: Token) -> bool {
        let slot = self.observers().and_then(|observers| observers.find_token(peer, token));
        slot.and_then(|slot| self.remove_observer(now, slot)).is_some()
    }

    /// Notifies the observers of `resource` that it has changed. Returns the number of these observers.
    ///
    /// Notifications with this code and tail depart in the sequence of registration, as soon as NSTART, the mechanism
    /// and PROBING_RATE allow. They replace earlier representations that have not departed: a notification that waits
    /// for its departure or its retransmission departs with the newest representation (RFC 7641 §4.5.2).
    ///
    /// Some non-confirmable notifications are made confirmable: one in
    /// [`confirmable_every`](crate::Config::confirmable_every), and at least one within 24 hours (RFC 7641 §4.5).
    ///
    /// A code other than 2.xx removes the observers (RFC 7641 §4.2). An observer that rejects a notification, or does
    /// not acknowledge a confirmable one, is removed with [`Event::ObserverGone`].
    pub fn notify(&mut self, resource: u64, confirmable: bool, code: Code, tail: &[u8]) -> usize {
        let observers = self.rare.as_mut().and_then(|rare| rare.observers.as_mut());
        observers.map_or(0, |observers| observers.publish(resource, confirmable, code, tail))
    }

    /// Removes the observers of `resource` whose [allowance](Self::register_stranger) is too small for a notification
    /// with a tail of `length` bytes, because the address may be a victim's. Observers with an outstanding notification
    /// stay. Returns how many observers were removed.
    ///
    /// Each removed observer gets a last, non-confirmable notification with this `code` and the tail that `farewell`
    /// returns, if the allowance suffices for it.
    pub fn dismiss_strangers(
        &mut self,
        now: Instant,
        resource: u64,
        length: usize,
        code: Code,
        mut farewell: impl FnMut(A) -> Tail,
    ) -> usize {
        // This is a list, because the loop removes observers from the table.
        let strangers = self.observers().map(|observers| observers.too_large_for(resource, length));
        let mut dismissed = 0;
        for (Observer { to, token, .. }, allowance) in strangers.unwrap_or_default() {
            self.deregister(now, to, token);
            dismissed += 1;
            let tail = farewell(to);
            // `reply` does not look at the allowance.
            if HEAD + token.len() + tail.as_bytes().len() > allowance.room() {
                continue;
            }
            // The last notification is a courtesy. Without room for the peer it is left out.
            let Some(peer) = self.find_or_insert_peer(to) else { continue };
            let message_id = self.peers[peer].message_ids.take(now);
            let farewell = Message {
                code,
                token,
                tail: tail.as_bytes(),
                ..Message::empty(Kind::NonConfirmable, message_id)
            };
            self.reply(to, &farewell, None);
        }
        dismissed
    }

    /// Returns whether `resource` has any observers.
    pub fn is_observed(&self, resource: u64) -> bool {
        let observers = self.rare.as_ref().and_then(|rare| rare.observers.as_ref());
        observers.is_some_and(|observers| observers.has(resource))
    }

    /// Returns how many observers are registered.
    pub fn observer_count(&self) -> usize {
        let observers = self.rare.as_ref().and_then(|rare| rare.observers.as_ref());
        observers.map_or(0, |observers| observers.len())
    }

    fn observers(&mut self) -> Option<&mut Observers<A>> {
        self.rare.as_mut()?.observers.as_deref_mut()
    }

    /// Begins the notifications that are due. They use at most half of [`max_exchanges`](crate::Config::max_exchanges).
    pub(crate) fn begin_notifications(&mut self, now: Instant) {
        let bound = self.setup.config.max_exchanges.div_ceil(2);
        // If the endpoint has no room for another exchange, the observer stays at the front of the queue.
        while let Some(observers) = self.observers()
            && observers.under_way < bound
            && let Some((Observer { to, token, .. }, confirmable, allowance)) = observers.next(now)
            && let Ok(id) =
                self.begin(now, to, confirmable, ExchangePurpose::Notification, Code::EMPTY, token, &[])
            && let Some(observers) = self.observers()
        {
            observers.begun(id.index);
            self.limit(id.index, allowance);
        }
    }

    /// Puts the newest representation into a notification that is about to depart. Returns whether the content of the
    /// notification has changed: different content needs another Message ID.
    #[cold]
    pub(crate) fn renew(&mut self, index: u32) -> bool {
        let observers = self.rare.as_mut().and_then(|rare| rare.observers.as_mut());
        let Some(observers) = observers else { return false };
        let Some(slot) = observers.of_exchange(index) else { return false };
        let OpenExchange { departed, limited, .. } = self.exchanges[index];
        if departed && limited {
            // A newer representation may be larger. It follows the acknowledgement.
            return false;
        }
        let Some((code, tail, confirmable)) = observers.news(slot) else { return false };
        let exchange = &mut self.exchanges[index];
        exchange.confirmable |= confirmable;
        exchange.code = code;
        exchange.tail = tail.into();
        true
    }

    /// Divides the allowance of a request between its response, with a tail of this length, and later notifications.
    /// Returns the part for the response and its copies. If the client does not observe, that part is the whole
    /// allowance. If it observes, the response is sent once, and the rest is for notifications.
    pub(crate) fn charge(&mut self, responder: &Responder<A>, tail: usize) -> Allowance {
        let &Responder { to, token, mut allowance, .. } = responder;
        if !allowance.is_limited() {
            return allowance;
        }
        let Some(observers) = self.observers() else { return allowance };
        let Some(slot) = observers.find_token(to, token) else { return allowance };
        let mut rest = allowance;
        rest.spend(HEAD + token.len() + tail);
        observers.limit(slot, rest);
        allowance.keep_back(rest);
        allowance
    }

    /// Limits the bytes of an exchange to `allowance`. Does nothing if the allowance is unlimited.
    pub(crate) fn limit(&mut self, exchange: u32, allowance: Allowance) {
        if !allowance.is_limited() {
            return;
        }
        self.exchanges[exchange].limited = true;
        let place = exchange as usize;
        let allowances = &mut self.rare.get_or_insert_default().allowances;
        if place >= allowances.len() {
            allowances.resize(place + 1, Allowance::UNLIMITED);
        }
        allowances[place] = allowance;
    }

    /// Records that the observer with this token has acknowledged the response to its registration.
    #[cold]
    pub(crate) fn verify_observer(&mut self, now: Instant, peer: A, token: Token) {
        if let Some(observers) = self.observers()
            && let Some(slot) = observers.find_token(peer, token)
        {
            observers.confirm(now, slot);
        }
    }

    /// Records the Message ID of a departed notification, because a Reset may name it.
    pub(crate) fn note_notification(&mut self, index: u32) {
        let message_id = self.exchanges[index].message_id;
        if let Some(observers) = self.observers()
            && let Some(slot) = observers.of_exchange(index)
        {
            observers.departed(slot, message_id);
        }
    }

    /// Handles the end of a notification, after its exchange has ended. `acknowledged` is false if the notification was
    /// non-confirmable or cancelled. Removes the observer if this was its last notification.
    pub(crate) fn notification_over(&mut self, now: Instant, index: u32, acknowledged: bool) {
        let Some(observers) = self.observers() else { return };
        let Some(slot) = observers.of_exchange(index) else { return };
        if acknowledged {
            observers.confirm(now, slot);
        }
        if observers.notification_over(slot) {
            self.take_out(slot);
        }
    }

    /// Removes the observer whose notification has failed. Returns the event; `None` if the observer was
    /// removed before.
    pub(crate) fn observer_failed(&mut self, index: u32, failure: Failure) -> Option<Event<'static, A>> {
        let observers = self.observers()?;
        let slot = observers.of_exchange(index)?;
        let observer = observers.get(slot)?.observer;
        match failure {
            Failure::Reset => observers.counts.rejected += 1,
            Failure::GivenUp | Failure::TimedOut => observers.counts.given_up += 1,
        }
        observers.notification_over(slot);
        self.take_out(slot);
        Some(Event::ObserverGone { observer, failure })
    }

    /// Removes the observer that has rejected a non-confirmable notification with this Message ID by a Reset (RFC 7641
    /// §4.5). Such a notification no longer has an exchange.
    pub(crate) fn reset_observer(&mut self, now: Instant, from: A, message_id: u16) -> Option<Observer<A>> {
        let observers = self.observers()?;
        let slot = observers.find_message_id(from, message_id)?;
        observers.counts.rejected += 1;
        self.remove_observer(now, slot)
    }

    /// Removes an observer from the table. Its peer may be dropped for others if it observes nothing else.
    fn take_out(&mut self, slot: u32) {
        let Some(observers) = self.observers() else { return };
        let Some(peer) = observers.get(slot).map(|registration| registration.observer.to) else { return };
        observers.remove(slot);
        if !observers.has_peer(peer)
            && let Some(peer) = self.peers.find(peer)
        {
            self.peers.release(peer);
        }
    }

    /// Removes an observer and ends the outstanding notification to it.
    fn remove_observer(&mut self, now: Instant, slot: u32) -> Option<Observer<A>> {
        let observers = self.observers()?;
        let registration = observers.get(slot)?;
        let (observer, exchange) = (registration.observer, registration.exchange);
        // The exchange ends below, and must not find the observer that has this slot by then.
        observers.notification_over(slot);
        self.take_out(slot);
        let stage = self.exchanges.get(exchange).map(|exchange| exchange.stage);
        // An exchange that has failed is left to `poll_event`.
        if stage.is_some_and(|stage| !stage.is_over()) {
            self.end(now, exchange, ExchangeEnd::Cancelled);
        }
        Some(observer)
    }
}
