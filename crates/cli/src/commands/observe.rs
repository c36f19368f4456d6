//! `coapace observe`.

use std::time::Duration;

use coapace_net::{Client, Error, Observation};
use tokio::time::{Instant, sleep_until};

use super::device::{ClientSetup, explain, on_terms, runtime, tell};
use super::printer::Printer;
use crate::arguments::{Arguments, ObserveArguments};
use crate::interrupt::interrupted;
use crate::shown::remark;
use crate::{Failure, logging};

/// The longest wait for the server's answer to a deregistration.
const FAREWELL: Duration = Duration::from_secs(3);

pub(crate) fn observe(arguments: &Arguments, observe: &ObserveArguments) -> Result<(), Failure> {
    logging::of_client(observe.show.verbose, arguments.quiet);
    let proxy = observe.terms.proxy.as_deref();
    let setup = ClientSetup::new(arguments, &observe.transmission, &observe.uri, proxy)?;
    let mut printer = Printer::open(&observe.uri, proxy, &observe.transmission, &observe.show, true)?;
    let client = setup.client()?;
    let result = runtime()?.block_on(follow(arguments, observe, &mut printer, &client));
    setup.finish(result)
}

async fn follow(
    arguments: &Arguments,
    observe: &ObserveArguments,
    printer: &mut Printer<'_>,
    client: &Client,
) -> Result<(), Failure> {
    let call = on_terms(client.get(&observe.uri), &observe.terms, &observe.transmission);
    let call = if observe.once { call.once() } else { call };
    let mut interrupted = std::pin::pin!(interrupted()?);
    // Before the registration is answered there is nothing to end, so Ctrl-C only stops.
    let registered = tokio::select! {
        () = &mut interrupted => return Ok(()),
        registered = call.observe() => registered,
    };
    let mut observation = match registered {
        Ok(observation) => observation,
        // The server has answered without Observe: the response is printed like one to a GET (RFC 7641 §4.1).
        Err(Error::NotObserved(response)) => {
            return printer.print(client, &Ok(*response))?.map_or(Ok(()), Err);
        }
        Err(error) => return printer.print(client, &Err(error))?.map_or(Ok(()), Err),
    };
    // The duration counts from the registration, which may take long on a lossy link.
    let end = observe.duration.map(|duration| Instant::now() + duration);
    let mut result = Ok(observation.first().clone());
    for count in 1.. {
        if let Some(failure) = printer.print(client, &result)? {
            return Err(failure);
        }
        // The bound is checked before waiting, so the last one ends the command at once.
        if observe.count.is_some_and(|bound| count >= bound) {
            break;
        }
        result = tokio::select! {
            next = observation.next() => match next {
                Some(next) => next,
                None if count == 1 => {
                    remark(arguments, &format!("{} cannot be observed", observe.uri));
                    return Ok(());
                }
                None => {
                    remark(arguments, "the server has ended the observation");
                    return Ok(());
                }
            },
            // Without an end, this branch is disabled, and its time has no meaning.
            () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => break,
            () = &mut interrupted => break,
        };
    }
    // Without this the server would send notifications until one is rejected (RFC 7641 §3.6).
    bid_farewell(observation, observe.terms.proxy.as_ref().unwrap_or(&observe.uri)).await;
    Ok(())
}

/// Deregisters the observation at the server. A missing answer is reported, but is not a failure.
async fn bid_farewell(observation: Observation, uri: &str) {
    match tokio::time::timeout(FAREWELL, observation.end()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tell(&explain(&error, uri).to_string()),
        Err(_) => tell(&format!("{uri}: the server did not confirm the end of the observation")),
    }
}
