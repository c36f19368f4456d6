//! A program that runs in a namespace.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::side::Side;

/// A program in a namespace. It is stopped when this value is dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// Whether it and what it starts have a process group of their own.
    is_group: bool,
}

/// The time that a program has to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(3);

impl Program {
    /// Starts a program with its arguments. It takes part in the process group of this process, and so gets the terminal's
    /// Ctrl-C.
    ///
    /// # Errors
    /// Those of [`Side::start`].
    pub fn start(side: &Side, mut command: Command, is_group: bool) -> io::Result<Self> {
        if is_group {
            command.process_group(0);
        }
        Ok(Self { child: side.start(command)?, is_group })
    }

    /// Starts a line of the shell, in a process group of its own.
    ///
    /// # Errors
    /// Those of [`Side::start`].
    pub fn shell(
        side: &Side,
        line: impl AsRef<OsStr>,
        command: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(line);
        command(&mut shell);
        Self::start(side, shell, true)
    }

    /// Returns the exit code of the program if it has ended: 128 and the number of the signal if one ended it.
    ///
    /// # Errors
    /// Those of [`Child::try_wait`].
    pub fn ended(&mut self) -> io::Result<Option<u8>> {
        let code = |status: ExitStatus| {
            let signal = status.signal().map(|signal| 128 + signal);
            u8::try_from(status.code().or(signal).unwrap_or(1)).unwrap_or(1)
        };
        Ok(self.child.try_wait()?.map(code))
    }

    /// Asks the program to end, and makes it end after three seconds.
    pub fn stop(&mut self) {
        self.signal(Signal::SIGTERM);
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        // What a shell has started may outlive it.
        if self.is_group || matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }

    /// Sends a signal. An error means that nobody is there any more.
    fn signal(&self, signal: Signal) {
        let Ok(pid) = i32::try_from(self.child.id()).map(Pid::from_raw) else { return };
        let _ = if self.is_group { killpg(pid, signal) } else { kill(pid, signal) };
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.is_group || matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}
