//! Requests to groups (RFC 7252 §8), which may get any number of responses.

use coapace_control::{Controller, Draw, Duration, Instant};

use crate::code::Code;
use crate::endpoint::Endpoint;
use crate::event::{Event, Responder};
use crate::exchange::{ExchangeId, ExchangePurpose};
use crate::message::{Kind, Message};
use crate::peer::Address;
use crate::request::{Request, SendError};

/// DEFAULT_LEISURE: the time over which the members of a group spread their responses if they know neither
/// the size of the group nor the rate of the network (RFC 7252 §4.8, §8.2).
pub const DEFAULT_LEISURE: Duration = Duration::from_secs(5);

/// Returns the shortest sensible leisure: the time in which a network carries the responses of all members (S · G / R,
/// RFC 7252 §8.2). A rate of 0 counts as 1.
pub fn least_leisure(response_bytes: u32, members: u32, bytes_per_second: u32) -> Duration {
    // Two factors of 32 bits fit 64. With the microseconds of a second they may not.
    let bytes = u64::from(response_bytes) * u64::from(members);
    Duration::from_micros(bytes.saturating_mul(1_000_000) / u64::from(bytes_per_second.max(1)))
}

/// Returns how long a member delays its response: a random part of `leisure` (RFC 7252 §8.2).
pub fn leisure(leisure: Duration, draw: Draw) -> Duration {
    draw.between(Duration::ZERO, leisure)
}

/// Returns whether a member of a group sends this response. Errors and empty responses are not sent (RFC 7252 §8.2), because
/// otherwise all members without a useful answer would respond.
pub const fn is_worth_sending(code: Code, payload: &[u8]) -> bool {
    code.0 >> 5 == 2 && !payload.is_empty()
}

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Sends a request to all members of the group at the address `group`, once, and non-confirmable. Each response,
    /// from any address, is an [`Event::Notification`] until the exchange is [cancelled](Self::cancel).
    ///
    /// Only the token shows which request a response answers, so no other request may have it (RFC 7252 §8.2). No
    /// response ever comes from the address of the group, so PROBING_RATE delays the next request to it.
    ///
    /// # Errors
    /// [`SendError`] names the limit that is reached.
    pub fn request_group(
        &mut self,
        now: Instant,
        group: A,
        request: Request<'_>,
    ) -> Result<ExchangeId, SendError> {
        self.listen(now, group, None, ExchangePurpose::Group, Request { confirmable: false, ..request })
    }

    /// Returns whether a request to a group has not departed yet, because it waits for its rate or for a slot of NSTART.
    pub fn is_kept_back(&self, request: ExchangeId) -> bool {
        let exchange = self.exchanges.get(request.index);
        exchange
            .is_some_and(|exchange| exchange.generation == request.generation && !exchange.stage.is_over())
    }

    /// Handles a datagram that was sent to a group. Anything but a non-confirmable request is ignored, and nothing is
    /// rejected (RFC 7252 §8.1). The application sends a response only if it is [worth sending](is_worth_sending), and
    /// after the [`leisure`].
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
            // Nothing is rejected: otherwise every member would send a Reset at once (RFC 7252 §8.1).
            _ => self.malformed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_a_leisure_in_rfc_7252_8_2_gives_ten_seconds() {
        assert_eq!(least_leisure(100, 100, 1_000), Duration::from_secs(10));
        assert_eq!(least_leisure(u32::MAX, u32::MAX, 0), Duration::from_micros(u64::MAX));
    }
}
