//! Requests to groups (RFC 7252 §8): one datagram, any number of responses.

use coapace_control::{Controller, Draw, Duration, Instant};

use crate::code::Code;
use crate::endpoint::{Endpoint, Event, Request, Responder, SendError};
use crate::exchange::{ExchangeId, Purpose};
use crate::message::{Kind, Message};
use crate::peer::Address;

/// DEFAULT_LEISURE: the span over which the members of a group spread their responses, where they know neither its size
/// nor the rate of the network (RFC 7252 §4.8, §8.2).
pub const DEFAULT_LEISURE: Duration = Duration::from_secs(5);

/// How long a member waits with its response: a moment drawn from `leisure` (RFC 7252 §8.2).
pub fn leisure(leisure: Duration, draw: Draw) -> Duration {
    draw.between(Duration::ZERO, leisure)
}

/// Whether a member sends this response at all: no errors, and nothing that is empty (RFC 7252 §8.2). A group would be
/// answered by all who have nothing to say.
pub const fn is_worth_sending(code: Code, payload: &[u8]) -> bool {
    code.0 >> 5 == 2 && !payload.is_empty()
}

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Sends a request to all who listen at the address `group`: once, never confirmable. Each response is an
    /// [`Event::Notification`], whoever it comes from, until the exchange is [cancelled](Self::cancel).
    ///
    /// The token alone tells to which request a response belongs, so no other request may have it (RFC 7252 §8.2), and as
    /// nothing is ever heard from the group's own address, PROBING_RATE keeps the next request back.
    ///
    /// # Errors
    /// [`SendError`] says which bound is reached.
    pub fn request_group(
        &mut self,
        now: Instant,
        group: A,
        request: Request<'_>,
    ) -> Result<ExchangeId, SendError> {
        self.listen(now, group, None, Purpose::Group, Request { confirmable: false, ..request })
    }

    /// A datagram arrived that was sent to a group. What is not a non-confirmable request is ignored, and nothing is
    /// rejected (RFC 7252 §8.1). The application answers what [is worth it](is_worth_sending), after its
    /// [`leisure`].
    pub fn handle_group_datagram<'b>(
        &mut self,
        now: Instant,
        from: A,
        bytes: &'b [u8],
    ) -> Option<Event<'b, A>> {
        self.note_received(bytes);
        match Message::parse(bytes) {
            Ok(message)
                if message.kind == Kind::NonConfirmable
                    && message.code.is_request()
                    && message.extended_token.len() <= usize::from(self.setup.config.max_token) =>
            {
                match self.receive_request(now, from, message)? {
                    Event::Request { responder, message } => {
                        Some(Event::Request { responder: Responder { group: true, ..responder }, message })
                    }
                    event => Some(event),
                }
            }
            _ => self.malformed(),
        }
    }
}
