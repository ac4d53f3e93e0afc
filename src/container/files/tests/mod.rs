//! What both ways of reaching files must do, in real containers.

mod confinement;
mod operations;
mod pauses;
mod races;
mod rig;
mod trees;
