//! A client that works through its plan over the TCP of the operating system, like [`TcpClient`](coapace_sim::tcp::TcpClient)
//! does over the simulator's.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use coapace_proto::stream::StreamMessage;
use coapace_sim::Time;
use coapace_sim::tcp::TcpPlan;
use socket2::{Domain, Socket, Type};

use super::talk::ConnectionEndpoint;
use crate::emulation::waiting::EmulationClock;

/// The number of connections in a row that failed before an exchange was complete, after which a client gives up.
const MAX_FAILURES: u32 = 8;

/// The longest sleep before the next check for an interruption.
const PATIENCE: Duration = Duration::from_millis(100);

/// The measurements of a client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientReport {
    /// The time at which the first request was written.
    pub(super) first_request: Option<Time>,
    /// The time at which the last response was read; `None` if a request has no response.
    pub(super) finished: Option<Time>,
    /// The number of exchanges that were completed after the warm-up.
    pub(super) completed: u32,
}

/// The settings that all clients of a run share.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) clock: EmulationClock,
    pub(super) server: SocketAddr,
    pub(super) nagle: bool,
    /// The end of the warm-up.
    pub(super) measured_from: Time,
    /// Ends all clients when it becomes true.
    pub(super) stops: AtomicBool,
}

impl Course {
    fn stops(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    /// Sleeps until a given time of the run, or until all clients end.
    fn sleep_until(&self, moment: Time) {
        while !self.stops() && self.clock.now() < moment {
            // Nothing wakes a thread that sleeps, so it looks for an interruption now and then.
            thread::sleep(Duration::from_nanos((moment - self.clock.now()).as_nanos()).min(PATIENCE));
        }
    }

    /// Executes a client's plan, with connections from the address `from`. Returns the client's measurements.
    pub(super) fn run(&self, from: IpAddr, plan: &TcpPlan) -> ClientReport {
        let mut report = ClientReport::default();
        let mut failures = 0;
        self.sleep_until(plan.connect_at);
        for &size in plan.batches.iter().filter(|size| **size > 0) {
            let mut left = size;
            while left > 0 {
                let before = left;
                // The rest of a batch whose connection fails goes over a new one.
                let ended = self.batch(from, plan, &mut left, &mut report);
                // Only connections in a row without any exchange count: a server that lost one connection may still answer.
                failures = if left < before { 0 } else { failures + u32::from(ended.is_err()) };
                if self.stops() || failures >= MAX_FAILURES {
                    return report;
                }
            }
        }
        report.finished = Some(self.clock.now());
        report
    }

    /// Makes the remaining `left` exchanges of a batch over a new connection. Subtracts each completed exchange from
    /// `left`.
    fn batch(
        &self,
        from: IpAddr,
        plan: &TcpPlan,
        left: &mut u32,
        report: &mut ClientReport,
    ) -> io::Result<()> {
        let socket = Socket::new(Domain::for_address(self.server), Type::STREAM, None)?;
        // All addresses of the clients' network are local here. Each client has its own, as behind a real link.
        socket.bind(&SocketAddr::new(from, 0).into())?;
        socket.connect(&self.server.into())?;
        let mut talk = ConnectionEndpoint::begin(socket.into(), self.nagle)?;
        // A client need not wait for the server's CSM (RFC 8323 §5.3). This one does, as the simulated one does.
        while !talk.is_greeted && !self.stops() {
            talk.read(|_, _| {})?;
        }
        self.sleep_until(plan.request_at);
        while *left > 0 && !self.stops() {
            report.first_request.get_or_insert_with(|| self.clock.now());
            talk.send(&StreamMessage { code: plan.method, token: plan.token, tail: &plan.tail })?;
            let mut is_answered = false;
            while !is_answered && !self.stops() {
                talk.read(|message, _| {
                    is_answered |= message.code.is_response() && message.token == plan.token;
                })?;
            }
            if is_answered {
                *left -= 1;
                // Exchanges of the warm-up are made and not counted.
                report.completed += u32::from(self.clock.now() >= self.measured_from);
            }
        }
        Ok(())
    }
}
