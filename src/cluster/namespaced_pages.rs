//! The lists of some namespaces as one list: page after page of one namespace, and then of the next one.
//! It holds no more than the page that it returns.
//!
//! Its resource version is that of its very first page, and the later lists are not older, as each is read
//! from etcd: whatever they lack, a watch from there on brings. What they have already, it brings once more:
//! a page has the resource version of its last list as well.

use super::page::RawPage;
use super::{CallError, Cluster, Form};
use etch_core::crd::Resource;
use etch_core::namespaces::Namespaces;

impl Cluster {
    /// The page that begins at `after`: a namespace, a slash, and the token of the page before, which is
    /// empty for the first page of the namespace. Namespaces without objects have no page, unless all are
    /// empty.
    pub(super) async fn page_within(
        &self,
        resource: &Resource,
        namespaces: &Namespaces,
        form: Form,
        after: Option<&str>,
    ) -> Result<RawPage, CallError> {
        let (mut namespace, mut token) = match after.and_then(|after| after.split_once('/')) {
            Some((namespace, token)) => (namespace, Some(token).filter(|token| !token.is_empty())),
            None => (namespaces.names().first().map_or("", String::as_str), None),
        };
        let mut began: Option<String> = None;
        loop {
            let mut page = self.page_of(resource, Some(namespace), form, token).await?;
            let began = began.get_or_insert_with(|| page.resource_version.clone());
            let others = namespaces.after(namespace);
            match (page.next.take(), others) {
                (Some(token), _) => page.next = Some(format!("{namespace}/{token}")),
                (None, [following, ..]) if page.is_empty() => {
                    (namespace, token) = (following, None);
                    continue;
                }
                (None, [following, ..]) => page.next = Some(format!("{following}/")),
                (None, []) => {}
            }
            page.resource_version.clone_from(began);
            if after.is_none() {
                page.total = self.count_in(resource, others, page.total).await?;
            }
            return Ok(page);
        }
    }

    /// How many objects there are: so many, and those of these namespaces. An estimate; `None` if the server
    /// does not report it.
    async fn count_in(
        &self,
        resource: &Resource,
        namespaces: &[String],
        first: Option<u64>,
    ) -> Result<Option<u64>, CallError> {
        let Some(mut total) = first else { return Ok(None) };
        for namespace in namespaces {
            let list = self.list_of_one(resource, Some(namespace)).await?;
            let items = list["items"].as_array().map_or(0, Vec::len) as u64;
            total += items + list["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
        }
        Ok(Some(total))
    }
}
