//! Failures of several CRDs: those with the same reason are printed once.
//! Each failure is printed, because each means that something was not read.

use std::error::Error;
use std::iter::successors;

use etch_core::call_error::CallError;
use etch_core::crd::{Crd, Resource};
use etch_core::scope::Scope;
use kube_structural_schema::json::Json;

use crate::first;

/// The texts of errors when objects may not be listed in all namespaces: in the API server's answer, and
/// before asking.
const NO_PERMISSION: [&str; 2] = ["(no permission to list", "a permission is missing in all namespaces"];

/// What was not done, and why.
pub struct Failure {
    /// The CRD.
    pub crd: String,
    /// Why.
    pub error: String,
    /// How to continue; empty where that is no question.
    pub resume: String,
}

/// The error and its causes, each of them once: some texts include their causes.
pub fn error_text(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let mut text = String::new();
    for cause in chain(error).map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// An error with its causes, and with what to do where the objects of this CRD cannot be read.
pub fn of_objects(error: &(dyn Error + Send + Sync + 'static), crd: &Crd, document: &Json) -> String {
    let call = chain(error).find_map(|cause| cause.downcast_ref::<CallError>());
    let remedy = call.map(|call| remedy(call, crd, document)).unwrap_or_default();
    format!("{}{remedy}", error_text(error))
}

fn chain<'e>(
    error: &'e (dyn Error + Send + Sync + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    successors(Some(error as &(dyn Error + 'static)), |&error| error.source())
}

/// What to do where the API server cannot read objects of this CRD; empty for any other error.
pub fn remedy(error: &CallError, crd: &Crd, document: &Json) -> String {
    let CallError::Refused(refusal) = error else { return String::new() };
    if refusal.is_failed_conversion() {
        let webhook = webhook(document).map(|webhook| format!(", {webhook}")).unwrap_or_default();
        return format!("; check the webhook in spec.conversion of the CRD{webhook}");
    }
    if refusal.is_of_lost_version() {
        return format!(
            "; add the version to the CRD again, with served: false, and run \
             `etch persist {} --every-object`",
            crd.name()
        );
    }
    if !refusal.is_of_undecodable_value() {
        return String::new();
    }
    let Resource { group, plural, .. } = crd.resource();
    let prefix = format!("/{group}/{plural}/");
    match refusal.undecodable_key().and_then(|key| key.split_once(&prefix)) {
        Some((_, object)) => {
            format!("; correct or delete the value of {object}: its key in etcd ends with {prefix}{object}")
        }
        None => format!(
            "; `etch audit {} --objects` with --etcd-endpoints or --etcd-snapshot names the object",
            crd.name()
        ),
    }
}

/// Where the conversion webhook of a CRD is.
fn webhook(document: &Json) -> Option<String> {
    let client = document.pointer("/spec/conversion/webhook/clientConfig")?;
    let text = |field: &str| client["service"][field].as_str();
    match (client["url"].as_str(), text("namespace"), text("name")) {
        (Some(url), ..) => Some(url.to_owned()),
        (None, Some(namespace), Some(name)) => Some(format!("Service {namespace}/{name}")),
        _ => None,
    }
}

/// How to continue after an error in all namespaces that a namespace would not have; empty where there is no
/// such way.
pub fn way_out(error: &str, scope: &Scope) -> &'static str {
    match scope {
        Scope::All if NO_PERMISSION.iter().any(|text| error.contains(text)) => {
            "; to work on one namespace, use -n NAMESPACE"
        }
        _ => "",
    }
}

/// An error for a table, beside the whole of it on standard error: a missing permission, which is the same
/// for all, in short.
pub fn in_short(error: &str) -> &str {
    let is_missing = NO_PERMISSION.iter().any(|text| error.contains(text));
    if is_missing { "no permission to list the objects" } else { error }
}

/// The failures in lines: those of the same reason together, at the place of the first. If objects may not be
/// listed in all namespaces, the line shows how to ask for one.
pub fn lines(failures: Vec<Failure>, scope: &Scope) -> Vec<String> {
    let mut groups: Vec<(String, Vec<Failure>)> = Vec::new();
    for failure in failures {
        let reason = without_crd(&failure.error, &failure.crd);
        match groups.iter_mut().find(|(known, all)| *known == reason && all[0].resume == failure.resume) {
            Some((_, all)) => all.push(failure),
            None => groups.push((reason, vec![failure])),
        }
    }
    let line = |(reason, all): (String, Vec<Failure>)| {
        let way_out = way_out(&reason, scope);
        let why = if let [one] = &all[..] { &one.error } else { &reason };
        format!("{}: {why}{way_out}{}", first(all.iter().map(|failure| &failure.crd)), all[0].resume)
    };
    groups.into_iter().map(line).collect()
}

/// An error without the name of the CRD that it is about, as the API server has it, as that of its report,
/// and as a rule of RBAC has it.
fn without_crd(error: &str, crd: &str) -> String {
    let (plural, group) = crd.split_once('.').unwrap_or((crd, ""));
    let rule = format!("apiGroups: [{group:?}], resources: [{plural:?}], ");
    error.replace(&format!(" {crd})"), ")").replace(&format!(" {crd}: "), ": ").replace(&rule, "")
}

#[cfg(test)]
mod tests {
    use etch_core::engine::pass::PassError;
    use etch_core::engine::sweep::SweepError;
    use etch_core::refusal::Refusal;
    use serde_json::json;

