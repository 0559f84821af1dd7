//! Where commands and the guard read objects: one way for all sources.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use etch::cluster::{ObjectSource, Shown};
use etch_core::crd::Resource;
use etch_core::object::Object;
use etch_core::scope::Scope;
use futures::StreamExt;

use super::lists::{page, thing, things};
use super::requests::not_found;
use super::server::{Answer, serve};

/// Each page of the resources, in short: which resource it is of, and its objects, or the error.
async fn read(source: &ObjectSource, resources: Vec<Resource>) -> Vec<String> {
    let pages = source.pages(resources, &Scope::All).map(|page| match page {
        Ok(page) => {
            let names: Vec<&str> = page.objects.iter().map(name).collect();
            format!("{}: {}", page.of, names.join(" "))
        }
        Err(error) => format!("{:?}", error.code()),
    });
    pages.collect().await
}

fn name(shown: &Shown) -> &str {
    match shown {
        Shown::View(object) | Shown::Written(object) => object.name(),
        Shown::Stored(identity, _) => &identity.name,
    }
}

fn others() -> Resource {
    Resource::new("example.com", "v1", "others")
}

#[tokio::test(start_paused = true)]
async fn resources_are_listed_one_after_the_other() {
    let (cluster, log) = serve(|request| match request.path.contains("/others") {
        true => page(9, "", [thing("c", 3)]),
        false if request.query.contains_key("continue") => page(8, "", [thing("b", 2)]),
        false => page(8, "token", [thing("a", 1)]),
    });
    let read = read(&ObjectSource::from(cluster), vec![things(), others()]).await;
    assert_eq!(read, ["0: a", "0: b", "1: c"]);
    let asked: Vec<bool> = log.all().iter().map(|request| request.path.contains("/others")).collect();
    assert_eq!(asked, [false, false, true]);
}

#[tokio::test(start_paused = true)]
async fn the_pages_of_a_resource_end_with_its_error() {
    let (cluster, _) = serve(|request| match request.path.contains("/others") {
        true => page(9, "", [thing("c", 3)]),
        false if request.query.contains_key("continue") => not_found("things"),
        false => page(8, "token", [thing("a", 1)]),
    });
    let read = read(&ObjectSource::from(cluster), vec![things(), others()]).await;
    assert_eq!(read, ["0: a", "Some(404)", "1: c"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_restarts_between_pages_is_waited_for() {
    let refused = AtomicU32::new(0);
    let (cluster, log) = serve(move |request| match request.query.contains_key("continue") {
        true if refused.fetch_add(1, Ordering::Relaxed) < 3 => Answer::Refuse,
        true => page(8, "", [thing("b", 2)]),
        false => page(8, "token", [thing("a", 1)]),
    });
    assert_eq!(read(&ObjectSource::from(cluster), vec![things()]).await, ["0: a", "0: b"]);
    assert_eq!(log.all().len(), 5);

    let (cluster, log) = serve(|_| Answer::Refuse);
    assert_eq!(read(&ObjectSource::from(cluster), vec![things()]).await, ["None"]);
    assert_eq!(log.all().len(), 1, "there is no server");
}

#[tokio::test]
async fn files_are_read_by_group_and_plural() {
    let object = |name| Object::from(thing(name, 1));
    let key = ("example.com".to_owned(), "things".to_owned());
    let source = ObjectSource::Files(BTreeMap::from([(key, vec![object("a"), object("b")])]));
    let older = Resource::new("example.com", "v1alpha1", "things");
    assert_eq!(read(&source, vec![others(), older]).await, ["0: ", "1: a b"]);
    assert!(source.stored(&things(), Some("ns"), "a").await.expect("nothing is asked").is_none());
}
