//! What a pass would do to each object.

use etch::cluster::ObjectSource;
use etch_answers::persist::Plans;
use etch_core::crd::Crd;
use etch_core::engine::by_hand::Passed;
use etch_core::engine::stage::is_left_out;
use etch_core::plan::Record;
use futures::TryStreamExt;

use super::{Persist, Work};
use crate::commands::of_list;

impl Persist {
    /// What a pass would do to each object, and in numbers.
    pub(super) async fn plan(
        &self,
        work: &Work<'_>,
        crd: &Crd,
        record: &Record,
        after: Option<&String>,
    ) -> anyhow::Result<(Passed, Plans)> {
        let (mut passed, mut plans) = (Passed::default(), Plans::new(self.limit.of(self.output)));
        let (source, terms) = (ObjectSource::from(work.cluster.clone()), self.terms());
        let mut pages = source.pages(vec![crd.resource()], &work.scope);
        while let Some(page) = pages.try_next().await.map_err(of_list)? {
            for object in page.views() {
                if is_left_out(&object, after) {
                    passed.left_out += 1;
                } else {
                    plans.plan(&mut passed.counts, &object, crd, &terms, record);
                }
            }
        }
        passed.verified = passed.left_out == 0;
        Ok((passed, plans))
    }
}
