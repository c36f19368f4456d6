//! Tests of the laboratory.

mod bounds;
mod californium;
mod cooja;
mod ebb;
mod flows;
mod mesh;
mod reproductions;
mod results;
mod run;
mod search;
mod separate;
mod transfers;
mod travel;
mod vectors;
