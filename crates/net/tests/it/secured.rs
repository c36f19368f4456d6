//! A DTLS server that runs beside a test.

use crate::common::{Running, one_core, run};
use coapace_net::{Dtls, Router, Server};

pub(crate) const KEY: &[u8] = b"a long secret";

/// The keys of a server that knows one identity.
pub(crate) fn keys() -> Dtls {
    Dtls::server(|identity| (identity == b"lamp-7").then(|| KEY.to_vec()))
}

pub(crate) fn serve(router: Router, dtls: &Dtls) -> Running {
    run("coaps", Server::bind_dtls("127.0.0.1:0", one_core(), dtls), router)
}
