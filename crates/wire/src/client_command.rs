//! The command that starts a client of another stack.

use std::net::SocketAddr;
use std::process::Command;

use crate::program::{Program, here};

/// The command that starts a client: a program and its arguments. In the arguments, `{uri}` is replaced by the URI to
/// request, and `{host}`, `{port}` and `{path}` by the parts of the URI.
#[derive(Clone, Debug)]
pub struct ClientCommand(Vec<String>);

impl ClientCommand {
    /// Reads the words of a command. Returns `None` without words, or if no word has a placeholder for the address.
    pub fn new(words: Vec<String>) -> Option<Self> {
        // The port differs from run to run, so a command without it would ask another server.
        let names_place = words.iter().any(|word| word.contains("{uri}") || word.contains("{port}"));
        (!words.is_empty() && names_place).then_some(Self(words))
    }

    /// Returns the words of the command with this address and path in place of its placeholders.
    fn filled(&self, address: SocketAddr, path: &str) -> Vec<String> {
        let fill = |word: &String| {
            word.replace("{uri}", &uri(address, path))
                .replace("{host}", &address.ip().to_string())
                .replace("{port}", &address.port().to_string())
                .replace("{path}", path)
        };
        self.0.iter().map(fill).collect()
    }

    /// Starts the client, which requests `path`, given without a leading slash.
    ///
    /// # Errors
    /// Returns one line if the program does not start.
    pub fn start(&self, address: SocketAddr, path: &str) -> Result<Program, String> {
        let words = self.filled(address, path);
        // `new` refuses an empty list.
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        Program::silent(command, here).map_err(|error| format!("cannot start {}: {error}", words[0]))
    }
}

/// Returns the URI that a client requests.
pub fn uri(address: SocketAddr, path: &str) -> String {
    format!("coap://{address}/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_command_needs_a_placeholder_for_the_address() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(ClientCommand::new(Vec::new()).is_none());
        assert!(ClientCommand::new(words("coap-client coap://localhost")).is_none());
        let command = ClientCommand::new(words("get {uri} {host} -p {port} /{path}")).unwrap();
        let filled = command.filled("127.0.0.1:5690".parse().unwrap(), "examined");
        assert_eq!(filled.join(" "), "get coap://127.0.0.1:5690/examined 127.0.0.1 -p 5690 /examined");
    }
}
