//! The requests that a client must not repeat yet, because servers answered 4.29 Too Many Requests (RFC 8516).

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use coapace_proto::Code;

use crate::lock::lock;
use crate::uri::Uri;
use crate::{Error, Response};

/// The maximum number of requests that are held. Beyond that one held request is forgotten, and the server answers 4.29
/// again.
const MOST: usize = 1_024;

/// The shortest time that a request is held. With a Max-Age of 0, a client would otherwise repeat it without a pause.
const SHORTEST: Duration = Duration::from_secs(1);

/// The longest time that a request is held. A forged response with a large Max-Age would otherwise lock a client out.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The held requests, which the client must not repeat yet. Requests of one method to one path of one origin count as
/// one, whatever their query and payload.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    keys: RandomState,
    until: Mutex<HashMap<u64, Instant>>,
}

impl Holds {
    /// Returns for how long requests of this method to this URI are held from `now` on. Returns `None` if they are not
    /// held.
    pub(crate) fn left(&self, now: Instant, method: Code, uri: &Uri) -> Option<Duration> {
        let until = lock(&self.until);
        // Most clients hold nothing, so the URI is not hashed for each request.
        if until.is_empty() {
            return None;
        }
        let left = until.get(&self.key(method, uri))?.saturating_duration_since(now);
        (left > Duration::ZERO).then_some(left)
    }

    /// Holds requests of this method to this URI for the Max-Age of `response`, if it is 4.29. Does nothing otherwise.
    pub(crate) fn note(&self, now: Instant, method: Code, uri: &Uri, response: &Response) {
        let Some(wait) = wanted(response) else { return };
        let mut held = lock(&self.until);
        // Entries that have expired are removed only here: searching for them at every call would cost more.
        if held.len() >= MOST {
            held.retain(|_, until| *until > now);
        }
        if held.len() >= MOST
            && let Some(&any) = held.keys().next()
        {
            held.remove(&any);
        }
        held.insert(self.key(method, uri), now + wait);
    }

    fn key(&self, method: Code, uri: &Uri) -> u64 {
        self.keys.hash_one((uri.scheme, &uri.host, uri.port, method.0, &uri.path))
    }
}

/// Returns the time after which the request may be repeated, if the response is 4.29.
pub(crate) fn wanted(response: &Response) -> Option<Duration> {
    let wait = || response.as_message(|message| Duration::from_secs(message.max_age().into()));
    (response.code == Code::TOO_MANY_REQUESTS).then(|| wait().clamp(SHORTEST, LONGEST))
}

/// Returns how long to wait before a request may be repeated, if its server asks for a pause that ends before the deadline.
pub(crate) fn pause(result: &Result<Response, Error>, deadline: Instant) -> Option<Duration> {
    let wait = match result {
        Ok(response) => wanted(response)?,
        Err(Error::TooManyRequests { wait }) => *wait,
        Err(_) => return None,
    };
    // Without time for a response after the pause, the caller gets the refusal at once.
    (Instant::now() + wait < deadline).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn after_4_29_a_request_is_held_for_max_age_and_other_paths_methods_and_origins_are_not() {
        let (holds, now) = (Holds::default(), Instant::now());
        let response = Response::new(Code::TOO_MANY_REQUESTS).max_age(7);
        holds.note(now, Code::GET, &uri("coap://a/x?1"), &response);
        let left = |after, method, text| holds.left(now + Duration::from_secs(after), method, &uri(text));
        assert_eq!(left(3, Code::GET, "coap://a/x?2"), Some(Duration::from_secs(4)));
        assert_eq!(left(7, Code::GET, "coap://a/x"), None);
        for other in ["coap://a/y", "coap://b/x", "coaps://a/x", "coap://a:1/x"] {
            assert_eq!(left(0, Code::GET, other), None, "{other}");
        }
        assert_eq!(left(0, Code::PUT, "coap://a/x"), None);
    }

    #[test]
    fn the_pause_after_4_29_is_a_minute_by_default_and_one_second_to_one_day() {
        let response = Response::new(Code::TOO_MANY_REQUESTS);
        assert_eq!(wanted(&response), Some(Duration::from_secs(60)), "RFC 7252 §5.10.5");
        assert_eq!(wanted(&response.clone().max_age(0)), Some(SHORTEST));
        assert_eq!(wanted(&response.max_age(u32::MAX)), Some(LONGEST));
        assert_eq!(wanted(&Response::new(Code::SERVICE_UNAVAILABLE).max_age(5)), None);
    }

    #[test]
    fn the_table_of_requests_held_after_4_29_is_bounded() {
        let (holds, now) = (Holds::default(), Instant::now());
        for number in 0..2 * MOST {
            let response = Response::new(Code::TOO_MANY_REQUESTS);
            holds.note(now, Code::GET, &uri(&format!("coap://a/{number}")), &response);
        }
        assert_eq!(lock(&holds.until).len(), MOST);
        assert!(holds.left(now, Code::GET, &uri(&format!("coap://a/{}", 2 * MOST - 1))).is_some());
    }
}
