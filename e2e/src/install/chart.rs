//! The templates of the Helm chart that are made from what kustomize prints. An object changes only in its
//! namespace, which Helm decides, and in what values add: the default release is `yaml/install.yaml`.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::cluster::parse_documents;

/// The kinds of `config/flowcontrol`.
pub(super) const FLOW_CONTROL: &[&str] = &["FlowSchema", "PriorityLevelConfiguration"];
/// What Helm makes itself, and what is written by hand because it has values.
const ELSEWHERE: &[&str] =
    &["Namespace", "CustomResourceDefinition", "Deployment", "DefaultsPolicy", "NetworkPolicy"];
/// The kinds that a Prometheus may select by a label.
const SELECTED: [&str; 2] = ["ServiceMonitor", "PrometheusRule"];
/// The values with annotations, and the kind and name of the object that gets them.
const ANNOTATED: [(&str, &str, &str); 3] = [
    ("ServiceAccount", "etch", ".Values.serviceAccount.annotations"),
    ("Service", "etch", ".Values.serviceAnnotations"),
    ("Service", "etch-admission", ".Values.admission.serviceAnnotations"),
];

/// The CRDs, which Helm installs unchanged.
pub(super) fn crds(rendered: &str) -> Result<String> {
    let is_crd = |object: &Value| object["kind"] == "CustomResourceDefinition";
    select(rendered, is_crd, |text, _| format!("{}\n", text.trim()))
}

/// The role of `config/cluster-wide`, which `rbac.readOnly` reduces to what an audit needs.
pub(super) fn cluster_wide(rendered: &str) -> Result<String> {
    let part = part(rendered, &["etch-all-groups"], ".Values.rbac.clusterWide")?;
    let unless_read_only =
        |verb: &str| format!("  {{{{- if not .Values.rbac.readOnly }}}}\n  - {verb}\n  {{{{- end }}}}\n");
    let all = "  verbs:\n  - get\n  - list\n  - watch\n  - patch\n";
    ensure!(part.matches(all).count() == 1, "the role has other verbs");
    let (get, patch) = (unless_read_only("get"), unless_read_only("patch"));
    Ok(part.replace(all, &format!("  verbs:\n{get}  - list\n  - watch\n{patch}")))
}

/// What belongs to every release as it is.
pub(super) fn unconditional(rendered: &str) -> Result<String> {
    let apart = [ELSEWHERE, FLOW_CONTROL].concat();
    let is_taken = |object: &Value| !apart.contains(&object["kind"].as_str().unwrap_or_default());
    select(rendered, is_taken, template)
}

/// The objects of these kinds or names, under a condition.
pub(super) fn part(rendered: &str, wanted: &[&str], condition: &str) -> Result<String> {
    let is_wanted = |text: &Value| text.as_str().is_some_and(|text| wanted.contains(&text));
    let is_taken = |object: &Value| is_wanted(&object["kind"]) || is_wanted(&object["metadata"]["name"]);
    Ok(conditional(condition, &select(rendered, is_taken, template)?))
}

/// The objects of these kinds that an overlay has in addition, under a condition.
pub(super) fn added(overlay: &str, base: &str, kinds: &[&str], condition: &str) -> Result<String> {
    let base = parse_documents(base)?;
    let name = |object: &Value| object["metadata"]["name"].clone();
    let is_taken = |object: &Value| {
        object["kind"].as_str().is_some_and(|kind| kinds.contains(&kind))
            && !base.iter().any(|other| other["kind"] == object["kind"] && name(other) == name(object))
    };
    Ok(conditional(condition, &select(overlay, is_taken, template)?))
}

fn conditional(condition: &str, text: &str) -> String {
    format!("{{{{- if {condition} }}}}\n---\n{text}{{{{- end }}}}\n")
}

