//! An answer of the API server that is not success, reduced to what may be shown.
//! The server's message stays private: it may quote values of objects (law 9).

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::field::place;
use kube_structural_schema::schema::Schema;

/// The longest wait that Etch accepts from a server: a proxy may demand days, and one answer must not stop
/// everything.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// The reasons that the API itself gives. A webhook may give any text, and that may be a value.
const REASONS: [&str; 19] = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
];

/// A refusal, by which server or plugin, and where.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// The machine-readable reason: `Invalid`, `Forbidden`, `Conflict`; empty where the answer gives none of
    /// the API's own.
    pub reason: String,
    /// The fields that it is about, as the server names them: not for showing before [`Self::without_keys`],
    /// which makes them places.
    pub fields: Vec<String>,
    /// How long to wait before asking again; not absurdly long.
    pub retry_after: Option<Duration>,
    /// Where a paged list can continue although its snapshot is gone.
    pub continue_token: Option<String>,
    /// Whether it names the object that it is about.
    names_object: bool,
    /// Whether the fields are shown.
    shows_fields: bool,
    message: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    reason: String,
    message: String,
    metadata: Metadata,
    details: Option<Details>,
    code: u16,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    r#continue: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    name: String,
    causes: Option<Vec<Cause>>,
    retry_after_seconds: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cause {
    field: String,
}

impl Refusal {
    /// Reads the body of an answer with an error status, or of an `ERROR` event of a watch (`code` 0).
    pub fn read(code: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let status: Status = serde_json::from_slice(body).unwrap_or_else(|_| Status {
            message: String::from_utf8_lossy(body).into_owned(),
            ..Status::default()
        });
        let details = status.details.unwrap_or_default();
        let mut fields: Vec<String> =
            details.causes.unwrap_or_default().into_iter().map(|cause| cause.field).collect();
        fields.retain(|field| is_path(field));
        fields.dedup();
        let asked =
            (details.retry_after_seconds > 0).then(|| Duration::from_secs(details.retry_after_seconds));
        Self {
            code: if code == 0 { status.code } else { code },
            reason: Some(status.reason)
                .filter(|reason| REASONS.contains(&reason.as_str()))
                .unwrap_or_default(),
            fields,
            retry_after: retry_after.or(asked).map(|wait| wait.min(LONGEST_WAIT)),
            continue_token: status.metadata.r#continue.filter(|token| !token.is_empty()),
            names_object: !details.name.is_empty(),
            shows_fields: false,
            message: status.message,
        }
    }

    /// The refusal of a write of an object with this schema, with fields that may be shown: without the keys
    /// of maps.
    #[must_use]
    pub fn without_keys(mut self, schema: &Schema) -> Self {
        let shown = |field: &String| place(field, schema).without_keys().to_string();
        self.fields = self.fields.iter().map(shown).collect();
        self.fields.dedup();
        Self { shows_fields: true, ..self }
    }

    /// Whether the requested object does not exist. If the resource does not exist, or not yet on this
    /// server, the answer is 404 as well, but names no object.
    pub fn is_missing_object(&self) -> bool {
        self.code == 404 && self.names_object
    }

    /// The oldest resource version from which a watch may begin, if the request named an older one: the
    /// message is `too old resource version: 1 (361)`.
    pub fn oldest_remembered(&self) -> Option<u64> {
        let (_, versions) = self.message.split_once("too old resource version: ")?;
        let (_, oldest) = versions.strip_suffix(')')?.split_once(" (")?;
        oldest.parse().ok()
    }

    /// Whether the server's message holds a text. The message itself is not for showing.
    pub fn mentions(&self, text: &str) -> bool {
        self.message.contains(text)
    }

    /// The verb that the caller lacks permission for, where the answer comes from the server's authorizer.
    ///
    /// Its message is `… is forbidden: User "…" cannot VERB resource "…" in API group "…"`.
    pub fn lacking_verb(&self) -> Option<&str> {
        self.lacking().map(|(verb, _)| verb)
    }

