//! x
crate::rows! {}
