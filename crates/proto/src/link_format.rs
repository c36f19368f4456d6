//! CoRE Link Format (RFC 6690), the format of `/.well-known/core`.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

/// A text in CoRE Link Format (RFC 6690), to which links are added.
///
/// ```
/// use coapace_proto::link_format::Writer;
///
/// let links = Writer::default().link("/t")?.text("rt", "temperature")?.number("ct", 40)?.flag("obs")?;
/// assert_eq!(links.link("/l")?.as_str(), "</t>;rt=\"temperature\";ct=40;obs,</l>");
/// # Ok::<(), coapace_proto::link_format::BadLink>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer(String);

/// The error that a text cannot be part of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLink;

impl fmt::Display for BadLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not in link format (RFC 6690)")
    }
}

impl core::error::Error for BadLink {}

/// A position at which a text is not in link format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misread {
    /// The byte offset, 0 for the first byte.
    pub at: usize,
    /// The problem at this position.
    pub problem: Problem,
}

/// The problem of a text that is not in link format (RFC 6690 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A link does not begin with `<`, for example after a comma at the end.
    NoTarget,
    /// A target has no `>`, or a character before it that is not allowed in a URI reference.
    OpenTarget,
    /// Neither `;` nor `,` follows a target or an attribute.
    NoSeparator,
    /// An attribute has no name.
    NoName,
    /// An attribute has `=` but no value.
    NoValue,
    /// A value has no closing quotation mark.
    OpenQuote,
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            Problem::NoTarget => "a link must begin with <",
            Problem::OpenTarget => "> must end the target",
            Problem::NoSeparator => "a ; or , is missing",
            Problem::NoName => "; needs the name of an attribute",
            Problem::NoValue => "= needs a value",
            Problem::OpenQuote => "a value lacks its closing quotation mark",
        };
        write!(f, "byte {}: {problem}", self.at)
    }
}

impl core::error::Error for Misread {}

impl Writer {
    /// Starts a link to this target.
    ///
    /// # Errors
    /// [`BadLink`] if the target has an angle bracket, a space or a control character, which a URI reference must not have.
    pub fn link(mut self, target: &str) -> Result<Self, BadLink> {
        if target.chars().any(|c| matches!(c, '<' | '>' | ' ') || c.is_control()) {
            return Err(BadLink);
        }
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.extend(["<", target, ">"]);
        Ok(self)
    }

    /// Adds an attribute with a text in quotation marks as its value. A list of values is one text, separated by
    /// spaces.
    ///
    /// # Errors
    /// [`BadLink`] if the name is invalid, if the value has a control character, or if no link was started.
    pub fn text(mut self, name: &str, value: &str) -> Result<Self, BadLink> {
        if value.chars().any(char::is_control) {
            return Err(BadLink);
        }
        self = self.flag(name)?;
        self.0.push_str("=\"");
        for c in value.chars() {
            // Both are escaped in a quoted-string (RFC 2616 §2.2).
            if matches!(c, '"' | '\\') {
                self.0.push('\\');
            }
            self.0.push(c);
        }
        self.0.push('"');
        Ok(self)
    }

    /// Adds an attribute whose value is a number.
    ///
    /// # Errors
    /// [`BadLink`] if the name is invalid, or if no link was started.
    pub fn number(mut self, name: &str, value: u32) -> Result<Self, BadLink> {
        self = self.flag(name)?;
        // Writing to a string does not fail.
        fmt::Write::write_fmt(&mut self.0, format_args!("={value}")).map_err(|_| BadLink)?;
        Ok(self)
    }

    /// Adds an attribute without a value.
    ///
    /// # Errors
    /// [`BadLink`] if the name is invalid, or if no link was started.
    pub fn flag(mut self, name: &str) -> Result<Self, BadLink> {
        if self.0.is_empty() || !is_name(name) {
            return Err(BadLink);
        }
        // An attribute belongs to the last link of the text.
        self.0.extend([";", name]);
        Ok(self)
    }

    /// Returns the text of all links.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text of all links, without a copy.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// One link in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebLink<'a> {
    /// The target: a URI reference.
    pub target: &'a str,
    /// The whole link with its attributes.
    pub text: &'a str,
    attributes: &'a str,
}

/// Parses links. An invalid link is an error, and parsing continues with the next link: the next `<` after a comma.
pub fn parse(text: &str) -> impl Iterator<Item = Result<WebLink<'_>, Misread>> {
    let text = text.trim_ascii_end();
    let mut rest = Some(text.trim_ascii_start()).filter(|text| !text.is_empty());
    // Every rest reaches to the end of the text.
    let at = move |rest: &str| text.len() - rest.len();
    core::iter::from_fn(move || {
        let (problem, place) = match WebLink::read(rest.take()?) {
            Ok((link, after)) => {
                let after = after.trim_ascii_start();
                rest = after.strip_prefix(',').map(str::trim_ascii_start);
                if after.is_empty() || rest.is_some() {
                    return Some(Ok(link));
                }
                (Problem::NoSeparator, after)
            }
            Err(misread) => misread,
        };
        rest = next_link(text, at(place));
        Some(Err(Misread { at: at(place), problem }))
    })
}