    /// The verb that the caller lacks permission for, and the rest of the message behind the word `resource`.
    fn lacking(&self) -> Option<(&str, &str)> {
        let (_, rest) = self.forbidden()?.strip_prefix("User \"")?.split_once("\" cannot ")?;
        let (verb, rest) = rest.split_once(' ')?;
        rest.strip_prefix("resource ").filter(|_| self.code == 403).map(|rest| (verb, rest))
    }

    /// What the verb is lacking for, as RBAC names it: `widgets.stable.example.com`, `pods`.
    fn lacking_resource(&self) -> Option<String> {
        let (resource, rest) = self.lacking()?.1.strip_prefix('"')?.split_once('"')?;
        let (group, _) = rest.strip_prefix(" in API group \"")?.split_once('"')?;
        let is_name =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-./".contains(&byte));
        let name = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        is_name(&name).then_some(name)
    }

    /// The admission policy or webhook that refused or failed, by the name that the server puts in quotes.
    ///
    /// The places of these words are fixed. Anywhere else they may be a value that the server quotes.
    pub fn refused_by(&self) -> Option<Admission> {
        let quoted = |text: Option<&str>, quote: char| Some(text?.split_once(quote)?.0.to_owned());
        let policy = self.forbidden().and_then(|message| message.strip_prefix("ValidatingAdmissionPolicy '"));
        let webhook = self.message.strip_prefix("admission webhook \"").or_else(|| self.failed_webhook());
        // Only the dispatcher of MutatingAdmissionPolicies leaves out the kind.
        let [denies, fails] = ["policy '", "policy \""].map(|beginning| self.message.strip_prefix(beginning));
        let mutating = quoted(denies, '\'').or_else(|| quoted(fails, '"'));
        quoted(policy, '\'')
            .map(Admission::Policy)
            .or_else(|| quoted(webhook, '"').map(Admission::Webhook))
            .or_else(|| mutating.map(Admission::MutatingPolicy))
    }

    /// Whether the server could not call a webhook.
    pub fn is_failed_webhook(&self) -> bool {
        self.failed_webhook().is_some()
    }

    fn failed_webhook(&self) -> Option<&str> {
        self.message.strip_prefix("Internal error occurred: failed calling webhook \"")
    }

    /// What follows `RESOURCE "NAME" is forbidden: `. Neither resource nor name can hold a colon.
    fn forbidden(&self) -> Option<&str> {
        let (subject, rest) = self.message.split_once("forbidden: ")?;
        (!subject.contains(':')).then_some(rest)
    }

    /// Whether the conversion webhook does not answer, or fails. A list answers 429 for as long as that
    /// lasts.
    pub fn is_failed_conversion(&self) -> bool {
        matches!(self.code, 429 | 500) && self.mentions("conversion webhook for ")
    }

    /// Whether a schema lacks a field of what was written, or of what an owner has.
    pub fn is_of_undeclared_field(&self) -> bool {
        self.mentions("field not declared in schema")
    }

    /// Whether etcd holds an object at a version that the CRD no longer has. A list answers 429 until it is
    /// corrected.
    pub fn is_of_lost_version(&self) -> bool {
        matches!(self.code, 429 | 500) && self.mentions("request to convert CR from an invalid group/version")
    }
}

/// What refused a request during admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// A ValidatingAdmissionPolicy.
    Policy(String),
    /// A MutatingAdmissionPolicy.
    MutatingPolicy(String),
    /// A webhook.
    Webhook(String),
}

impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(name) => write!(f, "ValidatingAdmissionPolicy {name}"),
            Self::MutatingPolicy(name) => write!(f, "MutatingAdmissionPolicy {name}"),
            Self::Webhook(name) => write!(f, "webhook {name}"),
        }
    }
}

