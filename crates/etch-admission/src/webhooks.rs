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

/// Keeps AKS from adding expressions to the selectors of the webhooks, which Etch would take out again each time
/// it looks: the webhooks are asked about no object of the cluster itself anyway.
const NO_ENFORCER: (&str, &str) = ("admissions.enforcer/disabled", "true");

/// The annotations by which injectors know what is theirs to set: cert-manager's, and OpenShift's.
const INJECTED: [&str; 2] = ["cert-manager.io/inject-ca-from", "service.beta.openshift.io/inject-cabundle"];

/// The field of a webhook that injectors set.
const CA_BUNDLE: &str = "caBundle";

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

/// Whether a configuration has all that a body asks for, and its webhooks are those of the body and no
/// others. Labels and annotations may be added.
pub fn is_applied(body: &Value, configuration: &Value) -> bool {
    let has = |field: &str| covers(&configuration[field], &body[field]);
    let names = |of| webhooks(of).map(|webhook| &webhook["name"]);
    ["apiVersion", "kind", "metadata"].into_iter().all(has)
        && names(configuration).eq(names(body))
        && altered(body, configuration).is_empty()
}

/// The webhooks of a configuration that are not as a body has them, by name: the first field that differs.
///
/// A condition or a selector that the body lacks would keep API servers from asking, so it counts. Injectors
/// add a CA bundle, and a server may know fields that Etch does not.
pub fn altered(body: &Value, configuration: &Value) -> BTreeMap<String, String> {
    let field = |wanted: &Value, actual: &Value| -> Option<String> {
        let actual = without_injected(wanted, actual);
        let mut fields = wanted.as_object()?.iter();
        let differs = fields.find(|(name, wanted)| !is_same(&actual[name.as_str()], wanted));
        differs.map(|(name, _)| name.clone())
    };
    let named = webhooks(body).filter_map(|wanted| {
        let actual = webhooks(configuration).find(|actual| actual["name"] == wanted["name"])?;
        Some((wanted["name"].as_str()?.to_owned(), field(wanted, actual)?))
    });
    named.collect()
}

/// The webhooks of a body, with the CA bundles that injectors have put into a configuration.
pub fn with_injected(body: &Value, configuration: &Value) -> Value {
    let with = |wanted: &Value| {
        let actual = webhooks(configuration).find(|actual| actual["name"] == wanted["name"]);
        let bundle =
            actual.map(|actual| &actual["clientConfig"][CA_BUNDLE]).filter(|bundle| !bundle.is_null());
        let mut webhook = wanted.clone();
        if let Some(bundle) = bundle.filter(|_| wanted["clientConfig"][CA_BUNDLE].is_null()) {
            webhook["clientConfig"][CA_BUNDLE] = bundle.clone();
        }
        webhook
    };
    webhooks(body).map(with).collect()
}

/// The webhooks of a configuration that lack the CA bundle which API servers need to call them, by name. At a
/// URL without an injector, the certificate may be one that every system trusts; none has a Service's name.
pub fn without_authority(configuration: &Value) -> impl Iterator<Item = &str> {
    let is_injected = INJECTED.iter().any(|by| configuration["metadata"]["annotations"][by].is_string());
    let lacks = move |webhook: &&Value| {
        let client = &webhook["clientConfig"];
        let is_needed = is_injected || client["service"].is_object();
        is_needed && client[CA_BUNDLE].as_str().is_none_or(str::is_empty)
    };
    webhooks(configuration).filter(lacks).filter_map(|webhook| webhook["name"].as_str())
}

/// Why API servers do not ask by one of [`GUARDS`], or cannot, as far as the ValidatingWebhookConfiguration shows it;
/// `None` if they do.
pub fn unguarded(configuration: Option<&Value>) -> Option<String> {
    let there = |name: &str| webhooks(configuration?).find(|webhook| webhook["name"] == name);
    if let Some(missing) = GUARDS.into_iter().find(|name| there(name).is_none()) {
        return Some(format!(
            "the ValidatingWebhookConfiguration {CONFIGURATION} lacks the webhook {missing}: install config/admission, or see in Etch's \
             log why its leader has not added it"
        ));
    }
    let lacking = without_authority(configuration?).find(|name| GUARDS.contains(name))?;
    Some(format!(
        "the webhook {lacking} has no caBundle, so no API server can call it: set --admission-inject, or add ca.crt to the certificate"
    ))
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

fn webhooks(configuration: &Value) -> impl Iterator<Item = &Value> {
    configuration["webhooks"].as_array().into_iter().flatten()
}

/// A webhook without the CA bundle that others have put in.
fn without_injected(wanted: &Value, actual: &Value) -> Value {
    let mut actual = actual.clone();
    if let (true, Some(config)) =
        (wanted["clientConfig"][CA_BUNDLE].is_null(), actual["clientConfig"].as_object_mut())
    {
        config.remove(CA_BUNDLE);
    }
    actual
}

/// Whether a value has all that is wanted.
fn covers(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| covers(actual.get(name).unwrap_or(&Value::Null), wanted))
        }
        (actual, wanted) => is_same(actual, wanted),
    }
}

