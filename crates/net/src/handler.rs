//! Handlers: asynchronous functions, called without an allocation where they answer at once.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use coap_numbers::code;
use coapace_proto::Code;

use crate::{Rejection, Request, Response};

/// What came of calling a handler.
pub(crate) enum Called {
    /// It has answered.
    Ready(Response),
    /// It has panicked.
    Panicked,
    /// It waits for something: the rest of it, which has a [`Response`] in the end, or nothing if it panics.
    Pending(Pending),
}

/// The rest of a handler.
pub(crate) type Pending = Pin<Box<dyn Future<Output = Option<Response>> + Send>>;

/// A handler of any type.
pub(crate) trait Handler: Send {
    /// Calls it, and lets it run until it first waits for something.
    fn call(&mut self, request: Request) -> Called;

    /// The same handler for another core.
    fn copy(&self) -> Box<dyn Handler>;
}

/// A function that returns a future.
pub(crate) struct Function<F, Fut> {
    function: F,
    /// Where the future of the next call is put: one allocation serves all calls that are over when they return.
    place: Option<Pin<Box<Option<Fut>>>>,
}

impl<F, Fut> Function<F, Fut> {
    pub(crate) fn new(function: F) -> Self {
        Self { function, place: None }
    }
}

impl<F, Fut, E> Handler for Function<F, Fut>
where
    F: Fn(Request) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<Response, E>> + Send + 'static,
    E: Into<Rejection>,
{
    fn call(&mut self, request: Request) -> Called {
        let mut place = self.place.take().unwrap_or_else(|| Box::pin(None));
        let function = &self.function;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            place.set(Some(function(request)));
            // Whoever runs the rest polls again first.
            poll_in(&mut place, &mut Context::from_waker(Waker::noop()))
        }));
        match polled {
            Ok(Poll::Ready(response)) => {
                self.place = Some(place);
                Called::Ready(response)
            }
            Ok(Poll::Pending) => Called::Pending(Box::pin(Rest(place))),
            Err(_) => Called::Panicked,
        }
    }

    fn copy(&self) -> Box<dyn Handler> {
        Box::new(Self::new(self.function.clone()))
    }
}

/// Polls the future in `place`, and clears the place once it is over.
fn poll_in<Fut, E>(place: &mut Pin<Box<Option<Fut>>>, context: &mut Context<'_>) -> Poll<Response>
where
    Fut: Future<Output = Result<Response, E>>,
    E: Into<Rejection>,
{
    let Some(future) = place.as_mut().as_pin_mut() else { return Poll::Pending };
    let Poll::Ready(result) = future.poll(context) else { return Poll::Pending };
    place.set(None);
    Poll::Ready(result.unwrap_or_else(|error| error.into().into()))
}

/// A future that has begun; nothing comes of it if it panics.
struct Rest<Fut>(Pin<Box<Option<Fut>>>);

impl<Fut, E> Future for Rest<Fut>
where
    Fut: Future<Output = Result<Response, E>>,
    E: Into<Rejection>,
{
    type Output = Option<Response>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Response>> {
        match catch_unwind(AssertUnwindSafe(|| poll_in(&mut self.0, context))) {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    }
}

/// What a client is told of a handler that panicked.
pub(crate) const fn panicked() -> Response {
    Response::new(Code(code::INTERNAL_SERVER_ERROR))
}
