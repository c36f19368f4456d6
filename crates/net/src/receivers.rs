//! The receivers of the responses to one request.

use std::sync::Arc;

use coapace_control::Instant;
use coapace_proto::Message;
use tokio::sync::oneshot;

use crate::inbox::Inbox;
use crate::{Error, Response};

/// The receivers of the responses to one request, over datagrams or a connection.
#[derive(Debug, Default)]
pub(crate) struct Receivers {
    /// The task that waits for the first response. `None` once it has the response.
    pub(crate) first: Option<oneshot::Sender<Result<Response, Error>>>,
    /// The inbox for notifications, if the request has Observe.
    pub(crate) inbox: Option<Arc<Inbox>>,
    /// The task that waits for the acknowledgement of a block, if there is one.
    pub(crate) acknowledged: Option<oneshot::Sender<()>>,
}

impl Receivers {
    /// Returns whether any receiver still waits for a response.
    pub(crate) fn are_waiting(&self) -> bool {
        self.inbox.is_some() || self.first.as_ref().is_some_and(|first| !first.is_closed())
    }

    /// Passes on a response that was read from `message`. Over a connection, messages are `in_order`. Returns whether
    /// notifications may follow.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        in_order: bool,
        response: Result<Response, Error>,
    ) -> bool {
        let is_success = response.as_ref().is_ok_and(Response::is_success);
        // Only a success with Observe begins or continues an observation (RFC 7641 §4.2).
        let goes_on = self.inbox.is_some() && is_success && message.observe().is_some();
        if let (Some(inbox), Ok(response)) = (&self.inbox, &response) {
            inbox.put(now, message, in_order, self.first.is_none().then(|| response.clone()));
        }
        self.end(response) && goes_on
    }

    /// Passes the result of a request to the task that waits for it. If no task waits, passes an error to the inbox.
    /// Returns `false` if the task has stopped waiting.
    pub(crate) fn end(&mut self, result: Result<Response, Error>) -> bool {
        match (self.first.take(), &self.inbox, result) {
            // The task that waited may have stopped a moment ago.
            (Some(first), _, result) => return first.send(result).is_ok(),
            (None, Some(inbox), Err(error)) => inbox.fail(error),
            _ => {}
        }
        true
    }
}
