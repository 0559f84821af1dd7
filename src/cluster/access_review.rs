//! Asks the server what Etch may do, before Etch tries it.
//! Permissions change, so answers are cached for seconds only.

use std::collections::BTreeSet;
use std::sync::Weak;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{CallError, Cluster, Scope};
use etch_core::crd::Resource;
use etch_core::namespaces::Namespaces;
use etch_core::rbac::{Allowed, MissingPermissions, Verb};
use etch_core::request::review;

/// How long a permission counts as granted.
const PERMISSION_TTL: Duration = Duration::from_secs(10);

/// A permission that was granted, and when.
pub(super) type Permitted = Vec<((Resource, Scope, Verb), Instant)>;

/// The namespaces to which permissions are limited, of those who still ask about them.
#[derive(Debug, Default)]
pub(super) struct NamespacesInUse(Mutex<Vec<Weak<[String]>>>);

impl NamespacesInUse {
    fn note(&self, namespaces: &Namespaces) {
        let mut all = self.0.lock();
        all.retain(|known| known.strong_count() > 0);
        all.push(namespaces.downgrade());
    }

    /// Their names, in order.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let all = self.0.lock();
        all.iter().filter_map(Weak::upgrade).flat_map(|names| names.to_vec()).collect()
    }
}

impl Cluster {
    /// Which of these verbs Etch may not use on all objects of a resource; `None` if all are allowed.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn missing(
        &self,
        resource: &Resource,
        verbs: &[Verb],
    ) -> Result<Option<MissingPermissions>, CallError> {
        self.missing_in(resource, &Scope::All, verbs).await
    }

    /// For which objects of a resource Etch may use these verbs: for all; or else, if the policy `names` the
    /// namespaces of all that it selects, for the objects of these.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn allowed(
        &self,
        resource: &Resource,
        names: Option<&Namespaces>,
        verbs: &[Verb],
    ) -> Result<Allowed, CallError> {
        let Some(missing) = self.missing(resource, verbs).await? else { return Ok(Allowed::Everywhere) };
        let Some(names) = names else { return Ok(Allowed::Missing(missing)) };
        let missing = self.missing_in(resource, &Scope::Namespaces(names.clone()), verbs).await?;
        self.permitted_in
            .note(missing.as_ref().and_then(|missing| missing.namespaces.as_ref()).unwrap_or(names));
        Ok(missing.map_or_else(|| Allowed::Within(names.clone()), Allowed::Missing))
    }

    /// Which of these verbs Etch may not use on the objects of a resource that are in a scope; `None` if all
    /// are allowed.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn missing_in(
        &self,
        resource: &Resource,
        scope: &Scope,
        verbs: &[Verb],
    ) -> Result<Option<MissingPermissions>, CallError> {
        self.asked.notify_one();
        let (mut missing, mut namespaces) = (Vec::new(), Vec::new());
        for namespace in scope.lists() {
            let before = missing.len();
            for verb in verbs {
                if !self.may(resource, namespace, *verb).await? {
                    missing.push(*verb);
                }
            }
            namespaces.extend(namespace.filter(|_| missing.len() > before).map(str::to_owned));
        }
        missing.sort();
        missing.dedup();
        let namespaces = Namespaces::new(namespaces).filter(|_| matches!(scope, Scope::Namespaces(_)));
        let missing = (!missing.is_empty()).then(|| MissingPermissions::of(resource, missing));
        Ok(missing.map(|missing| missing.in_namespaces(namespaces)))
    }

    async fn may(&self, resource: &Resource, namespace: Option<&str>, verb: Verb) -> Result<bool, CallError> {
        let answer = self.call_for_json(review::access(resource, namespace, verb)).await?;
        Ok(answer["status"]["allowed"] == true)
    }

    /// Whether Etch may use a verb on the objects of a resource that are in a scope. A permission counts as
    /// granted for a few seconds: if many objects are forbidden one by one, each of them asks.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn is_permitted(
        &self,
        resource: &Resource,
        scope: &Scope,
        verb: Verb,
    ) -> Result<bool, CallError> {
        let about = (resource.clone(), scope.clone(), verb);
        // Callers that come while a request is under way wait for its answer.
        let mut permitted = self.permitted.lock().await;
        permitted.retain(|(_, at)| at.elapsed() < PERMISSION_TTL);
        if permitted.iter().any(|(known, _)| *known == about) {
            return Ok(true);
        }
        let is_permitted = self.missing_in(resource, scope, &[verb]).await?.is_none();
        if is_permitted {
            permitted.push((about, Instant::now()));
        }
        Ok(is_permitted)
    }
}
