//! CoRE Link Format (RFC 6690): what `/.well-known/core` says.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

/// Links in the making.
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

/// Text that is no link, or cannot be part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLink;

impl fmt::Display for BadLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not in link format (RFC 6690)")
    }
}

impl core::error::Error for BadLink {}

impl Writer {
    /// Begins a link to this target.
    ///
    /// # Errors
    /// [`BadLink`]: no URI reference has an angle bracket, a space or a control character.
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

    /// An attribute whose value is a text, or several with spaces between.
    ///
    /// # Errors
    /// [`BadLink`]: not a name, a value with a control character, or no link to be an attribute of.
    pub fn text(mut self, name: &str, value: &str) -> Result<Self, BadLink> {
        if value.chars().any(char::is_control) {
            return Err(BadLink);
        }
        self = self.flag(name)?;
        self.0.push_str("=\"");
        for c in value.chars() {
            if matches!(c, '"' | '\\') {
                self.0.push('\\');
            }
            self.0.push(c);
        }
        self.0.push('"');
        Ok(self)
    }

    /// An attribute whose value is a number.
    ///
    /// # Errors
    /// [`BadLink`]: not a name, or no link to be an attribute of.
    pub fn number(mut self, name: &str, value: u32) -> Result<Self, BadLink> {
        self = self.flag(name)?;
        // Writing to a string does not fail.
        fmt::Write::write_fmt(&mut self.0, format_args!("={value}")).map_err(|_| BadLink)?;
        Ok(self)
    }

    /// An attribute without a value.
    ///
    /// # Errors
    /// [`BadLink`]: not a name, or no link to be an attribute of.
    pub fn flag(mut self, name: &str) -> Result<Self, BadLink> {
        if self.0.is_empty() || !is_name(name) {
            return Err(BadLink);
        }
        self.0.extend([";", name]);
        Ok(self)
    }

    /// The links.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The links.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// One link, where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// What it points at.
    pub target: &'a str,
    /// All of it, as it stands.
    pub text: &'a str,
    attributes: &'a str,
}

/// Reads links. After an error there is none.
pub fn parse(text: &str) -> impl Iterator<Item = Result<Link<'_>, BadLink>> {
    let mut rest = Some(text.trim_ascii()).filter(|text| !text.is_empty());
    core::iter::from_fn(move || {
        let (link, after) = match Link::read(rest.take()?) {
            Some((link, after)) => (link, after.trim_ascii_start()),
            None => return Some(Err(BadLink)),
        };
        if !after.is_empty() {
            let Some(next) = after.strip_prefix(',') else { return Some(Err(BadLink)) };
            rest = Some(next.trim_ascii_start());
        }
        Some(Ok(link))
    })
}

impl<'a> Link<'a> {
    /// The link at the front, and what comes after it.
    fn read(text: &'a str) -> Option<(Self, &'a str)> {
        let (target, attributes) = text.strip_prefix('<')?.split_once('>')?;
        let mut rest = attributes;
        while let Some(next) = rest.trim_ascii_start().strip_prefix(';') {
            (_, rest) = attribute(next)?;
        }
        let attributes = &attributes[..attributes.len() - rest.len()];
        Some((Self { target, text: &text[..text.len() - rest.len()], attributes }, rest))
    }

    /// The attributes: names and, where they have any, values.
    pub fn attributes(&self) -> impl Iterator<Item = (&'a str, Option<Cow<'a, str>>)> + use<'a> {
        let mut rest = self.attributes;
        core::iter::from_fn(move || {
            let (found, after) = attribute(rest.trim_ascii_start().strip_prefix(';')?)?;
            rest = after;
            Some(found)
        })
    }

    /// The value of the first attribute of this name that has one.
    pub fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        self.attributes().find(|(other, _)| *other == name)?.1
    }

    /// Whether the link is what an argument of a query asks for: `rt=temperature`, `if=sensor*`, `href=/s/*`
    /// (RFC 6690 §4.1). Of an attribute that is a list (`rt`, `if`, `rel`, `ct`), one of the list is enough; a name alone asks
    /// that the attribute be there.
    pub fn matches(&self, argument: &str) -> bool {
        let Some((name, wanted)) = argument.split_once('=') else {
            return self.attributes().any(|(name, _)| name == argument);
        };
        let fits = |value: &str| match wanted.strip_suffix('*') {
            Some(start) => value.starts_with(start),
            None => value == wanted,
        };
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

/// Of `links`, those that all `arguments` of a query ask for. What is no link ends them.
pub fn filter(links: &str, arguments: &[&str]) -> String {
    let mut text = String::new();
    for link in parse(links).map_while(Result::ok) {
        if arguments.iter().all(|argument| link.matches(argument)) {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(link.text);
        }
    }
    text
}

/// Name and value of an attribute.
type Attribute<'a> = (&'a str, Option<Cow<'a, str>>);

/// The attribute at the front, and what comes after it.
fn attribute(text: &str) -> Option<(Attribute<'_>, &str)> {
    let text = text.trim_ascii_start();
    let end = text.find(|c| !is_name_char(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if !is_name(name) {
        return None;
    }
    let Some(value) = rest.trim_ascii_start().strip_prefix('=') else { return Some(((name, None), rest)) };
    let value = value.trim_ascii_start();
    if let Some(quoted) = value.strip_prefix('"') {
        let (value, rest) = unquote(quoted)?;
        return Some(((name, Some(value)), rest));
    }
    let ends = |c: char| matches!(c, ',' | ';' | '"') || c.is_ascii_whitespace();
    let end = value.find(ends).unwrap_or(value.len());
    let (value, rest) = value.split_at(end);
    (!value.is_empty()).then_some(((name, Some(Cow::Borrowed(value))), rest))
}

/// The text up to the closing quotation mark, and what comes after it.
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

/// Of a parmname (RFC 5987 §3.2.1), with the `*` of extended names.
fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$&+-.^_`|~*".contains(c)
}

#[cfg(test)]
mod tests;
