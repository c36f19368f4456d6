//! Black-box examination of CoAP stacks.
