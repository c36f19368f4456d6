//! Messages in the binary frames of a WebSocket (RFC 8323 §4).

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use coapace_proto::stream::{Broken, StreamMessage};
use futures_util::{Sink, Stream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message as Frame};

use super::MAX_MESSAGE;
use super::wire::{ByteStream, ConnectionEnd, Wire};

/// The path of CoAP at an HTTP server (RFC 8323 §8.3), and its subprotocol (§4.1).
const PATH: &str = "/.well-known/coap";
const PROTOCOL: &str = "coap";

/// A WebSocket whose frames are messages.
#[derive(Debug)]
pub(crate) struct WebSocketWire {
    socket: WebSocketStream<Box<dyn ByteStream>>,
    /// The frames to be sent.
    out: VecDeque<Vec<u8>>,
    /// The bytes of `out` and of the frame that is being written.
    queued: usize,
    /// The bytes of the frame that is being written.
    leaving: usize,
}

/// Returns the configuration: frames are no larger than messages, and are written one by one.
fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(8_192)
        .write_buffer_size(0)
        .max_write_buffer_size(4 * MAX_MESSAGE as usize)
        .max_message_size(Some(MAX_MESSAGE as usize))
        .max_frame_size(Some(MAX_MESSAGE as usize))
}

impl WebSocketWire {
    fn new(socket: WebSocketStream<Box<dyn ByteStream>>) -> Self {
        Self { socket, out: VecDeque::new(), queued: 0, leaving: 0 }
    }

    /// Opens a WebSocket at an HTTP server.
    ///
    /// # Errors
    /// The errors of the system, and [`InvalidData`](io::ErrorKind::InvalidData) with the server's answer.
    pub(crate) async fn open(stream: Box<dyn ByteStream>, authority: &str) -> io::Result<Self> {
        use tokio_tungstenite::tungstenite::client::IntoClientRequest;
        // The scheme of this URI is not sent.
        let mut request = format!("ws://{authority}{PATH}").into_client_request().map_err(io_error)?;
        request.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
        let opened = tokio_tungstenite::client_async_with_config(request, stream, Some(config())).await;
        let (socket, _) = opened.map_err(io_error)?;
        Ok(Self::new(socket))
    }

    /// Accepts a WebSocket from an HTTP client that asks for CoAP.
    pub(crate) async fn accept(stream: Box<dyn ByteStream>) -> io::Result<Self> {
        let accepted = tokio_tungstenite::accept_hdr_async_with_config(stream, admit, Some(config())).await;
        Ok(Self::new(accepted.map_err(io_error)?))
    }
}

/// Answers another path with 404, and a client without the subprotocol of CoAP with 400.
#[allow(clippy::result_large_err)] // as the library wants it
fn admit(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    // A client may offer subprotocols in several headers and in lists (RFC 6455 §11.3.4).
    let mut offered = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let speaks = offered
        .any(|names| names.to_str().is_ok_and(|names| names.split(',').any(|name| name.trim() == PROTOCOL)));
    let refusal = match (request.uri().path() == PATH, speaks) {
        (true, true) => {
            let protocol = HeaderValue::from_static(PROTOCOL);
            response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
            return Ok(response);
        }
        (false, _) => StatusCode::NOT_FOUND,
        (true, false) => StatusCode::BAD_REQUEST,
    };
    let mut response = ErrorResponse::new(None);
    *response.status_mut() = refusal;
    Err(response)
}

fn io_error(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => io::ErrorKind::UnexpectedEof.into(),
        Error::Http(response) => {
            let message =
                format!("the server has no CoAP over WebSockets: HTTP {}", response.status().as_u16());
            io::Error::new(io::ErrorKind::InvalidData, message)
        }
        other => io::Error::new(io::ErrorKind::InvalidData, format!("WebSocket: {other}")),
    }
}

fn ended(error: Error) -> ConnectionEnd {
    match error {
        // The client learns by an Abort why the connection ends.
        Error::Capacity(CapacityError::MessageTooLong { .. }) => Broken::TooLong.into(),
        other => io_error(other).into(),
    }
}

impl Wire for WebSocketWire {
    fn push(&mut self, message: &StreamMessage<'_>) {
        let frame = message.to_frame();
        self.queued += frame.len();
        self.out.push_back(frame);
    }

    fn queued(&self) -> usize {
        self.queued
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut socket = Pin::new(&mut self.socket);
        while !self.out.is_empty() {
            // A frame is flushed before the next is taken.
            ready!(socket.as_mut().poll_flush(context)).map_err(io_error)?;
            self.queued -= std::mem::take(&mut self.leaving);
            ready!(socket.as_mut().poll_ready(context)).map_err(io_error)?;
            let Some(frame) = self.out.pop_front() else { break };
            self.leaving = frame.len();
            socket.as_mut().start_send(Frame::Binary(frame.into())).map_err(io_error)?;
        }
        ready!(socket.poll_flush(context)).map_err(io_error)?;
        self.queued -= std::mem::take(&mut self.leaving);
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_close(context).map_err(io_error)
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        each: &mut dyn FnMut(StreamMessage<'_>) -> Result<(), ConnectionEnd>,
    ) -> Poll<Result<(), ConnectionEnd>> {
        match ready!(Pin::new(&mut self.socket).poll_next(context)) {
            None | Some(Ok(Frame::Close(_))) => {
                Poll::Ready(Err(ConnectionEnd::Io(io::ErrorKind::UnexpectedEof.into())))
            }
            Some(Err(error)) => Poll::Ready(Err(ended(error))),
            Some(Ok(Frame::Binary(frame))) => {
                let message = StreamMessage::from_frame(&frame)?;
                Poll::Ready(each(message))
            }
            // Messages are in binary frames (RFC 8323 §4.2).
            Some(Ok(Frame::Text(_))) => Poll::Ready(Err(Broken::Malformed.into())),
            // The library answers these.
            Some(Ok(Frame::Ping(_) | Frame::Pong(_) | Frame::Frame(_))) => Poll::Ready(Ok(())),
        }
    }
}
