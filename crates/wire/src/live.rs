//! Runs of a scenario with hosts on real sockets.
