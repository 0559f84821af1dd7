//! The interface of the types that Kubernetes adds to CEL: what each must define about its values. Which
//! types there are is in `kinds`.

use std::any::Any;
use std::fmt;

/// A value of a type that Kubernetes adds.
pub(crate) trait Kind: Any + fmt::Debug + Send + Sync {
    /// The name of the type, as `type(value)` has it.
    fn type_name(&self) -> &'static str;

    /// `==`; `None` if the other is of another type.
    fn same(&self, other: &dyn Kind) -> Option<bool>;

    /// `string(value)`; `None` if the type has no such conversion.
    fn to_text(&self) -> Option<String> {
        None
    }

    /// The size that counts for the price of what is done with it.
    fn size(&self) -> u64 {
        1
    }
}

/// The value behind a kind; `None` if it is of another type.
pub(crate) fn downcast<K: Kind>(kind: &dyn Kind) -> Option<&K> {
    (kind as &dyn Any).downcast_ref()
}
