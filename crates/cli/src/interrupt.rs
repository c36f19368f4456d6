//! Ctrl-C in the middle of an experiment: the first ends it with the results so far, the second ends the process at
//! once.

use std::io;
use std::process::exit;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::draft;
use crate::failure::{Failure, INTERRUPTED};

static STOP: AtomicBool = AtomicBool::new(false);

/// Handles Ctrl-C and SIGTERM from the first call on. Returns a flag that becomes true with the first of these signals.
/// The second one ends the process.
pub(crate) fn watch() -> &'static AtomicBool {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| {
        let (sender, listens) = channel();
        // Without this thread, Ctrl-C ends the program immediately, like any program.
        if thread::Builder::new().spawn(move || drop(listen(&sender))).is_ok() {
            // An error means that the thread has ended without listening.
            let _ = listens.recv();
        }
    });
    &STOP
}

/// Reports through `listens` that the signal handlers are installed, and waits for signals.
fn listen(listens: &Sender<()>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        // `watch` waits for this, so that no Ctrl-C behind it ends the process.
        let _ = listens.send(());
        for is_second in [false, true] {
            either(&mut interrupt, &mut terminate).await;
            // Relaxed suffices: the flag guards no other data.
            STOP.store(true, Ordering::Relaxed);
            if is_second {
                draft::remove_all();
                // `exit` runs no destructors, so temporary files are removed before it.
                exit(INTERRUPTED.into());
            }
        }
        Ok(())
    })
}

/// Waits until a thread ends. Returns `None` if `stop` becomes true first; the thread then runs on, and nobody gets its
/// result.
pub(crate) fn wait<T>(thread: JoinHandle<T>, stop: &AtomicBool) -> Option<thread::Result<T>> {
    while !thread.is_finished() {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        // `JoinHandle` has no join with a timeout.
        thread::sleep(Duration::from_millis(10));
    }
    Some(thread.join())
}

/// Handles Ctrl-C and SIGTERM from the call on. Returns a future that completes with the first of these signals. The second
/// then ends the process immediately.
///
/// # Errors
/// If the system refuses a signal handler.
///
/// # Panics
/// If it is not called in a runtime of tokio.
pub(crate) fn interrupted() -> Result<impl Future<Output = ()>, Failure> {
    let (mut interrupt, mut terminate) =
        (arrivals(SignalKind::interrupt())?, arrivals(SignalKind::terminate())?);
    Ok(async move {
        either(&mut interrupt, &mut terminate).await;
        // The end may take seconds, such as for answers under way. A second Ctrl-C does not wait.
        tokio::spawn(async move {
            either(&mut interrupt, &mut terminate).await;
            exit(INTERRUPTED.into());
        });
    })
}

/// Handles a signal from the call on. Returns a receiver that waits for each arrival of the signal.
///
/// # Errors
/// If the system refuses a signal handler.
pub(crate) fn arrivals(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::Io("cannot handle signals".to_owned(), error))
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
