//! The outcome of a write, and what an answer other than success means for the object.

use super::Proof;
use crate::object::Object;
use crate::rbac::Verb;
use crate::refusal::Refusal;
use crate::words::words;
use kube_structural_schema::path::Path;

/// The outcome of a write.
#[derive(Debug)]
pub enum Outcome {
    /// Something was missing in etcd, and now it is there.
    Written {
        /// The object's resource version after the last write.
        resource_version: String,
        /// What proves it.
        proof: Proof,
    },
    /// Old defaults were moved; the object as it is now. Another decision stores what else it lacks.
    Followed(Box<Object>),
    /// The identity was written, ahead of a rewrite, and has changed the object, which may show more defaults
    /// since. Read and decide again.
    IdentityWritten,
    /// Nothing was missing in etcd, as this shows.
    AlreadyStored(Proof),
    /// The object is gone, or another one has its name.
    Gone,
    /// Another client wrote meanwhile, and its write stands; or the server that answered serves another
    /// schema than the one that showed the object. Read and decide again.
    Conflict,
    /// The server cannot store the default because of the versions of the object's owners (facts W6, W18):
    /// rewrite them.
    NeedsRewrite,
    /// The answer does not show every default, or lacks a field that admission has removed.
    Unproved,
    /// A repeat changed the object again, and no other client wrote in between: the first write went through
    /// a server that lags behind, or admission changes the object on each write.
    Altered,
    /// Admission has changed the object with each request, beyond what was written: nothing can be proved.
    Mutated {
        /// The object's resource version after the last of them.
        resource_version: String,
    },
    /// The server or an admission plugin refused this object.
    Rejected(Rejection),
    /// Etch lacks the permission.
    Forbidden {
        /// The verb that is missing.
        verb: Verb,
    },
    /// A dry run has shown that others would own other fields than before: nothing was written.
    Harmful {
        /// Their managers' names.
        managers: Vec<String>,
    },
    /// Owners that were there before are not in the answer. Nothing more may be written to this CRD's
    /// objects.
    OwnersLost {
        /// Their managers' names.
        managers: Vec<String>,
    },
    /// The answer lacks fields that the object showed: the server that answered no longer knows them. Nothing
    /// more may be written to this CRD's objects before the CRD is read again.
    FieldsDropped {
        /// The topmost of them.
        paths: Vec<Path>,
    },
    /// The CRD has changed since the write was planned: nothing more was sent.
    CrdChanged,
}

/// Why one object was refused, without values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// What kind of refusal.
    pub kind: RejectionKind,
    /// The server, webhook or policy that refused it and why, in a sentence.
    pub message: String,
    /// The places that it is about, without the keys of maps.
    pub fields: Vec<String>,
}

words! {
    /// The kinds of refusals of one object.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum RejectionKind {
        /// The object is not valid with its defaults.
        Invalid,
        /// An admission policy or webhook denied the write.
        Admission,
        /// With its defaults it is too large for etcd or the server.
        TooLarge,
        /// A webhook that must admit the write does not answer: the object is neither accepted nor refused.
        Unavailable,
        /// Its `managedFields` are such that the server cannot read them, or that a write would take fields
        /// from their owners.
        Owners,
        /// Admission changes it on each write, or takes its defaults away again: no request can prove what
        /// etcd holds.
        Mutated,
        /// Etch may not write this object, though it may write others of its kind.
        Forbidden,
        /// Any other refusal that repeating would not cure.
        Refused,
    }
}

impl Rejection {
    /// The rejection of an object from which an apply would take fields, or owners, because a conversion
    /// webhook drops them.
    pub fn lossy(mut paths: Vec<Path>) -> Self {
        let message = "an apply under ownership: Own would take away fields or owners, because the \
            conversion webhook drops fields on the way to the versions of their owners and back; correct the \
            webhook, or use ownership: None"
            .to_owned();
        paths.sort();
        let fields = paths.iter().map(|path| path.without_keys().to_string()).collect();
        Self { kind: RejectionKind::Refused, message, fields }
    }

    /// The rejection of an object whose owners cannot be rewritten at the storage version: they name fields
    /// that a conversion webhook may have renamed.
    pub fn renamed(paths: &[Path], storage_version: &str) -> Self {
        let message = format!(
            "the write would move the entries of its owners to {storage_version}, and take from them the \
             fields that the conversion webhook may have renamed; correct the webhook if it returns fields \
             that the other version does not have, or have the owners apply at {storage_version}"
        );
        let fields = paths.iter().map(|path| path.without_keys().to_string()).collect();
        Self { kind: RejectionKind::Owners, message, fields }
    }

