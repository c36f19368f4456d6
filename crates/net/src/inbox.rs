//! Holds the newest notification of an observation until it is read.

use std::sync::{Mutex, MutexGuard};

use coapace_control::{Draw, Duration, Instant};
use coapace_proto::{Kind, Message};
use tokio::sync::Notify;

use crate::lock::lock;
use crate::{Error, Response};

/// The place where a hub or connection puts notifications, and from which an observation takes them. A newer
/// representation replaces an unread one (RFC 7641 §1.3).
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    newest: Mutex<Newest>,
    /// Wakes the observation when a notification arrives, an error ends the observation, or a registration is
    /// scheduled.
    pub(crate) arrived: Notify,
}

/// The newest representation, and the state of the observation.
#[derive(Debug, Default)]
struct Newest {
    response: Option<Response>,
    order: coapace_proto::NotificationOrder,
    /// Set while a registration is outstanding. No other registration is due then, however stale the representation is.
    registering: bool,
    /// The time of the next registration, if one is scheduled. If none is scheduled, the next registration is due when
    /// the representation is stale.
    again: Option<Instant>,
    /// Set if no more notifications come: the server has ended the observation, or has never started it, or there was an error.
    end: Option<Result<(), Error>>,
    /// Set if a notification was rejected. The server has not ended the observation then.
    rejected: bool,
}

/// The content of an inbox.
#[derive(Debug)]
pub(crate) enum InboxContent {
    /// The newest representation.
    News(Response),
    /// No notification yet. Holds the time to register again, or `None` while a registration is outstanding.
    Nothing(Option<Instant>),
    /// The inbox is empty, and nothing more will come. Holds the error, if there was one.
    Over(Option<Error>),
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Newest> {
        lock(&self.newest)
    }

    /// Puts in a notification, or the response to a registration. The response to the first registration reaches the caller in
    /// another way: then `response` is `None`, and only the sequence number and freshness of `message` are recorded. Over a
    /// connection, messages are `in_order` (RFC 8323 §7).
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
            newest.order = coapace_proto::NotificationOrder::new();
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

    /// Records that a registration is outstanding.
    pub(crate) fn register(&self) {
        let mut newest = self.lock();
        newest.registering = true;
        // A scheduled registration continues the observation, even after the server has ended it.
        if newest.again.take().is_some() {
            newest.end = None;
        }
    }

    /// Schedules a registration at this time, unless the observation has ended.
    pub(crate) fn register_at(&self, at: Instant) {
        let mut newest = self.lock();
        if newest.end.is_none() || newest.again.is_some() {
            // A new session may be with a server that knows no observers.
            newest.again = Some(at);
            drop(newest);
            self.arrived.notify_one();
        }
    }

    /// Schedules a registration at this time, after the server has ended the observation.
    pub(crate) fn resume_at(&self, at: Instant) {
        self.lock().again = Some(at);
    }

    /// Continues the observation, although the server has ended it.
    pub(crate) fn reopen(&self) {
        self.lock().end = None;
    }

    /// Returns for how long the newest representation has been stale. Returns `None` if the next registration is
    /// scheduled for another reason.
    pub(crate) fn overdue(&self, now: Instant) -> Option<Duration> {
        let newest = self.lock();
        // A registration at a fixed time has another reason than staleness.
        newest.again.is_none().then(|| now.since(newest.order.fresh_until()))
    }

    /// Ends the observation with an error.
    pub(crate) fn fail(&self, error: Error) {
        let mut newest = self.lock();
        newest.rejected |= matches!(error, Error::BadOption(_));
        // The first reason is the cause, and later errors follow from it.
        newest.end.get_or_insert(Err(error));
        drop(newest);
        self.arrived.notify_one();
    }

    /// Returns whether the observation continues at the server, as far as the client knows.
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
                // The error is handed out once. Later calls see only that it is over.
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
    fn an_observation_keeps_only_the_newest_unread_representation() {
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
    fn the_response_to_a_repeated_registration_is_new_whatever_its_observe_number() {
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
    async fn an_outdated_separate_response_to_a_registration_causes_another_registration() {
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
            let InboxContent::Nothing(Some(at)) = inbox.take(Draw::ZERO) else { panic!("it is not newer") };
            assert_eq!(at, Instant::from_secs(again));
        }
    }

    #[test]
    fn a_response_without_the_observe_option_is_the_last_notification() {
        let inbox = Inbox::default();
        let message = Message { code: Code::NOT_FOUND, ..Message::empty(Kind::Confirmable, 1) };
        inbox.put(Instant::ZERO, &message, false, Some(Response::new(message.code)));
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::News(_)));
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Over(None)));
        assert!(!inbox.goes_on());
    }

    #[test]
    fn an_ended_observation_registers_again_after_the_chosen_pause() {
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
    fn an_error_of_an_observation_is_reported_once() {
        let inbox = Inbox::default();
        inbox.register();
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Nothing(None)));
        inbox.fail(Error::Reset);
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Over(Some(Error::Reset))));
        assert!(matches!(inbox.take(Draw::ZERO), InboxContent::Over(None)));
    }
}
