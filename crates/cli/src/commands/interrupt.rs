//! Interruption of commands that run until they are told to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of a command that SIGINT has ended, as shells show it.
const INTERRUPTED: i32 = 130;

/// Returns with Ctrl-C, or when the system asks for the end (SIGTERM), so that the command may end in order. The next of
/// either ends it at once.
///
/// # Errors
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
