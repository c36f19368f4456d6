//! Tests of endpoints, datagram by datagram.

mod common;
mod end;
mod endpoint;
mod extended_tokens;
mod faults;
mod final_wait;
mod further;
mod lane;
mod markings;
mod measures;
mod million;
mod non_confirmable;
mod noting;
mod observe;
mod patience;
mod peers;
mod rejection;
mod sluice;
mod transfers;
