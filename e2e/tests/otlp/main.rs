//! Traces over OTLP: the operator built with the feature `otlp`, on a real control plane, beside a collector
//! of every kind.

mod collector;
mod protobuf;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use e2e::admission::freeze;
use e2e::cluster::{Cluster, GUARD, crd, eventually};
use e2e::operator::{Operator, binary_with};
use e2e::scene::Scene;
use serde_json::{Value, json};

use self::collector::{Collector, Manner, Span};

const GROUP: &str = "stable.example.com";
const CRD: &str = "crontabs.stable.example.com";
const SOON: Duration = GUARD;
const CANARY: &str = "hunter2";

#[tokio::test(flavor = "multi_thread")]
async fn passes_and_writes_are_exported_and_no_collector_is_in_the_way() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let binary = binary_with("etch/otlp", folder.path())?;
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&crontabs(0)).await?;
    for name in ["one", "two", "frozen"] {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "CronTab", "metadata": { "name": name },
            "spec": { "schedule": CANARY },
        });
        cluster.create(&objects(), "creator", &object).await?;
    }
    frozen(cluster).await?;
    let collector = Collector::start(Manner::Refuse).await?;

    // A collector that refuses is logged once, and what it misses is lost.
    let operator = start(&scene, &binary, &collector, "100")?;
    cluster.apply_crd(&crontabs(1)).await?;
    cluster.persisted(CRD, "ObjectsRejected", SOON).await?;
    eventually(SOON, "an export that is tried again and again", async || {
        Ok((collector.asked() > 2).then_some(()))
    })
    .await?;
    let reported = "cannot export traces; continuing without them";
    assert_eq!(operator.log()?.matches(reported).count(), 1);

    collector.behave(Manner::Take);
    cluster.apply_crd(&crontabs(2)).await?;
    let spans = eventually(SOON, "a pass is exported", async || {
        let spans = collector.spans();
        Ok(spans.iter().any(|span| span.name == "pass").then_some(spans))
    })
    .await?;
    assert!(operator.log()?.contains("exporting traces again"));
    a_whole_pass(&spans);

    // One that never answers holds up neither the writes nor the end.
    collector.behave(Manner::Hang);
    cluster.apply_crd(&crontabs(3)).await?;
    cluster.persisted(CRD, "ObjectsRejected", SOON).await?;
    operator.stop().await?;

    // What still waits at the end is exported then.
    collector.behave(Manner::Take);
    let (asked, spans) = (collector.asked(), collector.spans().len());
    let operator = start(&scene, &binary, &collector, "3600000")?;
    cluster.apply_crd(&crontabs(4)).await?;
    cluster.persisted(CRD, "ObjectsRejected", SOON).await?;
    assert_eq!(collector.asked(), asked);
    operator.stop().await?;
    let writes = collector.spans()[spans..].iter().filter(|span| span.name == "write").count();
    assert!(writes >= 3, "{writes}");
    assert!(!collector.was_sent(CANARY));
    Ok(())
}

#[test]
fn what_cannot_be_exported_is_told_and_quotes_no_password() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let binary = binary_with("etch/otlp", folder.path())?;
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "a protocol other than http/protobuf"),
        (
            &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://user:hunter2@[")],
            "cannot use OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and the related variables",
        ),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")], ""),
        (&[endpoint, ("OTEL_SDK_DISABLED", "true")], ""),
        (&[endpoint], ""),
    ];
    for (environment, expected) in cases {
        let mut command = Command::new(&binary);
        command.args(["run", "--kubeconfig", "/nonexistent"]).envs(environment.iter().copied());
        let ended = command.output()?;
        assert_eq!(ended.status.code(), Some(2), "the operator begins, and has no cluster");
        let reported = String::from_utf8(ended.stderr)?;
        assert!(reported.contains(expected) && !reported.contains(CANARY), "{environment:?}: {reported}");
        assert_eq!(
            reported.contains("not exporting traces"),
            !expected.is_empty(),
            "{environment:?}: {reported}"
        );
    }
    Ok(())
}

