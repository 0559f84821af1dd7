//! The webhook configurations by which the API server asks: a validating webhook for each schema and a
//! mutating one for each that can set something, one for upgrades and deletions of CRDs, and one for
//! migrations of their objects.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::path_key::{KEYS, KeyRing};
use super::settings::{FailurePolicy, Webhooks};
use super::spec::{Declaration, Operation, Target};
pub use etch_core::upgrade::GUARD;

/// The name of both configurations.
pub const CONFIGURATION: &str = "etch";
/// The label that makes them Etch's own.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "etch");
/// The name of the Service and of cert-manager's Certificate.
pub const SERVICE: &str = "etch-admission";
/// How long the API server waits at most.
const TIMEOUT_SECONDS: usize = 3;
/// How long it waits for all mutating webhooks of a resource, as far as whole seconds allow. It calls them
/// one after the other, and again if a webhook after them changes the object, and ends a create or an update
/// after 34 seconds with an error, whatever `failurePolicy` is.
const SERIAL_SECONDS: usize = 15;
/// Never asked about: what Etch itself needs to come up, and what would take the webhooks away.
const NEVER: [&str; 2] = ["etch-operator.io", "admissionregistration.k8s.io"];

/// The group of CRDs.
const CRDS: &str = "apiextensions.k8s.io";

/// The namespace of what the cluster itself needs to come up.
const SYSTEM: &str = "kube-system";

/// Keeps AKS from adding expressions to the selectors of the webhooks, which Etch would take out again each
/// time it looks: the webhooks are asked about no object of the cluster itself anyway.
const NO_ENFORCER: (&str, &str) = ("admissions.enforcer/disabled", "true");

/// The annotations by which injectors know what is theirs to set: cert-manager's, and OpenShift's.
pub(super) const INJECTED: [&str; 2] =
    ["cert-manager.io/inject-ca-from", "service.beta.openshift.io/inject-cabundle"];

/// The field of a webhook that injectors set.
pub(super) const CA_BUNDLE: &str = "caBundle";

/// What follows a schema's name in that of its webhooks: the API server asks for three parts at least.
const SUFFIX: &str = ".etch-operator.io";

/// The name of the webhook that is asked about StorageVersionMigrations. As with [`GUARD`], no schema's ends
/// so, whatever the schema is called.
pub const MIGRATION_GUARD: &str = "migrations.guard.etch-operator";
/// The names of both.
pub const GUARDS: [&str; 2] = [GUARD, MIGRATION_GUARD];

/// Where the API server finds the server, and how it trusts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Etch's own namespace: where its Service is, and about which nothing is asked.
    pub namespace: String,
    /// In place of the Service: `https://HOST:PORT`.
    pub url: Option<String>,
    /// Who puts the authority in.
    pub inject: Injection,
}

/// What gives the API server the CA bundle of the webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Injection {
    /// Etch, from the `ca.crt` beside the certificate.
    #[default]
    None,
    /// cert-manager's injector.
    CertManager,
    /// OpenShift's service-ca operator.
    ServiceCa,
}

/// The bodies of the MutatingWebhookConfiguration and of the ValidatingWebhookConfiguration, for server-side
/// apply.
///
/// `guards` names those of [`GUARDS`] that are asked, too. `authority` is a bundle in PEM; it is used where
/// nothing injects one. One of the `keys` is in each path.
pub fn configurations<'d>(
    schemas: impl IntoIterator<Item = (&'d str, &'d Declaration)>,
    guards: &[&str],
    endpoint: &Endpoint,
    authority: Option<&[u8]>,
    keys: &KeyRing,
) -> [Value; 2] {
    let schemas: BTreeMap<&str, &Declaration> = schemas.into_iter().collect();
    let client = Client { endpoint, authority, keys };
    let mutating: Vec<&Declaration> =
        schemas.values().copied().filter(|declared| declared.sets_values()).collect();
    let of = |mutates: bool| -> Vec<Value> {
        let asked = schemas.iter().filter(|(_, declared)| !mutates || declared.sets_values());
        let timeout = |declared| if mutates { serial_timeout(declared, &mutating) } else { TIMEOUT_SECONDS };
        let webhooks =
            asked.map(|(name, declared)| webhook(name, declared, mutates, timeout(declared), &client));
        let all = [guard_webhook(&client), migration_webhook(&client)].into_iter().filter(|_| !mutates);
        let asked = all.filter(|webhook| guards.iter().any(|name| webhook["name"] == *name));
        webhooks.flatten().chain(asked).collect()
    };
    let body = |kind: &str, webhooks: Vec<Value>| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {
                "name": CONFIGURATION,
                "labels": { MANAGED_BY.0: MANAGED_BY.1 },
                "annotations": annotations(endpoint, keys),
            },
            "webhooks": webhooks,
        })
    };
    [body("MutatingWebhookConfiguration", of(true)), body("ValidatingWebhookConfiguration", of(false))]
}

