//! Value validation of defaults and of whole objects.
//! It must not fill or prune.

pub mod cel;
mod format;
