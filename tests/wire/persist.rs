//! A pass by hand.

use std::sync::Arc;

use etch::cluster::{Pace, PaceMode, Scope};
use etch::operator::{self, Pass};
use etch_core::crd::Crd;
use etch_core::plan::{Record, Terms};
use tokio_util::sync::CancellationToken;

use super::world::{CRDS, World};

#[tokio::test(start_paused = true)]
async fn a_record_from_before_a_restore_of_etcd_proves_nothing() {
    let world = World::with(&["a"]);
    let (cluster, _) = world.serve();
    let document = world.stored(CRDS, "things.example.com").expect("the CRD");
    let crd = Arc::new(Crd::read(&document.into()).expect("it can be read"));
    let pass = Pass {
        record: Record { through: Some(u64::MAX), ..Record::empty(&crd) },
        crd,
        scope: Scope::All,
        terms: Terms::default(),
        after: None,
        pace: Arc::new(Pace::new(1, None, PaceMode::Gentle)),
        ended: CancellationToken::new(),
    };
    let passed = operator::persist(&cluster, pass, &mut |_| ()).await.expect("it comes to its end");
    assert!(passed.verified && passed.proved.is_some());
    assert_eq!(passed.counts.written, 1);
    assert!(world.is_persisted("a"));
}
