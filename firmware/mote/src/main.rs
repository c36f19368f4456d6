//! A CoAP client and server for a Cortex-M3 with Ethernet, in less than 64 KiB of RAM.
//!
//! Each file is one part, from the hardware upwards:
//!
//! | file | part |
//! |---|---|
//! | `board.rs` | registers, interrupts, sleep |
//! | `memory.rs` | the heap, and how much memory was ever in use |
//! | `host.rs` | console and command line of the debugger |
//! | `clock.rs` | microseconds, and an alarm |
//! | `ethernet.rs` | the driver of the Ethernet controller |
//! | `network.rs` | smoltcp: UDP over IPv4 |
//! | `control.rs` | the choice of the congestion control |
//! | `node.rs` | the loop that drives an endpoint of `coapace-proto` |
//! | `client.rs`, `server.rs` | the two applications |
//! | `arguments.rs` | the command line |
//!
//! The first three need `unsafe`, each block with its argument beside it. Nothing else does.
#![no_std]
#![no_main]

extern crate alloc;

mod arguments;
mod board;
mod client;
mod clock;
mod control;
mod ethernet;
mod host;
mod memory;
mod network;
mod node;
mod server;

use alloc::boxed::Box;
use core::error::Error;

use coapace_control::Instant;
use coapace_proto::{Config, Setup};
use cortex_m_rt::entry;
use cortex_m_semihosting::debug::{self, EXIT_FAILURE, EXIT_SUCCESS};
use panic_semihosting as _;

use arguments::Arguments;
use board::Registers;
use client::Client;
use clock::Clock;
use ethernet::Ethernet;
use host::print;
use memory::Usage;
use network::{Network, Place};
use server::Server;

#[entry]
fn main() -> ! {
    memory::open_heap();
    let status = match run() {
        Ok(()) => EXIT_SUCCESS,
        Err(error) => {
            print(format_args!("error: {error}"));
            EXIT_FAILURE
        }
    };
    print(format_args!("{}", Usage::so_far()));
    loop {
        debug::exit(status);
    }
}

/// Does what the command line says.
fn run() -> Result<(), Box<dyn Error>> {
    let line = host::command_line().ok_or("there is no command line, or it is too long")?;
    let arguments = Arguments::read(line.split_ascii_whitespace().skip(1))?;
    let Arguments { mechanism, max_retransmit, patience, seed, address, gateway, .. } = arguments;

    let core = cortex_m::Peripherals::take().ok_or("the peripherals of the core are taken")?;
    board::enable_wakeups();
    let mut clock = Clock::start(core.SYST);
    let ethernet = Ethernet::start(Registers::ETHERNET)?;
    let port = if arguments.is_client { client_port(seed) } else { arguments.port };
    let place = Place { address, gateway };
    let mut network = Network::open(ethernet, place, port, clock.now())?;

    let setup = Setup {
        controller: mechanism,
        config: Config { max_retransmit, patience, ..node::config() },
        bulk: None,
    };
    if arguments.is_client {
        let mut client = Client::new(arguments.to, &arguments.path, arguments.exchanges);
        node::run(&mut client, setup, seed, &mut network, &mut clock);
    } else {
        let until = (arguments.seconds > 0).then(|| Instant::from_secs(arguments.seconds));
        node::run(&mut Server::new(until), setup, seed, &mut network, &mut clock);
    }
    if network.damaged() > 0 {
        print(format_args!("{} frames arrived damaged", network.damaged()));
    }
    Ok(())
}

/// Returns a port of the dynamic range (RFC 6335 §6), so that a mote that restarts is somebody else for its server.
fn client_port(seed: u64) -> u16 {
    49_152 + (seed % 16_384) as u16
}
