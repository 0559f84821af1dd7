//! The simulator: lives of whole clusters on virtual time, and its API server beside real ones.

mod conform;
mod lives;
mod matrix;
mod twins;
