//! An answer of the API server that is not success, reduced to what may be shown.
//! The server's message stays private: it may quote values of objects (law 9).

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::field::place;
use kube_structural_schema::schema::Schema;

/// The longest wait that Etch accepts from a server: a proxy may ask for days.
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
    "StorageReadError",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
];

/// Why the API server cannot call a conversion webhook: what its message holds then, and words for it. A
/// webhook may answer any text, and so nothing else of such a message is shown.
const CALL_FAILURES: [(&str, &str); 10] = [
    ("connect: connection refused", "connection refused"),
    ("no such host", "no such host"),
    ("no endpoints available for service", "its Service has no endpoints"),
    ("no service port", "its Service does not have the port"),
    ("context deadline exceeded", "no answer in time"),
    ("i/o timeout", "no answer in time"),
    ("x509: ", "its certificate is not accepted"),
    ("tls: ", "the TLS handshake failed"),
    (": EOF", "it closed the connection"),
    ("\" not found", "its Service does not exist"),
];
/// What the server writes before a key of etcd whose value it cannot decode or convert.
const CORRUPT: &str = "StorageError: corrupt object, Code: 7, Key: ";
/// How messages begin that are the server's own up to [`CORRUPT`].
const OF_STORAGE: [&str; 4] = [
    "StorageError: ",
    "Internal error occurred: ",
    "failed to read one or more ",
    "storage is (re)initializing",
];
/// The whole body with which Go's server answers a request without TLS on a port with TLS.
const WITHOUT_TLS: &str = "Client sent an HTTP request to an HTTPS server.";

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
    /// How long to wait before the next request; at most five minutes.
    pub retry_after: Option<Duration>,
    /// Where a paged list can continue although its snapshot is gone.
    pub continue_token: Option<String>,
    /// Whether it names the object that it is about.
    names_object: bool,
    /// Whether it states what is wrong with the object, also for the object as a whole, which the server
    /// calls `<nil>`.
    has_causes: bool,
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
        let causes = details.causes.unwrap_or_default();
        let has_causes = !causes.is_empty();
        let mut fields: Vec<String> = causes.into_iter().map(|cause| cause.field).collect();
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
            has_causes,
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

    /// Whether an operation of a JSON patch could not be carried out. Where the object is not valid, causes
    /// show so (fact W30).
    pub fn is_failed_operation(&self) -> bool {
        self.code == 422 && !self.has_causes && self.refused_by().is_none()
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
        let name = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        is_name(&name).then_some(name)
    }

    /// The verb that the caller lacks permission for, and the path, where that is no resource: `get`,
    /// `/apis`.
    ///
    /// The message is `forbidden: User "…" cannot VERB path "…"`.
    fn lacking_path(&self) -> Option<(&str, &str)> {
        let rest = self.message.strip_prefix("forbidden: User \"").filter(|_| self.code == 403)?;
        let (verb, rest) = rest.split_once("\" cannot ")?.1.split_once(" path \"")?;
        let (path, _) = rest.split_once('"')?;
        (is_name(verb) && is_name(path)).then_some((verb, path))
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

    /// With which words the webhook of this name refused the request: not for showing.
    pub(crate) fn denied_by_webhook(&self, name: &str) -> Option<&str> {
        let rest = self.message.strip_prefix("admission webhook \"")?.strip_prefix(name)?;
        rest.strip_prefix("\" denied the request: ")
    }

    /// Whether the server could not call a webhook.
    pub fn is_failed_webhook(&self) -> bool {
        self.failed_webhook().is_some()
    }

    fn failed_webhook(&self) -> Option<&str> {
        self.message.strip_prefix("Internal error occurred: failed calling webhook \"")
    }

    /// Whether the patch of a mutating webhook does not fit the object: the server names no webhook then. A
    /// patch of the request itself is answered with 422.
    pub fn is_failed_mutation(&self) -> bool {
        let operation = self.message.strip_prefix("Internal error occurred: ");
        let operation = operation.and_then(|message| message.split_once(" operation does not apply: "));
        self.code == 500 && operation.is_some_and(|(operation, _)| !operation.contains(' '))
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

    /// Why the server could not call the conversion webhook, where that is known.
    fn call_failure(&self) -> Option<&'static str> {
        let (_, failed) =
            self.message.split_once("conversion webhook for ")?.1.split_once(" failed: Post \"")?;
        CALL_FAILURES.iter().find(|(text, _)| failed.contains(text)).map(|(_, words)| *words)
    }

    /// Whether etcd holds a value that the server cannot decode, whatever the CRD is.
    pub fn is_of_undecodable_value(&self) -> bool {
        matches!(self.code, 429 | 500)
            && !self.is_failed_conversion()
            && !self.is_of_lost_version()
            && (self.reason == "StorageReadError" || self.of_corrupt_value().is_some())
    }

    /// The key in etcd of the value that the server cannot decode, or a part of it, if the server names it.
    /// It has the names of an object, and so is not for those who may not see the object.
    pub fn undecodable_key(&self) -> Option<&str> {
        let (key, _) = self.of_corrupt_value()?.split_once(", ResourceVersion: ")?;
        let is_key = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/:".contains(&byte);
        (!key.is_empty() && key.bytes().all(is_key)).then_some(key)
    }

    fn of_corrupt_value(&self) -> Option<&str> {
        let is_servers = OF_STORAGE.iter().any(|begin| self.message.starts_with(begin));
        self.message.split_once(CORRUPT).filter(|_| is_servers).map(|(_, key)| key)
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

/// Whether a text can be the name of a verb, a resource or a path of the API.
fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-./".contains(&byte))
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
            None if self.is_failed_conversion() => {
                let cause = self.call_failure().map(|cause| format!(": {cause}")).unwrap_or_default();
                write!(f, " (the conversion webhook failed{cause})")?;
            }
            None if self.is_of_lost_version() => {
                f.write_str(" (etcd holds objects at a version that the CRD no longer has)")?;
            }
            None if self.is_of_undecodable_value() => {
                f.write_str(" (etcd holds a value that the API server cannot decode)")?;
            }
            None if self.code == 400 && self.message.trim_end() == WITHOUT_TLS => {
                f.write_str(" (the server expects TLS: in the kubeconfig, begin its URL with https://)")?;
            }
            None => {}
        }
        if let Some(verb) = self.lacking_verb() {
            let resource = self.lacking_resource().map(|resource| format!(" {resource}")).unwrap_or_default();
            write!(f, " (no permission to {verb}{resource})")?;
        } else if let Some((verb, path)) = self.lacking_path() {
            write!(f, " (no permission to {verb} {path})")?;
        }
        if self.shows_fields && !self.fields.is_empty() {
            write!(f, " at {}", self.fields.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