/// Whether a value is what is wanted, and no more.
fn is_same(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => {
            let mut names = actual.keys().chain(wanted.keys());
            names.all(|name| {
                is_same(actual.get(name).unwrap_or(&Value::Null), wanted.get(name).unwrap_or(&Value::Null))
            })
        }
        (Value::Array(actual), Value::Array(wanted)) => {
            actual.len() == wanted.len()
                && actual.iter().zip(wanted).all(|(actual, wanted)| is_same(actual, wanted))
        }
        // The API server leaves out lists that are empty, and fills in selectors that are.
        (Value::Null, Value::Array(other)) | (Value::Array(other), Value::Null) => other.is_empty(),
        (Value::Null, Value::Object(other)) | (Value::Object(other), Value::Null) => other.is_empty(),
        (actual, wanted) => actual == wanted,
    }
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

/// What has to be true for the API server to ask. Etch's own CRDs do not wait for Etch, which needs them to come
/// up.
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
mod tests {
    use super::super::path_key::{KEY_BYTES, PathKey, keys_in};
    use super::*;
    use kube_validation_rules::{Expression, Variables, Wanted};

    fn declaration(more: Value) -> Declaration {
        let mut declaration = json!({
            "targets": [
                { "group": "example.com", "version": "v1", "resource": "machines", "path": ".spec.value" },
                { "group": "etch-operator.io", "version": "v1alpha1", "resource": "defaultspolicies", "path": ".spec" },
            ],
            "defaults": [{ "path": ".zone", "value": "'a'" }],
        });
        declaration.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        serde_json::from_value(declaration).expect("a declaration")
    }

    fn keys() -> KeyRing {
        KeyRing::next([None, None], jiff::Timestamp::UNIX_EPOCH, || PathKey::new([7; KEY_BYTES]))
    }

    fn keyed(path: &str) -> String {
        format!("/{}{path}", "07".repeat(32))
    }

    fn endpoint(inject: Injection) -> Endpoint {
        Endpoint { namespace: "etch-system".to_owned(), url: None, inject }
    }

    #[test]
    fn a_schema_is_one_webhook_of_each_kind() {
        let one = declaration(json!({}));
        let [mutating, validating] =
            configurations([("one", &one)], &[], &endpoint(Injection::None), Some(b"PEM"), &keys());
        let webhook = &mutating["webhooks"][0];
        assert_eq!(mutating["webhooks"].as_array().map(Vec::len), Some(1));
        assert_eq!(webhook["name"], "one.etch-operator.io");
        assert_eq!(
            webhook["clientConfig"],
            json!({
                "caBundle": "UEVN",
                "service": { "namespace": "etch-system", "name": "etch-admission", "path": keyed("/mutate/one"), "port": 443 },
            })
        );
        assert_eq!(
            webhook["rules"],
            json!([{ "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["machines"],
                     "operations": ["CREATE"], "scope": "*" }])
        );
        assert_eq!((&webhook["failurePolicy"], &webhook["sideEffects"]), (&json!("Ignore"), &json!("None")));
        let values = &webhook["namespaceSelector"]["matchExpressions"][0]["values"];
        assert_eq!(*values, json!(["kube-system", "etch-system"]));
        assert_eq!(validating["webhooks"][0]["rules"][0]["operations"], json!(["CREATE", "UPDATE"]));
        assert_eq!(validating["webhooks"][0]["clientConfig"]["service"]["path"], keyed("/validate/one"));
    }

