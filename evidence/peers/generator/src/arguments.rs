//! `--name value` pairs.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use crate::Result;
use crate::message::Exchange;

/// The options of a command.
pub struct Arguments(HashMap<String, String>);

impl Arguments {
    /// Reads `--name value --name value …`.
    ///
    /// # Errors
    ///
    /// A word that is no option, or an option without a value.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = HashMap::new();
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").ok_or_else(|| format!("'{word}' is no option"))?;
            let value = words.next().ok_or_else(|| format!("--{name} has no value"))?;
            options.insert(name.to_owned(), value);
        }
        Ok(Self(options))
    }

    /// Returns the value of an option.
    ///
    /// # Errors
    ///
    /// The option is missing or cannot be read.
    pub fn get<T: FromStr>(&self, name: &str) -> Result<T> {
        let text = self.0.get(name).ok_or_else(|| format!("--{name} is missing"))?;
        text.parse().map_err(|_| format!("--{name}: cannot read '{text}'").into())
    }

    /// Returns the value of an option given in seconds.
    ///
    /// # Errors
    ///
    /// Like [`get`](Self::get); also a value that is negative or not finite.
    pub fn seconds(&self, name: &str) -> Result<Duration> {
        Ok(Duration::try_from_secs_f64(self.get(name)?)?)
    }

    /// Returns the address of the server.
    ///
    /// # Errors
    ///
    /// Like [`get`](Self::get).
    pub fn server(&self) -> Result<SocketAddr> {
        self.get("server")
    }

    /// Returns the request to make and the response to expect.
    ///
    /// # Errors
    ///
    /// Like [`get`](Self::get); also a path that [`Exchange::new`] cannot write.
    pub fn exchange(&self) -> Result<Exchange> {
        Exchange::new(&self.get::<String>("path")?, &self.get::<String>("payload")?)
    }

    /// Returns the `index`-th address, counted from `--first-address`.
    ///
    /// # Errors
    ///
    /// Like [`get`](Self::get); also an index without an address.
    pub fn address(&self, index: u32) -> Result<Ipv4Addr> {
        let first = u32::from(self.get::<Ipv4Addr>("first-address")?);
        let address = first.checked_add(index).ok_or("no such address")?;
        Ok(Ipv4Addr::from(address))
    }
}
