//! Each default of one object, with what is known of it; each default that is published of a type.

pub mod published;
