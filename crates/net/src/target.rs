//! The target of a request: a URI that is parsed only once.

use std::sync::{Arc, Mutex};

use crate::Options;
use crate::lock::lock;
use crate::uri::{BadUri, Uri, proxy_uri};

/// A URI, and the options of the requests to it.
#[derive(Debug)]
pub(crate) struct Target {
    text: Box<str>,
    /// The destination of the requests. If the destination is a proxy, the path here is the text of the requested URI.
    pub(crate) uri: Uri,
    pub(crate) options: Options,
}

/// The target of a client's last request. A program that polls a resource thus does not parse its URI each time, which would be
/// a fifth of the instructions of a request.
#[derive(Debug, Default)]
pub(crate) struct LastTarget(Mutex<Option<Arc<Target>>>);

impl LastTarget {
    /// Returns the target of this URI, and keeps it for the next request. A client passes the same `proxy` at every
    /// call, or always `None`.
    pub(crate) fn target(&self, text: &str, proxy: Option<&Uri>) -> Result<Arc<Target>, BadUri> {
        let mut last = lock(&self.0);
        if let Some(target) = last.as_ref().filter(|target| &*target.text == text) {
            return Ok(target.clone());
        }
        let (options, uri) = match proxy {
            None => {
                let uri: Uri = text.parse()?;
                (uri.options(), uri)
            }
            Some(proxy) => {
                let options = match text.parse::<Uri>() {
                    // The proxy may support schemes that this crate does not have.
                    Err(BadUri::UnknownScheme) => proxy_uri(text)?,
                    uri => uri?.options_for_proxy()?,
                };
                // The path makes a pause after 4.29 hold this URI, and not all URIs behind the proxy.
                (options, Uri { path: vec![text.to_owned()], ..proxy.clone() })
            }
        };
        let target = Arc::new(Target { text: text.into(), options, uri });
        *last = Some(target.clone());
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parsed_uri_of_a_target_is_reused_until_it_changes() {
        let last = LastTarget::default();
        let first = last.target("coap://[::1]/a", None).unwrap();
        assert!(Arc::ptr_eq(&first, &last.target("coap://[::1]/a", None).unwrap()));
        assert_eq!(last.target("coap://[::1]/b", None).unwrap().uri.path, ["b"]);
        assert_eq!(last.target("coap:/", None).unwrap_err(), BadUri::NotAbsolute);
        assert_eq!(last.target("coap://[::1]/a", None).unwrap().options, first.options);
    }

    #[test]
    fn requests_of_a_client_with_a_proxy_go_to_the_proxy() {
        let (last, proxy) = (LastTarget::default(), "coap://proxy:9".parse::<Uri>().unwrap());
        let target = last.target("coap://h/a", Some(&proxy)).unwrap();
        assert_eq!((&target.uri.host, target.uri.port), (&proxy.host, 9));
        assert_eq!(target.options.value(39), Some(&b"coap"[..]));
        let other = last.target("http://h/a", Some(&proxy)).unwrap();
        assert_ne!(target.uri, other.uri, "a server that holds one does not hold the other");
        assert_eq!(other.options.value(35), Some(&b"http://h/a"[..]));
        assert_eq!(last.target("coap://h/a b", Some(&proxy)).unwrap_err(), BadUri::Character(10));
    }
}
