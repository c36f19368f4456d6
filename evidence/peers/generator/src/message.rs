//! Messages: the request, its correct response, and malformed datagrams.

use crate::Result;

/// The longest datagram that is received whole.
pub const MAX_DATAGRAM: usize = 1_500;

const VERSION: u8 = 1 << 6;
const CONFIRMABLE: u8 = 0 << 4;
const ACKNOWLEDGEMENT: u8 = 2 << 4;
const GET: u8 = 0x01;
const CONTENT: u8 = 0x45;
const URI_PATH: u8 = 11;
const PAYLOAD_MARKER: u8 = 0xFF;
/// The length of every token.
const TOKEN: usize = 4;
const HEADER: usize = 4;

/// A received datagram, compared to the expected response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 2.05, piggybacked, with the expected token, Message ID and payload.
    Right,
    /// A datagram with another Message ID: late, or a duplicate.
    Stray,
    /// Anything else, described in words.
    Wrong(String),
}

/// A request and its response, without Message ID and token.
#[derive(Clone)]
pub struct Exchange {
    options: Vec<u8>,
    payload: Vec<u8>,
}

impl Exchange {
    /// A confirmable GET of `path` that is answered with `payload`.
    ///
    /// # Errors
    ///
    /// A segment of the path is empty or longer than 12 bytes, the limit of a one-byte option header.
    pub fn new(path: &str, payload: &str) -> Result<Self> {
        let mut options = Vec::new();
        let mut delta = URI_PATH;
        for segment in path.split('/') {
            let length = u8::try_from(segment.len()).ok().filter(|length| (1..=12).contains(length));
            let length = length.ok_or("each segment of the path has 1 to 12 bytes")?;
            options.push(delta << 4 | length);
            options.extend(segment.bytes());
            delta = 0;
        }
        Ok(Self { options, payload: payload.into() })
    }

    /// Returns the request with this Message ID and token.
    pub fn request(&self, message_id: u16, token: u32) -> Vec<u8> {
        let mut message = vec![VERSION | CONFIRMABLE | TOKEN as u8, GET];
        message.extend(message_id.to_be_bytes());
        message.extend(token.to_be_bytes());
        message.extend(&self.options);
        message
    }

    /// Compares `datagram` with the piggybacked response to `request`.
    pub fn check(&self, request: &[u8], datagram: &[u8]) -> Answer {
        let Some(message) = Message::parse(datagram) else {
            return Answer::Wrong("a malformed message".into());
        };
        if *message.id != request[2..HEADER] && message.kind == ACKNOWLEDGEMENT {
            return Answer::Stray;
        }
        let wrong = |words: &str| Answer::Wrong(words.into());
        match (message.kind, message.code) {
            (ACKNOWLEDGEMENT, CONTENT) if message.token != &request[HEADER..HEADER + TOKEN] => {
                wrong("another token")
            }
            (ACKNOWLEDGEMENT, CONTENT) if message.payload != self.payload => wrong("another payload"),
            (ACKNOWLEDGEMENT, CONTENT) => Answer::Right,
            (ACKNOWLEDGEMENT, 0) => wrong("an empty acknowledgement"),
            (kind, code) => Answer::Wrong(format!("type {}, code {}.{:02}", kind >> 4, code >> 5, code & 31)),
        }
    }

    /// Writes the response to `request` into `response`; `None` if it is no confirmable GET. Options are ignored.
    pub fn respond<'a>(&self, request: &[u8], response: &'a mut [u8; MAX_DATAGRAM]) -> Option<&'a [u8]> {
        let (first, token) = (*request.first()?, usize::from(request.first()? & 15));
        if first & 0xF0 != VERSION | CONFIRMABLE
            || token > 8
            || request.len() < HEADER + token
            || request[1] != GET
        {
            return None;
        }
        let start = HEADER + token;
        let end = start + 1 + self.payload.len();
        response[..start].copy_from_slice(&request[..start]);
        response[0] = VERSION | ACKNOWLEDGEMENT | token as u8;
        response[1] = CONTENT;
        response[start] = PAYLOAD_MARKER;
        response.get_mut(start + 1..end)?.copy_from_slice(&self.payload);
        Some(&response[..end])
    }
}

/// A parsed message (RFC 7252 §3).
struct Message<'a> {
    kind: u8,
    code: u8,
    /// The Message ID.
    id: &'a [u8],
    token: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Parses a message; `None` if its format is wrong.
    fn parse(datagram: &'a [u8]) -> Option<Self> {
        let (header, rest) = datagram.split_at_checked(HEADER)?;
        let token = usize::from(header[0] & 15);
        if header[0] >> 6 != 1 || token > 8 || (header[1] == 0 && !rest.is_empty()) {
            return None;
        }
        let (token, mut rest) = rest.split_at_checked(token)?;
        while let Some((&first, mut after)) =
            rest.split_first().filter(|(first, _)| **first != PAYLOAD_MARKER)
        {
            extended(first >> 4, &mut after)?;
            let length = extended(first & 15, &mut after)?;
            rest = after.get(length..)?;
        }
        let payload = rest.get(1..).unwrap_or_default();
        if rest.len() == 1 {
            return None; // a marker and nothing behind it
        }
        Some(Self { kind: header[0] & 0x30, code: header[1], id: &header[2..], token, payload })
    }
}

