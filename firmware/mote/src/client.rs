//! The client: it asks for one resource, one exchange after the other, and prints how each went.

use core::net::SocketAddrV4;

use coap_numbers::option;
use coapace_control::{Duration, Instant};
use coapace_proto::{Code, ExchangeId, Request, Tail, Token};

use crate::host::print;
use crate::node::{Application, Endpoint, Event, Next};

/// A client with so many exchanges to make.
pub(crate) struct Client {
    server: SocketAddrV4,
    /// The options of the request, encoded.
    request: Tail,
    exchanges: u32,
    begun: u32,
    answered: u32,
    retransmissions: u32,
    /// The beginning of the first exchange.
    first: Option<Instant>,
    outstanding: Option<(ExchangeId, Instant)>,
}

impl Client {
    /// Creates a client that asks this server for the resource at `path`.
    pub(crate) fn new(server: SocketAddrV4, path: &str, exchanges: u32) -> Self {
        let segments = path.split('/').filter(|segment| !segment.is_empty());
        let request =
            segments.fold(Tail::default(), |tail, segment| tail.option(option::URI_PATH, segment.as_bytes()));
        print(format_args!("exchange,start_us,time_us,retransmissions,result,payload_bytes"));
        Self {
            server,
            request,
            exchanges,
            begun: 0,
            answered: 0,
            retransmissions: 0,
            first: None,
            outstanding: None,
        }
    }

    /// Prints the line of an exchange that is over.
    fn note(&mut self, now: Instant, endpoint: &Endpoint, ended: ExchangeId, answer: Option<(Code, usize)>) {
        let Some((_, start)) = self.outstanding.take_if(|&mut (outstanding, _)| outstanding == ended) else {
            return;
        };
        let retransmissions = endpoint.retransmissions(ended);
        self.retransmissions += u32::from(retransmissions);
        let (number, start_us, time_us) = (self.begun, start.as_micros(), now.since(start).as_micros());
        match answer {
            Some((code, bytes)) => {
                self.answered += 1;
                print(format_args!(
                    "{number},{start_us},{time_us},{retransmissions},{},{bytes}",
                    code.dotted()
                ));
            }
            None => print(format_args!("{number},{start_us},{time_us},{retransmissions},failed,0")),
        }
    }

    /// Prints the line for all exchanges.
    fn summarise(&self, now: Instant) {
        let Self { exchanges, answered, retransmissions, .. } = self;
        let took = self.first.map_or(Duration::ZERO, |first| now.since(first)).as_micros();
        print(format_args!(
            "{answered} of {exchanges} exchanges answered in {}.{:06} s, {retransmissions} retransmissions",
            took / 1_000_000,
            took % 1_000_000
        ));
    }
}

impl Application for Client {
    fn handle(&mut self, now: Instant, endpoint: &mut Endpoint, event: Event<'_>) {
        match event {
            Event::Response { exchange, message } => {
                self.note(now, endpoint, exchange, Some((message.code, message.payload().len())));
            }
            Event::Failed { exchange, .. } | Event::Rejected { exchange, .. } => {
                self.note(now, endpoint, exchange, None);
            }
            // After an acknowledgement the response comes separately. All else was not asked for.
            _ => {}
        }
    }

    fn advance(&mut self, now: Instant, endpoint: &mut Endpoint) -> Next {
        if self.outstanding.is_some() {
            return Next::Wait(None);
        }
        if self.begun == self.exchanges {
            self.summarise(now);
            return Next::End;
        }
        // One exchange at a time needs no token to tell its response from others (RFC 7252 §5.3.1).
        let get = Request {
            confirmable: true,
            code: Code::GET,
            token: Token::EMPTY,
            tail: self.request.as_bytes(),
            repeatable: true,
        };
        match endpoint.request(now, self.server, get) {
            Ok(exchange) => {
                self.first.get_or_insert(now);
                self.begun += 1;
                self.outstanding = Some((exchange, now));
                Next::Wait(None)
            }
            Err(error) => {
                print(format_args!("the endpoint takes no request: {error}"));
                self.summarise(now);
                Next::End
            }
        }
    }
}
