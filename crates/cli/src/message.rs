//! Codes, options and payloads of messages, as text and as JSON.

use std::fmt::Write as _;

use coap_numbers::{content_format, option};
use coapace_net::{Options, Response};
use serde_json::{Map, Value, json};

/// Returns the name of an option, or else its number.
pub(crate) fn option_name(number: u16) -> String {
    option::to_name(number).map_or_else(|| number.to_string(), str::to_owned)
}

/// Returns the value of an option in the format of its definition: a number, text, or hexadecimal digits after
/// `0x`.
pub(crate) fn option_value(number: u16, value: &[u8]) -> Value {
    // An integer option has its shortest form, and may be empty for 0 (RFC 7252 §3.2).
    let uint =
        || (value.len() <= 8).then(|| value.iter().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte)));
    let read = match number {
        // These are the options of format string (RFC 7252 §5.10, Table 4).
        option::URI_HOST
        | option::LOCATION_PATH
        | option::URI_PATH
        | option::URI_QUERY
        | option::LOCATION_QUERY
        | option::PROXY_URI
        | option::PROXY_SCHEME => std::str::from_utf8(value).ok().map(Value::from),
        // A format without a name is printed as its number.
        option::CONTENT_FORMAT | option::ACCEPT => uint().map(|number| {
            let name = u16::try_from(number).ok().and_then(content_format::to_str);
            name.map_or(number.into(), Value::from)
        }),
        option::OBSERVE
        | option::URI_PORT
        | option::MAX_AGE
        | option::HOP_LIMIT
        | option::SIZE1
        | option::SIZE2
        // RFC 7967 §2 defines No-Response as uint, too.
        | option::NO_RESPONSE => uint().map(Value::from),
        // NUM/M/SIZE, as RFC 7959 §3 writes it.
        option::BLOCK1 | option::BLOCK2 | option::Q_BLOCK1 | option::Q_BLOCK2 => uint()
            // SZX 7 is reserved over UDP and BERT over TCP (RFC 8323 §6), where it has no single size.
            .filter(|block| block & 7 != 7)
            .map(|block| format!("{}/{}/{}", block >> 4, block >> 3 & 1, 16 << (block & 7)).into()),
        _ => None,
    };
    read.unwrap_or_else(|| format!("0x{}", hex(value)).into())
}

/// Returns options as an array of objects with `number`, `name` and `value`, because an option may be repeated.
fn options_json(options: &Options) -> Value {
    let each = options
        .iter()
        .map(|(number, value)| json!({"number": number, "name": option_name(number), "value": option_value(number, value)}));
    each.collect()
}

/// Returns a response as an object. A payload that is not text is in hexadecimal digits, as `payload_hex`.
pub(crate) fn response_json(uri: &str, response: &Response) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("uri".into(), uri.into());
    object.insert("code".into(), response.code.dotted().to_string().into());
    // A code without a registered name gives null, so the key is always there.
    object.insert("name".into(), response.code.name().into());
    object.insert("options".into(), options_json(&response.options));
    match std::str::from_utf8(&response.payload) {
        Ok(text) => object.insert("payload".into(), text.into()),
        Err(_) => object.insert("payload_hex".into(), hex(&response.payload).into()),
    };
    object.insert("elapsed_ms".into(), (response.elapsed.as_micros() as f64 / 1e3).into());
    object.insert("transmissions".into(), response.transmissions.into());
    object
}

/// Returns the bytes of pairs of hexadecimal digits; `None` if they are invalid.
pub(crate) fn bytes_of_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    // Both digits are below 16, so the byte does not overflow.
    let bytes = pairs.iter().map(|&[high, low]| Some((digit(high)? << 4 | digit(low)?) as u8));
    bytes.collect::<Option<_>>().filter(|_| rest.is_empty())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_printed_by_name_and_in_their_own_format() {
        assert_eq!(option_value(option::CONTENT_FORMAT, &[50]), "application/json");
        assert_eq!(option_value(option::CONTENT_FORMAT, &[0xff, 0x01]), 0xff01);
        assert_eq!(option_value(option::CONTENT_FORMAT, &[]), "text/plain; charset=utf-8");
        assert_eq!(option_value(option::MAX_AGE, &[1, 0]), 256);
        assert_eq!(option_value(option::BLOCK2, &[0x1e]), "1/1/1024");
        assert_eq!(option_value(option::LOCATION_PATH, "ä".as_bytes()), "ä");
    }

    #[test]
    fn an_unreadable_payload_is_printed_in_hexadecimal() {
        assert_eq!(option_value(option::ETAG, &[0, 0xab]), "0x00ab");
        assert_eq!(option_value(option::URI_PATH, &[0xff]), "0xff");
        assert_eq!(option_value(option::BLOCK1, &[0x17]), "0x17");
        assert_eq!(option_value(option::MAX_AGE, &[0; 9]), "0x000000000000000000");
        assert_eq!((option_name(65_001), option_name(14)), ("65001".into(), "Max-Age".into()));
    }
}