/// Reads an option's delta or length with its extending bytes; 15 is reserved.
fn extended(nibble: u8, rest: &mut &[u8]) -> Option<usize> {
    let (bytes, base) = match nibble {
        13 => (1, 13),
        14 => (2, 269),
        15 => return None,
        _ => return Some(nibble.into()),
    };
    let (extension, after) = rest.split_at_checked(bytes)?;
    *rest = after;
    Some(extension.iter().fold(0, |value, byte| value << 8 | usize::from(*byte)) + base)
}

/// Datagrams that break the format of RFC 7252 §3 in different ways. Bytes 2 and 3 are their Message ID if they have one.
pub fn malformed() -> Vec<Vec<u8>> {
    let mut datagrams: Vec<Vec<u8>> = [
        &b"\x40\x01\x00"[..],                  // shorter than a header
        b"\x00\x01\x00\x00\xb5bench",          // version 0
        b"\xc0\x01\x00\x00\xb5bench",          // version 3
        b"\x49\x01\x00\x00123456789\xb5bench", // a token of 9 bytes
        b"\x4f\x01\x00\x00",                   // a token length that is reserved
        b"\x48\x01\x00\x00123",                // a token cut off
        b"\x40\x01\x00\x00\xb5ben",            // an option cut off
        b"\x40\x01\x00\x00\xf5bench",          // an option delta that is reserved
        b"\x40\x01\x00\x00\xbfbench",          // an option length that is reserved
        b"\x40\x01\x00\x00\xbe\xff",           // an extended length cut off
        b"\x40\x01\x00\x00\xbd\xffbench",      // a length beyond the end
        b"\x40\x01\x00\x00\xb5bench\xff",      // a payload marker without payload
        b"\x40\x00\x00\x00\xb5bench",          // an Empty message with options
        b"\x50\x01\x00\x00\xb5bench\xff",      // the same fault in a non-confirmable message
    ]
    .map(<[u8]>::to_vec)
    .into();
    let mut long = b"\x40\x01\x00\x00\xbe\x7f\xff".to_vec(); // a kilobyte, less than its option says
    long.resize(1_024, b'x');
    datagrams.push(long);
    datagrams
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange() -> Exchange {
        Exchange::new("a/bench", "sixty").unwrap()
    }

    #[test]
    fn a_request_is_written_as_rfc_7252_says() {
        assert_eq!(
            exchange().request(0x1234, 0x0A0B_0C0D),
            b"\x44\x01\x12\x34\x0a\x0b\x0c\x0d\xb1a\x05bench"
        );
        assert!(Exchange::new("", "").is_err());
        assert!(Exchange::new("thirteen-byte", "").is_err());
    }

    #[test]
    fn the_bare_response_is_right() {
        let request = exchange().request(7, 9);
        let mut buffer = [0; MAX_DATAGRAM];
        let response = exchange().respond(&request, &mut buffer).unwrap();
        assert_eq!(response, b"\x64\x45\x00\x07\x00\x00\x00\x09\xffsixty");
        assert_eq!(exchange().check(&request, response), Answer::Right);
    }

    #[test]
    fn options_before_the_payload_are_stepped_over() {
        let request = exchange().request(7, 9);
        let short = b"\x64\x45\x00\x07\x00\x00\x00\x09\xc0\x12AB\xffsixty";
        assert_eq!(exchange().check(&request, short), Answer::Right);
        // Delta 13 + 1 in one more byte, length 13 + 2 in another.
        let long = b"\x64\x45\x00\x07\x00\x00\x00\x09\xdd\x01\x02fifteen bytes..\xffsixty";
        assert_eq!(exchange().check(&request, long), Answer::Right);
    }

    #[test]
    fn what_differs_from_the_response_is_not_right() {
        let request = exchange().request(7, 9);
        let check = |datagram: &[u8]| exchange().check(&request, datagram);
        assert_eq!(check(b"\x64\x45\x00\x08\x00\x00\x00\x09\xffsixty"), Answer::Stray);
        for wrong in [
            &b"\x64\x45\x00\x07\x00\x00\x00\x08\xffsixty"[..], // another token
            b"\x60\x45\x00\x07\xffsixty",                      // no token
            b"\x64\x45\x00\x07\x00\x00\x00\x09\xffsixtz",      // another payload
            b"\x64\x45\x00\x07\x00\x00\x00\x09",               // none
            b"\x64\x84\x00\x07\x00\x00\x00\x09\xffsixty",      // 4.04
            b"\x54\x45\x00\x07\x00\x00\x00\x09\xffsixty",      // separate
            b"\x60\x00\x00\x07",                               // empty
            b"\x70\x00\x00\x07",                               // a reset
            b"\x64\x45\x00\x07\x00",                           // cut off
        ] {
            assert!(matches!(check(wrong), Answer::Wrong(_)), "{wrong:?}");
        }
    }

    #[test]
    fn every_malformed_datagram_is_malformed() {
        for datagram in malformed() {
            assert!(Message::parse(&datagram).is_none(), "{datagram:?}");
        }
        assert!(Message::parse(&exchange().request(1, 2)).is_some());
    }

    #[test]
    fn the_bare_responder_is_silent_to_what_is_no_confirmable_get() {
        let mut buffer = [0; MAX_DATAGRAM];
        for datagram in [
            &b""[..],
            b"\x40\x01\x00",
            b"\x40\x02\x00\x00",
            b"\x50\x01\x00\x00",
            b"\x49\x01\x00\x00123456789",
        ] {
            assert!(exchange().respond(datagram, &mut buffer).is_none());
        }
    }
}
