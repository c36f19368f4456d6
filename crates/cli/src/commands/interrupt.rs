//! Interruption of commands that run until they are stopped.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a command that SIGINT has ended, as shells show it.
const INTERRUPTED: i32 = 130;

/// Returns after Ctrl-C or SIGTERM, so that the command can end in order. The next signal ends the process at once.
///
/// # Errors
/// The system accepts no signal handler.
/// If the system takes no handler.
pub(super) async fn interrupted() -> io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    either(&mut interrupt, &mut terminate).await;
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        std::process::exit(INTERRUPTED);
    });
    Ok(())
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
