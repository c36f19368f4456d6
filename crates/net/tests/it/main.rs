//! Tests of clients and servers over real sockets.

mod addresses;
mod at_once;
mod blocking;
mod bodies;
#[cfg(feature = "tls")]
#[allow(dead_code)] // The tests of the command use all of it.
mod certified;
mod common;
#[cfg(feature = "tls")]
mod dtls;
#[cfg(feature = "tls")]
mod dtls_interop;
mod group;
mod interceptor;
mod libcoap;
mod loopback;
mod loss;
#[cfg(target_os = "linux")]
mod membership;
mod metrics;
mod observe;
mod patience;
mod plugtest;
mod proxy;
mod q_block;
mod scripted;
#[cfg(feature = "tls")]
mod secured;
mod sets;
mod started;
#[cfg(target_os = "linux")]
mod strangers;
#[cfg(feature = "tls")]
mod streams;
mod tcp;
#[cfg(feature = "tls")]
mod tls;
mod too_many;
mod ws;
