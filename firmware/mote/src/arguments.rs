//! The arguments: `client` or `server`, and words of the form KEY=VALUE.

use alloc::boxed::Box;
use alloc::string::String;
use core::error::Error;
use core::fmt;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::str::FromStr;

use smoltcp::wire::Ipv4Cidr;

use crate::control::{self, Control};

/// What a mote is to do.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    /// True for a client.
    pub(crate) is_client: bool,
    /// The server that a client asks.
    pub(crate) to: SocketAddrV4,
    /// The resource that a client asks for.
    pub(crate) path: String,
    /// The exchanges that a client makes.
    pub(crate) exchanges: u32,
    /// The congestion control: NAME or NAME:parameter=value,…
    pub(crate) mechanism: Control,
    /// MAX_RETRANSMIT.
    pub(crate) max_retransmit: u8,
    /// Whether exchanges are given up no sooner than RFC 7252 would.
    pub(crate) patience: bool,
    /// The seed of random numbers, of Message IDs and of a client's port.
    pub(crate) seed: u64,
    /// The port of a server.
    pub(crate) port: u16,
    /// The seconds after which a server ends; 0 for never.
    pub(crate) seconds: u64,
    /// The address of the mote and the length of its prefix.
    pub(crate) address: Ipv4Cidr,
    /// The next hop to other networks.
    pub(crate) gateway: Ipv4Addr,
}

/// A word of the command line that cannot be read.
#[derive(Debug)]
pub(crate) enum BadArgument {
    /// The first word is neither `client` nor `server`.
    Role,
    /// The word has no `=`, or an unknown key before it.
    Key(String),
    /// The value does not fit the key.
    Value(String),
}

impl Arguments {
    /// Returns the arguments that are not given. QEMU's user networking gives a guest the address 10.0.2.15, and is 10.0.2.2
    /// itself.
    fn with(mechanism: Control) -> Self {
        let host = Ipv4Addr::new(10, 0, 2, 2);
        Self {
            is_client: true,
            to: SocketAddrV4::new(host, 5683),
            path: "hello".into(),
            exchanges: 10,
            mechanism,
            max_retransmit: 4,
            patience: true,
            seed: 1,
            port: 5683,
            seconds: 0,
            address: Ipv4Cidr::new(Ipv4Addr::new(10, 0, 2, 15), 24),
            gateway: host,
        }
    }

    /// Reads the words of a command line behind the name of the program.
    ///
    /// # Errors
    /// [`BadArgument`] names the first bad word. A mechanism that cannot be read has an error of its own.
    pub(crate) fn read<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Self, Box<dyn Error>> {
        let mut read = Self::with(control::named("cocoa")?);
        read.is_client = match words.next() {
            Some("client") => true,
            Some("server") => false,
            _ => return Err(BadArgument::Role.into()),
        };
        for word in words {
            let (key, text) = word.split_once('=').ok_or_else(|| BadArgument::Key(word.into()))?;
            match key {
                "to" => read.to = value(word, text)?,
                "path" => read.path = text.into(),
                "exchanges" => read.exchanges = value(word, text)?,
                "mechanism" => read.mechanism = control::named(text)?,
                "max_retransmit" => read.max_retransmit = value(word, text)?,
                "patience" => read.patience = value(word, text)?,
                "seed" => read.seed = value(word, text)?,
                "port" => read.port = value(word, text)?,
                "seconds" => read.seconds = value(word, text)?,
                "address" => read.address = value_of(word, text.parse().ok())?,
                "gateway" => read.gateway = value(word, text)?,
                _ => return Err(BadArgument::Key(word.into()).into()),
            }
        }
        Ok(read)
    }
}

fn value<T: FromStr>(word: &str, text: &str) -> Result<T, BadArgument> {
    value_of(word, text.parse().ok())
}

fn value_of<T>(word: &str, value: Option<T>) -> Result<T, BadArgument> {
    value.ok_or_else(|| BadArgument::Value(word.into()))
}

impl fmt::Display for BadArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role => f.write_str("the first argument must be `client` or `server`"),
            Self::Key(word) => write!(
                f,
                "{word:?} is no argument; there are to, path, exchanges, mechanism, max_retransmit, patience, seed, port, \
                 seconds, address and gateway, each with = and a value"
            ),
            Self::Value(word) => write!(f, "{word:?} has a value that cannot be read"),
        }
    }
}

impl Error for BadArgument {}