    #[test]
    fn a_schema_that_can_set_nothing_has_no_mutating_webhook() {
        let of = |field: &str| json!({ "openAPIV3Schema": { "type": "object", "properties": { "a": { "type": "string", field: "a" } } } });
        for (more, mutating) in [
            (json!({ "defaults": [], "rules": [{ "rule": "true" }], "schema": of("pattern") }), 0),
            (json!({ "defaults": [], "schema": of("default") }), 1),
            (json!({ "defaults": [], "schema": of("pattern"), "unknownFields": "Prune" }), 1),
            (json!({}), 1),
        ] {
            let one = declaration(more.clone());
            let all = configurations([("one", &one)], &[], &endpoint(Injection::None), None, &keys());
            let webhooks = all.map(|configuration| configuration["webhooks"].as_array().map(Vec::len));
            assert_eq!(webhooks, [Some(mutating), Some(1)], "{more}");
        }
    }

    #[test]
    fn mutating_webhooks_of_a_resource_share_the_time_of_a_request() {
        let (one, alone) = (
            declaration(json!({})),
            declaration(json!({ "targets": [
            { "group": "example.com", "version": "v1", "resource": "things", "path": ".spec" },
        ] })),
        );
        let rules_only = declaration(json!({ "defaults": [], "rules": [{ "rule": "true" }] }));
        for (schemas, expected) in [(1, 3), (5, 3), (6, 2), (7, 2), (8, 1), (15, 1), (30, 1)] {
            let names: Vec<String> = (0..schemas).map(|index| format!("s{index:02}")).collect();
            let all = names.iter().map(|name| (name.as_str(), &one));
            let all = all.chain([("alone", &alone), ("rules-only", &rules_only)]);
            let [mutating, validating] = configurations(all, &[], &endpoint(Injection::None), None, &keys());
            let timeouts = |configuration: &Value| -> Vec<u64> {
                webhooks(configuration).filter_map(|webhook| webhook["timeoutSeconds"].as_u64()).collect()
            };
            let (first, others) = (timeouts(&mutating)[0], timeouts(&mutating)[1..].to_vec());
            assert_eq!((first, others), (3, vec![expected; schemas]), "{schemas}");
            assert_eq!(timeouts(&validating), vec![3; schemas + 2], "these are called at once");
        }
    }

