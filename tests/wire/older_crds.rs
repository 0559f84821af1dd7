//! Etch beside CRDs of an older Etch, which do not declare all that it reports.

use super::server::{Answer, Request};
use super::world::{MINUTE, World, operate};

const STORED: &str = "True AllPersisted: 1 of 1 object stores its defaults";
const UNREPORTED: &str = "False InProgress: nothing is stored before the DefaultsReport names the defaults, \
    and it cannot be written, see Etch's log; retrying";

fn is_of_report(request: &Request) -> bool {
    request.method == "PATCH" && request.path.ends_with("/defaultsreports/things.example.com/status")
}

/// What a server answers to an apply of a field that the CRD's schema does not have.
fn undeclared() -> Answer {
    let message = "failed to create typed patch object (/things.example.com; etch-operator.io/v1alpha1, \
                   Kind=DefaultsReport): .status.canary: field not declared in schema";
    Answer::status(500, "", message)
}

#[tokio::test(start_paused = true)]
async fn a_report_that_older_crds_do_not_declare_is_named_on_the_crd_until_they_are_applied() {
    let world = World::with(&["a"]);
    world.fails(|request| is_of_report(request).then(undeclared));
    let (cluster, _) = world.serve();
    let operator = tokio::spawn(operate(cluster, 30 * MINUTE));
    tokio::time::sleep(5 * MINUTE).await;
    assert!(!world.is_persisted("a"));
    assert_eq!(
        world.persisted(),
        format!(
            "{UNREPORTED}; the DefaultsReport cannot be written, because the cluster has the CRDs of an \
             older Etch; apply those of this version: `etch crds | kubectl apply -f -`"
        )
    );
    world.heals();
    tokio::time::sleep(10 * MINUTE).await;
    assert!(world.is_persisted("a"));
    assert_eq!(world.persisted(), STORED);
    assert_eq!(world.report("things.example.com").expect("a report")["status"]["state"], "AllPersisted");
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_stored_before_the_report_names_the_defaults() {
    let world = World::with(&["a"]);
    let fails = |request: &Request| is_of_report(request).then(|| Answer::status(500, "", "no leader"));
    world.fails(fails);
    let (operator, _) = world.operates(30 * MINUTE);
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!((world.is_persisted("a"), world.persisted()), (false, UNREPORTED.to_owned()));
    world.heals();
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!((world.is_persisted("a"), world.persisted()), (true, STORED.to_owned()));
    // What a report is known to name is stored whether or not it can be written again.
    world.fails(fails);
    world.put_unfilled("things", "b");
    tokio::time::sleep(5 * MINUTE).await;
    assert!(world.is_persisted("b"), "{}", world.persisted());
    operator.await.expect("it ends by itself");
}
