//! `coapace discover`.

use std::io::{self, IsTerminal, Write};

use coapace_net::link_format::{self, Misread, WebLink};
use coapace_net::{Client, Error, Response, Uri};
use serde_json::{Map, Value, json};

use super::device::{ClientSetup, explain, explain_with, on_terms, runtime, tell};
use super::group::{called, explain_group, member, nobody};
use super::printer::refusal;
use crate::arguments::{Arguments, Discover};
use crate::shown::shown;
use crate::{Failure, logging};

pub(crate) fn discover(arguments: &Arguments, discover: &Discover) -> Result<(), Failure> {
    logging::of_client(0, arguments.quiet);
    let proxy = discover.terms.proxy.as_deref();
    let setup = ClientSetup::new(arguments, &discover.transmission, &discover.uri, proxy)?;
    let mut uri: Uri = discover.uri.parse().map_err(|bad| explain(&Error::Uri(bad), &discover.uri))?;
    if uri.path.is_empty() {
        uri.path = [".well-known", "core"].map(str::to_owned).into();
    }
    // The server filters, if it can (RFC 6690 §4.1).
    uri.query.extend(discover.filters.iter().cloned());
    let client = setup.client()?;
    let result = runtime()?.block_on(one(discover, &uri, &client));
    setup.finish(result)
}

/// Asks a server or a group for its links, and prints them.
async fn one(discover: &Discover, uri: &Uri, client: &Client) -> Result<(), Failure> {
    let text = uri.to_string();
    let call = on_terms(client.get(&text), &discover.terms, &discover.transmission);
    match call.await {
        // The name leads to a group.
        Err(Error::Group(_)) => group(discover, uri, client).await,
        Err(error) => Err(explain_with(&error, &text, discover.terms.proxy.as_deref())),
        Ok(response) => refusal(&response).map_or_else(|| print(discover, &text, None, &response), Err),
    }
}

/// Asks a group for links, and prints the links of each member. A member that sent only a first block, or asked for an
/// Echo option, is asked again.
async fn group(discover: &Discover, uri: &Uri, client: &Client) -> Result<(), Failure> {
    let shown = uri.to_string();
    let call = on_terms(client.get(&shown), &discover.terms, &discover.transmission);
    // Only the request showed that the name leads to a group, so the call is made again.
    let mut answers =
        called(call, &discover.gathering).group().await.map_err(|error| explain_group(&error, &shown))?;
    let mut members = 0;
    while let Some((address, response)) = answers.next().await {
        members += 1;
        let member = member(uri, address);
        let whole = answers.whole(address, response).await;
        let whole = whole.map_err(|error| explain(&error, &member.to_string()));
        let whole = whole.and_then(|response| refusal(&response).map_or(Ok(response), Err));
        // Without the URI of the member, nobody could see whose link a target is.
        let base = Uri { path: Vec::new(), query: Vec::new(), ..member };
        let base = base.to_string();
        let printed = whole.and_then(|response| print(discover, &base, Some(&base), &response));
        match printed {
            // Standard output is closed, so other answers would be lost, too.
            Err(failure @ Failure::Io(..)) => return Err(failure),
            // One member of many failed.
            Err(failure) => tell(&format!("coapace: {failure}")),
            Ok(()) => {}
        }
    }
    match members {
        0 => Err(nobody(&shown)),
        _ => Ok(()),
    }
}

/// Prints the links that are valid, and fails if there are invalid ones. Targets of a group's members are prefixed with `base`,
/// the member's URI.
fn print(discover: &Discover, uri: &str, base: Option<&str>, response: &Response) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let terminal = out.is_terminal();
    let (mut printed, mut misread) = (0_usize, Vec::new());
    for link in link_format::parse(&response.text()) {
        let link = match link {
            Ok(link) => link,
            Err(error) => {
                // A broken link does not hide the others.
                misread.push(error);
                continue;
            }
        };
        printed += 1;
        // An absolute target names its host itself.
        let base = base.filter(|_| link.target.starts_with('/')).unwrap_or_default().trim_end_matches('/');
        let target = format!("{base}{}", link.target);
        let text = if discover.json {
            link_json(&target, &link).to_string()
        } else {
            // Attributes follow the target and its brackets.
            format!("<{target}>{}", &link.text[link.target.len() + 2..])
        };
        writeln!(out, "{}", if terminal { shown(&text) } else { text.into() })?;
    }
    broken(printed, &misread).map_or(Ok(()), |problem| Err(Failure::Network(format!("{uri}: {problem}"))))
}

/// Describes the errors in a list of links; `None` if all links were read.
fn broken(printed: usize, misread: &[Misread]) -> Option<String> {
    let (first, others) = misread.split_first()?;
    let others = match others.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let read = match printed {
        0 => "no link could be read".to_owned(),
        1 => "the other link could be read".to_owned(),
        count => format!("the {count} other links could be read"),
    };
    Some(format!("the answer is not in link format (RFC 6690): {first}{others}; {read}"))
}

/// Returns a link with its attributes as JSON. An attribute without a value is `true`. If an attribute is repeated, its
/// last value counts.
fn link_json(target: &str, link: &WebLink<'_>) -> Value {
    let value = |value: Option<std::borrow::Cow<'_, str>>| value.map_or(true.into(), Value::from);
    let attributes: Map<String, Value> =
        link.attributes().map(|(name, text)| (name.to_owned(), value(text))).collect();
    json!({ "target": target, "attributes": attributes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_link_format_is_reported_with_its_place_beside_the_links_that_were_read() {
        let problem = |text: &str| {
            let misread: Vec<_> = link_format::parse(text).filter_map(Result::err).collect();
            broken(link_format::parse(text).flatten().count(), &misread)
        };
        let of = |problem: &str| Some(format!("the answer is not in link format (RFC 6690): {problem}"));
        assert_eq!(problem("</a>,</b>"), None);
        assert_eq!(
            problem("</a;rt=x,</b>"),
            of("byte 9: > must end the target; the other link could be read")
        );
        assert_eq!(problem("</a>,"), of("byte 5: a link must begin with <; the other link could be read"));
        assert_eq!(
            problem("</x>title=,<,"),
            of("byte 4: a ; or , is missing, and 1 more; no link could be read")
        );
    }
}
