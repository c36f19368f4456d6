//! Topologies: where the nodes of a mesh stand.
