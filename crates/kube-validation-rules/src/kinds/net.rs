//! IP addresses and blocks of them.
//!
//! Source: apiserver `pkg/cel/library/{ip,cidr}.go` and Go's `net/netip`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use go_text::netip::{parse_addr, parse_prefix};
use go_text::strconv::quote;

use crate::kind::{Kind, downcast};

/// A block of addresses, with the address it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

/// An address without a zone; an IPv4 address in IPv6's clothes is none.
///
/// # Errors
/// It is none, in the server's words, which quote the text.
pub(crate) fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let address = parse_addr(text).map_err(|error| {
        format!("IP Address {} parse error during conversion from string: {error}", quote(text))
    })?;
    if address.zoned {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)));
    }
    unmapped(text, address.ip)
}

fn unmapped(text: &str, address: IpAddr) -> Result<IpAddr, String> {
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)))
        }
        address => Ok(address),
    }
}

pub(crate) fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

pub(crate) fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Go's meaning, which has private addresses among them.
pub(crate) fn is_global_unicast(address: IpAddr) -> bool {
    !(address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_link_local_unicast(address)
        || address == IpAddr::V4(Ipv4Addr::BROADCAST))
}

impl Cidr {
    /// Reads an address and its prefix.
    ///
    /// # Errors
    /// It is none, in the server's words, which quote the text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (address, bits) = parse_prefix(text)
            .map_err(|error| format!("network address parse error during conversion from string: {error}"))?;
        Ok(Self { address: unmapped(text, address)?, bits })
    }

    /// The block with the address that it begins with.
    pub(crate) fn masked(self) -> Self {
        Self { address: mask(self.address, self.bits), ..self }
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && mask(self.address, self.bits) == mask(address, self.bits)
    }

    pub(crate) fn contains_block(self, other: Self) -> bool {
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

impl Kind for Cidr {
    fn type_name(&self) -> &'static str {
        "net.CIDR"
    }

    fn same(&self, other: &dyn Kind) -> Option<bool> {
        Some(self == downcast::<Self>(other)?)
    }

    fn to_text(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn size(&self) -> u64 {
        self.bits.div_ceil(8).into()
    }
}

impl Kind for IpAddr {
    fn type_name(&self) -> &'static str {
        "net.IP"
    }

    fn same(&self, other: &dyn Kind) -> Option<bool> {
        Some(self == downcast::<Self>(other)?)
    }

    fn to_text(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn size(&self) -> u64 {
        if self.is_ipv4() { 4 } else { 16 }
    }
}
