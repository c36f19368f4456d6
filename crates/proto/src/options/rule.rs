//! The properties of option numbers, and the rules of the options that are known here.

use coap_numbers::option;

use crate::REXMIT_CNT;

/// Returns whether a recipient that does not recognise the option must not act on the message (RFC 7252
/// §5.4.1).
pub const fn is_critical(number: u16) -> bool {
    number & 1 == 1
}

/// Returns whether a proxy that does not recognise the option must not forward the message (RFC 7252 §5.4.2).
pub const fn is_unsafe(number: u16) -> bool {
    number & 2 == 2
}

/// Returns whether a cache treats requests as equal that differ only in this option (RFC 7252 §5.4.2).
pub const fn is_no_cache_key(number: u16) -> bool {
    number & 0x1e == 0x1c
}

/// The form of an option that its specification allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptionRule {
    /// True if a message may have the option more than once (RFC 7252 §5.4.5).
    pub(crate) repeatable: bool,
    /// The least length of the value, bytes (RFC 7252 §5.4.3).
    pub(crate) least: u16,
    /// The greatest length of the value, bytes.
    pub(crate) most: u16,
}

impl OptionRule {
    /// Returns the rule of an option. An option that is unknown here may have any form.
    ///
    /// Sources: RFC 7252 Table 4, RFC 7641 §2, RFC 7959 §2.1 and §4, RFC 7967 §2, RFC 8613 §2, RFC 8768 §3,
    /// RFC 9175 §2.2.1 and §3.2.1, RFC 9177 §4.1.
    pub(crate) const fn of(number: u16) -> Self {
        let (repeatable, least, most) = match number {
            option::IF_MATCH | option::REQUEST_TAG => (true, 0, 8),
            option::URI_HOST | option::PROXY_SCHEME => (false, 1, 255),
            option::ETAG => (true, 1, 8),
            option::IF_NONE_MATCH => (false, 0, 0),
            option::OBSERVE | option::BLOCK1 | option::BLOCK2 | option::Q_BLOCK1 => (false, 0, 3),
            option::Q_BLOCK2 => (true, 0, 3),
            option::URI_PORT | option::CONTENT_FORMAT | option::ACCEPT => (false, 0, 2),
            option::LOCATION_PATH | option::URI_PATH | option::URI_QUERY | option::LOCATION_QUERY => {
                (true, 0, 255)
            }
            option::OSCORE => (false, 0, 255),
            option::MAX_AGE | option::SIZE1 | option::SIZE2 => (false, 0, 4),
            option::HOP_LIMIT => (false, 1, 1),
            option::PROXY_URI => (false, 1, 1034),
            option::ECHO => (false, 1, 40),
            option::NO_RESPONSE | REXMIT_CNT => (false, 0, 1),
            _ => (true, 0, u16::MAX),
        };
        Self { repeatable, least, most }
    }

    /// Returns whether a value may have this length.
    pub(crate) const fn allows(self, len: usize) -> bool {
        self.least as usize <= len && len <= self.most as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_of_options_agree_with_rfc_7252_table_4() {
        let classes = |number| (is_critical(number), is_unsafe(number), is_no_cache_key(number));
        assert_eq!(classes(option::IF_MATCH), (true, false, false));
        assert_eq!(classes(option::URI_HOST), (true, true, false));
        assert_eq!(classes(option::ETAG), (false, false, false));
        assert_eq!(classes(option::MAX_AGE), (false, true, false));
        assert_eq!(classes(option::URI_QUERY), (true, true, false));
        assert_eq!(classes(option::SIZE1), (false, false, true));
        assert_eq!(classes(option::ECHO), (false, false, true));
        assert_eq!(classes(option::REQUEST_TAG), (false, false, false));
    }

    #[test]
    fn every_unsafe_option_is_part_of_the_cache_key() {
        assert!((0..=u16::MAX).all(|number| !(is_unsafe(number) && is_no_cache_key(number))));
    }
}
