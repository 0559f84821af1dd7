//! Go packages of API types, as far as defaults depend on them: types, fields, tags, markers and constants.

mod constant;
mod constraint;
mod default;
mod folder;
mod format;
mod kubebuilder;
mod package;
mod parse;
mod quote;
mod resolve;
mod scanner;
mod scope;
mod shape;
mod unset;
mod well_known;

pub use constraint::{is_built, is_built_by_name};
pub use default::{MarkedDefault, Source, Unreadable, defaults};
pub use folder::{holds_types, module};
pub use format::Format;
pub use package::{
    Constant, Declaration, Field, JsonTag, Marker, Methods, Package, Packages, Place, Remark, Spot, Type,
    TypeName, Writer,
};
pub use parse::{GoParser, NotGo};
pub use quote::unquote;
pub use resolve::Resolved;
pub use scope::Scope;
pub use shape::{Shape, Struct, Whole};
pub use unset::Unset;
