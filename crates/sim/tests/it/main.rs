//! Tests of the simulator.

mod captures;
mod hosts;
mod mesh;
mod network;
mod queues;
mod sleepy;
mod snapshot;
mod tcp;
