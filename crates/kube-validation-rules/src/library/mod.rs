//! The functions that expressions may call: those of Kubernetes 1.37 for rules that are stored.
//! A function sees values only.
//!
//! Source: apiserver `pkg/cel/environment/base.go`. Beside CEL's own there are the libraries of cel-go for
//! strings (version 2), lists (3), sets, two-variable loops and optionals (2), and Kubernetes' own for lists,
//! regular expressions, URLs, quantities, IP addresses, CIDRs, named formats and semantic versions. `math`,
//! `base64`, `cel.bind` and the authorizer are not among them for CRDs.

mod args;
mod calendar;
mod convert;
mod formatting;
mod lists;
mod named_format;
mod net;
mod operators;
mod optional;
mod quantity;
mod regex;
mod semver;
mod sequences;
mod signature;
mod strings;
mod table;
mod url;

use std::sync::LazyLock;

use super::types::Type;
use table::Table;

pub(super) use convert::{NAMES as CONVERSIONS, to_text};
pub(super) use formatting::{Clause, clauses, unfit_text};
pub(super) use operators::EQUAL;
pub(super) use regex::Search;
pub(super) use sequences::{insert, insert_all};
pub(super) use table::Overload;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::default();
    operators::declare(&mut table);
    convert::declare(&mut table);
    calendar::declare(&mut table);
    optional::declare(&mut table);
    url::declare(&mut table);
    regex::declare(&mut table);
    quantity::declare(&mut table);
    strings::declare(&mut table);
    formatting::declare(&mut table);
    net::declare(&mut table);
    named_format::declare(&mut table);
    semver::declare(&mut table);
    sequences::declare(&mut table);
    lists::declare(&mut table);
    table
});

/// Which functions a rule may call.
///
/// Servers know more of them for rules that are stored already than for new ones, so that a server of the
/// release before can still run what this one takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Library {
    /// The release whose functions there are, as its minor version.
    minor: u32,
    /// The release of the server.
    server_minor: u32,
}

/// The release with cel-go 0.29. What a release of cel-go has or has not, new and stored rules have alike.
const CEL_GO_0_29: u32 = 37;

impl Library {
    /// All that are known.
    pub(super) const ALL: Self = Self { minor: u32::MAX, server_minor: u32::MAX };

    /// What a server of a release takes in a rule.
    pub(super) fn of(server_minor: u32, stored: bool) -> Self {
        Self { minor: if stored { server_minor } else { server_minor.saturating_sub(1) }, server_minor }
    }

    /// The overloads of a function; `None` if there is no such function.
    pub(super) fn overloads(self, function: &str) -> Option<&'static [Overload]> {
        let since = introduced(function);
        let overloads = TABLE.overloads(function).filter(|_| self.minor >= since)?;
        match overloads.split_last() {
            Some((last, others)) if last.id == convert::NANOSECONDS && self.server_minor >= CEL_GO_0_29 => {
                Some(others)
            }
            _ => Some(overloads),
        }
    }

    /// Whether a field's name may stand between backticks.
    pub(super) fn has_escaped_names(self) -> bool {
        self.server_minor >= CEL_GO_0_29
    }

    /// Whether `sortBy` is a macro.
    pub(super) fn has_sort_by(self) -> bool {
        self.minor >= introduced("sort")
    }
}

/// The release that a function came with, as far back as 1.34.
///
/// Source: apiserver `pkg/cel/environment/base.go`.
fn introduced(function: &str) -> u32 {
    match function {
        "slice" | "flatten" | "sort" | "@sortByAssociatedKeys" | "lists.range" | "reverse" | "distinct" => 34,
        "includes" => 37,
        _ => 0,
    }
}

/// The type that an expression names, as in `type(x) == string`.
pub(super) fn type_named(name: &str) -> Option<(&'static str, Type<'static>)> {
    Some(match name {
        "bool" => ("bool", Type::Bool),
        "bytes" => ("bytes", Type::Bytes),
        "double" => ("double", Type::Double),
        "int" => ("int", Type::Int),
        "list" => ("list", Type::list(Type::Dyn)),
        "map" => ("map", Type::map(Type::Dyn, Type::Dyn)),
        "null_type" => ("null_type", Type::Null),
        "string" => ("string", Type::String),
        "type" => ("type", Type::Meta(Type::Dyn.into())),
        "uint" => ("uint", Type::Uint),
        "optional_type" => ("optional_type", Type::optional(Type::Dyn)),
        "google.protobuf.Duration" => ("google.protobuf.Duration", Type::Duration),
        "google.protobuf.Timestamp" => ("google.protobuf.Timestamp", Type::Timestamp),
        "net.IP" => ("net.IP", Type::Named("net.IP")),
        "net.CIDR" => ("net.CIDR", Type::Named("net.CIDR")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_overload_has_a_name_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for overload in TABLE.all() {
            assert!(seen.insert(&overload.id), "{} is declared twice", overload.id);
            assert!(!overload.member || !overload.args.is_empty(), "{} is called on nothing", overload.id);
        }
    }
}
