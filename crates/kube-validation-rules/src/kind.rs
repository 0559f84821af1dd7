//! What a type has to say of its values to be one of the language: the types that Kubernetes adds to CEL.
//! It must not know which there are; they are in `kinds`.

use std::any::Any;
use std::fmt;

/// A value of a type that Kubernetes adds.
pub(crate) trait Kind: Any + fmt::Debug + Send + Sync {
    /// The name of the type, as `type(value)` has it.
    fn type_name(&self) -> &'static str;

    /// `==`; none where the other is of another type.
    fn same(&self, other: &dyn Kind) -> Option<bool>;

    /// `string(value)`; none where the type has no such conversion.
    fn to_text(&self) -> Option<String> {
        None
    }

    /// The size that counts for the price of what is done with it.
    fn size(&self) -> u64 {
        1
    }
}

/// The value behind a kind; none where it is of another type.
pub(crate) fn downcast<K: Kind>(kind: &dyn Kind) -> Option<&K> {
    (kind as &dyn Any).downcast_ref()
}
