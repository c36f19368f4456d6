//! Black-box examination of CoAP stacks.
//!
//! A [`Case`] is data: a few function pointers that choose the datagrams to send, answer arriving ones, and judge the recorded
//! packets. A case uses only its [`Transcript`]. So a verdict can be repeated from a capture, and a case can be tested without
//! sockets and without waiting. [`examine`] runs cases on real sockets in real time.
//!
//! * **Side**: whether the examined stack is the client or the server. This module is the other side.
//! * **Lane**: one socket of the examiner, numbered from 0 within a case. Every process of an examined client has its own lane.
//! * **Copy**: one transmission of a message.
//! * **Finding**: a result, its severity, and the packets that show it.

mod bottleneck;
mod case;
mod clients;
mod copies;
mod driver;
mod finding;
mod packet;
mod recorder;
#[cfg(test)]
mod rehearsal;
mod servers;
mod statistics;
mod transcript;

pub use case::{Case, DatagramSchedule, ExaminationTarget, ExaminedSide, planned};
pub use coapace_wire::client_command::ClientCommand;
pub use driver::{ExaminationPlan, ExamineError, Examined, News, examine};
pub use finding::{Finding, Severity};
pub use packet::{Packet, PacketDirection};
pub use recorder::Recorder;
pub use transcript::{Exit, Transcript};

/// Returns the cases for a stack on this side, in the sequence in which they are run.
pub fn cases(side: ExaminedSide) -> &'static [Case] {
    match side {
        ExaminedSide::Client => clients::CASES,
        ExaminedSide::Server => servers::CASES,
    }
}
