//! The first request to a server with several addresses, when it is unknown which of them answers.

use std::future::{Future, pending};
use std::sync::Arc;

use coapace_control::{Controller, Duration};
use coapace_proto::{Code, Tail, Token};

use crate::address::Remote;
use crate::asker::{Asker, RequestPath};
use crate::candidates::{Candidates, race};
use crate::datagram::hub::Hub;
use crate::endpoints::Endpoints;
use crate::uri::Uri;
use crate::{Error, Response};

/// The longest wait for an answer before the next address is also tried. A mechanism may have a longer timeout.
const LONGEST: Duration = Duration::from_secs(3);

/// The addresses of a server, in the form that the socket of the hub takes.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    client: Arc<Endpoints>,
    host: String,
    port: u16,
    candidates: Candidates,
}

impl Turns {
    pub(crate) fn new(client: Arc<Endpoints>, uri: &Uri, candidates: Candidates) -> Self {
        Self { client, host: uri.host.to_string(), port: uri.port, candidates }
    }

    /// Makes an attempt at one address after the other, until one succeeds. The next begins after the first timeout or ICMP
    /// error of the previous. Remembers the address that succeeds.
    pub(crate) async fn first_of<T, A>(
        &self,
        hub: &Arc<Hub>,
        attempt: impl Fn(std::net::SocketAddr) -> A,
    ) -> Result<T, Error>
    where
        A: Future<Output = Result<T, Error>>,
    {
        let addresses: Vec<_> = self.candidates.iter().collect();
        let address = |number: usize| addresses.get(number).copied().unwrap_or(self.candidates.first);
        let delay = |number| self.stalls(hub, hub.socket.remote(address(number)));
        let won = race(addresses.len(), |number| attempt(address(number)), delay).await;
        if let Some(undriven) = &self.client.undriven {
            // Nobody waits any more for the timeout of the last attempt.
            undriven.wait().until = None;
        }
        let (number, result) = won?;
        self.client.answered.note(&self.host, self.port, address(number));
        Ok(result)
    }

    /// Waits until the first timeout of an exchange with `to` has passed, or the network reports an error of `to`.
    async fn stalls(&self, hub: &Hub, to: Remote) {
        let (rto, news) = {
            let state = hub.lock();
            let controller = &state.endpoint.setup().controller;
            let known = state.endpoint.gauges(to);
            // Nothing was measured at a new address, so the initial RTO of the mechanism applies.
            let gauges = known.unwrap_or_else(|| controller.gauges(&controller.state()));
            (gauges.rto.min(LONGEST), state.refusals.news.clone())
        };
        let until = hub.clock.now() + rto;
        let refused = async {
            loop {
                let mut noted = std::pin::pin!(news.notified());
                // From here on a refusal is noticed, so that none is missed between the look and the wait.
                noted.as_mut().enable();
                if hub.lock().refusals.of(to).is_some() {
                    return;
                }
                noted.await;
            }
        };
        match (&self.client.undriven, hub.clock.at(until)) {
            (Some(undriven), _) => drop(undriven.before(until, &hub.clock, refused).await),
            (None, Some(at)) => drop(tokio::time::timeout_at(at, refused).await),
            // Not reachable, because no timer is refused for a wait of at most 3 s.
            (None, None) => pending().await,
        }
    }
}

impl Asker {
    /// Sends the first request of a call, and returns the response. If the server has several addresses, all later requests go
    /// to the address that the response has come from.
    ///
    /// A request that changes something might be executed at one address and then at another, so pings look for the address
    /// first.
    pub(crate) async fn send_first(&mut self, token: Option<Token>, tail: Tail) -> Result<Response, Error> {
        if self.turns.is_none() {
            return self.send(token, tail).await;
        }
        if self.repeatable || matches!(self.code, Code::GET | Code::FETCH) {
            return self.settle(|asker| asker.send_owned(token, tail.clone())).await;
        }
        self.find().await?;
        self.send(token, tail).await
    }

    /// Finds the address that the server answers at, with pings.
    pub(crate) async fn find(&mut self) -> Result<(), Error> {
        self.settle(Asker::ping_owned).await.map(drop)
    }

    /// Tries the addresses of the server in turn. All later requests go to the address that has answered.
    pub(crate) async fn settle<A>(&mut self, ask: impl Fn(Asker) -> A) -> Result<Response, Error>
    where
        A: Future<Output = Result<Response, Error>>,
    {
        let (turns, hub) = match (self.turns.take(), &self.path) {
            (Some(turns), RequestPath::Endpoint(hub, _)) => (turns, hub.clone()),
            _ => return ask(self.clone()).await,
        };
        let (to, response) = turns
            .first_of(&hub, |address| {
                let to = hub.socket.remote(address);
                let asking = ask(Asker { path: RequestPath::Endpoint(hub.clone(), to), ..self.clone() });
                async move { Ok((to, asking.await?)) }
            })
            .await?;
        self.path = RequestPath::Endpoint(hub, to);
        Ok(response)
    }

    async fn send_owned(self, token: Option<Token>, tail: Tail) -> Result<Response, Error> {
        self.send(token, tail).await
    }

    pub(crate) async fn ping_owned(self) -> Result<Response, Error> {
        self.ping().await
    }
}
