//! Handlers: asynchronous functions. A call needs no allocation if the handler does not wait.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use coapace_proto::{Code, Message};
use smallvec::SmallVec;

use crate::identity::IdentifiedPeer;
use crate::request::{Names, SegmentRange};
use crate::{Rejection, Request, Response};

/// A router's result for a request.
pub(crate) enum Routed<'a> {
    /// The response to a request without a handler.
    Answer(Response),
    Handler(ChosenHandler<'a>),
}

/// The handler of a request, not called yet.
pub(crate) struct ChosenHandler<'a> {
    /// A number for the resource. It is unique for each path with routes, and the same for all requests of the fallback.
    pub(crate) resource: usize,
    pub(crate) handler: &'a mut dyn Handler,
    /// The names and values of the path's parameters. The names are `None` if it has none.
    pub(crate) names: Option<Names>,
    pub(crate) values: SmallVec<[SegmentRange; 4]>,
}

impl ChosenHandler<'_> {
    /// Calls the handler with the request that it was chosen for. The result is in the Content-Format that the request accepts.
    pub(crate) fn call(self, peer: IdentifiedPeer, message: &Message<'_>) -> Called {
        let called = self.handler.call(Request::new(peer, message, self.names, self.values));
        // Another method has had its effect already, and 4.06 would hide that.
        let reads = matches!(message.code, Code::GET | Code::FETCH);
        match message.accept() {
            Some(format) if reads => called.in_format(format),
            _ => called,
        }
    }
}

/// The state of a handler after its first poll.
pub(crate) enum Called {
    /// The handler has answered. `None` if it has panicked.
    Ready(Option<Response>),
    /// The handler waits for something. This is its future.
    Pending(HandlerFuture),
}

impl Called {
    /// Returns the result in a Content-Format, see [`Response::in_format`].
    fn in_format(self, format: u16) -> Self {
        match self {
            Self::Ready(response) => Self::Ready(response.map(|response| response.in_format(Some(format)))),
            Self::Pending(rest) => {
                Self::Pending(Box::pin(
                    async move { rest.await.map(|response| response.in_format(Some(format))) },
                ))
            }
        }
    }
}

impl From<Response> for Called {
    fn from(response: Response) -> Self {
        Self::Ready(Some(response))
    }
}

/// The remaining future of a handler. The output is `None` if it panics.
pub(crate) type HandlerFuture = Pin<Box<dyn Future<Output = Option<Response>> + Send>>;

/// A handler, whatever the type of its function.
pub(crate) trait Handler: Send {
    /// Calls the handler, and polls its future once.
    fn call(&mut self, request: Request) -> Called;

    /// Returns a copy of the handler for another thread.
    fn copy(&self) -> Box<dyn Handler>;
}

impl Clone for Box<dyn Handler> {
    fn clone(&self) -> Self {
        self.copy()
    }
}

/// A function that handles requests: it takes a [`Request`], and returns a future of a [`Response`] or of an error that
/// converts into a [`Rejection`]. All such functions and closures implement this trait.
pub trait HandlerFunction: Fn(Request) -> <Self as HandlerFunction>::Answer + Clone + Send + 'static {
    /// The future of the response.
    type Answer: Future<Output = Result<Response, Self::Error>> + Send + 'static;
    /// The error of the response.
    type Error: Into<Rejection>;
}

impl<F, Fut, E> HandlerFunction for F
where
    F: Fn(Request) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<Response, E>> + Send + 'static,
    E: Into<Rejection>,
{
    type Answer = Fut;
    type Error = E;
}

/// A handler function, with memory for the future of its next call.
pub(crate) struct Function<F: HandlerFunction> {
    function: F,
    /// The memory for the future of the next call. All calls that do not wait use the same allocation. `None` until the
    /// first call, and after a call that waits or panics.
    place: Option<Pin<Box<Option<F::Answer>>>>,
}

impl<F: HandlerFunction> Function<F> {
    pub(crate) fn new(function: F) -> Self {
        Self { function, place: None }
    }
}

impl<F: HandlerFunction> Handler for Function<F> {
    fn call(&mut self, request: Request) -> Called {
        let mut place = self.place.take().unwrap_or_else(|| Box::pin(None));
        let function = &self.function;
        // A handler that panics costs its request, not the server.
        let polled = catch_unwind(AssertUnwindSafe(|| {
            place.set(Some(function(request)));
            // The task that runs the rest polls it first, so no waker is needed here.
            poll_in(&mut place, &mut Context::from_waker(Waker::noop()))
        }));
        match polled {
            Ok(Poll::Ready(response)) => {
                self.place = Some(place);
                Called::Ready(Some(response))
            }
            Ok(Poll::Pending) => {
                // The future keeps its memory until it is done, so the next call allocates.
                let rest = poll_fn(move |context| {
                    let polled = catch_unwind(AssertUnwindSafe(|| poll_in(&mut place, context)));
                    polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
                });
                Called::Pending(Box::pin(rest))
            }
            // The memory is dropped, because the future in it must not be polled after a panic.
            Err(_) => Called::Ready(None),
        }
    }

    fn copy(&self) -> Box<dyn Handler> {
        Box::new(Self::new(self.function.clone()))
    }
}

/// Polls the future in `place`, and drops it once it is done.
fn poll_in<Fut, E>(place: &mut Pin<Box<Option<Fut>>>, context: &mut Context<'_>) -> Poll<Response>
where
    Fut: Future<Output = Result<Response, E>>,
    E: Into<Rejection>,
{
    let Some(future) = place.as_mut().as_pin_mut() else { return Poll::Pending };
    let Poll::Ready(result) = future.poll(context) else { return Poll::Pending };
    // What the future holds is dropped now, not with the next call.
    place.set(None);
    Poll::Ready(result.unwrap_or_else(|error| error.into().into()))
}

/// Returns the response of a handler. If the handler has panicked (`None`), calls `count` and returns 5.00.
pub(crate) fn or_panicked(response: Option<Response>, count: impl FnOnce()) -> Response {
    response.unwrap_or_else(|| {
        count();
        Response::new(Code::INTERNAL_SERVER_ERROR)
    })
}
