//! Payloads formatted for people.

use coap_numbers::content_format;
use serde::de::IgnoredAny;

/// The deepest level of JSON that is indented. Deeper levels stay unchanged, so that a short payload cannot cause an
/// endless number of spaces.
const DEEPEST: usize = 16;

/// Returns a JSON payload indented, and a CBOR payload in the diagnostic notation of RFC 8949 §8. The Content-Format
/// may be JSON, CBOR or a format based on one of them. Returns `None` for any other format, and for a payload that is
/// malformed. The text is at most 18 times as long as JSON, and 12 times as long as CBOR.
pub(crate) fn readable(format: Option<u16>, payload: &[u8]) -> Option<String> {
    let name = content_format::to_str(format?)?;
    // Content-Formats look like "application/senml+json", "application/cbor-seq" or "application/ace+cbor; …".
    let kind = name.split(';').next()?.rsplit(['/', '+']).next()?;
    match kind {
        "json" => indented(std::str::from_utf8(payload).ok()?),
        "cbor" | "cbor-seq" => diagnostic(payload),
        _ => None,
    }
}

/// Indents JSON: a member or element on each line, down to [`DEEPEST`]. Names, numbers and their sequence stay unchanged.
fn indented(json: &str) -> Option<String> {
    // The loop below needs valid JSON, and then keeps every number and name as it was written.
    serde_json::from_str::<IgnoredAny>(json).ok()?;
    let mut text = String::with_capacity(2 * json.len());
    let mut depth = 0_usize;
    let mut inside_text = false;
    let mut rest = json.chars().peekable();
    while let Some(c) = rest.next() {
        let is_deep = depth > DEEPEST;
        match c {
            _ if inside_text => {
                text.push(c);
                match c {
                    '"' => inside_text = false,
                    // An escaped character, such as a quote, does not end the string.
                    '\\' => text.extend(rest.next()),
                    _ => {}
                }
            }
            // Spaces of the sender would add to ours. Below DEEPEST they stay, like everything there.
            c if c.is_ascii_whitespace() && !is_deep => {}
            '{' | '[' => {
                text.push(c);
                depth += 1;
                if depth > DEEPEST {
                    continue;
                }
                // An empty object or array stays on its line.
                while rest.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = rest.next_if(|&next| matches!(next, '}' | ']')) {
                    text.push(end);
                    depth -= 1;
                } else {
                    break_line(&mut text, depth);
                }
            }
            // `is_deep` was taken before the depth falls, so brackets that open and close the same level agree.
            '}' | ']' => {
                // The text is valid JSON, so the depth never falls below 0.
                depth = depth.saturating_sub(1);
                if !is_deep {
                    break_line(&mut text, depth);
                }
                text.push(c);
            }
            ',' if !is_deep => {
                text.push(c);
                break_line(&mut text, depth);
            }
            ':' if !is_deep => text.push_str(": "),
            // In valid JSON a quote outside a string begins one.
            c => {
                inside_text = c == '"';
                text.push(c);
            }
        }
    }
    Some(text)
}

fn break_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

/// Returns the CBOR items of a payload in diagnostic notation, one per line.
fn diagnostic(payload: &[u8]) -> Option<String> {
    let mut lines = Vec::new();
    let mut decoder = minicbor::Decoder::new(payload);
    while decoder.position() < payload.len() {
        let start = decoder.position();
        // `skip` also checks that the item is complete, so a truncated payload is not printed as CBOR.
        decoder.skip().ok()?;
        lines.push(minicbor::display(payload.get(start..decoder.position())?).to_string());
    }
    // An empty payload has no CBOR item.
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: Option<u16> = Some(50);
    const CBOR: Option<u16> = Some(60);

    #[test]
    fn json_is_indented_and_not_changed_otherwise() {
        let json = br#"{"b": [1.50, 12345678901234567890123, {}],"a":"x, \"y\": {", "n":[ ]}"#;
        let text = readable(JSON, json).expect("it is JSON");
        let lines = [
            "{",
            r#"  "b": ["#,
            "    1.50,",
            "    12345678901234567890123,",
            "    {}",
            "  ],",
            r#"  "a": "x, \"y\": {","#,
            r#"  "n": []"#,
            "}",
        ];
        assert_eq!(text, lines.join("\n"));
        // application/senml+json
        assert_eq!(readable(Some(110), b"[1]").as_deref(), Some("[\n  1\n]"));
    }

    #[test]
    fn deeply_nested_payloads_take_bounded_room_when_indented() {
        const DEPTH: usize = 200_000;
        let json = "[".repeat(DEPTH) + "1, 2" + &"]".repeat(DEPTH);
        let text = readable(JSON, json.as_bytes()).expect("it is JSON");
        assert!(text.len() < json.len() + 2 * DEEPEST * (2 * DEEPEST + 1), "{} bytes", text.len());
        assert!(text.contains("[1, 2]"), "the deepest levels are as they were sent");
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        assert_eq!(compact, json.replace(' ', ""));
        // The most spaces that a byte can ask for: elements at the deepest level that is indented.
        let flat = "[".repeat(DEEPEST) + &"1,".repeat(DEPTH) + "1" + &"]".repeat(DEEPEST);
        assert!(readable(JSON, flat.as_bytes()).expect("it is JSON").len() < 18 * flat.len());
        let cbor = [vec![0x81; DEPTH], vec![0x9f; DEPTH], vec![0xff; DEPTH]].concat();
        assert!(readable(CBOR, &cbor).expect("it is CBOR").len() < 12 * cbor.len());
    }

    #[test]
    fn cbor_payloads_are_printed_in_diagnostic_notation() {
        let cbor = [0xa3, 0x61, b't', 21, 0x62, b'o', b'n', 0xf5, 0x62, b'i', b'd', 0x42, 0xca, 0xfe];
        assert_eq!(readable(CBOR, &cbor).as_deref(), Some(r#"{"t": 21, "on": true, "id": h'ca fe'}"#));
        // application/cbor-seq
        assert_eq!(readable(Some(63), &[1, 2]).as_deref(), Some("1\n2"));
    }

    #[test]
    fn a_payload_that_does_not_match_its_content_format_is_printed_unchanged() {
        assert_eq!(readable(JSON, b"{\"a\":"), None);
        assert_eq!(readable(JSON, &[0xff]), None);
        assert_eq!(readable(CBOR, &[0x82, 1]), None);
        assert_eq!(readable(CBOR, b""), None);
        assert_eq!(readable(Some(0), b"{}"), None);
        assert_eq!(readable(None, b"{}"), None);
    }
}
