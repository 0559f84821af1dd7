//! IP addresses and blocks of them: `ip('::1')`, `cidr('10.0.0.0/8')` and their functions.
//! How they are written is in `kinds`.
//!
//! Source: apiserver `pkg/cel/library/{ip,cidr}.go`.

use std::net::IpAddr;

use super::args::{kind, text};
use super::table::Table;
use crate::cost::CHARACTER;
use crate::fault::{Fault, Outcome};
use crate::kinds::{Cidr, is_global_unicast, is_link_local_multicast, is_link_local_unicast, parse_ip};
use crate::price::{Estimate, Given, ONE, PARSE, Price, characters};
use crate::range::Range;
use crate::value::Value;

pub(super) fn declare(table: &mut Table) {
    table.function("ip", "string_to_ip", "string -> ip", PARSE, |args| {
        parse_ip(text(args, 0)?).map(Value::kind).map_err(no_address)
    });
    table.function("isIP", "is_ip", "string -> bool", PARSE, |args| {
        Ok(Value::Bool(parse_ip(text(args, 0)?).is_ok()))
    });
    table.function("ip.isCanonical", "ip_is_canonical", "string -> bool", IS_CANONICAL, |args| {
        let text = text(args, 0)?;
        parse_ip(text).map(|address| Value::Bool(address.to_string() == text)).map_err(no_address)
    });
    table.method("family", "ip_family", "ip -> int", ONE, |args| {
        Ok(Value::Int(if address(args, 0)?.is_ipv4() { 4 } else { 6 }))
    });
    table.method("isUnspecified", "ip_is_unspecified", "ip -> bool", ONE, |args| {
        Ok(Value::Bool(address(args, 0)?.is_unspecified()))
    });
    table.method("isLoopback", "ip_is_loopback", "ip -> bool", ONE, |args| {
        Ok(Value::Bool(address(args, 0)?.is_loopback()))
    });
    table.method("isLinkLocalMulticast", "ip_is_link_local_multicast", "ip -> bool", ONE, |args| {
        Ok(Value::Bool(is_link_local_multicast(address(args, 0)?)))
    });
    table.method("isLinkLocalUnicast", "ip_is_link_local_unicast", "ip -> bool", ONE, |args| {
        Ok(Value::Bool(is_link_local_unicast(address(args, 0)?)))
    });
    table.method("isGlobalUnicast", "ip_is_global_unicast", "ip -> bool", ONE, |args| {
        Ok(Value::Bool(is_global_unicast(address(args, 0)?)))
    });
    table.function("cidr", "string_to_cidr", "string -> cidr", PARSE, |args| {
        Cidr::parse(text(args, 0)?).map(Value::kind).map_err(no_block)
    });
    table.function("isCIDR", "is_cidr", "string -> bool", PARSE, |args| {
        Ok(Value::Bool(Cidr::parse(text(args, 0)?).is_ok()))
    });
    table.method("containsIP", "cidr_contains_ip_string", "cidr, string -> bool", CONTAINS_IP_TEXT, |args| {
        // Upstream takes its own error for the argument, and finds no overload for it.
        let address = parse_ip(text(args, 1)?).map_err(|_| Fault::NoOverload)?;
        Ok(Value::Bool(block(args, 0)?.contains(address)))
    });
    table.method("containsIP", "cidr_contains_ip_ip", "cidr, ip -> bool", CONTAINS_IP, |args| {
        Ok(Value::Bool(block(args, 0)?.contains(address(args, 1)?)))
    });
    table.method(
        "containsCIDR",
        "cidr_contains_cidr_string",
        "cidr, string -> bool",
        CONTAINS_CIDR_TEXT,
        |args| {
            let other = Cidr::parse(text(args, 1)?).map_err(no_block)?;
            Ok(Value::Bool(block(args, 0)?.contains_block(other)))
        },
    );
    table.method("containsCIDR", "cidr_contains_cidr", "cidr, cidr -> bool", CONTAINS_CIDR, |args| {
        Ok(Value::Bool(block(args, 0)?.contains_block(block(args, 1)?)))
    });
    table.method("ip", "cidr_ip", "cidr -> ip", ONE, |args| Ok(Value::kind(block(args, 0)?.address)));
    table.method("prefixLength", "cidr_prefix_length", "cidr -> int", ONE, |args| {
        Ok(Value::Int(block(args, 0)?.bits.into()))
    });
    table.method("masked", "cidr_masked", "cidr -> cidr", ONE, |args| {
        Ok(Value::kind(block(args, 0)?.masked()))
    });
}

const IS_CANONICAL: Price = Price::kubernetes(
    |args, _| Ok(characters(&args[0], 2.0)),
    |call| Estimate::of(call.args[0].size.scaled(2.0 * CHARACTER)),
);

/// The bytes of an address.
const ADDRESS: Range = Range { min: 4, max: 16 };

const CONTAINS_IP: Price = Price::kubernetes(
    |args, _| Ok(characters(&args[0], 2.0)),
    |_| Estimate::of(ADDRESS.plus(ADDRESS).scaled(CHARACTER)),
);

const CONTAINS_IP_TEXT: Price = Price {
    counted: |args, result| Ok((CONTAINS_IP.counted)(args, result)? + characters(&args[1], 1.0)),
    estimated: |call| with_text((CONTAINS_IP.estimated)(call), call),
    ..CONTAINS_IP
};

const CONTAINS_CIDR: Price = Price::kubernetes(
    |args, _| Ok(characters(&args[0], 2.0) + characters(&args[0], 1.0) + 1),
    |call| {
        let bits = ADDRESS.scaled(CHARACTER).plus(Range::fixed(1));
        Estimate::of((CONTAINS_IP.estimated)(call).cost.plus(bits))
    },
);

const CONTAINS_CIDR_TEXT: Price = Price {
    counted: |args, result| Ok((CONTAINS_CIDR.counted)(args, result)? + characters(&args[1], 1.0)),
    estimated: |call| with_text((CONTAINS_CIDR.estimated)(call), call),
    ..CONTAINS_CIDR
};

fn with_text(estimate: Estimate, call: &Given<'_>) -> Estimate {
    Estimate::of(estimate.cost.plus(call.args[1].size.scaled(CHARACTER)))
}

fn no_address(error: String) -> Fault {
    Fault::quoting("IP address parse error", error)
}

fn no_block(error: String) -> Fault {
    // The parser adds these words as well; upstream has them twice.
    let error = format!("network address parse error during conversion from string: {error}");
    Fault::quoting("network address parse error", error)
}

fn address(args: &[Value<'_>], index: usize) -> Outcome<IpAddr> {
    kind(args, index).copied()
}

fn block(args: &[Value<'_>], index: usize) -> Outcome<Cidr> {
    kind(args, index).copied()
}