    #[test]
    fn settings_of_a_schema_are_its_webhooks() {
        let one = declaration(json!({
            "defaultOn": ["CREATE", "UPDATE"],
            "webhooks": {
                "validationFailurePolicy": "Fail",
                "matchConditions": [{ "name": "aws", "expression": "true" }],
                "namespaceSelector": { "matchLabels": { "a": "b" } },
            },
        }));
        let mut at = endpoint(Injection::CertManager);
        at.url = Some("https://127.0.0.1:1/".to_owned());
        let [mutating, validating] = configurations([("one", &one)], &[], &at, Some(b"PEM"), &keys());
        assert_eq!(
            mutating["metadata"]["annotations"],
            json!({
                "admissions.enforcer/disabled": "true",
                "cert-manager.io/inject-ca-from": "etch-system/etch-admission",
                KEYS: keys().annotation(),
            })
        );
        assert_eq!(keys_in(&mutating), keys_in(&validating));
        let (mutating, validating) = (&mutating["webhooks"][0], &validating["webhooks"][0]);
        assert_eq!(
            mutating["clientConfig"],
            json!({ "url": format!("https://127.0.0.1:1{}", keyed("/mutate/one")) })
        );
        assert_eq!(
            (&mutating["failurePolicy"], &validating["failurePolicy"]),
            (&json!("Ignore"), &json!("Fail"))
        );
        assert_eq!(mutating["rules"][0]["operations"], json!(["CREATE", "UPDATE"]));
        assert_eq!(validating["matchConditions"], json!([{ "name": "aws", "expression": "true" }]));
        assert_eq!(validating["namespaceSelector"]["matchLabels"], json!({ "a": "b" }));
        assert_eq!(validating["namespaceSelector"]["matchExpressions"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn a_schema_of_crds_is_not_asked_about_those_of_etch() {
        let target = json!({ "group": "apiextensions.k8s.io", "version": "v1",
                             "resource": "customresourcedefinitions", "path": ".spec" });
        let one = declaration(json!({
            "targets": [target],
            "webhooks": { "matchConditions": [{ "name": "aws", "expression": "true" }] },
        }));
        let of = configurations([("one", &one)], &[], &endpoint(Injection::None), None, &keys());
        for configuration in of {
            let conditions = &configuration["webhooks"][0]["matchConditions"];
            let names: Vec<_> = conditions.as_array().into_iter().flatten().map(|one| &one["name"]).collect();
            assert_eq!(names, ["aws", "is-not-of-etch"]);
        }
    }

    #[test]
    fn the_guard_is_asked_where_a_crd_has_a_new_generation() {
        let [_, configuration] = configurations([], &[GUARD], &endpoint(Injection::None), None, &keys());
        let condition = &configuration["webhooks"][0]["matchConditions"][0]["expression"];
        let variables = Variables::new().dynamic(&["request", "object", "oldObject"]);
        let condition = condition.as_str().expect("an expression");
        let condition = Expression::compile(condition, &variables, Wanted::Bool).expect("an expression");
        let crd = |generation: Value| json!({ "metadata": { "name": "a", "generation": generation } });
        let bare = json!({ "metadata": { "name": "a" } });
        for (old, new, expected) in [
            (&crd(json!(1)), &crd(json!(1)), false),
            (&crd(json!(1)), &crd(json!(2)), true),
            (&bare, &crd(json!(1)), true),
            (&bare, &bare, false),
        ] {
            let request = json!({ "operation": "UPDATE" });
            let (is_asked, _) = condition.holds(&variables, &[Some(&request), Some(new), Some(old)]);
            assert_eq!(is_asked, Ok(expected), "{old} {new}");
        }
    }

    #[test]
    fn upgrades_of_crds_and_migrations_are_one_webhook_more_each() {
        let one = declaration(json!({}));
        let at = endpoint(Injection::None);
        let [mutating, validating] = configurations([("one", &one)], &GUARDS, &at, Some(b"PEM"), &keys());
        assert_eq!(mutating["webhooks"].as_array().map(Vec::len), Some(1));
        let guard = &validating["webhooks"][1];
        assert_eq!(guard["name"], GUARD);
        assert_eq!(guard["clientConfig"]["service"]["path"], keyed("/guard"));
        assert_eq!(guard["clientConfig"]["caBundle"], "UEVN");
        assert_eq!((&guard["failurePolicy"], &guard["timeoutSeconds"]), (&json!("Ignore"), &json!(3)));
        assert_eq!(guard["rules"][0]["resources"], json!(["customresourcedefinitions"]), "no subresource");
        assert_eq!(guard["rules"][0]["operations"], json!(["UPDATE", "DELETE"]));
        let migrations = &validating["webhooks"][2];
        assert_eq!(migrations["name"], MIGRATION_GUARD);
        assert_eq!(migrations["rules"][0]["resources"], json!(["storageversionmigrations"]));
        assert_eq!([GUARD, MIGRATION_GUARD].map(schema_of), [None, None]);
        let [_, alone] = configurations([], &GUARDS, &at, None, &keys());
        assert_eq!(alone["webhooks"].as_array().map(Vec::len), Some(2));
        let [_, one_of_them] = configurations([], &[MIGRATION_GUARD], &at, None, &keys());
        assert_eq!(one_of_them["webhooks"].as_array().map(Vec::len), Some(1));
        assert_eq!(one_of_them["webhooks"][0]["name"], MIGRATION_GUARD);
    }

    #[test]
    fn what_would_keep_api_servers_from_asking_is_neither_left_over_nor_added() {
        let narrow = |webhooks: Value| {
            let one = declaration(json!({ "webhooks": webhooks }));
            configurations([("one", &one)], &GUARDS, &endpoint(Injection::None), Some(b"PEM"), &keys())
        };
        let [_, body] = narrow(json!({}));
        for webhooks in [
            json!({ "matchConditions": [{ "name": "trial", "expression": "false" }] }),
            json!({ "namespaceSelector": { "matchLabels": { "trial": "yes" } } }),
            json!({ "namespaceSelector": { "matchExpressions": [{ "key": "a", "operator": "Exists" }] } }),
        ] {
            let [_, left_over] = narrow(webhooks.clone());
            assert!(!is_applied(&body, &left_over), "{webhooks}");
            assert!(is_applied(&left_over, &left_over) && !is_applied(&left_over, &body), "{webhooks}");
        }
        for (field, added) in [
            ("matchConditions", json!([{ "name": "never", "expression": "false" }])),
            ("objectSelector", json!({ "matchLabels": { "a": "b" } })),
            ("namespaceSelector", json!({ "matchLabels": { "a": "b" } })),
            ("clientConfig", json!({ "caBundle": "UEVO" })),
        ] {
            for index in 0..3 {
                let mut configuration = body.clone();
                let there = configuration["webhooks"][index][field].take();
                configuration["webhooks"][index][field] = match (there, added.clone()) {
                    (Value::Object(there), Value::Object(added)) => there.into_iter().chain(added).collect(),
                    (_, added) => added,
                };
                let name = body["webhooks"][index]["name"].as_str().expect("a name").to_owned();
                assert_eq!(altered(&body, &configuration), [(name, field.to_owned())].into());
                assert!(!is_applied(&body, &configuration));
            }
        }
    }

    #[test]
    fn what_the_server_fills_in_or_leaves_out_is_no_difference() {
        let one = declaration(json!({}));
        let [_, body] =
            configurations([("one", &one)], &GUARDS, &endpoint(Injection::ServiceCa), None, &keys());
        let mut configuration = body.clone();
        for webhook in configuration["webhooks"].as_array_mut().expect("webhooks") {
            let webhook = webhook.as_object_mut().expect("a webhook");
            webhook.retain(|_, value| *value != json!([]));
            webhook.insert("ofLaterServers".to_owned(), json!("Default"));
            webhook["clientConfig"][CA_BUNDLE] = json!("UEVN");
        }
        assert!(is_applied(&body, &configuration));
        let put = with_injected(&body, &configuration);
        assert_eq!(put[0]["clientConfig"][CA_BUNDLE], "UEVN");
        assert_eq!(put[0].get("ofLaterServers"), None);
    }

    #[test]
    fn no_platform_adds_to_the_selectors_also_after_an_upgrade() {
        let one = declaration(json!({}));
        for inject in [Injection::None, Injection::CertManager, Injection::ServiceCa] {
            for body in configurations([("one", &one)], &GUARDS, &endpoint(inject), None, &keys()) {
                assert_eq!(body["metadata"]["annotations"]["admissions.enforcer/disabled"], "true");
                let mut of_an_older_etch = body.clone();
                let annotations = of_an_older_etch["metadata"]["annotations"].as_object_mut().expect("a map");
                annotations.remove("admissions.enforcer/disabled");
                assert!(!is_applied(&body, &of_an_older_etch), "it is added to what is there");
            }
        }
    }

    #[test]
    fn what_others_add_is_theirs_and_what_is_left_over_goes() {
        let one = declaration(json!({}));
        let [bare, _] = configurations([("one", &one)], &[], &endpoint(Injection::None), None, &keys());
        let configuration = bare.clone();
        assert!(is_applied(&bare, &configuration));
        let [body, _] = configurations([("one", &one)], &[], &endpoint(Injection::ServiceCa), None, &keys());
        assert!(!is_applied(&body, &configuration));
        let mut configuration = body.clone();
        configuration["webhooks"][0]["clientConfig"]["caBundle"] = json!("UEVN");
        configuration["metadata"]["uid"] = json!("1");
        assert!(is_applied(&body, &configuration));
        configuration["webhooks"][0]["timeoutSeconds"] = json!(10);
        assert!(!is_applied(&body, &configuration));
        let [none, _] = configurations([], &[], &endpoint(Injection::ServiceCa), None, &keys());
        assert!(!is_applied(&none, &configuration));
        configuration.as_object_mut().expect("a map").remove("webhooks");
        assert!(is_applied(&none, &configuration));
    }

    #[test]
    fn why_nobody_guards_is_read_off_the_configuration() {
        let of = |guards: &[&str], inject, authority| {
            let [_, configuration] = configurations([], guards, &endpoint(inject), authority, &keys());
            unguarded(Some(&configuration)).unwrap_or_default()
        };
        assert_eq!(of(&GUARDS, Injection::None, Some(&b"PEM"[..])), "");
        for inject in [Injection::None, Injection::CertManager, Injection::ServiceCa] {
            let why = of(&GUARDS, inject, None);
            assert!(why.starts_with(&format!("the webhook {GUARD} has no caBundle, so")), "{why}");
        }
        let url = Some("https://etch.example.com".to_owned());
        let at_url = Endpoint { url, ..endpoint(Injection::None) };
        let [_, configuration] = configurations([], &GUARDS, &at_url, None, &keys());
        assert_eq!(unguarded(Some(&configuration)), None, "the certificate may be trusted everywhere");
        let lacks = |name: &str| {
            format!(
                "the ValidatingWebhookConfiguration etch lacks the webhook {name}: install config/admission, or see in \
                 Etch's log why its leader has not added it"
            )
        };
        assert_eq!(of(&[GUARD], Injection::None, None), lacks(MIGRATION_GUARD));
        assert_eq!(of(&[], Injection::None, None), lacks(GUARD));
        assert_eq!(unguarded(None), Some(lacks(GUARD)));
    }
}
