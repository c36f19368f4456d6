//! The command that starts a client of another stack.

use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Bytes of standard error that are kept of a process.
const KEPT: usize = 2_000;

/// A program and its arguments, in which `{uri}`, `{host}`, `{port}` and `{path}` stand for the address to ask.
#[derive(Clone, Debug)]
pub struct ClientCommand(Vec<String>);

impl ClientCommand {
    /// Reads the words of a command. Returns `None` if there is none, or if no word says where to ask.
    pub fn new(words: Vec<String>) -> Option<Self> {
        let names_place = words.iter().any(|word| word.contains("{uri}") || word.contains("{port}"));
        (!words.is_empty() && names_place).then_some(Self(words))
    }

    /// Returns the words for an address and a path.
    fn filled(&self, address: SocketAddr, path: &str) -> Vec<String> {
        let fill = |word: &String| {
            word.replace("{uri}", &uri(address, path))
                .replace("{host}", &address.ip().to_string())
                .replace("{port}", &address.port().to_string())
                .replace("{path}", path)
        };
        self.0.iter().map(fill).collect()
    }

    /// Starts the client as a group of processes of its own. It is to ask for `path`, without a slash in front.
    pub(crate) fn start(&self, address: SocketAddr, path: &str) -> Result<Client, String> {
        let words = self.filled(address, path);
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", words[0]))?;
        let (sender, complaint) = channel();
        if let Some(mut stderr) = child.stderr.take() {
            thread::spawn(move || {
                let (mut kept, mut chunk) = (Vec::new(), [0; 512]);
                while let Ok(count @ 1..) = stderr.read(&mut chunk) {
                    kept.extend_from_slice(&chunk[..count]);
                    kept.drain(..kept.len().saturating_sub(KEPT));
                }
                let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
            });
        }
        Ok(Client { child, complaint })
    }
}

/// Returns the URI that a client is to ask.
pub(crate) fn uri(address: SocketAddr, path: &str) -> String {
    format!("coap://{address}/{path}")
}

/// A client that runs. It ends when this is dropped, with all processes that it has started.
#[derive(Debug)]
pub(crate) struct Client {
    child: Child,
    complaint: Receiver<String>,
}

impl Client {
    /// Returns whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the last line that it wrote to standard error, once it has ended.
    pub(crate) fn last_words(&self) -> String {
        let all = self.complaint.recv_timeout(Duration::from_millis(200)).unwrap_or_default();
        all.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it wrote no message").trim().to_owned()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // An error means that all have ended already.
        let _ = i32::try_from(self.child.id()).map(|id| killpg(Pid::from_raw(id), Signal::SIGKILL));
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_where_to_ask() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(ClientCommand::new(Vec::new()).is_none());
        assert!(ClientCommand::new(words("coap-client coap://localhost")).is_none());
        let command = ClientCommand::new(words("get {uri} {host} -p {port} /{path}")).unwrap();
        let filled = command.filled("127.0.0.1:5690".parse().unwrap(), "examined");
        assert_eq!(filled.join(" "), "get coap://127.0.0.1:5690/examined 127.0.0.1 -p 5690 /examined");
    }

    #[test]
    fn what_a_command_complains_about_is_told() {
        let words = ["sh", "-c", "echo first >&2; echo no route to {port} >&2; exit 1"].map(str::to_owned);
        let command = ClientCommand::new(words.to_vec()).unwrap();
        let mut client = command.start("127.0.0.1:7".parse().unwrap(), "examined").unwrap();
        while !client.has_ended() {
            thread::yield_now();
        }
        assert_eq!(client.last_words(), "no route to 7");
    }
}
