//! Arguments of the commands that talk to devices. Short flags are named as in libcoap's coap-client, long ones as in
//! aiocoap-client, if these programs have them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use coapace_net::{Code, least_leisure};
use coapace_scenario::{parse_share, parse_time};

use super::transmission::TransmissionArguments;
use crate::message::bytes_of_hex;

/// The method of a request, and whether it is confirmable or has a payload.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(crate) struct RequestContent {
    /// The payload; %XX is a byte in hexadecimal digits
    #[arg(short = 'e', value_name = "TEXT", value_parser = percent_decoded, group = "body", allow_hyphen_values = true)]
    pub(crate) encoded: Option<Encoded>,

    /// The payload, taken literally, or @FILE for the content of a file
    // A payload may begin with a hyphen, such as -3.
    #[arg(long, value_name = "TEXT|@FILE", group = "body", allow_hyphen_values = true)]
    pub(crate) payload: Option<String>,

    /// The file with the payload; - is standard input
    #[arg(short = 'f', long, value_name = "FILE", group = "body")]
    pub(crate) file: Option<PathBuf>,

    /// The Content-Format of the payload: a number, or a name such as json, cbor, text/plain
    #[arg(short = 't', long = "content-format", value_name = "TYPE", value_parser = content_format)]
    pub(crate) format: Option<u16>,

    #[command(flatten)]
    pub(crate) terms: RequestOptions,
}

/// Arguments of every request, with a payload or without.
#[derive(Clone, Debug, Args)]
pub(crate) struct RequestOptions {
    /// The Content-Format that the response shall have: a number or a name
    #[arg(short = 'A', long, value_name = "TYPE", value_parser = content_format)]
    pub(crate) accept: Option<u16>,

    /// An option with its value as text, or as hexadecimal digits after 0x; repeatable
    #[arg(short = 'O', long = "option", value_name = "NUMBER,VALUE", value_parser = numbered_option, allow_hyphen_values = true)]
    pub(crate) options: Vec<(u16, Encoded)>,

    /// The forward proxy for the request, as coap://HOST[:PORT] or another scheme of CoAP. The proxy asks the server; the URI
    /// of the resource may then be an HTTP one
    #[arg(long, value_name = "URI")]
    pub(crate) proxy: Option<String>,

    /// Send a non-confirmable request, which is not retransmitted
    #[arg(short = 'N', long)]
    pub(crate) non: bool,

    /// The largest block of a payload in either direction: 16, 32, 64, 128, 256, 512 or 1024 bytes [default: 1024]
    #[arg(short = 'b', long, value_name = "BYTES", value_parser = block_size)]
    pub(crate) block_size: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct RequestArguments {
    /// The resource, as coap://HOST[:PORT]/PATH[?QUERY]. A request to a group such as coap://[ff02::fd%25eth0]/PATH is sent
    /// once and non-confirmable; each answer of a member is listed with address, code and payload
    pub(crate) uri: String,

    #[command(flatten)]
    pub(crate) content: RequestContent,

    #[command(flatten)]
    pub(crate) transmission: TransmissionArguments,

    #[command(flatten)]
    pub(crate) gathering: Gathering,

    #[command(flatten)]
    pub(crate) show: Show,

    /// Continue the transfer whose first blocks are in FILE.part, if the server still has that version. Without that
    /// file, or if it is of another resource, start from the first block
    // With --repeat no first blocks are kept, so nothing can be continued.
    #[arg(long = "continue", requires = "output", conflicts_with = "repeat")]
    pub(crate) resume: bool,

    /// Send the request N times in all, one after the other, and print a summary
    #[arg(long, visible_alias = "count", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: Option<u32>,
}

/// Arguments on collecting the answers of a group.
#[derive(Clone, Debug, Args)]
pub(crate) struct Gathering {
    /// The time over which members of a group spread their answers, or S*G/R: bytes of an answer, members, bytes a
    /// second (100*50/1000 is 5 s). Answers are awaited a second longer, or as long as -B says [default: 5s]
    #[arg(long, value_name = "TIME|S*G/R", value_parser = leisure)]
    pub(crate) leisure: Option<Duration>,

    /// The responses that members shall not send: success, errors or all
    #[arg(long, value_name = "CLASSES", value_parser = classes)]
    pub(crate) no_response: Option<u8>,
}

/// The parts of a response to print, and where to write its payload.
#[derive(Clone, Debug, Args)]
pub(crate) struct Show {
    /// Write the payload of the response to a file. A transfer in blocks that breaks leaves its first blocks in FILE.part
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Print code and options of the response to standard error; -vv also logs lower layers, such as handshakes
    #[arg(short = 'v', long, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Print round-trip time, transmissions and the mechanism's RTO to standard error
    #[arg(long)]
    pub(crate) stats: bool,

