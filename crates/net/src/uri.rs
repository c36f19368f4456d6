//! URIs of CoAP and the options they become (RFC 7252 §6, RFC 8323 §8).

use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use coap_numbers::option;

use crate::Options;

/// The scheme of a URI, which selects the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `coap`: UDP (RFC 7252 §6.1).
    Coap,
    /// `coaps`: DTLS over UDP (RFC 7252 §6.2).
    Coaps,
    /// `coap+tcp`: TCP (RFC 8323 §8.1).
    CoapTcp,
    /// `coaps+tcp`: TLS over TCP (RFC 8323 §8.2).
    CoapsTcp,
    /// `coap+ws`: WebSocket (RFC 8323 §8.3).
    CoapWs,
    /// `coaps+ws`: WebSocket over TLS (RFC 8323 §8.4).
    CoapsWs,
}

impl Scheme {
    const ALL: [Self; 6] =
        [Self::Coap, Self::Coaps, Self::CoapTcp, Self::CoapsTcp, Self::CoapWs, Self::CoapsWs];

    /// Returns the name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coap => "coap",
            Self::Coaps => "coaps",
            Self::CoapTcp => "coap+tcp",
            Self::CoapsTcp => "coaps+tcp",
            Self::CoapWs => "coap+ws",
            Self::CoapsWs => "coaps+ws",
        }
    }

    /// Returns the default port.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Coap | Self::CoapTcp => 5683,
            Self::Coaps | Self::CoapsTcp => 5684,
            Self::CoapWs => 80,
            Self::CoapsWs => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The host of a URI.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// An address, IPv6 perhaps with a zone (`fe80::1%eth0`, written `%25eth0` or `%eth0` in a URI; RFC 6874).
    Address(IpAddr, Option<String>),
    /// A name, decoded and in lower case.
    Name(String),
}

/// A parsed URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// The transport.
    pub scheme: Scheme,
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// The decoded segments of the path; none for `/`.
    pub path: Vec<String>,
    /// The decoded arguments of the query.
    pub query: Vec<String>,
}

/// The reason why a text is not a URI of CoAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUri {
    /// The text does not begin with a scheme and `://`.
    #[error("expected scheme://host")]
    NotAbsolute,
    /// The scheme is none of CoAP's.
    #[error("expected coap, coaps, coap+tcp, coaps+tcp, coap+ws or coaps+ws as the scheme")]
    UnknownScheme,
    /// The URI has a fragment, which cannot be part of a request (RFC 7252 §6.4 step 4).
    #[error("a fragment (#…) cannot be requested")]
    Fragment,
    /// The host is missing, or has more than 255 bytes.
    #[error("expected a host of 1 to 255 bytes")]
    Host,
    /// The text between the brackets is not an IPv6 address.
    #[error("expected an IPv6 address between the brackets")]
    Address,
    /// The port is not a number up to 65535.
    #[error("the port is not a number up to 65535")]
    Port,
    /// The byte at this position of the text, counted from 0, has to be percent-encoded.
    #[error("byte {} has to be percent-encoded", .0 + 1)]
    Character(usize),
    /// The percent-encoded bytes are not UTF-8, or a percent sign is not followed by two hexadecimal digits.
    #[error("% is not followed by two hexadecimal digits, or the decoded bytes are not UTF-8")]
    Encoding,
    /// A segment of the path is an encoded `.` or `..`, which a request must not have (RFC 7252 §5.10.1).
    #[error("a segment of the path must not be %2E or %2E%2E")]
    Dots,
    /// The zone of an IPv6 address has no meaning for a proxy.
    #[error("a zone (%…) has a meaning on this host only, and not for a proxy")]
    ZoneForProxy,
    /// The URI of a proxy has a path or a query.
    #[error("a proxy has neither path nor query; as in coap://[::1]:5683")]
    PathOfProxy,
    /// A segment or argument is longer than the 255 bytes of an option (RFC 7252 §5.10).
    #[error("a segment of the path or an argument of the query is longer than 255 bytes")]
    TooLong,
}

impl FromStr for Uri {
    type Err = BadUri;

