//! The arguments with the keys of clients, which several commands have.

use std::path::PathBuf;

use clap::Args;

/// The pre-shared keys of clients that speak DTLS to a command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ClientKeys {
    /// An identity that clients present over coaps://; repeatable, with a key for each
    #[arg(short = 'u', long = "identity", value_name = "IDENTITY", requires = "keys")]
    pub(crate) identities: Vec<String>,

    /// The key of an identity: text, hexadecimal digits after 0x, or @FILE
    #[arg(short = 'k', long = "key", value_name = "KEY", requires = "identities")]
    pub(crate) keys: Vec<String>,

    /// A file with a line HINT,IDENTITY,KEY for each client, like the file that libcoap's coap-server takes with
    /// -i. The hint may be empty, and # begins a comment
    #[arg(long = "keys", value_name = "FILE")]
    pub(crate) keys_file: Option<PathBuf>,
}

impl ClientKeys {
    /// Returns whether any keys were given on the command line.
    pub(crate) fn are_given(&self) -> bool {
        self.keys_file.is_some() || !self.identities.is_empty()
    }
}