/// The documents that a filter takes, each made into something else.
fn select(
    rendered: &str,
    take: impl Fn(&Value) -> bool,
    make: impl Fn(&str, &Value) -> String,
) -> Result<String> {
    let mut taken = Vec::new();
    for text in rendered.split("\n---\n") {
        for document in parse_documents(text)? {
            if take(&document) {
                taken.push(make(text, &document));
            }
        }
    }
    ensure!(!taken.is_empty(), "nothing was taken");
    Ok(taken.join("---\n"))
}

/// A document in which whatever looks like a template stays as it is, the namespace is the release's, and
/// values add labels and annotations.
fn template(text: &str, document: &Value) -> String {
    let escaped =
        text.trim().replace("{{", "\u{0}").replace("}}", "{{ \"}}\" }}").replace('\u{0}', "{{ \"{{\" }}");
    let named = escaped
        .replace("etch-system", "{{ .Release.Namespace }}")
        .replace("docs/runbook.md#", "{{ .Values.monitoring.runbook }}#");
    let is_meant =
        |(kind, name): (&str, &str)| document["kind"] == kind && document["metadata"]["name"] == name;
    let annotations =
        ANNOTATED.iter().find(|(kind, name, _)| is_meant((kind, name))).map(|(.., value)| *value);
    let labels = if SELECTED.iter().any(|kind| document["kind"] == *kind) {
        "merge dict .Values.monitoring.labels .Values.commonLabels"
    } else {
        ".Values.commonLabels"
    };
    let is_annotated = document["metadata"]["annotations"].is_object();
    let mut lines = String::new();
    let mut in_metadata = false;
    for line in named.lines() {
        in_metadata = line == "metadata:" || in_metadata && line.starts_with(' ');
        lines.push_str(line);
        lines.push('\n');
        match (line, annotations) {
            ("metadata:", Some(value)) if !is_annotated => {
                lines.push_str(&format!("  {{{{- with {value} }}}}\n  annotations:\n"));
                lines.push_str("    {{- toYaml . | nindent 4 }}\n  {{- end }}\n");
            }
            ("  annotations:", Some(value)) if in_metadata => lines.push_str(&entries(value)),
            ("  labels:", _) if in_metadata => lines.push_str(&entries(labels)),
            _ => {}
        }
    }
    lines
}

/// What values add to a map of metadata.
fn entries(value: &str) -> String {
    format!("    {{{{- with {value} }}}}\n    {{{{- toYaml . | nindent 4 }}}}\n    {{{{- end }}}}\n")
}

#[cfg(test)]
mod tests {
    use super::{part, unconditional};

    const RENDERED: &str = "kind: Namespace\nmetadata:\n  name: etch-system\n---\nkind: \
        Service\nmetadata:\n  namespace: etch-system\n  note: '{{ $value }}'\n---\nkind: NetworkPolicy\n";

    #[test]
    fn documents_are_taken_whole() {
        let service = "kind: Service\nmetadata:\n  namespace: {{ .Release.Namespace }}\n  \
                       note: '{{ \"{{\" }} $value {{ \"}}\" }}'\n";
        assert_eq!(unconditional(RENDERED).expect("a part"), service, "a NetworkPolicy has values");
        let part = part(RENDERED, &["NetworkPolicy"], ".Values.on").expect("a part");
        assert_eq!(part, "{{- if .Values.on }}\n---\nkind: NetworkPolicy\n{{- end }}\n");
    }

    #[test]
    fn values_add_to_metadata_and_nowhere_else() {
        let rendered =
            "kind: Service\nmetadata:\n  labels:\n    a: b\n  name: etch\nspec:\n  labels:\n    c: d\n";
        let expected = "kind: Service\nmetadata:\n  {{- with .Values.serviceAnnotations }}\n  \
            annotations:\n    {{- toYaml . | nindent 4 }}\n  {{- end }}\n  labels:\n    {{- with \
            .Values.commonLabels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n    a: b\n  name: \
            etch\nspec:\n  labels:\n    c: d\n";
        assert_eq!(unconditional(rendered).expect("a part"), expected);
    }

    #[test]
    fn a_part_without_objects_is_a_mistake() {
        assert!(part(RENDERED, &["Secret"], ".Values.on").is_err());
    }
}
