//! IP addresses and blocks of them.
//! It must not know names of hosts.
//!
//! Source: apiserver `pkg/cel/library/{ip,cidr}.go` and Go's `net/netip`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Table, text};
use crate::fault::{Fault, Outcome};
use crate::value::Value;

/// A block of addresses, with the address it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    pub(crate) bits: u8,
}

pub(super) fn declare(table: &mut Table) {
    table.function("ip", "string_to_ip", "string -> ip", |args| {
        parse_ip(text(args, 0)?).map(Value::Ip).ok_or(NOT_AN_ADDRESS)
    });
    table.function("isIP", "is_ip", "string -> bool", |args| {
        Ok(Value::Bool(parse_ip(text(args, 0)?).is_some()))
    });
    table.function("ip.isCanonical", "ip_is_canonical", "string -> bool", |args| {
        let text = text(args, 0)?;
        parse_ip(text).map(|address| Value::Bool(address.to_string() == text)).ok_or(NOT_AN_ADDRESS)
    });
    table.method("family", "ip_family", "ip -> int", |args| {
        Ok(Value::Int(if address(args, 0)?.is_ipv4() { 4 } else { 6 }))
    });
    table.method("isUnspecified", "ip_is_unspecified", "ip -> bool", |args| {
        Ok(Value::Bool(address(args, 0)?.is_unspecified()))
    });
    table.method("isLoopback", "ip_is_loopback", "ip -> bool", |args| {
        Ok(Value::Bool(address(args, 0)?.is_loopback()))
    });
    table.method("isLinkLocalMulticast", "ip_is_link_local_multicast", "ip -> bool", |args| {
        Ok(Value::Bool(is_link_local_multicast(address(args, 0)?)))
    });
    table.method("isLinkLocalUnicast", "ip_is_link_local_unicast", "ip -> bool", |args| {
        Ok(Value::Bool(is_link_local_unicast(address(args, 0)?)))
    });
    table.method("isGlobalUnicast", "ip_is_global_unicast", "ip -> bool", |args| {
        Ok(Value::Bool(is_global_unicast(address(args, 0)?)))
    });
    table.function("cidr", "string_to_cidr", "string -> cidr", |args| {
        Cidr::parse(text(args, 0)?).map(Value::Cidr).ok_or(NOT_A_BLOCK)
    });
    table.function("isCIDR", "is_cidr", "string -> bool", |args| {
        Ok(Value::Bool(Cidr::parse(text(args, 0)?).is_some()))
    });
    table.method("containsIP", "cidr_contains_ip_string", "cidr, string -> bool", |args| {
        let address = parse_ip(text(args, 1)?).ok_or(Fault::NoOverload)?;
        Ok(Value::Bool(block(args, 0)?.contains(address)))
    });
    table.method("containsIP", "cidr_contains_ip_ip", "cidr, ip -> bool", |args| {
        Ok(Value::Bool(block(args, 0)?.contains(address(args, 1)?)))
    });
    table.method("containsCIDR", "cidr_contains_cidr_string", "cidr, string -> bool", |args| {
        let other = Cidr::parse(text(args, 1)?).ok_or(NOT_A_BLOCK)?;
        Ok(Value::Bool(block(args, 0)?.contains_block(other)))
    });
    table.method("containsCIDR", "cidr_contains_cidr", "cidr, cidr -> bool", |args| {
        Ok(Value::Bool(block(args, 0)?.contains_block(block(args, 1)?)))
    });
    table.method("ip", "cidr_ip", "cidr -> ip", |args| Ok(Value::Ip(block(args, 0)?.address)));
    table.method("prefixLength", "cidr_prefix_length", "cidr -> int", |args| {
        Ok(Value::Int(block(args, 0)?.bits.into()))
    });
    table.method("masked", "cidr_masked", "cidr -> cidr", |args| {
        let Cidr { address, bits } = block(args, 0)?;
        Ok(Value::Cidr(Cidr { address: mask(address, bits), bits }))
    });
}

const NOT_AN_ADDRESS: Fault = Fault::Failed(std::borrow::Cow::Borrowed("IP address parse error"));
const NOT_A_BLOCK: Fault = Fault::Failed(std::borrow::Cow::Borrowed("network address parse error"));

fn address(args: &[Value<'_>], index: usize) -> Outcome<IpAddr> {
    match args.get(index) {
        Some(Value::Ip(address)) => Ok(*address),
        _ => Err(Fault::NoOverload),
    }
}

fn block(args: &[Value<'_>], index: usize) -> Outcome<Cidr> {
    match args.get(index) {
        Some(Value::Cidr(block)) => Ok(*block),
        _ => Err(Fault::NoOverload),
    }
}

/// An address without a zone; an IPv4 address in IPv6's clothes is none.
fn parse_ip(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => None,
        address => Some(address),
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Go's meaning, which has private addresses among them.
fn is_global_unicast(address: IpAddr) -> bool {
    !(address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_link_local_unicast(address)
        || address == IpAddr::V4(Ipv4Addr::BROADCAST))
}

impl Cidr {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.rsplit_once('/')?;
        let address = parse_ip(address)?;
        let plain = bits.bytes().all(|b| b.is_ascii_digit()) && !(bits.len() > 1 && bits.starts_with('0'));
        let bits: u8 = plain.then(|| bits.parse().ok()).flatten()?;
        (bits <= width(address)).then_some(Self { address, bits })
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && mask(self.address, self.bits) == mask(address, self.bits)
    }

    fn contains_block(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn mask(address: IpAddr, bits: u8) -> IpAddr {
    let host = u32::from(width(address) - bits);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(host).unwrap_or_default();
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(host).unwrap_or_default();
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}
