//! The sequence and the freshness of notifications (RFC 7641 §3.3, §3.4, §4.4).

use coapace_control::{Draw, Duration, Instant};

use crate::Message;

/// The time after which any notification is newer, whatever its sequence number (RFC 7641 §3.4).
const ANY_IS_NEWER: Duration = Duration::from_secs(128);

/// Half of all sequence numbers (RFC 7641 §3.4).
const HALF: u32 = 1 << 23;

/// The least and the most time for which a client waits for an overdue notification (RFC 7641 §3.3.1).
const WAIT: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(15));

/// The state of an observation in a client: which notification is the newest, and for how long it is fresh.
#[derive(Clone, Copy, Debug)]
pub struct NotificationOrder {
    /// The sequence number and the arrival of the newest notification.
    newest: Option<(u32, Instant)>,
    fresh_until: Instant,
}

impl NotificationOrder {
    /// Creates the state of an observation without a notification yet.
    pub const fn new() -> Self {
        Self { newest: None, fresh_until: Instant::ZERO }
    }

    /// Handles an arriving response or notification. Returns whether it is newer than the earlier ones. If it is not,
    /// the application ignores it (RFC 7641 §3.4). A response without the Observe option always counts as newer,
    /// because it is the last. A notification with the same sequence number as the newest one has the same
    /// representation: it is not newer, but extends the freshness.
    pub fn update(&mut self, now: Instant, message: &Message<'_>) -> bool {
        if let (Some((before, at)), Some(number)) = (self.newest, message.observe()) {
            // The newer number is ahead by less than half of all numbers.
            let ahead = number.wrapping_sub(before) & (2 * HALF - 1);
            if !(0 < ahead && ahead < HALF) && now.since(at) <= ANY_IS_NEWER {
                if ahead == 0 {
                    self.fresh_until =
                        self.fresh_until.max(now + Duration::from_secs(message.max_age().into()));
                }
                return false;
            }
        }
        // Without the option nothing follows, so no later number is compared with this one.
        self.newest = message.observe().map(|number| (number, now));
        self.fresh_until = now + Duration::from_secs(message.max_age().into());
        true
    }

    /// Counts the representation as fresh until `now`, and so delays the next registration. Call this if the last
    /// registration was answered, although without a newer representation.
    pub fn put_off(&mut self, now: Instant) {
        self.fresh_until = self.fresh_until.max(now);
    }

    /// Returns until when the representation is fresh (Max-Age, RFC 7641 §3.3.1).
    pub const fn fresh_until(&self) -> Instant {
        self.fresh_until
    }

    /// Returns when to register again if nothing arrives before: 5 to 15 s after the representation is stale.
    /// A notification may still be on its way in that time (RFC 7641 §3.3.1).
    pub fn register_again_at(&self, draw: Draw) -> Instant {
        self.fresh_until + draw.between(WAIT.0, WAIT.1)
    }
}

impl Default for NotificationOrder {
    fn default() -> Self {
        Self::new()
    }
}

/// The sequence numbers of the notifications of a resource (RFC 7641 §4.4). Each is newer than the previous one, as long as
/// there are fewer than 2²³ within 128 s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequence(u32);

impl Sequence {
    /// Creates a sequence that starts after `number`. After a restart it should start with another number.
    pub const fn after(number: u32) -> Self {
        Self(number)
    }

    /// Returns the next number, of 24 bits.
    #[allow(clippy::should_implement_trait)] // An iterator ends, this does not.
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(1) & (2 * HALF - 1);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Kind, Options};

    fn arrive(order: &mut NotificationOrder, at: u64, number: u32) -> bool {
        let tail = Options::default().observe(number).max_age(30).tail(b"").unwrap();
        let message = Message { tail: tail.as_bytes(), ..Message::empty(Kind::NonConfirmable, 1) };
        order.update(Instant::from_secs(at), &message)
    }

    #[test]
    fn a_notification_is_newer_by_its_sequence_number_or_after_128_s() {
        let mut order = NotificationOrder::new();
        assert!(arrive(&mut order, 0, 5));
        assert!(!arrive(&mut order, 1, 4) && !arrive(&mut order, 1, 5));
        assert!(arrive(&mut order, 2, 6));
        assert!(!arrive(&mut order, 130, 5), "it is 128 s since the newest");
        assert!(arrive(&mut order, 131, 5));
    }

    #[test]
    fn observe_sequence_numbers_wrap_around() {
        let mut order = NotificationOrder::new();
        assert!(arrive(&mut order, 0, 0xff_ffff));
        assert!(arrive(&mut order, 0, 0));
        assert!(!arrive(&mut order, 0, 0xff_ffff));
        assert!(!arrive(&mut order, 0, HALF), "half of the numbers away is not newer");
        assert!(arrive(&mut order, 0, HALF - 1));
    }

    #[test]
    fn a_stale_observation_is_registered_again_after_5_to_15_s() {
        let mut order = NotificationOrder::new();
        arrive(&mut order, 100, 1);
        assert_eq!(order.fresh_until(), Instant::from_secs(130));
        assert_eq!(order.register_again_at(Draw::ZERO), Instant::from_secs(135));
        assert_eq!(order.register_again_at(Draw::from_bits(1 << 31)), Instant::from_secs(140));
    }

    #[test]
    fn a_copy_of_the_newest_notification_only_extends_its_freshness() {
        let mut order = NotificationOrder::new();
        arrive(&mut order, 100, 7);
        assert!(!arrive(&mut order, 120, 7));
        assert_eq!(order.fresh_until(), Instant::from_secs(150));
        assert!(!arrive(&mut order, 125, 6));
        assert_eq!(order.fresh_until(), Instant::from_secs(150));
        order.put_off(Instant::from_secs(160));
        assert_eq!(order.fresh_until(), Instant::from_secs(160));
    }

    #[test]
    fn a_notification_without_the_observe_option_counts_as_newer() {
        let mut order = NotificationOrder::new();
        arrive(&mut order, 0, 5);
        assert!(order.update(Instant::ZERO, &Message::empty(Kind::Confirmable, 1)));
        assert!(arrive(&mut order, 0, 1), "a new registration begins again");
    }

    proptest! {
        #[test]
        fn the_comparison_of_observe_numbers_agrees_with_rfc_7641(before in 0u32..1 << 24, number in 0u32..1 << 24, after in 0u64..200) {
            let newer = before < number && number - before < HALF
                || before > number && before - number > HALF
                || after > 128;
            let mut order = NotificationOrder::new();
            arrive(&mut order, 0, before);
            prop_assert_eq!(arrive(&mut order, after, number), newer);
        }

        #[test]
        fn each_observe_number_is_newer_than_the_previous_one(start: u32) {
            let mut sequence = Sequence::after(start);
            let mut order = NotificationOrder::new();
            prop_assert!((0..5).all(|_| arrive(&mut order, 0, sequence.next())));
        }
    }
}
