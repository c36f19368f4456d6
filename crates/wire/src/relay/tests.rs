//! Tests of the relay, datagram by datagram.

mod bench;
mod bounds;
mod exchanges;
mod identity;
mod observations;
mod random;
mod strangers;
