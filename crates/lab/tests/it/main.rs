//! Tests of the laboratory.

mod bounds;
mod californium;
mod flows;
mod mesh;
mod reproductions;
mod results;
mod run;
mod vectors;
