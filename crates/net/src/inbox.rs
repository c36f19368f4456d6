//! The newest notification of an observation, until it is taken.

use std::sync::{Mutex, MutexGuard};

use coapace_control::{Draw, Duration, Instant};
use coapace_proto::{Kind, Message};
use tokio::sync::Notify;

use crate::lock::lock;
use crate::{Error, Response};

/// The place of notifications between a hub or connection, which puts them in, and an observation, which takes them out. A
/// newer representation replaces one that was not taken yet (RFC 7641 §1.3).
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    newest: Mutex<Newest>,
    /// Notified when something was put in.
    pub(crate) arrived: Notify,
}

/// The newest representation, and the state of the observation.
#[derive(Debug, Default)]
struct Newest {
    response: Option<Response>,
    order: coapace_proto::Observation,
    /// Set while a registration is under way. No other is due then, however stale the representation is.
    registering: bool,
    /// The moment of the next registration, if it does not depend on how stale the representation is.
    again: Option<Instant>,
    /// Set if no more notifications come: the server has ended the observation, or has never begun it, or there was an error.
    end: Option<Result<(), Error>>,
    /// Set if a notification was rejected. The server has not ended the observation then.
    rejected: bool,
}

/// The content of an inbox.
#[derive(Debug)]
pub(crate) enum InboxContent {
    /// The newest representation.
    News(Response),
    /// Nothing yet. Holds the moment to register again, or nothing while a registration is under way.
    Nothing(Option<Instant>),
    /// Nothing, and nothing will come. Holds the error, if there was one.
    Over(Option<Error>),
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Newest> {
        lock(&self.newest)
    }

    /// Puts in a notification, or the response to a registration. The response to the first registration goes to the caller in
    /// another way: `response` is `None`, and only the order and freshness of `message` are noted. Over a connection, messages
    /// are `in_order` (RFC 8323 §7).
    pub(crate) fn put(
        &self,
        now: Instant,
        message: &Message<'_>,
        in_order: bool,
        response: Option<Response>,
    ) {
        let mut newest = self.lock();
        let registered = std::mem::take(&mut newest.registering);
        if registered && message.kind == Kind::Acknowledgement || in_order {
            // The message is newer than all before. A server that was restarted may count from any number.
            newest.order = coapace_proto::Observation::new();
        }
        if newest.order.update(now, message) {
            if !message.code.is_success() || message.observe().is_none() {
                newest.end = Some(Ok(()));
            }
            newest.response = response;
        } else if registered {
            // A separate response may be an old notification as well. The next registration shows whether the server is there.
            newest.order.put_off(now);
        } else {
            return;
        }
        drop(newest);
        self.arrived.notify_one();
    }

    /// Notes that a registration is under way.
    pub(crate) fn register(&self) {
        let mut newest = self.lock();
        newest.registering = true;
        if newest.again.take().is_some() {
            newest.end = None;
        }
    }

    /// Makes a registration due at this moment, unless the observation is over.
    pub(crate) fn register_at(&self, at: Instant) {
        let mut newest = self.lock();
        if newest.end.is_none() || newest.again.is_some() {
            newest.again = Some(at);
            drop(newest);
            self.arrived.notify_one();
        }
    }

    /// Makes a registration due at this moment, after the server has ended the observation.
    pub(crate) fn resume_at(&self, at: Instant) {
        self.lock().again = Some(at);
    }

    /// Goes on after the server has ended the observation.
    pub(crate) fn reopen(&self) {
        self.lock().end = None;
    }

    /// Returns the time since the newest representation became stale, if that makes a registration due.
    pub(crate) fn overdue(&self, now: Instant) -> Option<Duration> {
        let newest = self.lock();
        newest.again.is_none().then(|| now.since(newest.order.fresh_until()))
    }

    /// Ends the observation with an error.
    pub(crate) fn fail(&self, error: Error) {
        let mut newest = self.lock();
        newest.rejected |= matches!(error, Error::BadOption(_));
        newest.end.get_or_insert(Err(error));
        drop(newest);
        self.arrived.notify_one();
    }

    /// Returns whether the observation goes on at the server, as far as the client knows.
    pub(crate) fn goes_on(&self) -> bool {
        let newest = self.lock();
        newest.end.is_none() || newest.rejected
    }

