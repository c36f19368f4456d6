//! Tests of the relay, datagram by datagram.

mod bench;
mod bodies;
mod bounds;
mod exchanges;
mod identity;
mod observations;
mod random;
mod strangers;
