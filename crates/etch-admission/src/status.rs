//! What the status of each EmbeddedSchema is to be.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::api::{EmbeddedSchemaStatus, LastGood, PersistedDefaults, SETTLING};
use crate::spec::Target;
use crate::state::{Schema, State};
use crate::tally::{ALL_PERSISTED, INCOMPLETE};
use crate::{Problem, is_asked_about};
use etch_core::condition::PERSISTED;
use etch_core::crd::Resource;
use etch_core::policy::{STALLED, condition_after};

/// How many problems a message names, and its length at most.
const NAMED: usize = 3;
const LONGEST: usize = 1_000;

/// An EmbeddedSchema status to write.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The name of the `EmbeddedSchema`.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The status.
    pub status: EmbeddedSchemaStatus,
}

/// Why the API server does not ask about schemas that could be served; nothing where it asks about all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unserved {
    /// About none: a reason, and the message.
    all: Option<(&'static str, String)>,
    /// About these, by name: why it does not take their webhook.
    refused: BTreeMap<String, String>,
    /// About not all objects of these: the field of their webhook that another client changes.
    altered: BTreeMap<String, String>,
    /// Without success about these: their webhook has no CA bundle.
    uninjected: BTreeSet<String>,
}

impl Unserved {
    /// The webhooks cannot be written.
    pub fn unwritten(error: String) -> Self {
        Self { all: Some(("WebhooksNotWritten", error)), ..Self::default() }
    }

    /// The replica that is to write them has no certificate.
    pub fn without_certificate() -> Self {
        let message = "the leader has no admission certificate yet";
        Self { all: Some(("NoCertificate", message.to_owned())), ..Self::default() }
    }

    /// The certificate of the replica that writes them has expired.
    pub fn expired(at: Timestamp) -> Self {
        let message =
            format!("the admission certificate of the leader expired at {at}, so API servers refuse it");
        Self { all: Some(("CertificateExpired", message)), ..Self::default() }
    }

    /// The API server does not take some webhooks, and others are not as they should be.
    pub fn of_some(
        refused: BTreeMap<String, String>,
        altered: BTreeMap<String, String>,
        uninjected: BTreeSet<String>,
    ) -> Self {
        Self { all: None, refused, altered, uninjected }
    }

    /// Whether an injector has something left to do.
    pub fn awaits_injector(&self) -> bool {
        !self.uninjected.is_empty()
    }

    fn of(&self, name: &str) -> Option<(&'static str, String)> {
        let refused = self.refused.get(name).map(|why| {
            let message = format!("the API server refuses the webhook of this schema: {why}");
            ("WebhookRefused", message)
        });
        let altered = || {
            let field = self.altered.get(name)?;
            let message =
                format!("another client changes the webhook of this schema: {field} is not as declared");
            Some(("WebhookAltered", message))
        };
        let uninjected = || {
            let message = "the webhook of this schema has no caBundle, so no API server can call it: set \
                --admission-inject, or add ca.crt to the certificate";
            self.uninjected.contains(name).then(|| ("NoCaBundle", message.to_owned()))
        };
        self.all.clone().or(refused).or_else(altered).or_else(uninjected)
    }
}

/// The statuses that are to be written.
pub fn statuses(state: &State, unserved: &Unserved, now: Timestamp) -> Vec<Wanted> {
    let wanted = state.schemas.iter().map(|(name, schema)| {
        let status = status(schema, state.missing_facts(name).as_deref(), unserved.of(name), now);
        Wanted { name: name.clone(), uid: schema.uid.clone(), status }
    });
    wanted.filter(|wanted| state.schemas[&wanted.name].status != wanted.status).collect()
}

