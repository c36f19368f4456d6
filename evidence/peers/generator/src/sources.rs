//! Sources that make one request each, each from its own address.

use std::time::{Duration, Instant};

use crate::Result;
use crate::arguments::Arguments;
use crate::client::{Client, Tally};

/// Attempts of a source before it gives up.
const TRIES: u32 = 3;

/// Lets one source after the other make one request. A lost request is repeated with another Message ID.
pub fn run(arguments: &Arguments) -> Result<()> {
    let (server, exchange) = (arguments.server()?, arguments.exchange()?);
    let (count, timeout): (u32, _) = (arguments.get("count")?, arguments.seconds("timeout")?);
    let mut tally = Tally::default();
    let begun = Instant::now();
    for index in 0..count {
        let mut client = Client::new(arguments.address(index)?, server, &exchange)?;
        for _ in 0..TRIES {
            if ask(&mut client, timeout, &mut tally) {
                break;
            }
        }
    }
    println!("{} seconds={:.6}", tally.print(""), begun.elapsed().as_secs_f64());
    Ok(())
}

/// Makes one request. Returns whether something came back.
fn ask(client: &mut Client, timeout: Duration, tally: &mut Tally) -> bool {
    client.begin(Instant::now());
    loop {
        if client.receive(tally) {
            return true;
        }
        if client.expire(Instant::now(), timeout, tally) {
            return false;
        }
        // Gives the core to the server, in case there is only one.
        std::thread::yield_now();
    }
}