/// Whether a text can be the path of a field: a webhook may give any.
fn is_path(text: &str) -> bool {
    (1..=256).contains(&text.len())
        && text != "<nil>"
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

impl fmt::Debug for Refusal {
    /// As `Display`: logs show errors by `Debug` too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refusal({self})")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if !self.reason.is_empty() {
            write!(f, " {}", self.reason)?;
        }
        match self.refused_by() {
            Some(admission) => write!(f, " by {admission}")?,
            None if self.code == 401 => f.write_str(" (the credentials are wrong or have expired)")?,
            None => {}
        }
        if let Some(verb) = self.lacking_verb() {
            let resource = self.lacking_resource().map(|resource| format!(" {resource}")).unwrap_or_default();
            write!(f, " (no permission to {verb}{resource})")?;
        }
        if self.shows_fields && !self.fields.is_empty() {
            write!(f, " at {}", self.fields.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: u16, message: &str) -> Refusal {
        let body = serde_json::json!({ "kind": "Status", "reason": "Forbidden", "message": message });
        Refusal::read(code, None, body.to_string().as_bytes())
    }

    #[test]
    fn names_who_refused_and_quotes_nothing_else() {
        let refused = refusal(
            422,
            "crontabs.stable.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding 'freeze' \
             denied request: the value hunter2 is frozen",
        );
        assert_eq!(refused.to_string(), "422 Forbidden by ValidatingAdmissionPolicy freeze");
        for refused in [
            "policy 'sizes' with binding 'all' denied request: hunter2 cannot be set",
            "policy \"sizes\" denied request: failed to configure policy: hunter2",
        ] {
            let refused = refusal(403, refused).to_string();
            assert_eq!(refused, "403 Forbidden by MutatingAdmissionPolicy sizes");
        }
        let refused = refusal(400, "admission webhook \"v.example.com\" denied the request: hunter2");
        assert_eq!(refused.to_string(), "400 Forbidden by webhook v.example.com");
        let refused =
            Refusal::read(401, None, br#"{"kind":"Status","reason":"Unauthorized","message":"hunter2"}"#);
        assert_eq!(refused.to_string(), "401 Unauthorized (the credentials are wrong or have expired)");
    }

    #[test]
    fn tells_a_missing_permission_from_a_refusing_webhook() {
        let message = "crontabs.stable.example.com \"a\" is forbidden: User \"system:serviceaccount:etch-system:etch\" \
                       cannot create resource \"crontabs\" in API group \"stable.example.com\" in the namespace \"x\"";
        assert_eq!(refusal(403, message).lacking_verb(), Some("create"));
        assert_eq!(
            refusal(403, message).to_string(),
            "403 Forbidden (no permission to create crontabs.stable.example.com)"
        );
        assert_eq!(
            refusal(403, "admission webhook \"w\" denied the request: you cannot pass").lacking_verb(),
            None
        );
    }

    #[test]
    fn shows_fields_once_the_schema_says_which_of_their_names_are_keys() {
        let body = serde_json::json!({ "reason": "Invalid", "details": { "causes": [
            { "field": "spec.hosts.secret" }, { "field": "spec.hosts.other" }, { "field": "spec.size" },
        ]}});
        let refused = Refusal::read(422, None, body.to_string().as_bytes());
        assert_eq!(refused.to_string(), "422 Invalid");
        let schema = serde_json::json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
            "hosts": { "type": "object", "additionalProperties": { "type": "string" } }, "size": { "type": "integer" },
        }}}});
        let schema = Schema::parse(&schema).expect("a schema");
        assert_eq!(
            refused.without_keys(&schema).to_string(),
            r#"422 Invalid at .spec.hosts["*"], .spec.size"#
        );
    }

    #[test]
    fn reads_answers_that_are_no_status() {
        let refused =
            Refusal::read(429, Some(Duration::from_secs(1)), b"Too many requests, please try again later.\n");
        assert_eq!((refused.code, refused.reason.as_str()), (429, ""));
        assert_eq!(refused.to_string(), "429");
    }

    #[test]
    fn a_server_names_the_oldest_resource_version_that_it_remembers() {
        assert_eq!(refusal(410, "too old resource version: 1 (361)").oldest_remembered(), Some(361));
        for other in
            ["The resourceVersion for the provided watch is too old.", "too old resource version: 1", "(7)"]
        {
            assert_eq!(refusal(410, other).oldest_remembered(), None, "{other}");
        }
    }
}
