//! The `onChange` rules of a policy.
//! A rule for a default that is not there waits for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kube_structural_schema::path::{Path, Step};

/// What happens to stored values when one default changes or is removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": r#"self.path.matches('^([.]([^.{}"\\[\\]]+|"[^"]+")([\\[][\\]]|[{][}])*)*[.]([^.{}"\\[\\]]+|"[^"]+")$')"#,
        "message": "path must be a field of the schema such as .spec.image, .spec.ports[].protocol or \
            .spec.pools{}.size",
        "fieldPath": ".path",
    },
    {
        "rule": r#"!self.path.matches('^[.](apiVersion|kind|metadata|status)([.\\[{]|$)')"#,
        "message": "path is in what belongs to the object's controller or to the API server: values there \
            keep what they are",
        "fieldPath": ".path",
    },
]))]
pub struct ChangeRule {
    /// The default's path in the schema: `.spec.foo[].bar{}.baz`, where `[]` is any list item and `{}` any
    /// map value.
    #[schemars(length(min = 2, max = 1024))]
    pub path: String,
    /// `Keep`: stored values stay, as for every default that is not listed. `Follow`: Etch changes values
    /// that are the old default and that have no owner to the new default, or removes them with it.
    pub action: ChangeAction,
}

/// What happens to values that are an old default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ChangeAction {
    /// They stay.
    #[default]
    Keep,
    /// Those without an owner change to the new default, or are removed with it.
    Follow,
}

/// The line of `onChange` in YAML by which stored values follow a default; `None` if a policy may have no
/// such line.
pub fn follow_line(path: &Path) -> Option<String> {
    let steps = path.steps();
    let own = |name: &str| matches!(name, "apiVersion" | "kind" | "metadata" | "status");
    let is_field = matches!(steps.last(), Some(Step::Field(_)));
    let is_allowed = matches!(steps.first(), Some(Step::Field(name)) if !own(name));
    let line = || format!("- {{path: '{}', action: Follow}}", path.to_string().replace('\'', "''"));
    (is_field && is_allowed).then(line)
}

/// The paths to follow.
pub(super) fn followed(rules: &[ChangeRule]) -> Vec<Path> {
    let followed = rules.iter().filter(|rule| rule.action == ChangeAction::Follow);
    // The CRD's schema refuses a path that cannot be read before it gets here.
    followed.filter_map(|rule| rule.path.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_a_policy_reads() {
        for (path, expected) in [
            (".spec.image", Some("- {path: '.spec.image', action: Follow}")),
            (".spec.ports[].m{}.tag", Some("- {path: '.spec.ports[].m{}.tag', action: Follow}")),
            (r#".spec."a.b's""#, Some(r#"- {path: '.spec."a.b''s"', action: Follow}"#)),
            (".spec.images[]", None),
            (".spec.images{}", None),
            (".status.image", None),
            (".", None),
        ] {
            let path: Path = path.parse().expect(path);
            let line = follow_line(&path);
            assert_eq!(line.as_deref(), expected);
            let Some(line) = line else { continue };
            let rules: Vec<ChangeRule> = serde_yaml_ng::from_str(&line).expect("YAML");
            assert_eq!(followed(&rules), [path]);
        }
    }
}