/// Returns the text that begins with the next link: the first `<` after a comma, at this position or later.
fn next_link(text: &str, place: usize) -> Option<&str> {
    let (before, behind) = text.split_at_checked(place)?;
    let is_after_comma = |before: &str| before.trim_ascii_end().ends_with(',');
    if behind.starts_with('<') && is_after_comma(before) {
        return Some(behind);
    }
    behind
        .match_indices(',')
        .map(|(comma, _)| behind[comma + 1..].trim_ascii_start())
        .find(|rest| rest.starts_with('<'))
}

impl<'a> WebLink<'a> {
    /// Reads the link at the start of `text`. Returns it, and the text after it.
    fn read(text: &'a str) -> Result<(Self, &'a str), (Problem, &'a str)> {
        let behind = text.strip_prefix('<').ok_or((Problem::NoTarget, text))?;
        // A URI reference has none of these, so a `>` that is missing does not cost the links behind it.
        let ends = |c: char| matches!(c, '<' | '>' | ' ') || c.is_control();
        let end = behind.find(ends).unwrap_or(behind.len());
        let (target, attributes) = behind.split_at(end);
        let attributes = attributes.strip_prefix('>').ok_or((Problem::OpenTarget, attributes))?;
        let mut rest = attributes;
        while let Some(next) = rest.trim_ascii_start().strip_prefix(';') {
            (_, rest) = attribute(next)?;
        }
        let attributes = &attributes[..attributes.len() - rest.len()];
        Ok((Self { target, text: &text[..text.len() - rest.len()], attributes }, rest))
    }

    /// Returns the names of the attributes, with their values if they have any.
    pub fn attributes(&self) -> impl Iterator<Item = (&'a str, Option<Cow<'a, str>>)> + use<'a> {
        let mut rest = self.attributes;
        core::iter::from_fn(move || {
            let (found, after) = attribute(rest.trim_ascii_start().strip_prefix(';')?).ok()?;
            rest = after;
            Some(found)
        })
    }

    /// Returns the value of the first attribute with this name; `None` if the link has no such attribute, or one
    /// without a value.
    pub fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        self.attributes().find(|(other, _)| *other == name)?.1
    }

    /// Returns whether the link matches an argument of a query, such as `rt=temperature`, `if=sensor*` or `href=/s/*` (RFC 6690
    /// §4.1). Some attributes are lists (`rt`, `if`, `rel`, `ct`): one matching element is enough. A name alone matches every
    /// link with the attribute.
    pub fn matches(&self, argument: &str) -> bool {
        let Some((name, wanted)) = argument.split_once('=') else {
            return self.attributes().any(|(name, _)| name == argument);
        };
        let fits = |value: &str| match wanted.strip_suffix('*') {
            Some(start) => value.starts_with(start),
            None => value == wanted,
        };
        // `href` asks for the target, which is not an attribute (RFC 6690 §4.1).
        if name == "href" {
            return fits(self.target);
        }
        let is_list = matches!(name, "rt" | "if" | "rel" | "ct");
        self.attributes().any(|(other, value)| {
            let value = value.unwrap_or_default();
            other == name && (fits(&value) || is_list && value.split(' ').any(fits))
        })
    }
}

/// Returns the `links` that match all `arguments` of a query. Text that is not a link is left out.
pub fn filter(links: &str, arguments: &[&str]) -> String {
    let mut text = String::new();
    for link in parse(links).filter_map(Result::ok) {
        if arguments.iter().all(|argument| link.matches(argument)) {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(link.text);
        }
    }
    text
}

/// The name and the value of an attribute.
type Attribute<'a> = (&'a str, Option<Cow<'a, str>>);

/// Reads the attribute at the start of `text`. Returns it, and the text after it.
fn attribute(text: &str) -> Result<(Attribute<'_>, &str), (Problem, &str)> {
    let text = text.trim_ascii_start();
    let end = text.find(|c| !is_name_char(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if !is_name(name) {
        return Err((Problem::NoName, text));
    }
    let Some(value) = rest.trim_ascii_start().strip_prefix('=') else { return Ok(((name, None), rest)) };
    let value = value.trim_ascii_start();
    if let Some(quoted) = value.strip_prefix('"') {
        let (value, rest) = unquote(quoted).ok_or((Problem::OpenQuote, value))?;
        return Ok(((name, Some(value)), rest));
    }
    let ends = |c: char| matches!(c, ',' | ';' | '"') || c.is_ascii_whitespace();
    let end = value.find(ends).unwrap_or(value.len());
    let (found, rest) = value.split_at(end);
    if found.is_empty() {
        return Err((Problem::NoValue, value));
    }
    Ok(((name, Some(Cow::Borrowed(found))), rest))
}

/// Reads the value up to the closing quotation mark. Returns it without escapes, and the text after the mark. Returns
/// `None` if the mark is missing.
fn unquote(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut plain: Option<String> = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                let value = plain.map_or(Cow::Borrowed(&text[..at]), Cow::Owned);
                return Some((value, &text[at + 1..]));
            }
            '\\' => {
                let (_, escaped) = chars.next()?;
                // A value without escapes is borrowed. The first escape makes a copy.
                plain.get_or_insert_with(|| text[..at].into()).push(escaped);
            }
            c => plain.iter_mut().for_each(|plain| plain.push(c)),
        }
    }
    None
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name_char)
}

/// Returns whether a parmname (RFC 5987 §3.2.1) may have this character. The `*` is for extended names.
fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$&+-.^_`|~*".contains(c)
}

#[cfg(test)]
mod tests;
