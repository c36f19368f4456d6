//! The arguments of live runs.

use std::path::PathBuf;

use clap::Args;
use coapace_wire::live::PeerCommand;

#[derive(Debug, Args)]
#[command(next_help_heading = "Live runs")]
pub(crate) struct LiveOptions {
    /// Also run the hosts on real sockets through the emulated network, and print both results (docs/wire.md). Live runs happen
    /// in real time; the command first prints how long they will take
    #[arg(long)]
    pub(crate) live: bool,

    /// The number of live runs at a time
    #[arg(long, value_name = "N", default_value_t = 4, requires = "live", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) live_jobs: u16,

    /// Use the server of another stack in live runs: a command that is started for each run, with {port} and {address} in place
    /// of these, such as 'coap-server-notls -A {address} -p {port} -d 10'. It has the scenario's resource, or accepts a PUT
    /// that creates it
    #[arg(long, value_name = "COMMAND", requires = "live", value_parser = PeerCommand::parse)]
    pub(crate) peer: Option<PeerCommand>,

    /// Use clients of another stack in live runs: a command that makes one or several requests, with {uri}, or {host}, {port}
    /// and {path}, in place of these, such as 'coap-client-notls -B 300 {uri}'. Each client is started again until it has made
    /// its number of exchanges. It retransmits by its own rules instead of the mechanism
    #[arg(long, value_name = "COMMAND", requires = "live", conflicts_with = "peer", value_parser = PeerCommand::parse_client)]
    pub(crate) peer_client: Option<PeerCommand>,

    /// Store live runs in this file, and continue after the runs that are in it
    #[arg(long, value_name = "FILE", requires = "live")]
    pub(crate) journal: Option<PathBuf>,
}

impl LiveOptions {
    /// Returns the server or the client of another stack to use, if one is given.
    pub(crate) fn other(&self) -> Option<PeerCommand> {
        self.peer.clone().or_else(|| self.peer_client.clone())
    }
}
