//! The templates of the Helm chart that are made from what kustomize prints. It must not change an object but
//! for its namespace, which Helm decides: the default release is `yaml/install.yaml`.

use anyhow::{Result, ensure};

use crate::cluster::parse_documents;

/// The kinds of `config/flowcontrol`.
pub(super) const FLOW_CONTROL: &[&str] = &["FlowSchema", "PriorityLevelConfiguration"];
/// The kind of `config/networkpolicy`.
pub(super) const NETWORK_POLICY: &[&str] = &["NetworkPolicy"];
/// What Helm makes itself, and what is written by hand because it has values.
const ELSEWHERE: &[&str] = &["Namespace", "CustomResourceDefinition", "Deployment", "DefaultsPolicy"];

/// The CRDs, which Helm takes as they are.
pub(super) fn crds(rendered: &str) -> Result<String> {
    select(rendered, |kind, _| kind == "CustomResourceDefinition", |text| format!("{}\n", text.trim()))
}

/// What belongs to every release as it is.
pub(super) fn unconditional(rendered: &str) -> Result<String> {
    let apart = [ELSEWHERE, FLOW_CONTROL, NETWORK_POLICY].concat();
    select(rendered, |kind, _| !apart.contains(&kind), template)
}

/// The objects of these kinds or names, under a condition.
pub(super) fn part(rendered: &str, wanted: &[&str], condition: &str) -> Result<String> {
    let text = select(rendered, |kind, name| wanted.contains(&kind) || wanted.contains(&name), template)?;
    Ok(format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"))
}

/// The documents that a filter takes by kind and name, each made into something else.
fn select(
    rendered: &str,
    take: impl Fn(&str, &str) -> bool,
    make: impl Fn(&str) -> String,
) -> Result<String> {
    let mut taken = Vec::new();
    for text in rendered.split("\n---\n") {
        for document in parse_documents(text)? {
            let kind = document["kind"].as_str().unwrap_or_default();
            if take(kind, document["metadata"]["name"].as_str().unwrap_or_default()) {
                taken.push(make(text));
            }
        }
    }
    ensure!(!taken.is_empty(), "nothing was taken");
    Ok(taken.join("---\n"))
}

/// A document in which whatever looks like a template stays as it is, and the namespace is the release's.
fn template(document: &str) -> String {
    let escaped =
        document.trim().replace("{{", "\u{0}").replace("}}", "{{ \"}}\" }}").replace('\u{0}', "{{ \"{{\" }}");
    format!("{}\n", escaped.replace("etch-system", "{{ .Release.Namespace }}"))
}

#[cfg(test)]
mod tests {
    use super::{part, unconditional};

    const RENDERED: &str = "kind: Namespace\nmetadata:\n  name: etch-system\n---\nkind: Service\nmetadata:\n  \
                            namespace: etch-system\n  note: '{{ $value }}'\n---\nkind: NetworkPolicy\n";

    #[test]
    fn documents_are_taken_whole() {
        let service = "kind: Service\nmetadata:\n  namespace: {{ .Release.Namespace }}\n  \
                       note: '{{ \"{{\" }} $value {{ \"}}\" }}'\n";
        assert_eq!(unconditional(RENDERED).expect("a part"), service);
        let part = part(RENDERED, &["NetworkPolicy"], ".Values.on").expect("a part");
        assert_eq!(part, "{{- if .Values.on }}\nkind: NetworkPolicy\n{{- end }}\n");
    }

    #[test]
    fn a_part_without_objects_is_a_mistake() {
        assert!(part(RENDERED, &["Secret"], ".Values.on").is_err());
    }
}