    /// Print each response, or the reason why there is none, as a JSON object, one on each line
    #[arg(long)]
    pub(crate) json: bool,
}

/// A request whose method is named by an option.
#[derive(Debug, Args)]
pub(crate) struct AnyRequest {
    /// The method: get, put, post, delete, fetch, patch or ipatch
    #[arg(short = 'm', long, value_name = "METHOD", default_value = "get", value_parser = method)]
    pub(crate) method: Code,

    #[command(flatten)]
    pub(crate) request: RequestArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ObserveArguments {
    /// The resource, as coap://HOST[:PORT]/PATH[?QUERY]
    pub(crate) uri: String,

    #[command(flatten)]
    pub(crate) terms: RequestOptions,

    #[command(flatten)]
    pub(crate) transmission: TransmissionArguments,

    #[command(flatten)]
    pub(crate) show: Show,

    /// End the observation after this time, in seconds or like 500ms [default: with Ctrl-C]
    // A negative time reaches the parser, whose error names the times that are allowed.
    #[arg(short = 's', long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub(crate) duration: Option<Duration>,

    /// End when the server is unavailable (5.03), as it is while it restarts [default: register again when it may be back]
    #[arg(long)]
    pub(crate) once: bool,

    /// End the observation after this many responses, the first included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct Discover {
    /// The server, as coap://HOST[:PORT]. A group such as coap://224.0.1.187 or coap://[ff02::fd%25eth0] is
    /// all servers that answer in time
    pub(crate) uri: String,

    /// A filter such as rt=temperature, href=/sensors/* or obs; a link has to match all filters (RFC 6690 §4.1)
    #[arg(value_name = "FILTER")]
    pub(crate) filters: Vec<String>,

    #[command(flatten)]
    pub(crate) terms: RequestOptions,

    #[command(flatten)]
    pub(crate) transmission: TransmissionArguments,

    #[command(flatten)]
    pub(crate) gathering: Gathering,

    /// Print each link as a JSON object, one on each line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Ping {
    /// The server, as coap://HOST[:PORT]
    pub(crate) uri: String,

    #[command(flatten)]
    pub(crate) transmission: TransmissionArguments,

    /// The number of pings, a second apart
    #[arg(long, visible_alias = "repeat", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,

    /// Print each answer, or the reason why there is none, as a JSON object, one on each line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Load {
    /// The resource, as coap://HOST[:PORT]/PATH[?QUERY]
    pub(crate) uri: String,

    /// The method: get, put, post, delete, fetch, patch or ipatch
    #[arg(short = 'm', long, value_name = "METHOD", default_value = "get", value_parser = method)]
    pub(crate) method: Code,

    #[command(flatten)]
    pub(crate) content: RequestContent,

    #[command(flatten)]
    pub(crate) transmission: TransmissionArguments,

    /// Clients, each with its own port and its own state of the mechanism
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) clients: u32,

    /// Requests a second, of all clients together [default: a client sends its next request when the last is
    /// answered]
    #[arg(long, value_name = "R", value_parser = rate, allow_hyphen_values = true)]
    pub(crate) rate: Option<f64>,

    /// Drop this share of the datagrams in each direction, on the client's side
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share, allow_hyphen_values = true)]
    pub(crate) loss: f64,

    /// The duration, in seconds or like 500ms
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = time, allow_hyphen_values = true)]
    pub(crate) duration: Duration,

    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) threads: super::Threads,
}

/// The bytes of an argument, in a type of their own, because clap treats a `Vec` as a repeated argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encoded(pub(crate) Vec<u8>);

pub(super) const EXIT_CODES: &str =
    "Exit codes: 0 answered 2.xx; 1 no answer; 2 wrong usage; 3 answered with another code";

pub(super) const EXAMPLES_GET: &str = "Examples:
  coapace get coap://[::1]/clock
  coapace get coap://[::1]/clock --cc fasor --stats
  coapace get coap://[::1]/clock --repeat 200 --cc cocoa:max_rto=10s > /dev/null
  coapace get coap://[::1]/clock -A text/plain -O 2050,0xcafe --json
  coapace get coaps://[::1]/clock -u lamp-7 -k @lamp-7.key
  coapace get coap://[ff02::fd%25eth0]/temperature --leisure 10s
  coapace get coaps+tcp://localhost/clock --ca ca.pem --cert lamp-7.pem --private-key lamp-7.key
  coapace get coap://lamp-7.example.org/clock --proxy coap://[::1]:5700