    pub(crate) fn take(&self, draw: Draw) -> InboxContent {
        let mut newest = self.lock();
        if let Some(response) = newest.response.take() {
            return InboxContent::News(response);
        }
        match newest.end.take() {
            Some(end) if newest.again.is_none() => {
                newest.end = Some(Ok(()));
                InboxContent::Over(end.err())
            }
            end => {
                newest.end = end;
                InboxContent::Nothing(
                    (!newest.registering)
                        .then(|| newest.again.unwrap_or_else(|| newest.order.register_again_at(draw))),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_proto::{Code, Options};

    fn put(inbox: &Inbox, number: u32, text: &'static str) {
        put_as(Kind::NonConfirmable, inbox, number, text);
    }

    fn put_as(kind: Kind, inbox: &Inbox, number: u32, text: &'static str) {
        put_at(Instant::ZERO, kind, inbox, number, text);
    }

    fn put_at(now: Instant, kind: Kind, inbox: &Inbox, number: u32, text: &'static str) {
        let tail = Options::default().observe(number).max_age(30).tail(text.as_bytes()).unwrap();
        let message = Message { code: Code::CONTENT, tail: tail.as_bytes(), ..Message::empty(kind, 1) };
        inbox.put(now, &message, false, Some(Response::content(text)));
    }

    #[test]
    fn of_representations_that_were_not_taken_the_newest_is_there() {
        let inbox = Inbox::default();
        put(&inbox, 1, "a");
        put(&inbox, 3, "c");
        put(&inbox, 2, "b");
        let InboxContent::News(news) = inbox.take(Draw::ZERO) else { panic!("no news") };
        assert_eq!(news.text(), "c");
        let InboxContent::Nothing(Some(again)) = inbox.take(Draw::ZERO) else { panic!("something") };
        assert_eq!(again, Instant::from_secs(35), "Max-Age and 5 s");
    }

    #[test]
    fn the_acknowledgement_of_another_registration_is_new_whatever_its_number() {
        let inbox = Inbox::default();
        put(&inbox, 9, "before");
        inbox.register();
        put_as(Kind::Acknowledgement, &inbox, 3, "restarted");
        let InboxContent::News(news) = inbox.take(Draw::ZERO) else { panic!("no news") };
        assert_eq!(news.text(), "restarted");
        put_as(Kind::Acknowledgement, &inbox, 2, "nobody asked");
        put(&inbox, 3, "the same");
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Nothing(Some(_))));
    }

    #[tokio::test]
    async fn a_registration_that_is_answered_separately_with_nothing_newer_is_followed_by_another() {
        for (number, again) in [(9, 135), (3, 105)] {
            let inbox = Inbox::default();
            put(&inbox, 9, "before");
            assert!(matches!(inbox.take(Draw::ZERO), InboxContent::News(_)));
            inbox.arrived.notified().await;
            inbox.register();
            assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Nothing(None)));
            put_at(Instant::from_secs(100), Kind::Confirmable, &inbox, number, "again");
            let woken = tokio::time::timeout(std::time::Duration::from_secs(5), inbox.arrived.notified());
            woken.await.expect("a task that waits for news looks again");
            let InboxContent::Nothing(Some(at)) = inbox.take(Draw::ZERO) else { panic!("it is no news") };
            assert_eq!(at, Instant::from_secs(again));
        }
    }

    #[test]
    fn a_notification_without_the_option_is_the_last() {
        let inbox = Inbox::default();
        let message = Message { code: Code::NOT_FOUND, ..Message::empty(Kind::Confirmable, 1) };
        inbox.put(Instant::ZERO, &message, false, Some(Response::new(message.code)));
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::News(_)));
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Over(None)));
        assert!(!inbox.goes_on());
    }

    #[test]
    fn an_observation_that_has_ended_goes_on_with_a_registration_at_the_moment_that_was_chosen() {
        let inbox = Inbox::default();
        let message = Message { code: Code::SERVICE_UNAVAILABLE, ..Message::empty(Kind::Confirmable, 1) };
        inbox.put(Instant::ZERO, &message, false, Some(Response::new(message.code)));
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::News(_)));
        let later = Instant::from_secs(9);
        inbox.register_at(later);
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Over(None)), "nothing is over and due");
        inbox.resume_at(later);
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Nothing(Some(at)) if at == later));
        assert!(!inbox.goes_on() && inbox.overdue(later).is_none());
        inbox.register_at(Instant::ZERO);
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Nothing(Some(Instant::ZERO))));
        inbox.register();
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Nothing(None)));
        assert!(inbox.goes_on());
    }

    #[test]
    fn an_error_is_told_once() {
        let inbox = Inbox::default();
        inbox.register();
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Nothing(None)));
        inbox.fail(Error::Reset);
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Over(Some(Error::Reset))));
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Over(None)));
    }
}