    /// Parses a URI (RFC 7252 §6.4).
    fn from_str(text: &str) -> Result<Self, BadUri> {
        let (scheme, rest) = text.split_once("://").ok_or(BadUri::NotAbsolute)?;
        // Schemes are compared without case (RFC 3986 §3.1).
        let known = Scheme::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(scheme));
        let scheme = known.ok_or(BadUri::UnknownScheme)?;
        // A fragment is for the client alone and is never part of a request (RFC 7252 §6.4).
        if rest.contains('#') {
            return Err(BadUri::Fragment);
        }
        let (before, query) =
            rest.split_once('?').map_or((rest, None), |(before, query)| (before, Some(query)));
        let authority_len = before.find('/').unwrap_or(before.len());
        let (authority, path) = before.split_at(authority_len);
        // The error names the byte of the whole text, not of its part.
        let place_of = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
        let check = |part: &str, allowed: fn(u8) -> bool| match part.bytes().position(|byte| !allowed(byte)) {
            Some(place) => Err(BadUri::Character(place_of(part) + place)),
            None => Ok(()),
        };
        let (host, port) = parse_authority(authority, check)?;
        // `&` separates the arguments of a query, and means nothing in a path.
        check(path, |byte| is_plain(byte) || matches!(byte, b'/' | b'%' | b'&'))?;
        check(query.unwrap_or(""), |byte| is_plain(byte) || matches!(byte, b'/' | b'%' | b'&' | b'?'))?;
        let segments = without_dots(path).into_iter().map(decode).collect::<Result<Vec<_>, _>>()?;
        // Plain dots are resolved before decoding, so a dot that is left was percent-encoded.
        if segments.iter().any(|segment| matches!(segment.as_str(), "." | "..")) {
            return Err(BadUri::Dots);
        }
        let arguments = query.into_iter().flat_map(|query| query.split('&'));
        Ok(Self {
            scheme,
            host,
            port: port.unwrap_or(scheme.default_port()),
            path: segments,
            query: arguments.map(decode).collect::<Result<_, _>>()?,
        })
    }
}

/// Parses the host, and the port if one is given.
fn parse_authority(
    authority: &str,
    check: impl Fn(&str, fn(u8) -> bool) -> Result<(), BadUri>,
) -> Result<(Host, Option<u16>), BadUri> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (inside, behind) = rest.split_once(']').ok_or(BadUri::Address)?;
        let (address, zone) =
            inside.split_once('%').map_or((inside, None), |(address, zone)| (address, Some(zone)));
        let address: Ipv6Addr = address.parse().map_err(|_| BadUri::Address)?;
        // The % before a zone is written %25 (RFC 6874), or as it is.
        let zone = zone.map(|zone| decode(zone.strip_prefix("25").unwrap_or(zone))).transpose()?;
        let port = if behind.is_empty() { "" } else { behind.strip_prefix(':').ok_or(BadUri::Port)? };
        (Host::Address(address.into(), zone), port)
    } else {
        let (name, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
        check(name, |byte| is_plain_in_host(byte) || byte == b'%')?;
        let host = match (name.parse::<Ipv4Addr>(), decode(name)) {
            (Ok(address), _) => Host::Address(address.into(), None),
            (_, Err(BadUri::TooLong)) => return Err(BadUri::Host),
            (_, Ok(name)) if name.is_empty() => return Err(BadUri::Host),
            (_, name) => Host::Name(name?.to_lowercase()),
        };
        (host, port)
    };
    if port.is_empty() {
        return Ok((host, None));
    }
    // Parsing alone would accept a plus sign.
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|_| digits).ok_or(BadUri::Port)?;
    Ok((host, Some(port)))
}

/// Returns the segments of a path, with `.` and `..` resolved (RFC 3986 §5.2.4).
fn without_dots(path: &str) -> Vec<&str> {
    let mut segments = Vec::new();
    let mut ends_in_dots = false;
    for segment in path.split('/').skip(1) {
        ends_in_dots = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    if ends_in_dots {
        segments.push("");
    }
    // An empty path and a single slash are the same (RFC 7252 §6.4 step 8).
    if segments == [""] { Vec::new() } else { segments }
}

/// Decodes percent-encoded text (RFC 3986 §2.1). Returns `None` if a `%` is not followed by two hexadecimal digits.
pub fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push((high << 4 | low) as u8);
    }
    Some(bytes)
}

/// Decodes a part of a URI to the text of its option.
fn decode(text: &str) -> Result<String, BadUri> {
    let bytes = percent_decoded(text).ok_or(BadUri::Encoding)?;
    let decoded = String::from_utf8(bytes).map_err(|_| BadUri::Encoding)?;
    if decoded.len() > 255 { Err(BadUri::TooLong) } else { Ok(decoded) }
}

/// Returns whether a byte needs no encoding in a path and in a query: unreserved, `:`, `@`, and all delimiters but `&`
/// (RFC 7252 §6.5).
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$'()*+,;=:@".contains(&byte)
}

/// Returns whether a byte needs no encoding in a host. A colon or an at sign would end the host.
fn is_plain_in_host(byte: u8) -> bool {
    is_plain(byte) && !matches!(byte, b':' | b'@') || byte == b'&'
}

/// Returns a segment of a path, percent-encoded.
pub fn encoded(segment: &str) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(segment, |byte| is_plain(byte) || byte == b'&', &mut text);
    text
}

/// Writes text, with every byte percent-encoded for which `plain` returns `false`.
fn encode(text: &str, plain: impl Fn(u8) -> bool, f: &mut impl fmt::Write) -> fmt::Result {
    text.bytes().try_for_each(
        |byte| {
            if plain(byte) { f.write_char(byte.into()) } else { write!(f, "%{byte:02X}") }
        },
    )
}

