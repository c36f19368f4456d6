//! What each mechanism would have done on the exchanges of a capture.
