//! Waiting for sockets and for a given time, exact to some tens of microseconds.

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
        // 64 bits of nanoseconds are more than 500 years.
        Time::from_nanos(self.0.elapsed().as_nanos() as u64)
    }
}

/// Waits for descriptors with epoll(7), and for a given time with a timer of the system. The timeout of epoll itself is too
/// coarse.
#[derive(Debug)]
pub(crate) struct EventWaiter {
    epoll: Epoll,
    timer: TimerFd,
    events: Vec<EpollEvent>,
}

/// The number of the timer among the polled descriptors.
const TIMER: u64 = u64::MAX;

/// The maximum number of descriptors that one wait reports. Packets that are due are sent before the next wait.
const REPORTED: usize = 64;

impl EventWaiter {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        Ok(Self { epoll, timer, events: vec![EpollEvent::empty(); REPORTED] })
    }

    /// Adds a descriptor to wait for, until it is closed. `number` identifies it in the results.
    pub(crate) fn add(&self, descriptor: &impl AsFd, number: u64) -> io::Result<()> {
        Ok(self.epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, number))?)
    }

    /// Waits for `span`, or until a descriptor can be read. Puts the numbers of the readable descriptors into `ready`.
    pub(crate) fn wait(&mut self, span: Duration, ready: &mut Vec<u64>) -> io::Result<()> {
        ready.clear();
        // A timer that is set to zero is disarmed (timerfd_settime(2)), so no wait at all is left to epoll.
        let timeout = if span.is_zero() {
            EpollTimeout::ZERO
        } else {
            self.timer.set(Expiration::OneShot(span.into()), TimerSetTimeFlags::empty())?;
            EpollTimeout::NONE
        };
        let count = match self.epoll.wait(&mut self.events, timeout) {
            Ok(count) => count,
            // A signal only ends this wait early. The caller computes the next one from the clock.
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        // The timer is not read: it stops being ready when it is set again.
        ready.extend(self.events[..count].iter().map(EpollEvent::data).filter(|&number| number != TIMER));
        Ok(())
    }
}
