//! `coapace man`.

use std::path::Path;

use crate::Failure;
use crate::arguments::Arguments;

pub(crate) fn man(directory: &Path) -> Result<(), Failure> {
    clap_mangen::generate_to(Arguments::grammar(), directory)
        .map_err(|error| Failure::Io(directory.display().to_string(), error))
}
