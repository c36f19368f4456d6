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

/// Listens for Ctrl-C and SIGTERM from the first call on. Returns a flag that becomes true with the first of them.
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

/// Reports through `listens` that the handlers are installed, and waits for signals.
fn listen(listens: &Sender<()>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let _ = listens.send(());
        for is_second in [false, true] {
            either(&mut interrupt, &mut terminate).await;
            STOP.store(true, Ordering::Relaxed);
            if is_second {
                draft::remove_all();
                exit(INTERRUPTED.into());
            }
        }
        Ok(())
    })
}

/// Waits for a thread. Returns `None` if Ctrl-C comes first; the thread then keeps running unattended.
pub(crate) fn wait<T>(thread: JoinHandle<T>, stop: &AtomicBool) -> Option<thread::Result<T>> {
    while !thread.is_finished() {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
    Some(thread.join())
}

/// Handles Ctrl-C and SIGTERM from the call on. Returns a future that is ready with the first of either; the next of either
/// then ends the process immediately.
///
/// # Errors
/// If the system takes no handler.
///
/// # Panics
/// If it is not called in a runtime of tokio.
pub(crate) fn interrupted() -> Result<impl Future<Output = ()>, Failure> {
    let (mut interrupt, mut terminate) =
        (arrivals(SignalKind::interrupt())?, arrivals(SignalKind::terminate())?);
    Ok(async move {
        either(&mut interrupt, &mut terminate).await;
        tokio::spawn(async move {
            either(&mut interrupt, &mut terminate).await;
            exit(INTERRUPTED.into());
        });
    })
}

/// Handles a signal from the call on. Returns its arrivals.
///
/// # Errors
/// If the system takes no handler.
pub(crate) fn arrivals(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::Io("cannot handle signals".to_owned(), error))
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
