//! Every check of the project, in the order in which they fail fastest.
fn main() {}
