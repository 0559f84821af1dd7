//! Paths of values in objects, as Etch writes them.

/// Whether a path is another one, or lies below it.
pub fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The path in the schema: the same for all items of a list, or all values of a map.
pub fn of_schema(path: &str) -> String {
    let mut parts = path.split('[');
    let mut place = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (step, rest) = part.split_once(']').unwrap_or((part, ""));
        place.push_str(if step.starts_with('"') { "{}" } else { "[]" });
        place.push_str(rest);
    }
    place
}