Exit codes: 0 answered 2.xx; 1 no answer; 2 wrong usage; 3 answered with another code";

pub(super) const EXAMPLES_PUT: &str = "Examples:
  coapace put coap://[::1]/store/a -e 21.5
  coapace put coap://[::1]/store/a --payload '{\"on\": true}' -t json
  date | coapace put coap://[::1]/store/a -f -
  coapace put coap://[::1]/store/firmware -f firmware.bin -b 256

Exit codes: 0 answered 2.xx; 1 no answer; 2 wrong usage; 3 answered with another code";

pub(super) const EXAMPLES_OBSERVE: &str = "Examples:
  coapace observe coap://[::1]/clock
  coapace observe coap://[::1]/clock -s 10 --json
  coapace observe coap://[::1]/counter --count 3 -o counts

Each representation begins a new line. At its end the command cancels the observation. A server that stops answers 5.03:
the command then registers again after the Max-Age of this answer, or 5 s, and at growing intervals, for some 25 minutes.

Exit codes: 0 answered 2.xx; 1 no answer; 2 wrong usage; 3 answered with another code";

pub(super) const EXAMPLES_DISCOVER: &str = "Examples:
  coapace discover coap://[::1]
  coapace discover coap://[::1] obs
  coapace discover coap://224.0.1.187 rt=temperature
  coapace discover coap://[::1]/.well-known/core --json

Exit codes: 0 answered 2.xx; 1 no answer, or an answer that is not a list of links; 2 wrong usage; 3 answered with another code";

pub(super) const EXAMPLES_LOAD: &str = "Examples:
  coapace load coap://[::1]/clock --clients 100 --duration 5
  coapace load coap://[::1]/store/a -m put -e 21.5 --rate 500 --cc fasor --json

Without --rate the loop is closed: each client has one request under way. With --rate requests begin when they are due,
and their latency counts from then on, the wait for NSTART included.";

fn percent_decoded(text: &str) -> Result<Encoded, String> {
    let bytes = coapace_net::uri::percent_decoded(text);
    let wrong =
        || "% is not followed by two hexadecimal digits; write %25 for %, or use --payload".to_owned();
    bytes.map(Encoded).ok_or_else(wrong)
}

fn content_format(text: &str) -> Result<u16, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let name = match text {
        // The registry has this type only with its charset (RFC 7252 §12.3).
        "text" | "text/plain" => "text/plain; charset=utf-8",
        "link" | "link-format" => "application/link-format",
        "xml" => "application/xml",
        "binary" | "octet-stream" => "application/octet-stream",
        "json" => "application/json",
        "cbor" => "application/cbor",
        other => other,
    };
    coap_numbers::content_format::from_str(name)
        .ok_or_else(|| "expected a number up to 65535, or a name such as application/senml+cbor".to_owned())
}

fn numbered_option(text: &str) -> Result<(u16, Encoded), String> {
    let (number, value) = text.split_once(',').unwrap_or((text, ""));
    let number = number.parse().map_err(|_| "expected NUMBER,VALUE with a number up to 65535".to_owned())?;
    let Some(digits) = value.strip_prefix("0x") else {
        return Ok((number, Encoded(value.as_bytes().to_vec())));
    };
    let bytes = bytes_of_hex(digits.as_bytes());
    let bytes = bytes.ok_or_else(|| "expected pairs of hexadecimal digits after 0x".to_owned())?;
    Ok((number, Encoded(bytes)))
}

fn block_size(text: &str) -> Result<usize, String> {
    // SZX has 0 to 6 for these sizes, and 7 is reserved over UDP (RFC 7959 §2.2).
    let size = text.parse().ok().filter(|size: &usize| size.is_power_of_two() && (16..=1024).contains(size));
    size.ok_or_else(|| "expected 16, 32, 64, 128, 256, 512 or 1024".to_owned())
}

fn method(text: &str) -> Result<Code, String> {
    // `Code` also reads numbers such as 0.31, for which no method is registered.
    let method = text.parse().ok().filter(|code: &Code| code.is_request() && code.name().is_some());
    method.ok_or_else(|| "expected get, put, post, delete, fetch, patch or ipatch".to_owned())
}

