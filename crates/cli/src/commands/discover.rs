//! `coapace discover`.

use std::io::{self, Write};

use coapace_net::link_format::{self, Link};
use coapace_net::{Client, Error, Uri};
use serde_json::{Map, Value, json};

use super::device::{Setup, explain, on_terms, runtime};
use super::printer::refusal;
use crate::Failure;
use crate::arguments::Discover;

pub(crate) fn discover(discover: &Discover) -> Result<(), Failure> {
    let setup = Setup::new(&discover.transmission)?;
    let result = list(discover, &setup.client());
    setup.finish(result)
}

fn list(discover: &Discover, client: &Client) -> Result<(), Failure> {
    let mut uri: Uri = discover.uri.parse().map_err(|bad| explain(&Error::Uri(bad), &discover.uri))?;
    if uri.path.is_empty() {
        uri.path = [".well-known", "core"].map(str::to_owned).into();
    }
    let uri = uri.to_string();
    let call = on_terms(client.get(&uri), &discover.terms, &discover.transmission);
    let answer = runtime()?.block_on(async { call.await });
    let response = answer.map_err(|error| explain(&error, &uri))?;
    if let Some(failure) = refusal(&response) {
        return Err(failure);
    }
    let mut out = io::stdout().lock();
    let text = response.text();
    for link in link_format::parse(&text) {
        let Ok(link) = link else {
            return Err(Failure::Network(format!("{uri}: the answer is no list of links (RFC 6690)")));
        };
        if discover.json { writeln!(out, "{}", link_json(&link))? } else { writeln!(out, "{}", link.text)? }
    }
    Ok(())
}

/// A link with its attributes; one without a value is true, and of one that is there more than once the last counts.
fn link_json(link: &Link<'_>) -> Value {
    let value = |value: Option<std::borrow::Cow<'_, str>>| value.map_or(true.into(), Value::from);
    let attributes: Map<String, Value> =
        link.attributes().map(|(name, text)| (name.to_owned(), value(text))).collect();
    json!({ "target": link.target, "attributes": attributes })
}