    /// The rejection of an object that each write changes again.
    pub fn mutated() -> Self {
        let message = "admission changes the object on each write, so Etch cannot prove that its defaults \
            are stored; make the webhook or policy idempotent"
            .to_owned();
        Self { kind: RejectionKind::Mutated, message, fields: Vec::new() }
    }

    /// The rejection of an object whose defaults are gone after each write.
    pub fn stripped() -> Self {
        let message = "admission removes the defaults from the object on each write".to_owned();
        Self { kind: RejectionKind::Mutated, message, fields: Vec::new() }
    }

    /// The rejection of an object that admission refuses, and that Etch may not write through its status.
    #[must_use]
    pub fn without_status(self, plural: &str) -> Self {
        let message = format!(
            "{}; to write it through its status, Etch needs the permission to patch {plural}/status: etch \
             rbac --policy NAME",
            self.message
        );
        Self { message, ..self }
    }

    /// The rejection of an object that Etch may not write, though it may write others.
    pub fn forbidden(verb: Verb) -> Self {
        let message = format!(
            "the API server's authorizer does not let Etch {} this object, though it lets it {} others",
            verb.as_str(),
            verb.as_str()
        );
        Self { kind: RejectionKind::Forbidden, message, fields: Vec::new() }
    }
}

/// What the server answers to an apply if an entry of `managedFields` has an unknown form, or names another
/// API group.
const UNREADABLE_OWNERS: [&str; 2] =
    ["failed to decode managed fields", "is unstructured and is not suitable for converting to"];

/// What an answer other than success means for the object; its fields are places already. In this table
/// admission comes first: a webhook may use any code.
///
/// # Errors
/// If it means nothing for the object: the server could not answer.
pub(super) fn classify(refusal: Refusal) -> Result<Outcome, Refusal> {
    let rejected = |kind| Ok(rejected(kind, &refusal));
    if refusal.is_failed_webhook() {
        return rejected(RejectionKind::Unavailable);
    }
    if refusal.refused_by().is_some() {
        return rejected(RejectionKind::Admission);
    }
    if refusal.is_failed_conversion() {
        return rejected(RejectionKind::Unavailable);
    }
    if refusal.is_failed_mutation() {
        return rejected(RejectionKind::Admission);
    }
    let mentions_any = |texts: &[&str]| texts.iter().any(|text| refusal.mentions(text));
    match refusal.code {
        404 if refusal.is_missing_object() => Ok(Outcome::Gone),
        // The resource is not served, or not yet by this server: that means nothing for the object.
        404 => Err(refusal),
        409 => Ok(Outcome::Conflict),
        // Another object has the name by now: the server answers that a uid cannot be changed.
        422 if refusal.fields.iter().any(|field| field == ".metadata.uid") => Ok(Outcome::Conflict),
        // The server authorises an apply to an object that is gone as its creation, which Etch may not do
        // (W15).
        403 if refusal.lacking_verb() == Some("create") => Ok(Outcome::Gone),
        403 if let Some(verb) = refusal.lacking_verb().and_then(Verb::named) => {
            Ok(Outcome::Forbidden { verb })
        }
        500 if refusal.is_of_lost_version() => rejected(RejectionKind::Refused),
        500 if mentions_any(&UNREADABLE_OWNERS) => rejected(RejectionKind::Owners),
        500 if refusal.is_of_undeclared_field() || refusal.mentions("to an invalid group/version") => {
            Ok(Outcome::NeedsRewrite)
        }
        // etcd's own limit comes back as 500, the server's as 413.
        500 if mentions_any(&["request is too large", "trying to send message larger than"]) => {
            rejected(RejectionKind::TooLarge)
        }
        // A default of the wrong type, under a map where the server does not look (C4).
        500 if refusal.mentions("failed to create typed") => rejected(RejectionKind::Invalid),
        // A value that an owner's version has as another type.
        500 if refusal.mentions(": expected ") => Ok(Outcome::NeedsRewrite),
        413 => rejected(RejectionKind::TooLarge),
        422 => rejected(RejectionKind::Invalid),
        403 => rejected(RejectionKind::Admission),
        // Whether it was carried out is unknown, or it may be later: proxies answer with 408 and 425, too.
        401 | 408 | 425 | 429 => Err(refusal),
        400..500 => rejected(RejectionKind::Refused),
        _ => Err(refusal),
    }
}

