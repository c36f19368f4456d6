//! Hosts of a simulated run: a CoAP endpoint with an application on it.

mod client;
mod server;

pub(crate) use client::{Client, Plan};
pub(crate) use server::Server;
