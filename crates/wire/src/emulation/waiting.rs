//! Waiting for sockets and for a moment, exact to some tens of microseconds.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use coapace_sim::Time;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// The clock of an emulation, which begins at zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmulationClock(Instant);

impl EmulationClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(self.0.elapsed().as_nanos() as u64)
    }
}

/// Waits for descriptors with epoll(7), and for a moment with a timer of the system. The timeout of epoll itself is too coarse.
#[derive(Debug)]
pub(crate) struct EventWaiter {
    epoll: Epoll,
    timer: TimerFd,
    events: Vec<EpollEvent>,
}

/// The number of the timer among the descriptors.
const TIMER: u64 = u64::MAX;

/// The most descriptors that are reported at a time. Departures come between the reports.
const REPORTED: usize = 64;

impl EventWaiter {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        Ok(Self { epoll, timer, events: vec![EpollEvent::empty(); REPORTED] })
    }

    /// Adds a descriptor under a number, until it is closed.
    pub(crate) fn add(&self, descriptor: &impl AsFd, number: u64) -> io::Result<()> {
        Ok(self.epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, number))?)
    }

    /// Waits for `span`, or until a descriptor can be read. Puts the numbers of the readable descriptors into `ready`.
    pub(crate) fn wait(&mut self, span: Duration, ready: &mut Vec<u64>) -> io::Result<()> {
        ready.clear();
        let timeout = if span.is_zero() {
            EpollTimeout::ZERO
        } else {
            self.timer.set(Expiration::OneShot(span.into()), TimerSetTimeFlags::empty())?;
            EpollTimeout::NONE
        };
        let count = match self.epoll.wait(&mut self.events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        // The timer is not read: it stops being ready when it is set again.
        ready.extend(self.events[..count].iter().map(EpollEvent::data).filter(|&number| number != TIMER));
        Ok(())
    }
}
