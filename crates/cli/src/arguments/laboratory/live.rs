//! The arguments of live runs.

use std::path::PathBuf;

use clap::Args;
use coapace_wire::live::PeerCommand;

#[derive(Debug, Args)]
#[command(next_help_heading = "Live runs")]
pub(crate) struct LiveOptions {
    /// Run the same hosts on real sockets through the emulated network, too, and print both (docs/wire.md). A live
    /// run takes as long as it lasts; the time is told beforehand
    #[arg(long)]
    pub(crate) live: bool,

    /// Live runs at a time
    #[arg(long, value_name = "N", default_value_t = 4, requires = "live", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) live_jobs: u16,

    /// Let the server of another stack answer in live runs: a command with {port} and {address} where these go, which
    /// is started for each run, such as 'coap-server-notls -A {address} -p {port} -d 10'. It has the scenario's
    /// resource, or takes a PUT of it
    #[arg(long, value_name = "COMMAND", requires = "live", value_parser = PeerCommand::parse)]
    pub(crate) peer: Option<PeerCommand>,

    /// Let clients of another stack ask in live runs: a command that makes one request, or several one after the other, with
    /// {uri}, or {host}, {port} and {path}, where these go, such as 'coap-client-notls -B 300 {uri}'. Each client starts it
    /// again until it has had its exchanges. Its own retransmission stands in place of the mechanism
    #[arg(long, value_name = "COMMAND", requires = "live", conflicts_with = "peer", value_parser = PeerCommand::parse_client)]
    pub(crate) peer_client: Option<PeerCommand>,

    /// Keep live runs in this file, and continue from those that it has
    #[arg(long, value_name = "FILE", requires = "live")]
    pub(crate) journal: Option<PathBuf>,
}

impl LiveOptions {
    /// Returns the server or the client of another stack, if there is one.
    pub(crate) fn other(&self) -> Option<PeerCommand> {
        self.peer.clone().or_else(|| self.peer_client.clone())
    }
}
