//! Which overload of a function a call runs, and the error if there is none.
//!
//! Source: cel-go `common/decls/decls.go` and `interpreter/interpretable.go`.

use super::fault::{Fault, Outcome};
use super::plan::Call;
use super::value::Value;

pub(super) fn run<'v>(call: &Call, args: &[Value<'v>]) -> Outcome<Value<'v>> {
    let Some(overload) = call.candidates.iter().find(|overload| overload.takes(args)) else {
        // Of these, types are looked at by the text itself.
        if matches!(&*call.function, "contains" | "endsWith" | "startsWith") {
            return Err(Fault::NoOverload);
        }
        let types: Vec<&str> = args.iter().map(Value::type_name).collect();
        return Err(Fault::NoOverloadOf(format!("{}({})", call.function, types.join(", ")).into()));
    };
    let result = match &call.search {
        Some((search, pattern)) => search.run(pattern, args),
        None => (overload.run)(args),
    };
    match result {
        Err(Fault::NoOverload) if &*call.function == "flatten" => {
            let name = |value: &Value<'_>| match value.type_name() {
                "map" => "map(dyn, dyn)",
                name => name,
            };
            let types: Vec<&str> = args.iter().map(name).collect();
            let (target, rest) = types.split_first().map_or(("", &[][..]), |(target, rest)| (*target, rest));
            Err(Fault::NoOverloadOf(format!("{target}.flatten({})", rest.join(", ")).into()))
        }
        Err(Fault::NoOverload) if !has_trait(&call.function, args) => {
            Err(Fault::NoOverloadOf(call.function.clone()))
        }
        result => result,
    }
}

/// Whether the first argument of an operator is of a type that has it, whatever the second one is. Some types
/// answer for all functions.
///
/// Source: cel-go `common/types/types.go`, the traits of types.
fn has_trait(function: &str, args: &[Value<'_>]) -> bool {
    use Value::*;
    let Some(first) = args.first() else { return true };
    match function {
        "_+_" => matches!(
            first,
            Bytes(_)
                | Double(_)
                | Duration(_)
                | Int(_)
                | String(_)
                | Timestamp(_)
                | Uint(_)
                | List(_)
                | Array(_)
        ),
        "_-_" => {
            matches!(first, Double(_) | Duration(_) | Int(_) | String(_) | Timestamp(_) | Uint(_))
        }
        "_*_" | "_/_" => {
            matches!(first, Double(_) | Duration(_) | Int(_) | String(_) | Timestamp(_) | Uint(_))
        }
        "_%_" => matches!(first, Int(_) | Uint(_) | Duration(_) | String(_) | Timestamp(_)),
        "-_" => matches!(first, Bool(_) | Double(_) | Duration(_) | Int(_) | String(_) | Timestamp(_)),
        "_<_" | "_<=_" | "_>_" | "_>=_" => matches!(
            first,
            Bool(_) | Bytes(_) | Double(_) | Duration(_) | Int(_) | String(_) | Timestamp(_) | Uint(_)
        ),
        "sort" => {
            matches!(first, List(_) | Array(_) | Duration(_) | String(_) | Timestamp(_))
        }
        "size" => first.size().is_some() || matches!(first, Duration(_) | Timestamp(_)),
        "matches" => matches!(first, Duration(_) | String(_) | Timestamp(_)),
        _ => true,
    }
}
