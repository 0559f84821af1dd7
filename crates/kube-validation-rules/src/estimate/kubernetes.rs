//! The estimated prices of Kubernetes' functions, and of some of CEL's that it prices anew.
//! It must not be mended: which CRDs the server takes depends on these estimates.
//!
//! Source: apiserver `pkg/cel/library/cost.go`, `EstimateCallCost`.

use super::coster::{Argument, Call, Coster};
use super::path::Path;
use super::range::Range;
use super::units::{CHARACTER, REGEX_CHARACTER, search};
use crate::tree::Expr;
use crate::types::Type;
use crate::value::Value;

/// The longest name of a format, and the longest regular expression behind one, in characters.
const MAX_FORMAT: u64 = 64;
const MAX_FORMAT_REGEX: f64 = 128.0;

/// The price of a call, or none where it is not for Kubernetes to say.
pub(super) fn price<'t, 'm>(
    coster: &Coster<'t, 'm>,
    function: &str,
    overload: &str,
    target: Option<&Argument<'t, 'm>>,
    args: &[Argument<'t, 'm>],
) -> Option<Call> {
    let size = |argument: &Argument<'t, 'm>| coster.estimate(argument);
    let plain = |cost| Some(Call { cost, size: None });
    let same_size = |size: Range| Some(Call { cost: size.scaled(CHARACTER), size: Some(size) });
    match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => {
            plain(traversal(coster, function, target?))
        }
        "url" => match args {
            [text] => same_size(size(text)),
            _ => None,
        },
        "lowerAscii" | "upperAscii" | "substring" | "trim" => same_size(size(target?)),
        "replace" => match args {
            [old, new, ..] => Some(replace(size(target?), size(old), size(new))),
            _ => None,
        },
        "split" => Some(split(coster, size(target?), args)),
        "join" => Some(join(coster, target?, args)),
        "find" | "findAll" => {
            let text = size(target?);
            let cost = search(text, size(args.first()?));
            Some(Call { cost, size: Some(Range { min: 0, max: text.max }) })
        }
        "ip" if overload == "cidr_ip" => plain(Range::fixed(1)),
        "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            plain(size(args.first()?).scaled(CHARACTER))
        }
        "ip.isCanonical" => plain(size(args.first()?).scaled(2.0 * CHARACTER)),
        "containsIP" | "containsCIDR" => plain(contains(function, overload, size(args.first()?))),
        "validate" => plain(size(args.first()?).scaled(CHARACTER).scaled(MAX_FORMAT_REGEX * REGEX_CHARACTER)),
        "_==_" => match args {
            [left, right] if left.ty.is(&right.ty) => plain(equality(&left.ty, right)?),
            _ => None,
        },
        // Names of the authorizer's functions, and of others that do little.
        "serviceAccount"
        | "path"
        | "group"
        | "resource"
        | "subresource"
        | "namespace"
        | "name"
        | "allowed"
        | "reason"
        | "error"
        | "errored"
        | "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast"
        | "format.named"
        | "sign"
        | "asInteger"
        | "isInteger"
        | "asApproximateFloat"
        | "isGreaterThan"
        | "isLessThan"
        | "compareTo"
        | "add"
        | "sub"
        | "major"
        | "minor"
        | "patch"
        | "getScheme"
        | "getHostname"
        | "getHost"
        | "getPort"
        | "getEscapedPath"
        | "getQuery" => plain(Range::fixed(1)),
        _ => None,
    }
}

impl<'t, 'm> Coster<'t, 'm> {
    /// The size of an argument: as CEL knows it, as the schema says, or anything.
    pub(super) fn estimate(&self, argument: &Argument<'t, 'm>) -> Range {
        argument
            .size
            .or_else(|| self.declared_size(argument.path.as_ref()))
            .unwrap_or(self.declared.unknown())
    }

    /// The items of a list, or what is taken for them: the first of what a type is made of.
    fn items(&self, list: &Argument<'t, 'm>) -> Option<Argument<'t, 'm>> {
        let ty = match list.ty.open() {
            Type::List(item) => (*item).clone(),
            Type::Map(entry) => entry.0.clone(),
            Type::Optional(inner) | Type::Meta(inner) => (*inner).clone(),
            _ => return None,
        };
        let path = list.path.as_ref().map(|path| Path::copied(path, "@items"));
        Some(Argument { path, ty, id: None, size: None })
    }
}

fn traversal<'t, 'm>(coster: &Coster<'t, 'm>, function: &str, target: &Argument<'t, 'm>) -> Range {
    let size = coster.estimate(target);
    match coster.items(target) {
        Some(item) => {
            let mut each = Range::fixed(1);
            if matches!(item.ty, Type::String | Type::Bytes) {
                each = each.plus(coster.estimate(&item).scaled(CHARACTER));
            }
            size.times(each)
        }
        None if function == "includes" => size.times(Range::fixed(1)),
        // A text.
        None => size.scaled(CHARACTER),
    }
}

fn replace(text: Range, old: Range, new: Range) -> Call {
    let (mut count, mut kept) = (Range::default(), Range::default());
    if old.min == 0 {
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if new.max <= old.min {
        kept.max = text.max;
    } else {
        count.max = (text.max as f64 / old.min as f64).ceil() as u64;
    }
    if old.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if old.max <= new.min {
        kept.min = text.min;
    } else {
        count.min = (text.min as f64 / old.max as f64).ceil() as u64;
    }
    Call { cost: text.scaled(2.0 * CHARACTER), size: Some(count.times(new).plus(kept)) }
}

fn split(coster: &Coster<'_, '_>, text: Range, args: &[Argument<'_, '_>]) -> Call {
    let limit = args.get(1).and_then(|limit| limit.id).map(|id| coster.tree.get(id));
    let max = match limit {
        Some(Expr::Literal(Value::Int(limit))) => limit.cast_unsigned(),
        _ => text.max,
    };
    Call { cost: text.scaled(2.0 * CHARACTER), size: Some(Range { min: 0, max }) }
}

fn join<'t, 'm>(coster: &Coster<'t, 'm>, list: &Argument<'t, 'm>, args: &[Argument<'t, 'm>]) -> Call {
    let count = coster.estimate(list);
    let mut size = Range::default();
    if let Some(item) = coster.items(list) {
        size = count.times(coster.estimate(&item));
    }
    if let Some(separator) = args.first() {
        let between = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
        size = size.plus(coster.estimate(separator).times(between));
    }
    Call { cost: size.scaled(CHARACTER), size: Some(size) }
}

fn contains(function: &str, overload: &str, other: Range) -> Range {
    let address = Range { min: 4, max: 16 };
    let mut cost = address.plus(address).scaled(CHARACTER);
    if function == "containsCIDR" {
        cost = cost.plus(address.scaled(CHARACTER)).plus(Range::fixed(1));
    }
    if matches!(overload, "cidr_contains_ip_string" | "cidr_contains_cidr_string") {
        cost = cost.plus(other.scaled(CHARACTER));
    }
    cost
}

fn equality(ty: &Type<'_>, right: &Argument<'_, '_>) -> Option<Range> {
    let Type::Named(name) = ty else { return None };
    match *name {
        "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => Some(Range::fixed(1)),
        "kubernetes.NamedFormat" => Some(Range { min: 1, max: MAX_FORMAT }.scaled(CHARACTER)),
        "kubernetes.URL" => {
            let max = right.size.map_or(1, |size| size.max);
            Some(Range { min: 1, max }.scaled(CHARACTER))
        }
        _ => None,
    }
}