/// Reads a time in the syntax of scenario files, from a millisecond to a day.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    // `parse_time` allows 0, and no timeout or duration here can be 0.
    let time = parse_time(text).filter(|time| time.as_micros() >= 1_000);
    time.map(|time| Duration::from_micros(time.as_micros())).ok_or_else(|| {
        "expected seconds, or a time such as 500ms, 1.5 s, 2min or 1h, from 1 ms to a day".to_owned()
    })
}

/// Reads a leisure: a time, or the three numbers that it is computed from (RFC 7252 §8.2).
fn leisure(text: &str) -> Result<Duration, String> {
    let parts = || {
        let (bytes, rest) = text.split_once('*')?;
        let (members, rate) = rest.split_once('/')?;
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|&number| number > 0);
        Some(least_leisure(number(bytes)?, number(members)?, number(rate)?))
    };
    // No time contains an asterisk.
    let leisure = if text.contains('*') { parts().map(Duration::from) } else { time(text).ok() };
    leisure.filter(|leisure| *leisure <= Duration::from_hours(24)).ok_or_else(|| {
        "expected a time such as 5s, or BYTES*MEMBERS/RATE such as 100*50/1000, up to a day".to_owned()
    })
}

/// Reads the classes of responses that No-Response suppresses (RFC 7967 §2.1).
fn classes(text: &str) -> Result<u8, String> {
    match text {
        // The bits are 2 for 2.xx, 8 for 4.xx and 16 for 5.xx.
        "success" => Ok(2),
        "errors" => Ok(8 + 16),
        "all" => Ok(2 + 8 + 16),
        _ => Err("expected success, errors or all".to_owned()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (1e-3..=1e6).contains(rate));
    rate.ok_or_else(|| "expected requests a second, from 0.001 to 1000000".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    // If every datagram were lost, no exchange could end with an answer.
    let share = parse_share(text).filter(|share| *share < 1.0);
    share.ok_or_else(|| "expected a share such as 0.1 or 10%, below 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_percent_decoded_and_a_lone_percent_is_reported() {
        assert_eq!(percent_decoded("a%00%fF"), Ok(Encoded(vec![b'a', 0, 0xff])));
        for text in ["%", "%4", "%zz", "50% off"] {
            assert!(percent_decoded(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_content_format_is_a_number_or_a_name() {
        for (text, number) in
            [("50", 50), ("json", 50), ("application/cbor", 60), ("text/plain", 0), ("65535", 65_535)]
        {
            assert_eq!(content_format(text), Ok(number), "{text}");
        }
        assert!(content_format("jsn").is_err() && content_format("65536").is_err());
    }

    #[test]
    fn the_value_of_an_option_is_text_or_hexadecimal_digits() {
        assert_eq!(numbered_option("15,a,b"), Ok((15, Encoded(b"a,b".to_vec()))));
        assert_eq!(numbered_option("4,0xCAfe"), Ok((4, Encoded(vec![0xca, 0xfe]))));
        assert_eq!(numbered_option("5"), Ok((5, Encoded(Vec::new()))));
        for text in ["x,1", "65536,1", "4,0xc", "4,0xzz"] {
            assert!(numbered_option(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_block_size_is_a_power_of_two_from_16_to_1024() {
        assert_eq!((block_size("16"), block_size("1024")), (Ok(16), Ok(1024)));
        for text in ["0", "8", "100", "2048", "x"] {
            assert!(block_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_leisure_of_a_group_is_a_time_or_computed_from_three_numbers() {
        for (text, ms) in
            [("5s", 5_000), ("500ms", 500), ("100*50/1000", 5_000), ("100 * 100 / 1000", 10_000)]
        {
            assert_eq!(leisure(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "100*50", "100*0/1", "1*1/0", "4000000000*4000000000/1", "x*1/1", "-1s"] {
            assert!(leisure(text).is_err(), "{text}");
        }
        assert_eq!(["success", "errors", "all"].map(classes), [Ok(2), Ok(24), Ok(26)]);
        assert!(classes("none").is_err());
    }

    #[test]
    fn a_share_on_the_command_line_is_a_fraction_or_a_percentage() {
        assert_eq!((share("0.1"), share("10%"), share("10 %")), (Ok(0.1), Ok(0.1), Ok(0.1)));
        for text in ["1", "100%", "-0.1", "x", ""] {
            assert!(share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_without_a_unit_is_in_seconds() {
        assert_eq!(time("2"), Ok(Duration::from_secs(2)));
        for (text, ms) in
            [("0.5s", 500), ("500ms", 500), ("1.5 s", 1_500), ("2min", 120_000), ("1h", 3_600_000)]
        {
            assert_eq!(time(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "0", "-1", "NaN", "inf", "25h", "1e9", "1 day"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