/// Whether API servers ever ask about objects of a group.
pub fn is_asked_about(group: &str) -> bool {
    !NEVER.contains(&group)
}

impl Endpoint {
    /// Whether API servers ask about objects of a namespace, as far as its labels do not matter.
    pub fn is_asked_about(&self, namespace: Option<&str>) -> bool {
        namespace.is_none_or(|namespace| namespace != SYSTEM && namespace != self.namespace)
    }
}

/// The name of the schema that a webhook is made of; none if it is not one of these.
pub fn schema_of(webhook: &str) -> Option<&str> {
    webhook.strip_suffix(SUFFIX)
}

fn annotations(endpoint: &Endpoint, keys: &KeyRing) -> Value {
    let mut annotations = json!({ KEYS: keys.annotation(), NO_ENFORCER.0: NO_ENFORCER.1 });
    match endpoint.inject {
        Injection::None => {}
        Injection::CertManager => {
            let certificate = format!("{}/{SERVICE}", endpoint.namespace);
            annotations[INJECTED[0]] = certificate.into();
        }
        Injection::ServiceCa => annotations[INJECTED[1]] = json!("true"),
    }
    annotations
}

/// What API servers need to know to ask.
struct Client<'c> {
    endpoint: &'c Endpoint,
    authority: Option<&'c [u8]>,
    keys: &'c KeyRing,
}

/// How many seconds API servers wait for the mutating webhook of a schema: its share, where others are about
/// the same resource.
fn serial_timeout(declared: &Declaration, mutating: &[&Declaration]) -> usize {
    let is_shared = |target: &Target, other: &Declaration| {
        let mut others = other.targets.iter();
        others.any(|other| (&other.group, &other.resource) == (&target.group, &target.resource))
    };
    let of = |target| mutating.iter().filter(|other| is_shared(target, other)).count();
    let most = declared.targets.iter().map(of).max().unwrap_or_default();
    (SERIAL_SECONDS / most.max(1)).clamp(1, TIMEOUT_SECONDS)
}

/// The webhook of a schema; `None` if it has no target that may be asked about.
fn webhook(
    name: &str,
    declared: &Declaration,
    mutates: bool,
    timeout_seconds: usize,
    client: &Client<'_>,
) -> Option<Value> {
    let settings = declared.webhooks.clone().unwrap_or_default();
    let operations: Vec<Operation> = match (&declared.default_on[..], mutates) {
        ([], true) => vec![Operation::Create],
        (some, true) => some.to_vec(),
        (_, false) => vec![Operation::Create, Operation::Update],
    };
    let targets = declared.targets.iter().filter(|target| is_asked_about(&target.group));
    let rules: Vec<Value> = targets
        .map(|target| {
            json!({
                "apiGroups": [target.group],
                "apiVersions": [target.version],
                "resources": [target.resource],
                "operations": operations,
                "scope": "*",
            })
        })
        .collect();
    if rules.is_empty() {
        return None;
    }
    let failure_policy =
        if mutates { settings.mutation_failure_policy } else { settings.validation_failure_policy };
    let path = format!("/{}/{name}", if mutates { "mutate" } else { "validate" });
    let mut webhook = json!({
        "name": format!("{name}{SUFFIX}"),
        "admissionReviewVersions": ["v1"],
        "clientConfig": client.config(&path),
        "failurePolicy": failure_policy.unwrap_or_default(),
        "matchConditions": conditions(declared, &settings),
        "matchPolicy": "Equivalent",
        "namespaceSelector": namespaces(&settings, client.endpoint),
        // Also where they are empty: so they are Etch's own, and not left to who adds one.
        "objectSelector": {},
        "rules": rules,
        "sideEffects": "None",
        "timeoutSeconds": timeout_seconds,
    });
    if mutates {
        // What another webhook adds may lack defaults too; setting them twice equals setting them once.
        webhook["reinvocationPolicy"] = json!("IfNeeded");
    }
    Some(webhook)
}

