//! The network of a scenario between real sockets, in real time.
