//! The target of a request: a URI that is parsed once.

use std::sync::{Arc, Mutex};

use crate::Options;
use crate::lock::lock;
use crate::uri::{BadUri, Uri};

/// A URI, and the options of its requests.
#[derive(Debug)]
pub(crate) struct Target {
    text: Box<str>,
    pub(crate) uri: Uri,
    pub(crate) options: Options,
}

/// The target of a client's last request. A program that polls a resource thus does not parse its URI each time, which would
/// be a fifth of the instructions of a request.
#[derive(Debug, Default)]
pub(crate) struct LastTarget(Mutex<Option<Arc<Target>>>);

impl LastTarget {
    /// Returns the target of this URI, and keeps it for the next request.
    pub(crate) fn target(&self, text: &str) -> Result<Arc<Target>, BadUri> {
        let mut last = lock(&self.0);
        if let Some(target) = last.as_ref().filter(|target| &*target.text == text) {
            return Ok(target.clone());
        }
        let uri: Uri = text.parse()?;
        let target = Arc::new(Target { text: text.into(), options: uri.options(), uri });
        *last = Some(target.clone());
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_is_taken_apart_when_it_changes() {
        let last = LastTarget::default();
        let first = last.target("coap://[::1]/a").unwrap();
        assert!(Arc::ptr_eq(&first, &last.target("coap://[::1]/a").unwrap()));
        assert_eq!(last.target("coap://[::1]/b").unwrap().uri.path, ["b"]);
        assert_eq!(last.target("coap:/").unwrap_err(), BadUri::NotAbsolute);
        assert_eq!(last.target("coap://[::1]/a").unwrap().options, first.options);
    }
}
