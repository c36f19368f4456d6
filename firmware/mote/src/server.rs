//! The server: it answers GET /hello with 60 bytes.

use coap_numbers::option;
use coapace_control::Instant;
use coapace_proto::{Code, Counters, Message, Tail};

use crate::host::print;
use crate::node::{Application, Endpoint, Event, Next};

/// The resource: 60 bytes, as in the experiments of Raitahila (2019).
const HELLO: &[u8; 60] = b"Hello from a mote: 60 bytes of payload, as the thesis has it";

/// The critical options that this server knows. It has one name, so it does not look at the first two.
const KNOWN: [u16; 3] = [option::URI_HOST, option::URI_PORT, option::URI_PATH];

/// A server.
pub(crate) struct Server {
    until: Option<Instant>,
    answered: u32,
    unanswered: u32,
}

impl Server {
    /// Creates a server that ends at `until`, or never. Prints that it listens.
    pub(crate) fn new(until: Option<Instant>) -> Self {
        print(format_args!("listening"));
        Self { until, answered: 0, unanswered: 0 }
    }

    /// Returns the answer to a request.
    fn answer(message: &Message<'_>) -> (Code, Tail) {
        let code = if message.first_unrecognised(&KNOWN).is_some() {
            Code::BAD_OPTION
        } else if !message.uri_path().eq([b"hello"]) {
            Code::NOT_FOUND
        } else if message.code != Code::GET {
            Code::METHOD_NOT_ALLOWED
        } else {
            return (Code::CONTENT, Tail::default().payload(HELLO));
        };
        (code, Tail::default())
    }
}

impl Application for Server {
    fn handle(&mut self, now: Instant, endpoint: &mut Endpoint, event: Event<'_>) {
        let Event::Request { responder, message } = event else { return };
        let (code, tail) = Self::answer(&message);
        match endpoint.respond(now, responder, code, tail.as_bytes()) {
            Ok(_) => self.answered += 1,
            // The client asks again.
            Err(_) => self.unanswered += 1,
        }
    }

    fn advance(&mut self, now: Instant, endpoint: &mut Endpoint) -> Next {
        if self.until.is_none_or(|until| now < until) {
            return Next::Wait(self.until);
        }
        let Self { answered, unanswered, .. } = self;
        let Counters { received, malformed, .. } = endpoint.counters();
        print(format_args!(
            "{answered} requests answered, {unanswered} found no room; {received} messages received, {malformed} malformed"
        ));
        Next::End
    }
}