fn rejected(kind: RejectionKind, refusal: &Refusal) -> Outcome {
    let admission = refusal.refused_by().map_or("an admission plugin".to_owned(), |by| by.to_string());
    let message = match kind {
        RejectionKind::Unavailable if refusal.is_failed_webhook() => {
            format!("the API server could not call {admission}")
        }
        RejectionKind::Unavailable => "the API server could not call the conversion webhook".to_owned(),
        RejectionKind::Admission if refusal.is_failed_mutation() => {
            "the patch with which a mutating webhook answers cannot be applied to it; correct the webhook"
                .to_owned()
        }
        RejectionKind::Admission => format!("{admission} refused it"),
        RejectionKind::Invalid => {
            "the object is invalid with its defaults, or with what admission changes in it".to_owned()
        }
        RejectionKind::TooLarge => "the object exceeds the size limit with its defaults".to_owned(),
        RejectionKind::Owners => {
            "the API server cannot read its managedFields, and refuses every server-side apply; correct them"
                .to_owned()
        }
        RejectionKind::Refused if refusal.is_of_lost_version() => {
            "etcd holds the object at a version that the CRD no longer has".to_owned()
        }
        RejectionKind::Mutated | RejectionKind::Forbidden | RejectionKind::Refused => {
            format!("the API server answered {refusal}")
        }
    };
    let fields = match kind {
        RejectionKind::Owners => vec![".metadata.managedFields".to_owned()],
        _ => refusal.fields.clone(),
    };
    Outcome::Rejected(Rejection { kind, message, fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(code: u16, message: &str) -> String {
        let details = serde_json::json!({ "name": "a" });
        let body = serde_json::json!({ "message": message, "details": details }).to_string();
        match classify(Refusal::read(code, None, body.as_bytes())) {
            Ok(Outcome::Rejected(rejection)) => format!("{:?}: {}", rejection.kind, rejection.message),
            Ok(Outcome::Forbidden { verb }) => format!("Forbidden {}", verb.as_str()),
            Ok(other) => format!("{other:?}"),
            Err(_) => "Failed".to_owned(),
        }
    }

    #[test]
    fn every_refusal_has_its_outcome() {
        let cannot = |verb| {
            format!("x is forbidden: User \"u\" cannot {verb} resource \"crontabs\" in API group \"g\"")
        };
        let cases = [
            (404, "not found".to_owned(), "Gone"),
            (403, cannot("create"), "Gone"),
            (403, cannot("patch"), "Forbidden patch"),
            (409, "the object has been modified".to_owned(), "Conflict"),
            (
                409,
                "Precondition failed: UID in precondition: a, UID in object meta: b".to_owned(),
                "Conflict",
            ),
            (500, "failed to convert: .spec.color: field not declared in schema".to_owned(), "NeedsRewrite"),
            (500, "request to convert CR to an invalid group/version: g/v0".to_owned(), "NeedsRewrite"),
            (
                500,
                ".spec.mode: expected string, got &value.valueUnstructured{Value:4}".to_owned(),
                "NeedsRewrite",
            ),
            (
                500,
                "etcdserver: request is too large".to_owned(),
                "TooLarge: the object exceeds the size limit with its defaults",
            ),
            (
                422,
                "spec.a: Invalid value: 1".to_owned(),
                "Invalid: the object is invalid with its defaults, or with what admission changes in it",
            ),
            (
                422,
                "x \"a\" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding 'b' denied request: no"
                    .to_owned(),
                "Admission: ValidatingAdmissionPolicy freeze refused it",
            ),
            (
                403,
                "admission webhook \"w.example.com\" denied the request: no".to_owned(),
                "Admission: webhook w.example.com refused it",
            ),
            (
                404,
                "admission webhook \"w\" denied the request: no".to_owned(),
                "Admission: webhook w refused it",
            ),
            (
                500,
                "failed to create typed live object (a; g): .spec.x: expected".to_owned(),
                "Invalid: the object is invalid with its defaults, or with what admission changes in it",
            ),
            (
                500,
                "Internal error occurred: failed calling webhook \"w\": connection refused".to_owned(),
                "Unavailable: the API server could not call webhook w",
            ),
            (
                500,
                "Internal error occurred: replace operation does not apply: doc is missing path: /spec/a: \
                 missing value"
                    .to_owned(),
                "Admission: the patch with which a mutating webhook answers cannot be applied to it; correct \
                 the webhook",
            ),
            (
                500,
                "conversion webhook for g/v1, Kind=K failed: Post: refused".to_owned(),
                "Unavailable: the API server could not call the conversion webhook",
            ),
            (
                500,
                "request to convert CR from an invalid group/version: g/v0".to_owned(),
                "Refused: etcd holds the object at a version that the CRD no longer has",
            ),
            (
                500,
                "failed to decode managed fields: operation must be `Apply` or `Update`".to_owned(),
                "Owners: the API server cannot read its managedFields, and refuses every server-side apply; \
                 correct them",
            ),
            (408, "request timeout".to_owned(), "Failed"),
            (429, "too many requests".to_owned(), "Failed"),
            (503, "unavailable".to_owned(), "Failed"),
        ];
        for (code, message, expected) in cases {
            assert_eq!(outcome(code, &message), expected, "{code} {message}");
        }
    }
}
