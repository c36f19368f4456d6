//! Tests of the simulator.

mod captures;
mod hosts;
mod mesh;
mod network;
mod snapshot;
mod tcp;
