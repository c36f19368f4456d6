//! Arguments of `coapace playground`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Playground {
    /// The address to listen at with HTTP, without encryption or access control: only static files are served
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) bind: String,

    /// The folder that crates/web/build made [default: where packages put it, or beside the program]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

pub(super) const EXAMPLES_PLAYGROUND: &str = "Examples:
  Compare mechanisms in a browser, and read captures there (in a checkout,
  crates/web/build makes the page first):
    coapace playground
  At another port, with the files of another build:
    coapace playground --bind 127.0.0.1:9000 --directory target/playground

The page simulates in the browser. Scenarios and captures that it opens are not sent anywhere.";