/// What has to be true for the API server to ask. Etch's own CRDs do not wait for Etch, which needs them to
/// come up.
fn conditions(declared: &Declaration, settings: &Webhooks) -> Value {
    let mut conditions = json!(settings.match_conditions);
    if let (true, Some(conditions)) =
        (declared.targets.iter().any(|target| target.group == CRDS), conditions.as_array_mut())
    {
        let expression =
            format!("request.resource.group != '{CRDS}' || object.spec.?group.orValue('') != '{}'", NEVER[0]);
        conditions.push(json!({ "name": "is-not-of-etch", "expression": expression }));
    }
    conditions
}

/// The webhook for upgrades and deletions of CRDs. The API server asks about upgrades that change the spec,
/// whose generation it raises first (fact C9): a label or a finalizer does not even wait for an answer.
fn guard_webhook(client: &Client<'_>) -> Value {
    let condition = |name: &str, expression: &str| json!({ "name": name, "expression": expression });
    let rule = json!({
        "apiGroups": [CRDS],
        "apiVersions": ["v1"],
        "resources": ["customresourcedefinitions"],
        "operations": ["UPDATE", "DELETE"],
        "scope": "Cluster",
    });
    let mut webhook = guard(GUARD, rule, client);
    webhook["matchConditions"] = json!([
        condition(
            "spec-changes",
            // One that was put into etcd without the server, or is older than generations, has none.
            "request.operation == 'DELETE' || object.metadata.?generation != oldObject.metadata.?generation",
        ),
        condition("is-not-deleted", "!has(oldObject.metadata.deletionTimestamp)"),
        condition("is-not-of-etch", &format!("oldObject.spec.group != '{}'", NEVER[0])),
    ]);
    webhook
}

/// The webhook for StorageVersionMigrations: each has all objects of a resource written.
fn migration_webhook(client: &Client<'_>) -> Value {
    let rule = json!({
        "apiGroups": ["storagemigration.k8s.io"],
        "apiVersions": ["*"],
        "resources": ["storageversionmigrations"],
        "operations": ["CREATE"],
        "scope": "Cluster",
    });
    guard(MIGRATION_GUARD, rule, client)
}

/// A webhook that is asked about these requests, and that holds up none if no replica answers.
fn guard(name: &str, rule: Value, client: &Client<'_>) -> Value {
    json!({
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client.config("/guard"),
        "failurePolicy": FailurePolicy::Ignore,
        "matchConditions": [],
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "rules": [rule],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
    })
}

impl Client<'_> {
    fn config(&self, path: &str) -> Value {
        let Self { endpoint, authority, keys } = self;
        let path = format!("/{}{path}", keys.used().as_str());
        let mut config = match &endpoint.url {
            Some(url) => json!({ "url": format!("{}{path}", url.trim_end_matches('/')) }),
            None => json!({
                "service": { "namespace": endpoint.namespace, "name": SERVICE, "path": path, "port": 443 },
            }),
        };
        if let (Injection::None, Some(authority)) = (endpoint.inject, authority) {
            config[CA_BUNDLE] = json!(ByteString(authority.to_vec()));
        }
        config
    }
}

fn namespaces(settings: &Webhooks, endpoint: &Endpoint) -> Value {
    let mut selector =
        settings.namespace_selector.clone().map_or_else(|| json!({}), |selector| json!(selector));
    let mut expressions = match selector["matchExpressions"].take() {
        Value::Array(expressions) => expressions,
        _ => Vec::new(),
    };
    expressions.push(json!({
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": [SYSTEM, endpoint.namespace],
    }));
    selector["matchExpressions"] = expressions.into();
    selector
}

#[cfg(test)]
mod tests;
