//! Processor time, as the kernel accounts for it.

use std::time::Duration;

use nix::time::ClockId;
use nix::unistd::Pid;

use crate::Result;

/// The processor clock of a process: all its threads, those that have ended too, in user and kernel mode.
pub struct Cpu(ClockId);

impl Cpu {
    /// Of another process.
    ///
    /// # Errors
    ///
    /// There is no such process.
    pub fn of(pid: i32) -> Result<Self> {
        Ok(Self(ClockId::pid_cpu_clock_id(Pid::from_raw(pid))?))
    }

    /// Of this process.
    pub fn own() -> Self {
        Self(ClockId::CLOCK_PROCESS_CPUTIME_ID)
    }

    /// What the process has used so far.
    ///
    /// # Errors
    ///
    /// The process has ended.
    pub fn now(&self) -> Result<Duration> {
        Ok(self.0.now()?.into())
    }
}
