//! Names of types mean what they mean to kubectl, and an error names what is no custom resource.

use anyhow::{Result, ensure};

use crate::hand::{Hand, things};

#[tokio::test(flavor = "multi_thread")]
async fn a_type_without_a_crd_is_refused_by_name() -> Result<()> {
    let hand = Hand::empty().await?;
    hand.cluster.apply_crd(&things(Some(1))).await?;
    for (kind, expected) in [
        ("deployments", "deployments.apps (Deployment) is not a custom resource"),
        ("deploy", "deployments.apps (Deployment) is not a custom resource"),
        ("deployments.apps", "deployments.apps (Deployment) is not a custom resource"),
        ("pods", "pods (Pod) is not a custom resource"),
        ("widgets", "the server doesn't have a resource type \"widgets\""),
        ("widgets.example.com", "the server doesn't have a resource type \"widgets.example.com\""),
        (
            "thingz",
            "the server doesn't have a resource type \"thingz\"; did you mean things.hand.example.com?",
        ),
        ("things.hand.exmple.com", "did you mean things.hand.example.com?"),
    ] {
        for arguments in [
            &["audit", kind][..],
            &["persist", kind],
            &["persist", kind, "--dry-run"],
            &["explain", kind, "x"],
        ] {
            let reported = hand.refused(arguments)?;
            ensure!(reported.contains(expected), "{arguments:?}: {reported}");
            ensure!(
                reported.contains("did you mean") == expected.contains("did you mean"),
                "{arguments:?}: {reported}"
            );
        }
    }
    // One that is wrong keeps the command from doing anything for the others.
    let reported = hand.refused(&["persist", "things", "deployments"])?;
    ensure!(reported.contains("deployments.apps (Deployment)"), "{reported}");
    for kind in ["things", "thing", "Thing", "things.hand.example.com", "things.v1.hand.example.com"] {
        let ended = hand.etch(&["audit", kind])?;
        ensure!(ended.code == Some(0) && ended.out.contains("things.hand.example.com"), "{kind}: {ended:?}");
    }
    Ok(())
}
