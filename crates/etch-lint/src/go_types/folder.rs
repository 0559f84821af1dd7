//! Which files of a folder hold types, and to which module a folder belongs.

use super::constraint::is_built_by_name;

/// Whether a file may hold types, by its name. Generators of Kubernetes write functions into files with these names, and these can be long. A file
/// `zz_generated.…` may be a copy of types.
pub fn holds_types(name: &str) -> bool {
    const GENERATED: [&str; 4] = ["_test.go", ".pb.go", "swagger_doc_generated.go", ".pb.gw.go"];
    name.ends_with(".go")
        && !name.starts_with(['.', '_'])
        && !GENERATED.iter().any(|ending| name.ends_with(ending))
        && is_built_by_name(name)
}

/// The path that a `go.mod` declares; `None` if it declares none.
pub fn module(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix("module"))?;
    let path = line.split("//").next().unwrap_or_default().trim().trim_matches(['"', '`']);
    (!path.is_empty() && line.starts_with([' ', '\t'])).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_go_mod_names_its_module() {
        for (text, path) in [
            ("module example.com/a\n\ngo 1.25\n", Some("example.com/a")),
            ("// comment\n\nmodule \"example.com/a\" // old\n", Some("example.com/a")),
            ("go 1.25\n", None),
            ("modules x\n", None),
        ] {
            assert_eq!(module(text).as_deref(), path, "{text}");
        }
    }
}
