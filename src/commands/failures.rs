//! Failures of several CRDs: those with the same reason are printed once.
//! None is left out: each shows that something was not read.

use etch::cluster::Scope;

use super::policy::first;

/// The texts of errors when objects may not be listed in all namespaces: in the API server's answer, and
/// before asking.
const NO_PERMISSION: [&str; 2] = ["(no permission to list", "a permission is missing in all namespaces"];

/// What was not done, and why.
pub(crate) struct Failure {
    /// The CRD.
    pub(crate) crd: String,
    /// Why.
    pub(crate) error: String,
    /// How to go on; empty where that is no question.
    pub(crate) resume: String,
}

/// How to go on after an error in all namespaces that a namespace would not have; empty where there is no
/// such way.
pub(crate) fn way_out(error: &str, scope: &Scope) -> &'static str {
    match scope {
        Scope::All if NO_PERMISSION.iter().any(|text| error.contains(text)) => {
            "; to work on one namespace, use -n NAMESPACE"
        }
        _ => "",
    }
}

/// An error for a table, beside the whole of it on standard error: a missing permission, which is the same
/// for all, in short.
pub(crate) fn in_short(error: &str) -> &str {
    let is_missing = NO_PERMISSION.iter().any(|text| error.contains(text));
    if is_missing { "no permission to list the objects" } else { error }
}

/// The failures in lines: those of the same reason together, at the place of the first. If objects may not be
/// listed in all namespaces, the line shows how to ask for one.
pub(crate) fn lines(failures: Vec<Failure>, scope: &Scope) -> Vec<String> {
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
        let names: Vec<&str> = all.iter().map(|failure| failure.crd.as_str()).collect();
        format!("{}: {why}{way_out}{}", first(&names), all[0].resume)
    };
    groups.into_iter().map(line).collect()
}

/// An error without the name of the CRD that it is about, as the API server has it and as a rule of RBAC has
/// it.
fn without_crd(error: &str, crd: &str) -> String {
    let (plural, group) = crd.split_once('.').unwrap_or((crd, ""));
    let rule = format!("apiGroups: [{group:?}], resources: [{plural:?}], ");
    error.replace(&format!(" {crd})"), ")").replace(&rule, "")
}

#[cfg(test)]
mod tests {
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
    fn a_reason_is_said_once_with_the_way_out() {
        let all = ["as.x.io", "bs.x.io", "cs.x.io", "ds.y.io"].map(forbidden);
        let mut failures = vec![other("es.x.io")];
        failures.extend(all);
        let namespace = Scope::Namespace("web".to_owned());
        assert_eq!(
            lines(failures, &Scope::All),
            [
                "es.x.io: the API server answered 500 InternalError; to resume: etch persist",
                "as.x.io, bs.x.io, cs.x.io and 1 more: the API server answered 403 Forbidden (no permission to list); to work \
                 on one namespace, use -n NAMESPACE",
            ]
        );
        let missing = |crd: &str, plural: &str| {
            let rule = format!("{{apiGroups: [\"x.io\"], resources: [{plural:?}], verbs: [\"list\"]}}");
            let error = format!("a permission is missing in all namespaces: {rule}");
            Failure { crd: crd.to_owned(), error, resume: String::new() }
        };
        assert_eq!(
            lines(vec![missing("as.x.io", "as"), missing("bs.x.io", "bs")], &Scope::All),
            [
                "as.x.io, bs.x.io: a permission is missing in all namespaces: {verbs: [\"list\"]}; to work on one namespace, use -n \
                 NAMESPACE"
            ]
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
