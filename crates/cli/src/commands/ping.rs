//! `coapace ping`.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::json;

use super::device::{ClientSetup, explain, runtime, short, tell};
use crate::arguments::{Arguments, Ping};
use crate::{Failure, logging};

/// The time from the end of one ping to the beginning of the next.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn ping(arguments: &Arguments, ping: &Ping) -> Result<(), Failure> {
    logging::of_client(0, arguments.quiet);
    let setup = ClientSetup::new(arguments, &ping.transmission, &ping.uri, None)?;
    let client = setup.client()?;
    let mut out = io::stdout();
    let result = runtime()?.block_on(async {
        let mut last = None;
        for count in 0..ping.count {
            if count > 0 {
                tokio::time::sleep(PAUSE).await;
                // A failure is printed here if another ping follows. The last one becomes the failure of the
                // command.
                last.take().iter().for_each(|failure| tell(&format!("coapace: {failure}")));
            }
            // -B replaces the time after which the mechanism gives up.
            let mut call = client.ping(&ping.uri);
            if let Some(timeout) = ping.transmission.timeout {
                call = call.timeout(timeout);
            }
            match call.await {
                Ok(answer) if ping.json => {
                    let ms = answer.elapsed.as_micros() as f64 / 1e3;
                    let object =
                        json!({"uri": ping.uri, "elapsed_ms": ms, "transmissions": answer.transmissions});
                    writeln!(out, "{object}")?;
                }
                Ok(answer) => {
                    let (elapsed, times) = (short(answer.elapsed), answer.transmissions);
                    writeln!(out, "{} answers after {elapsed}, transmissions: {times}", ping.uri)?;
                }
                Err(error) => {
                    if ping.json {
                        writeln!(out, "{}", json!({"uri": ping.uri, "error": error.to_string()}))?;
                    }
                    let failure = explain(&error, &ping.uri);
                    // Wrong usage would fail again with every ping.
                    if matches!(failure, Failure::Usage(_)) {
                        return Err(failure);
                    }
                    last = Some(failure);
                }
            }
        }
        // Only the last ping decides the exit code. Earlier failures were printed.
        last.map_or(Ok(()), Err)
    });
    setup.finish(result)
}
