//! URLs as values; what they are is Go's `net/url`.

use go_text::url::Url;

use crate::kind::{Kind, downcast};

impl Kind for Url {
    fn type_name(&self) -> &'static str {
        "kubernetes.URL"
    }

    fn same(&self, other: &dyn Kind) -> Option<bool> {
        Some(downcast::<Self>(other)?.to_string() == self.to_string())
    }
}