fn status(
    schema: &Schema,
    missing: Option<&[String]>,
    unserved: Option<(&'static str, String)>,
    now: Timestamp,
) -> EmbeddedSchemaStatus {
    let ready = match &schema.problems[..] {
        [] => ("True", "Compiled", "Etch can serve the schema".to_owned()),
        problems => ("False", "Invalid", listed(problems)),
    };
    let generation = schema.generation;
    let serving = match (&schema.good, unserved) {
        (None, _) => ("False", "NotServed", "Etch cannot serve any generation of the schema".to_owned()),
        (Some(good), _) if !good.declared.targets.iter().any(|target| is_asked_about(&target.group)) => {
            let message = "the targets are in groups whose objects API servers never ask Etch about";
            ("False", "NotAsked", message.to_owned())
        }
        (Some(_), Some((reason, message))) => ("False", reason, message),
        (Some(good), None) if schema.is_unserved => {
            let targets: BTreeSet<String> = good.declared.targets.iter().map(named).collect();
            let targets: Vec<String> = targets.into_iter().take(NAMED).collect();
            let message = format!(
                "the API server does not serve {}, so it may ask about no object of the schema",
                targets.join(", ")
            );
            ("False", "TargetsNotServed", message)
        }
        (Some(good), None) if good.generation == generation || schema.problems.is_empty() => {
            ("True", "Served", "Etch answers requests by this generation".to_owned())
        }
        (Some(good), None) => {
            let message = format!(
                "Etch answers requests by generation {}, the last one that it can serve",
                good.generation
            );
            ("True", "LastGoodServed", message)
        }
    };
    let facts = match missing {
        None => ("Unknown", "NotServed", "Etch reads facts only for a schema that it serves".to_owned()),
        Some([]) => ("True", "AllKnown", "every fact has a value".to_owned()),
        Some(names) => {
            let message = format!("Etch does not apply the schema: no value for {}", names.join(", "));
            ("False", "FactsMissing", message)
        }
    };
    let existing = schema.existing.clone().or_else(|| schema.status.existing.clone());
    let persisted = existing.as_ref().and_then(|existing| existing.persisted.as_ref()).map(persisted);
    let stalled = (ready.0 == "False").then(|| (STALLED, ("True", ready.1, ready.2.clone())));
    let conditions =
        [("FactsKnown", facts), ("Ready", ready), ("Serving", serving)].into_iter().chain(stalled);
    let conditions = persisted.map(|wording| (PERSISTED, wording)).into_iter().chain(conditions);
    let conditions = conditions.map(|(kind, (status, reason, message))| {
        let message = message.chars().take(LONGEST).collect();
        condition_after(&schema.status.conditions, kind, (status, reason, message), generation, now)
    });
    EmbeddedSchemaStatus {
        observed_generation: generation,
        conditions: conditions.collect(),
        existing,
        last_good: last_good(schema),
    }
}

/// The resource of a target.
fn named(Target { group, version, resource, .. }: &Target) -> String {
    Resource::new(group, version, resource).to_string()
}

/// What the status has to remember; the object itself has only the generation that cannot be served.
fn last_good(schema: &Schema) -> Option<LastGood> {
    if schema.problems.is_empty() {
        return None;
    }
    // This version may be unable to read what another one has left there, and able after an upgrade.
    let Some(good) = &schema.good else { return schema.status.last_good.clone() };
    let spec = serde_json::to_value(&good.declared).ok()?;
    Some(LastGood { generation: good.generation, spec })
}

/// Status, reason and message of the condition about existing objects.
fn persisted(found: &PersistedDefaults) -> (&'static str, &str, String) {
    let status = match found.reason.as_str() {
        ALL_PERSISTED => "True",
        SETTLING | INCOMPLETE => "Unknown",
        _ => "False",
    };
    (status, &found.reason, found.message.clone())
}

fn listed(problems: &[Problem]) -> String {
    let named = problems.iter().take(NAMED);
    let mut text = named.map(Problem::to_string).collect::<Vec<_>>().join("; ");
    if problems.len() > NAMED {
        text.push_str(&format!("; and {} more", problems.len() - NAMED));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube::core::DynamicObject;
    use serde_json::{Value, json};

    use super::*;
    use crate::state::FactState;

    fn schema(generation: i64, path: &str, status: Value) -> DynamicObject {
        schema_of_group("", generation, path, status)
    }

    fn schema_of_group(group: &str, generation: i64, path: &str, status: Value) -> DynamicObject {
        let object = json!({
            "apiVersion": "etch-operator.io/v1alpha1", "kind": "EmbeddedSchema",
            "metadata": { "name": "a", "uid": "1", "generation": generation },
            "spec": {
                "targets": [{ "group": group, "version": "v1", "resource": "things", "path": path }],
                "facts": [{ "name": "id", "path": ".id",
                            "object": { "version": "v1", "resource": "configs", "name": "it" } }],
            },
            "status": status,
        });
        serde_json::from_value(object).expect("an object")
    }

    fn reasons(state: &State, unserved: &Unserved) -> Vec<(String, String)> {
        let statuses = statuses(state, unserved, Timestamp::UNIX_EPOCH);
        let conditions = statuses.into_iter().flat_map(|wanted| wanted.status.conditions);
        conditions.map(|condition| (condition.status, condition.reason)).collect()
    }

    fn pairs<const N: usize>(expected: [(&str, &str); N]) -> Vec<(String, String)> {
        expected.map(|(status, reason)| (status.to_owned(), reason.to_owned())).to_vec()
    }

    #[test]
    fn each_condition_has_its_reason() {
        let mut state = State::default();
        state.schema_applied(schema(1, "spec[", json!({})));
        let stalled = ("True", "Invalid");
        let expected = [("Unknown", "NotServed"), ("False", "Invalid"), ("False", "NotServed"), stalled];
        assert_eq!(reasons(&state, &Unserved::default()), pairs(expected));
        state.schema_applied(schema(2, ".spec", json!({})));
        let expected = [("False", "FactsMissing"), ("True", "Compiled"), ("True", "Served")];
        assert_eq!(reasons(&state, &Unserved::default()), pairs(expected));
        let object = state.fact_objects().pop_first().expect("one");
        state.fact(object, FactState::Found(Arc::new(json!({ "id": 1 }))));
        for taking in state.takings() {
            let values = taking.values();
            state.taken(taking, values);
        }
        let field = |name: &str| [(name.to_owned(), "rules".to_owned())].into();
        let refused = |name: &str| Unserved::of_some(field(name), BTreeMap::new(), BTreeSet::new());
        let uninjected = ["a".to_owned()].into();
        for (unserved, reason) in [
            (Unserved::unwritten("it failed".to_owned()), "WebhooksNotWritten"),
            (Unserved::without_certificate(), "NoCertificate"),
            (Unserved::expired(Timestamp::UNIX_EPOCH), "CertificateExpired"),
            (refused("a"), "WebhookRefused"),
            (Unserved::of_some(BTreeMap::new(), field("a"), BTreeSet::new()), "WebhookAltered"),
            (Unserved::of_some(BTreeMap::new(), BTreeMap::new(), uninjected), "NoCaBundle"),
        ] {
            let expected = [("True", "AllKnown"), ("True", "Compiled"), ("False", reason)];
            assert_eq!(reasons(&state, &unserved), pairs(expected));
        }
        let expected = [("True", "AllKnown"), ("True", "Compiled"), ("True", "Served")];
        assert_eq!(reasons(&state, &refused("b")), pairs(expected));
        let unserved = |state: &mut State, is_unserved| {
            state.schemas.get_mut("a").expect("it is there").is_unserved = is_unserved;
        };
        unserved(&mut state, true);
        let expected = [("True", "AllKnown"), ("True", "Compiled"), ("False", "TargetsNotServed")];
        assert_eq!(reasons(&state, &Unserved::default()), pairs(expected));
        unserved(&mut state, false);
        let mut never = State::default();
        never.schema_applied(schema_of_group("admissionregistration.k8s.io", 1, ".spec", json!({})));
        let expected = [("False", "FactsMissing"), ("True", "Compiled"), ("False", "NotAsked")];
        assert_eq!(reasons(&never, &Unserved::default()), pairs(expected));
        state.schema_applied(schema(3, "spec[", json!({})));
        let expected = [("True", "AllKnown"), ("False", "Invalid"), ("True", "LastGoodServed"), stalled];
        assert_eq!(reasons(&state, &Unserved::default()), pairs(expected));
    }

    #[test]
    fn what_is_written_is_not_written_again() {
        let mut state = State::default();
        state.schema_applied(schema(1, ".spec", json!({})));
        let wanted = statuses(&state, &Unserved::default(), Timestamp::UNIX_EPOCH).remove(0);
        state.schema_applied(schema(1, ".spec", serde_json::to_value(wanted.status).expect("JSON")));
        assert_eq!(
            statuses(&state, &Unserved::default(), Timestamp::from_second(1_000).expect("a time")),
            []
        );
    }
}
