//! Sources that ask once, each from an address of its own.

use std::time::{Duration, Instant};

use crate::Result;
use crate::arguments::Arguments;
use crate::client::{Client, Tally};

/// How often a source tries before it gives up.
const TRIES: u32 = 3;

/// One source after the other makes one request; a lost one is made again, with another Message ID.
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

/// One request. Has something come back?
fn ask(client: &mut Client, timeout: Duration, tally: &mut Tally) -> bool {
    client.begin(Instant::now());
    loop {
        if client.receive(tally) {
            return true;
        }
        if client.expire(Instant::now(), timeout, tally) {
            return false;
        }
        // The server may need the core, if there is only one for both.
        std::thread::yield_now();
    }
}
