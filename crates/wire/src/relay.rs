//! A relay that runs a mechanism for a client that cannot.
