//! Reads custom resources: one object, or a page of a list. It keeps one page at most, and asks for none
//! without a bound on its bytes: objects may be of any size.

use http::Method;

use super::page::{Page, RawPage, parsed};
use super::retries::wait_after;
use super::{CallError, Cluster, Received, Scope};
use etch_core::call_error::{if_exists, own};
use etch_core::crd::Resource;
use etch_core::engine::sweep::Form;
use etch_core::object::{Identity, Object};
use etch_core::request::path::{collection, encoded, named};
use etch_core::request::{METADATA_LIST, accepting, get};
use kube_structural_schema::json::Json;

impl Cluster {
    /// Reads a page: the first, or the one that a token of the page before points to.
    ///
    /// When the snapshot of the first page is gone (410 with a token), the list continues with the state of
    /// now.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn page(&self, resource: &Resource, after: Option<&str>) -> Result<Page, CallError> {
        let mut retries = self.retries(&Method::GET);
        loop {
            match self.raw_page(resource, &Scope::All, Form::Whole, after).await {
                Err(error) => wait_after(&mut retries, error).await?,
                Ok(page) => return page.parse(),
            }
        }
    }

    /// As [`Self::page`], of the objects in a scope only, in any form, and for callers that have work to do
    /// before they are parsed.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn raw_page(
        &self,
        resource: &Resource,
        scope: &Scope,
        form: Form,
        after: Option<&str>,
    ) -> Result<RawPage, CallError> {
        match scope {
            Scope::All => self.page_of(resource, None, form, after).await,
            Scope::Namespace(namespace) => self.page_of(resource, Some(namespace), form, after).await,
            Scope::Namespaces(namespaces) => self.page_within(resource, namespaces, form, after).await,
        }
    }

    /// A page of the objects of one namespace, or of all.
    pub(super) async fn page_of(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        form: Form,
        after: Option<&str>,
    ) -> Result<RawPage, CallError> {
        match self.page_at(resource, namespace, form, after).await {
            Err(CallError::Refused(refusal)) if refusal.code == 410 && refusal.continue_token.is_some() => {
                self.page_at(resource, namespace, form, refusal.continue_token.as_deref()).await
            }
            page => page,
        }
    }

    /// A list with at most one object, of which it has the metadata: for what else a list has.
    pub(super) async fn list_of_one(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
    ) -> Result<Json, CallError> {
        let path = format!("{}?limit=1", collection(resource, namespace));
        self.call_for_json(accepting(&path, METADATA_LIST)).await
    }

    async fn page_at(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        form: Form,
        after: Option<&str>,
    ) -> Result<RawPage, CallError> {
        loop {
            let mut reservation = self.page_budget.reserve((resource.clone(), form));
            let mut path = format!("{}?limit={}", collection(resource, namespace), reservation.limit);
            if let Some(token) = after {
                path.push_str("&continue=");
                path.push_str(&encoded(token));
            }
            let request = match form {
                Form::Whole => get(&path),
                Form::Metadata => accepting(&path, METADATA_LIST),
            };
            let body = self.call_up_to(request, Some(&self.turns.pages), reservation.most()).await;
            match body.map_err(|error| own(resource, error))? {
                Some(body) => return RawPage::read(body, reservation),
                None => reservation.set_too_large(),
            }
        }
    }

    /// Reads one object; `None` if it is gone, or another one has its name.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn object(
        &self,
        resource: &Resource,
        identity: &Identity,
    ) -> Result<Option<Object>, CallError> {
        let found = self.object_named(resource, identity.namespace.as_deref(), &identity.name).await?;
        Ok(found.filter(|object| object.uid() == identity.uid))
    }

    /// Reads one object as soon as there is room for it; `None` if it is gone, or another one has its name.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn object_with_room(
        &self,
        resource: &Resource,
        identity: &Identity,
    ) -> Result<Option<Received>, CallError> {
        let path = named(resource, identity.namespace.as_deref(), &identity.name);
        let read = if_exists(self.call_with_room(get(&path), &self.object_room(resource)).await)?;
        let received = |(body, held): (Vec<u8>, _)| Ok(Received::new(parsed(&body)?, held));
        let received = read.map(received).transpose()?;
        Ok(received.filter(|object| object.uid() == identity.uid))
    }

    /// Reads one object by its name; `None` if there is none.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn object_named(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, CallError> {
        let body = if_exists(self.call(get(&named(resource, namespace, name))).await)?;
        body.map(|body| parsed(&body)).transpose()
    }
}