/// Checks what was exported of a pass over three objects, of which one is refused.
fn a_whole_pass(spans: &[Span]) {
    let pass = spans.iter().find(|span| span.name == "pass").expect("a pass");
    let has = |span: &Span, expected: &[(&str, &str)]| {
        for (name, value) in expected {
            assert_eq!(span.attributes.get(*name).map(String::as_str), Some(*value), "{name} of {span:?}");
        }
    };
    has(
        pass,
        &[
            ("crd", CRD),
            ("policy", "default"),
            ("objects", "3"),
            ("written", "2"),
            ("rejected", "1"),
            ("outcome", "Finished"),
            ("reason", "ObjectsRejected"),
        ],
    );
    assert!(pass.parent.is_empty() && !pass.failed);
    let resource = |name: &str| pass.resource.get(name).map(String::as_str);
    assert_eq!(resource("service.name"), Some("etch"));
    assert_eq!(resource("service.version"), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(resource("deployment.environment.name"), Some("test"));

    let within = |name: &str, outer: &Span| -> Vec<&Span> {
        let found = spans.iter().filter(|span| span.name == name && span.parent == outer.id);
        found.inspect(|span| assert_eq!(span.trace, outer.trace)).collect()
    };
    let sweeps = within("sweep", pass);
    let [first, verifying] = sweeps[..] else { panic!("{sweeps:?}") };
    has(first, &[("crd", CRD), ("verifies", "false"), ("objects", "3"), ("written", "2")]);
    has(verifying, &[("verifies", "true"), ("objects", "3"), ("written", "0")]);
    let pages = within("page", first);
    let [page] = pages[..] else { panic!("{pages:?}") };
    has(page, &[("number", "1"), ("objects", "3")]);
    assert_eq!(
        page.events.iter().filter(|event| *event == "stored defaults").count(),
        2,
        "{:?}",
        page.events
    );
    let writes = within("write", page);
    for (object, outcome) in [("one", "Written"), ("two", "Written"), ("frozen", "Rejected")] {
        let object = format!("default/{object}");
        let write = writes.iter().find(|write| write.attributes["object"] == object).expect("a write");
        has(write, &[("crd", CRD), ("decision", "Apply"), ("attempt", "1"), ("outcome", outcome)]);
        let reason = (outcome == "Rejected").then_some("ValidatingAdmissionPolicy freeze refused it");
        assert_eq!(write.attributes.get("reason").map(String::as_str), reason);
        assert_eq!(write.failed, reason.is_some());
    }
}

/// Starts an operator that exports; spans wait for the delay, in milliseconds.
fn start(scene: &Scene, binary: &Path, collector: &Collector, delay: &str) -> Result<Operator> {
    let endpoint = collector.endpoint();
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
        ("OTEL_BSP_SCHEDULE_DELAY", delay),
    ];
    scene.operator_of(binary, delay, &environment)
}

/// A CRD with this many defaults.
fn crontabs(defaults: usize) -> Value {
    let mut spec = json!({ "type": "object", "properties": { "schedule": { "type": "string" } } });
    for index in 0..defaults {
        spec["properties"][format!("default{index}")] = json!({ "type": "integer", "default": index });
    }
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    crd(GROUP, "CronTab", &[("v1", true, schema)])
}

/// Refuses every change of the object `frozen`, with a message that quotes its content.
async fn frozen(cluster: &Cluster) -> Result<()> {
    let validation = json!({
        "expression": "object.metadata.name != 'frozen'",
        "messageExpression": "'frozen at ' + object.spec.schedule",
    });
    freeze(cluster, GROUP, "crontabs", &format!("{}/frozen", objects()), validation).await
}

fn objects() -> String {
    format!("/apis/{GROUP}/v1/namespaces/default/crontabs")
}
