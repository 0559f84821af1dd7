//! Go packages of API types, as far as defaults depend on them: types, fields, tags, markers and constants.

mod constraint;
mod default;
mod kubebuilder;
mod package;
mod parse;
mod quote;
mod resolve;
mod scanner;
mod shape;
mod unset;
mod well_known;

pub use constraint::{is_built, is_built_by_name};
pub use default::{MarkedDefault, Source, Unreadable, defaults};
pub use package::{
    Constant, Declaration, Field, JsonTag, Marker, Package, Packages, Place, Remark, Spot, Type, TypeName,
};
pub use parse::{GoParser, NotGo};
pub use quote::unquote;
pub use resolve::Resolved;
pub use shape::{Shape, Struct};
pub use unset::Unset;
