//! Processor time in the kernel's accounting.

use std::time::Duration;

use nix::time::ClockId;
use nix::unistd::Pid;

use crate::Result;

/// The processor clock of a process: user and kernel mode of all threads, including those that have ended.
pub struct Cpu(ClockId);

impl Cpu {
    /// Returns the clock of another process.
    ///
    /// # Errors
    ///
    /// There is no such process.
    pub fn of(pid: i32) -> Result<Self> {
        Ok(Self(ClockId::pid_cpu_clock_id(Pid::from_raw(pid))?))
    }

    /// Returns the clock of this process.
    pub fn own() -> Self {
        Self(ClockId::CLOCK_PROCESS_CPUTIME_ID)
    }

    /// Returns the processor time used so far.
    ///
    /// # Errors
    ///
    /// The process has ended.
    pub fn now(&self) -> Result<Duration> {
        Ok(self.0.now()?.into())
    }
}
