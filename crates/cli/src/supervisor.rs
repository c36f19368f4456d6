//! Messages to systemd: readiness, reloads, the end, and the watchdog (sd_notify(3)). Without systemd all of this does nothing.

use std::time::Duration;

use sd_notify::NotifyState as State;
use tracing::{error, warn};

use crate::Failure;

/// Sends states to the service manager. A failure to send is only logged.
fn tell(states: &[State<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!(why = error.to_string(), "systemd cannot be notified");
    }
}

/// Reports that requests are answered from now on.
pub(crate) fn ready() {
    tell(&[State::Ready]);
}

/// Reports that the service is stopping.
pub(crate) fn stopping() {
    tell(&[State::Stopping]);
}

/// Calls `reload`, and reports the start and the end of the reload, with the failure if it fails.
pub(crate) fn reloading(reload: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    // systemd wants the time of the beginning with it (Type=notify-reload).
    let mut beginning = vec![State::Reloading];
    beginning.extend(State::monotonic_usec_now().ok());
    tell(&beginning);
    let reloaded = reload();
    let status = match &reloaded {
        Ok(()) => "reloaded".to_owned(),
        // sd_notify(3) separates states by line breaks, so a message must have none.
        Err(failure) => format!("not reloaded: {failure}").replace('\n', " "),
    };
    // READY=1 ends the reload for systemd, whether it succeeded or not: the old keys still serve.
    tell(&[State::Ready, State::Status(&status)]);
    reloaded
}

/// Keeps systemd's watchdog satisfied as long as `pulse` completes in time, which shows that requests are still answered.
/// Returns at once without a watchdog (WatchdogSec=).
pub(crate) async fn watch<F: Future<Output = ()>>(pulse: impl Fn() -> F) {
    let Some(patience) = sd_notify::watchdog_enabled() else { return };
    // sd_watchdog_enabled(3) recommends half of the time.
    let interval = (patience / 2).max(Duration::from_millis(1));
    loop {
        if tokio::time::timeout(interval, pulse()).await.is_ok() {
            tell(&[State::Watchdog]);
        } else {
            // No message to systemd is sent now. The process is not ended here, because the thread may recover.
            error!("a thread does not answer; the watchdog of systemd may end this process");
        }
        tokio::time::sleep(interval).await;
    }
}
