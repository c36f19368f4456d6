//! Tests of the command, run like a user runs it.

mod advise;
mod artifact;
mod bodies;
mod capture;
#[path = "../../../net/tests/it/certified.rs"]
mod certified;
mod coexist;
mod common;
mod compare;
mod device;
#[cfg(target_os = "linux")]
mod emulate;
mod errors;
mod files;
mod help;
mod interrupt;
mod libcoap;
mod list;
#[cfg(target_os = "linux")]
mod live;
mod logs;
mod metrics;
mod observe;
mod playground;
mod rank;
mod reach;
mod relay;
mod reload;
mod run;
mod scenario_file;
mod search;
mod serve;
mod service;
mod sweep;
mod terminal;
mod tls;
mod trace;
mod unwritten;
mod writing;