/// Writes a URI that parses to this one (RFC 7252 §6.5).
impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme)?;
        match &self.host {
            Host::Address(IpAddr::V4(address), _) => write!(f, "{address}")?,
            Host::Address(IpAddr::V6(address), None) => write!(f, "[{address}]")?,
            Host::Address(IpAddr::V6(address), Some(zone)) => {
                write!(f, "[{address}%25")?;
                encode(zone, is_plain, f)?;
                f.write_char(']')?;
            }
            Host::Name(name) => encode(name, is_plain_in_host, f)?,
        }
        // A default port is left out, so that equal URIs have one text.
        if self.port != self.scheme.default_port() {
            write!(f, ":{}", self.port)?;
        }
        if self.path.is_empty() {
            f.write_char('/')?;
        }
        for segment in &self.path {
            f.write_char('/')?;
            match segment.as_str() {
                // Not encoded, they would be resolved like dots in the path of a file.
                "." => f.write_str("%2E")?,
                ".." => f.write_str("%2E%2E")?,
                segment => f.write_str(&encoded(segment))?,
            }
        }
        for (place, argument) in self.query.iter().enumerate() {
            f.write_char(if place == 0 { '?' } else { '&' })?;
            encode(argument, |byte| is_plain(byte) || matches!(byte, b'/' | b'?'), f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Host {
    /// Writes the host without the brackets and the zone of an IPv6 address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address, _) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl Uri {
    /// Returns host and port for an HTTP server. An IPv6 address is in brackets and without its zone. The port is always
    /// included.
    pub(crate) fn authority(&self) -> String {
        match &self.host {
            Host::Address(address, _) => SocketAddr::new(*address, self.port).to_string(),
            Host::Name(name) => format!("{}:{}", encoded(name), self.port),
        }
    }

    /// Returns host and port. The port is left out if it is the scheme's default. An IPv6 address has brackets and its
    /// unencoded zone.
    pub fn place(&self) -> String {
        let host = match &self.host {
            Host::Address(IpAddr::V6(ip), Some(zone)) => format!("[{ip}%{zone}]"),
            Host::Address(IpAddr::V6(ip), None) => format!("[{ip}]"),
            host => host.to_string(),
        };
        if self.port == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }

    /// Returns the options of a request for this resource (RFC 7252 §6.4 steps 5 to 9): Uri-Host of a name, Uri-Path
    /// and Uri-Query. Uri-Port is left out, because it equals the port that the request is sent to.
    pub fn options(&self) -> Options {
        let mut options = Options::new();
        if let Host::Name(name) = &self.host {
            options.push(option::URI_HOST, name.as_bytes());
        }
        self.path.iter().for_each(|segment| options.push(option::URI_PATH, segment.as_bytes()));
        self.query.iter().for_each(|argument| options.push(option::URI_QUERY, argument.as_bytes()));
        options
    }

    /// Returns the options of a request to a proxy for this resource: Proxy-Scheme and all parts of the URI (RFC 7252 §5.10.2).
    /// Host and port are always included, because their defaults would be the proxy's own (§5.10.1).
    ///
    /// # Errors
    /// [`BadUri::ZoneForProxy`].
    pub(crate) fn options_for_proxy(&self) -> Result<Options, BadUri> {
        let host = match &self.host {
            Host::Address(IpAddr::V6(_), Some(_)) => return Err(BadUri::ZoneForProxy),
            Host::Address(IpAddr::V6(address), None) => format!("[{address}]"),
            host => host.to_string(),
        };
        let options = self.options().without(option::URI_HOST).with(option::URI_HOST, host.as_bytes());
        let options = options.with_uint(option::URI_PORT, self.port.into());
        Ok(options.with(option::PROXY_SCHEME, self.scheme.name().as_bytes()))
    }
}

/// Returns the option of a request to a proxy for a resource with a scheme that is not CoAP's, such as `http://example.org/`:
/// Proxy-Uri (RFC 7252 §5.10.2).
///
/// # Errors
/// The reason why the text is not an absolute URI, or is too long for the option.
pub(crate) fn proxy_uri(text: &str) -> Result<Options, BadUri> {
    let (scheme, rest) = text.split_once("://").ok_or(BadUri::NotAbsolute)?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !is_scheme {
        return Err(BadUri::NotAbsolute);
    }
    if rest.contains('#') {
        return Err(BadUri::Fragment);
    }
    if rest.is_empty() || rest.starts_with(['/', '?']) {
        return Err(BadUri::Host);
    }
    let allowed = |byte| is_plain(byte) || b"/%&?[]".contains(&byte);
    if let Some(place) = text.bytes().position(|byte| !allowed(byte)) {
        return Err(BadUri::Character(place));
    }
    // The longest Proxy-Uri (RFC 7252 §5.10).
    if text.len() > 1_034 {
        return Err(BadUri::TooLong);
    }
    Ok(Options::new().with(option::PROXY_URI, text.as_bytes()))
}

#[cfg(test)]
mod tests;
