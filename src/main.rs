//! The `etch` command.

fn main() {}
