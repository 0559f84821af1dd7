//! Signatures as text: `string, list<A> -> optional<A>`. A capital letter is a type that the call decides.

use crate::types::Type;

/// The types of the arguments and of the result.
///
/// Signatures are written in this crate only, and each is read in a test; what is misspelled is taken for
/// `dyn`.
pub(super) fn parse(signature: &str) -> (Vec<Type<'static>>, Type<'static>) {
    let (args, result) = signature.split_once("->").unwrap_or(("", signature));
    let args = split(args).into_iter().map(parse_type).collect();
    (args, parse_type(result))
}

fn parse_type(text: &str) -> Type<'static> {
    let text = text.trim();
    if let Some((name, rest)) = text.split_once('<') {
        let inner: Vec<_> =
            split(rest.strip_suffix('>').unwrap_or(rest)).into_iter().map(parse_type).collect();
        return match (name, &inner[..]) {
            ("list", [item]) => Type::list(item.clone()),
            ("map", [key, value]) => Type::map(key.clone(), value.clone()),
            ("optional", [inner]) => Type::optional(inner.clone()),
            ("type", [inner]) => Type::Meta(inner.clone().into()),
            _ => Type::Dyn,
        };
    }
    match text {
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "quantity" => Type::Named("kubernetes.Quantity"),
        "url" => Type::Named("kubernetes.URL"),
        "semver" => Type::Named("kubernetes.Semver"),
        "format" => Type::Named("kubernetes.NamedFormat"),
        "ip" => Type::Named("net.IP"),
        "cidr" => Type::Named("net.CIDR"),
        letter => match letter.as_bytes() {
            [letter @ b'A'..=b'Z'] => Type::Open(*letter),
            _ => Type::Dyn,
        },
    }
}

/// The parts between commas that stand in no brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read() {
        let cases = [
            ("-> optional<V>", "", "optional_type(V)"),
            ("string, int -> string", "string int", "string"),
            ("list<A>, A -> bool", "list(A) A", "bool"),
            ("optional<map<K, V>>, K -> optional<V>", "optional_type(map(K, V)) K", "optional_type(V)"),
            ("url -> map<string, list<string>>", "kubernetes.URL", "map(string, list(string))"),
            ("A -> type<A>", "A", "type(A)"),
            ("dyn -> dyn", "dyn", "dyn"),
        ];
        for (signature, args, result) in cases {
            let (read, returned) = parse(signature);
            let read: Vec<String> = read.iter().map(ToString::to_string).collect();
            assert_eq!(
                (read.join(" ").as_str(), returned.to_string().as_str()),
                (args, result),
                "{signature}"
            );
        }
    }
}