    use super::*;

    fn forbidden(crd: &str) -> Failure {
        let error = format!("the API server answered 403 Forbidden (no permission to list {crd})");
        Failure { crd: crd.to_owned(), error, resume: String::new() }
    }

    fn other(crd: &str) -> Failure {
        let error = "the API server answered 500 InternalError".to_owned();
        Failure { crd: crd.to_owned(), error, resume: "; to resume: etch persist".to_owned() }
    }

    #[test]
    fn what_cannot_be_read_is_said_once_with_what_to_do() {
        let document = |client: &serde_json::Value| -> Json {
            let spec = json!({ "properties": { "a": { "type": "string", "default": "x" } } });
            json!({
                "metadata": { "name": "things.example.com" },
                "spec": {
                    "group": "example.com", "names": { "kind": "Thing", "plural": "things" },
                    "versions": [{ "name": "v1", "served": true, "storage": true,
                        "schema": { "openAPIV3Schema": { "type": "object",
                            "properties": { "spec": spec } } } }],
                    "conversion": { "strategy": "Webhook", "webhook": { "clientConfig": client } },
                },
            })
            .into()
        };
        let service = document(&json!({ "service": { "namespace": "web", "name": "hook" } }));
        let url = document(&json!({ "url": "https://127.0.0.1:1/convert" }));
        let conversion = "conversion webhook for example.com/v1beta1, Kind=Thing failed: hunter2";
        let corrupt = |key: &str| {
            format!(
                "Internal error occurred: StorageError: corrupt object, Code: 7, Key: {key}, \
                 ResourceVersion: 0, hunter2"
            )
        };
        let failed = "cannot list the objects: the API server answered 500 (the conversion webhook failed)";
        let undecodable = "cannot list the objects: the API server answered 500 (etcd holds a value that the \
            API server cannot decode)";
        for (document, message, expected) in [
            (
                &service,
                conversion.to_owned(),
                format!("{failed}; check the webhook in spec.conversion of the CRD, Service web/hook"),
            ),
            (
                &url,
                conversion.to_owned(),
                format!(
                    "{failed}; check the webhook in spec.conversion of the CRD, https://127.0.0.1:1/convert"
                ),
            ),
            (
                &url,
                corrupt("/registry/example.com/things/web/a"),
                format!(
                    "{undecodable}; correct or delete the value of web/a: its key in etcd ends with \
                     /example.com/things/web/a"
                ),
            ),
            (
                &url,
                corrupt("hunter 2"),
                format!(
                    "{undecodable}; `etch audit things.example.com --objects` with --etcd-endpoints or \
                     --etcd-snapshot names the object"
                ),
            ),
            (&url, "hunter2".to_owned(), "cannot list the objects: the API server answered 500".to_owned()),
        ] {
            let refusal = Refusal::read(500, None, message.as_bytes());
            let crd = Crd::read(document).expect("a CRD");
            let error = PassError::Sweep(SweepError::List(CallError::Refused(Box::new(refusal))));
            assert_eq!(of_objects(&error, &crd, document), expected);
        }
    }

    #[test]
    fn a_reason_is_said_once_with_the_way_out() {
        let all = ["as.x.io", "bs.x.io", "cs.x.io", "ds.y.io"].map(forbidden);
        let mut failures = vec![other("es.x.io")];
        failures.extend(all);
        let namespace = Scope::Namespace("web".to_owned());
        assert_eq!(
            lines(failures, &Scope::All),
            [
                "es.x.io: the API server answered 500 InternalError; to resume: etch persist",
                "as.x.io, bs.x.io, cs.x.io and 1 more: the API server answered 403 Forbidden (no permission \
                 to list); to work on one namespace, use -n NAMESPACE",
            ]
        );
        let missing = |crd: &str, plural: &str| {
            let rule = format!("{{apiGroups: [\"x.io\"], resources: [{plural:?}], verbs: [\"list\"]}}");
            let error = format!("a permission is missing in all namespaces: {rule}");
            Failure { crd: crd.to_owned(), error, resume: String::new() }
        };
        assert_eq!(
            lines(vec![missing("as.x.io", "as"), missing("bs.x.io", "bs")], &Scope::All),
            ["as.x.io, bs.x.io: a permission is missing in all namespaces: {verbs: [\"list\"]}; to work \
                 on one namespace, use -n NAMESPACE"]
        );
        let unread = |crd: &str| {
            let error =
                format!("cannot read the DefaultsReport {crd}: the API server answered 403 Forbidden");
            Failure { crd: crd.to_owned(), error, resume: String::new() }
        };
        assert_eq!(
            lines(vec![unread("as.x.io"), unread("bs.x.io")], &namespace),
            ["as.x.io, bs.x.io: cannot read the DefaultsReport: the API server answered 403 Forbidden"]
        );
        assert_eq!(
            lines(vec![forbidden("as.x.io")], &namespace),
            ["as.x.io: the API server answered 403 Forbidden (no permission to list as.x.io)"]
        );
        assert_eq!(lines(vec![other("a"), other("b")], &namespace).len(), 1);
        assert_eq!(in_short(&forbidden("as.x.io").error), "no permission to list the objects");
        assert_eq!(in_short(&other("a").error), "the API server answered 500 InternalError");
    }
}
