//! Programs that run beside this one: servers and clients of other stacks, and the commands of an emulation.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// The longest time in which a program must end after it was asked to; then it is killed.
const PATIENCE: Duration = Duration::from_secs(3);

/// The pause between two checks whether a program has ended.
const PAUSE: Duration = Duration::from_millis(1);

/// The number of bytes at the end of a program's standard error that are kept.
const KEPT: usize = 2_000;

/// A program that runs beside this one. It is stopped when this value is dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// True if the program has a process group of its own. The program then ends together with all programs that it has
    /// started.
    is_group: bool,
    /// Receives the last bytes of the program's standard error, if they are kept.
    complaint: Option<Receiver<String>>,
}

/// The result of a wait until a program is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The program is ready.
    Ready,
    /// The program has ended, with this exit code.
    Ended(u8),
    /// The program runs, and was not ready in time.
    Late,
}

impl Program {
    /// Starts a program on the terminal, in the process group of this process, so that it gets the terminal's Ctrl-C.
    /// `spawn` starts the command, for example in a network namespace.
    ///
    /// # Errors
    /// Errors of `spawn`.
    pub fn in_front(command: Command, spawn: impl FnOnce(Command) -> io::Result<Child>) -> io::Result<Self> {
        Ok(Self { child: spawn(command)?, is_group: false, complaint: None })
    }

    /// Starts a program with a process group of its own and without standard input. `spawn` starts the command, for
    /// example in a network namespace.
    ///
    /// # Errors
    /// Errors of `spawn`.
    pub fn behind(
        mut command: Command,
        spawn: impl FnOnce(Command) -> io::Result<Child>,
    ) -> io::Result<Self> {
        command.process_group(0).stdin(Stdio::null());
        Ok(Self { child: spawn(command)?, is_group: true, complaint: None })
    }

    /// Starts a program like [`behind`](Self::behind), and keeps the end of its standard error for
    /// [`last_words`](Self::last_words). Its standard output is dropped.
    ///
    /// # Errors
    /// Errors of `spawn`.
    pub fn silent(
        mut command: Command,
        spawn: impl FnOnce(Command) -> io::Result<Child>,
    ) -> io::Result<Self> {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut program = Self::behind(command, spawn)?;
        if let Some(mut stderr) = program.child.stderr.take() {
            let (sender, complaint) = channel();
            program.complaint = Some(complaint);
            // A pipe that nobody reads would block the program as soon as it is full.
            thread::spawn(move || {
                let (mut kept, mut chunk) = (Vec::new(), [0; 512]);
                while let Ok(count @ 1..) = stderr.read(&mut chunk) {
                    kept.extend_from_slice(&chunk[..count]);
                    kept.drain(..kept.len().saturating_sub(KEPT));
                }
                let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
            });
        }
        Ok(program)
    }

    /// Returns the exit code of the program if it has ended. If a signal ended it, the code is 128 plus the signal's number.
    ///
    /// # Errors
    /// Errors of [`Child::try_wait`].
    pub fn ended(&mut self) -> io::Result<Option<u8>> {
        let code = |status: ExitStatus| {
            let signal = status.signal().map(|signal| 128 + signal);
            u8::try_from(status.code().or(signal).unwrap_or(1)).unwrap_or(1)
        };
        Ok(self.child.try_wait()?.map(code))
    }

    /// Returns whether the program has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        // An error means that the child is gone.
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until `is_ready` returns true, until the program has ended, or for the time `patience`.
    ///
    /// # Errors
    /// Errors of `is_ready` and of [`ended`](Self::ended).
    pub fn wait_until(
        &mut self,
        patience: Duration,
        mut is_ready: impl FnMut() -> io::Result<bool>,
    ) -> io::Result<Readiness> {
        let end = Instant::now() + patience;
        loop {
            // This comes first: if the program has ended, a port that answers belongs to somebody else.
            if let Some(code) = self.ended()? {
                return Ok(Readiness::Ended(code));
            }
            if is_ready()? {
                return Ok(Readiness::Ready);
            }
            if Instant::now() > end {
                return Ok(Readiness::Late);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the last line of the program's standard error, once the program has ended. If it wrote none, or standard
    /// error is not kept, the text says that it wrote no message.
    pub fn last_words(&self) -> String {
        // A child of the program may hold the pipe open, so the wait is bounded.
        let received =
            self.complaint.as_ref().map(|complaint| complaint.recv_timeout(Duration::from_millis(200)));
        let all = received.and_then(Result::ok).unwrap_or_default();
        all.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it wrote no message").trim().to_owned()
    }

    /// Asks the program to end, together with everything that it started if it has a process group of its own. Kills
    /// the programs that still run after that, at the latest after three seconds.
    pub fn stop(&mut self) {
        self.signal(Signal::SIGTERM);
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end && !self.has_ended() {
            thread::sleep(PAUSE);
        }
        // The children of a program may outlive it.
        if self.is_group || !self.has_ended() {
            self.signal(Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }

    /// Sends a signal. An error means that the process has ended.
    fn signal(&self, signal: Signal) {
        let Ok(pid) = i32::try_from(self.child.id()).map(Pid::from_raw) else { return };
        let _ = if self.is_group { killpg(pid, signal) } else { kill(pid, signal) };
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.is_group || !self.has_ended() {
            self.stop();
        }
    }
}

/// Starts a command in the namespaces of the calling thread.
///
/// # Errors
/// Errors of [`Command::spawn`].
pub(crate) fn here(mut command: Command) -> io::Result<Child> {
    command.spawn()
}

/// Returns the command that runs a line of the shell.
pub fn shell(line: impl AsRef<OsStr>) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(line);
    shell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_error_of_a_started_program_is_reported() {
        let line = "echo first >&2; echo lost >&2; echo no complaint; exit 3";
        let mut program = Program::silent(shell(line), here).unwrap();
        let never = || Ok(false);
        assert_eq!(program.wait_until(PATIENCE, never).unwrap(), Readiness::Ended(3));
        assert_eq!(program.last_words(), "lost");
    }

    #[test]
    fn a_started_program_is_waited_for_until_it_is_ready_or_too_late() {
        let mut program = Program::behind(shell("sleep 60"), here).unwrap();
        let mut looks = 0;
        let third = || {
            looks += 1;
            Ok(looks == 3)
        };
        assert_eq!(program.wait_until(PATIENCE, third).unwrap(), Readiness::Ready);
        assert_eq!(program.wait_until(Duration::ZERO, || Ok(false)).unwrap(), Readiness::Late);
    }

    #[test]
    fn ending_a_started_program_also_ends_all_its_child_processes() {
        // Both shells ignore the request to end; the inner one is started by the outer one.
        let mut program =
            Program::behind(shell("trap '' TERM; sh -c 'while :; do sleep 1; done' & wait"), here).unwrap();
        let group = i32::try_from(program.child.id()).map(Pid::from_raw).unwrap();
        thread::sleep(Duration::from_millis(200));
        assert!(killpg(group, None).is_ok(), "they run");
        let begun = Instant::now();
        program.stop();
        assert!(begun.elapsed() >= PATIENCE, "they had time to end");
        let gone = Instant::now() + PATIENCE;
        while killpg(group, None).is_ok() {
            assert!(Instant::now() < gone, "something of the group is left");
            thread::sleep(PAUSE);
        }
    }
}
