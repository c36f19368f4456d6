//! The Content-Format of an observed resource.

use std::cell::OnceCell;

use coapace_proto::Code;

use crate::Response;

/// The Content-Format of the first representation, if there was one. The format must not change during an observation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Format(OnceCell<Option<u16>>);

impl Format {
    /// Records the format of the first representation. Returns whether the representation in `response` has the same format.
    pub(crate) fn note(&self, response: &Response) -> bool {
        // Only 2.05 has a representation, so the format of other responses does not count.
        response.code != Code::CONTENT || *self.0.get_or_init(|| response.format()) == response.format()
    }

    /// Returns the notification for this response. A representation in another format than the first becomes 4.06, which
    /// ends the observation (RFC 7641 §4.2).
    pub(crate) fn admit(&self, response: Response) -> Response {
        if self.note(&response) { response } else { Response::new(Code::NOT_ACCEPTABLE) }
    }
}
