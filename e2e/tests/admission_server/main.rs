//! Admission on a real control plane: the API server asks the operator, and EmbeddedSchemas answer;
//! `upgrades` has the guard.
//!
//! The schemas are the shipped ones for Machines, the CRDs are OpenShift's, and the permissions those of
//! `config/admission`.

mod corpus;
mod existing;
mod fuzz;
mod load;
mod replicas;
mod rotation;
mod stage;
mod upgrades;
mod vectors;

use std::fs;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Answer, Cluster, GUARD, Patch, documents, eventually, parse_documents};
use e2e::install::{kustomize, named, root};
use e2e::operator::Operator;
use e2e::permissions::{Differences, compare, granted, used};
use e2e::scene::NAMESPACE;
use etch_admission::{Declaration, Endpoint, Injection, KeyRing, configurations, is_applied};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};
use stage::{Stage, apply_schema, condition, infrastructure, schema};

const GROUP: &str = "machine.openshift.io";
const MACHINES: &str = "/apis/machine.openshift.io/v1beta1/namespaces/default/machines";
const WEBHOOKS: [&str; 2] = [
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/etch",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/etch",
];

#[tokio::test(flavor = "multi_thread")]
async fn machines_get_defaults_and_verdicts_while_the_operator_is_there() -> Result<()> {
    let stage = Stage::start().await?;
    let cluster = &stage.scene.cluster;
    // From before there was a schema.
    cluster.create(MACHINES, "author", &machine("old", bad())).await?;
    let operator = stage.operator()?;
    apply_schema(cluster, "aws", |_| ()).await?;
    condition(cluster, "aws", "FactsKnown", "AllKnown").await?;
    condition(cluster, "aws", "Serving", "Served").await?;
    denied_soon(cluster).await?;
    nothing_is_left_to_apply(&stage).await?;
    what_others_add_to_a_webhook_goes(&stage).await?;

    every_field_is_named(cluster).await?;
    who_has_no_key_learns_nothing(&stage, &operator).await?;
    defaults_are_stored(cluster, "good", "demo-1").await?;
    an_old_machine_is_left_in_peace(cluster).await?;
    secrets_are_looked_up(&stage).await?;

    // The next request knows.
    infrastructure(cluster, "demo-2", &aws()).await?;
    eventually(GUARD, "the fact has changed", async || {
        let made = dry(cluster, &machine("x", good())).await?.ok()?;
        Ok((label(&made) == "demo-2").then_some(()))
    })
    .await?;
    defaults_are_stored(cluster, "later", "demo-2").await?;

    // What cannot be compiled takes nothing away.
    apply_schema(cluster, "aws", |schema| schema["spec"]["when"] = json!("nothing(")).await?;
    condition(cluster, "aws", "Ready", "Invalid").await?;
    condition(cluster, "aws", "Serving", "LastGoodServed").await?;
    every_field_is_named(cluster).await?;
    apply_schema(cluster, "aws", |_| ()).await?;
    condition(cluster, "aws", "Ready", "Compiled").await?;

    another_certificate_is_served(&stage, &operator).await?;

    // No replica answers, or not in time, and nothing fails.
    operator.pause().await?;
    cluster.create(MACHINES, "author", &machine("hanging", bad())).await?;
    operator.resume().await?;
    operator.stop().await?;
    cluster.create(MACHINES, "author", &machine("meanwhile", bad())).await?;
    who_must_be_answered_sees_the_url(cluster).await?;
    a_wrong_certificate_fails_nothing(&stage).await?;

    // One fact switches from provider to provider.
    let operator = stage.operator()?;
    vectors::each_platform_is_answered_by_its_schema(cluster).await?;

    // They go with their schemas, and with `etch clean`. The installed policy asks about upgrades and
    // migrations.
    for platform in stage::PLATFORMS {
        cluster.delete(&schema(platform)).await?;
    }
    eventually(GUARD, "the webhooks are gone", async || {
        Ok(((webhooks(cluster, 0).await?, webhooks(cluster, 1).await?) == (0, 2)).then_some(()))
    })
    .await?;
    dry(cluster, &machine("x", bad())).await?.ok()?;
    operator.stop().await?;
    what_is_granted_is_needed(&stage)?;
    clean(&stage)
}

/// The API server shows the webhooks as they were applied, so that no replica applies them again and again.
async fn nothing_is_left_to_apply(stage: &Stage) -> Result<()> {
    let cluster = &stage.scene.cluster;
    let spec = cluster.get(&schema("aws")).await?["spec"].take();
    let declared: Declaration = serde_json::from_value(spec)?;
    let endpoint =
        Endpoint { namespace: NAMESPACE.to_owned(), url: Some(stage.serving.url()), inject: Injection::None };
    let authority = fs::read(stage.serving.certificates.join("ca.crt"))?;
    let found = [cluster.get(WEBHOOKS[0]).await?, cluster.get(WEBHOOKS[1]).await?];
    let now = k8s_openapi::jiff::Timestamp::now();
    let keys = KeyRing::next(found.each_ref().map(Some), now, || unreachable!("there is a key"));
    let bodies = configurations(
        [("machine-api-aws", &declared)],
        &etch_admission::GUARDS,
        &endpoint,
        Some(&authority),
        &keys,
    );
    for (body, found) in bodies.into_iter().zip(found) {
        ensure!(is_applied(&body, &found), "{body:#} should be in {found:#}");
    }
    Ok(())
}

/// A condition of another field manager stays where a webhook is applied, and API servers would not ask.
async fn what_others_add_to_a_webhook_goes(stage: &Stage) -> Result<()> {
    let cluster = &stage.scene.cluster;
    for path in WEBHOOKS {
        let conditions = json!([{ "name": "never", "expression": "false" }]);
        let selector = json!({ "matchLabels": { "no": "object" } });
        let added = json!([
            { "op": "add", "path": "/webhooks/0/matchConditions", "value": conditions },
            { "op": "add", "path": "/webhooks/0/objectSelector", "value": selector },
        ]);
        cluster.patch(path, Patch::Json, "somebody", &added).await?.ok()?;
    }
    // The operator looks once a minute, and at once where something else changes.
    let recheck = json!({ "metadata": { "annotations": { "etch-operator.io/recheck": "now" } } });
    cluster.patch(&schema("aws"), Patch::Merge, "author", &recheck).await?.ok()?;
    eventually(GUARD, "the webhooks are as they were", async || {
        Ok(nothing_is_left_to_apply(stage).await.is_ok().then_some(()))
    })
    .await?;
    denied_soon(cluster).await
}

/// A client that reaches the port gets nothing from it; and the key that API servers have is not in the log.
async fn who_has_no_key_learns_nothing(stage: &Stage, operator: &Operator) -> Result<()> {
    let cluster = &stage.scene.cluster;
    for path in ["/mutate/machine-api-aws", "/validate/machine-api-aws", "/validate", "/guard"] {
        let answer = load::post(cluster, stage.serving.address, path).await?;
        ensure!(answer.starts_with("HTTP/1.1 404 ") && answer.ends_with("\r\n\r\n"), "{path}: {answer}");
    }
    let found = cluster.get(WEBHOOKS[1]).await?;
    let url = found["webhooks"][0]["clientConfig"]["url"].as_str().context("a URL")?;
    let key = url.split('/').nth(3).context("a key")?;
    ensure!(key.len() == 64, "{url}");
    let answer = load::post(cluster, stage.serving.address, &format!("/{key}/validate")).await?;
    ensure!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    ensure!(!operator.log()?.contains(key), "the key is in the log");
    Ok(())
}

/// With `failurePolicy: Fail` the API server shows authors the URL that it could not reach, and so the key
/// (D18).
async fn who_must_be_answered_sees_the_url(cluster: &Cluster) -> Result<()> {
    for (policy, code) in [("Fail", 500), ("Ignore", 201)] {
        let mut found = cluster.get(WEBHOOKS[1]).await?;
        let url = found["webhooks"][0]["clientConfig"]["url"].as_str().context("a URL")?.to_owned();
        found["webhooks"][0]["failurePolicy"] = json!(policy);
        let body = serde_json::to_vec(&found)?;
        cluster.send("PUT", WEBHOOKS[1], "application/json", body).await?.ok()?;
        eventually(GUARD, policy, async || {
            let answer = dry(cluster, &machine("x", bad())).await?;
            let shows = answer.body["message"].as_str().is_some_and(|message| message.contains(&url));
            Ok((answer.code == code && shows == (code == 500)).then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// Another certificate, of another authority, without a restart, and without a request that fails.
async fn another_certificate_is_served(stage: &Stage, operator: &Operator) -> Result<()> {
    let cluster = &stage.scene.cluster;
    let before = authority(cluster).await?;
    fs::write(stage.serving.certificates.join("tls.key"), "nonsense")?;
    eventually(GUARD, "the broken file is mentioned", async || {
        dry(cluster, &machine("x", good())).await?.ok()?;
        let text = operator.log()?;
        Ok(text.contains("cannot use the new admission certificate").then_some(()))
    })
    .await?;
    every_field_is_named(cluster).await?;
    stage.serving.certify()?;
    let mut failed = None;
    eventually(GUARD, "the new authority is in place", async || {
        failed = failed.take().or(dry(cluster, &machine("x", good())).await?.ok().err());
        Ok((authority(cluster).await? != before).then_some(()))
    })
    .await?;
    failed.map_or(Ok(()), Err)?;
    denied_soon(cluster).await
}

/// A certificate that no API server trusts: requests pass, until there is one that is trusted.
async fn a_wrong_certificate_fails_nothing(stage: &Stage) -> Result<()> {
    let cluster = &stage.scene.cluster;
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
    fs::write(stage.serving.certificates.join("tls.key"), signing_key.serialize_pem())?;
    fs::write(stage.serving.certificates.join("tls.crt"), cert.pem())?;
    let served = "loaded the admission certificate";
    let before = fs::read_to_string(stage.scene.log_path())?.matches(served).count();
    // What connections there were knew the one before.
    let operator = stage.operator()?;
    eventually(GUARD, "the wrong one is served", async || {
        Ok((operator.log()?.matches(served).count() > before).then_some(()))
    })
    .await?;
    cluster.create(MACHINES, "author", &machine("mistrusted", bad())).await?;
    stage.serving.certify()?;
    denied_soon(cluster).await?;
    operator.stop().await
}

/// Has no request pass that was not asked about.
fn strict(schema: &mut Value) {
    schema["spec"]["webhooks"] =
        json!({ "mutationFailurePolicy": "Fail", "validationFailurePolicy": "Fail" });
}

fn aws() -> Value {
    json!({ "type": "AWS", "aws": { "region": "eu-west-1" } })
}

fn is_of_cert_manager(object: &Value) -> bool {
    object["apiVersion"].as_str().is_some_and(|version| version.starts_with("cert-manager.io/"))
}

#[test]
fn the_overlay_turns_it_on() -> Result<()> {
    let objects = parse_documents(&kustomize("config/admission")?)?;
    let of = |kind, name| named(&objects, kind, name);
    let pod = &of("Deployment", "etch")?["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let environment = container["env"].as_array().context("env")?;
    ensure!(environment.contains(&json!({ "name": "ETCH_ADMISSION_LISTEN", "value": "[::]:8443" })));
    let service = of("Service", "etch-admission")?;
    let port =
        container["ports"].as_array().context("ports")?.iter().find(|port| port["containerPort"] == 8443);
    assert_eq!(service["spec"]["ports"][0]["targetPort"], port.context("no port 8443")?["name"]);
    assert_eq!(container["volumeMounts"][0]["name"], pod["volumes"][0]["name"]);
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/etc/etch/admission");
    let certificate = of("Certificate", "etch-admission")?;
    let authority = of("Certificate", "etch-admission-authority")?;
    assert_eq!(authority["spec"]["isCA"], true);
    let issuer = of("Issuer", certificate["spec"]["issuerRef"]["name"].as_str().context("an issuer")?)?;
    assert_eq!(issuer["spec"]["ca"]["secretName"], authority["spec"]["secretName"]);
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], certificate["spec"]["secretName"]);
    let names = certificate["spec"]["dnsNames"].as_array().context("names")?;
    ensure!(names.contains(&json!(format!("etch-admission.{NAMESPACE}.svc"))), "{names:?}");
    let ports = of("NetworkPolicy", "etch")?["spec"]["ingress"][0]["ports"].as_array().context("ports")?;
    ensure!(ports.iter().any(|port| port["port"] == 8443), "{ports:?}");
    Ok(())
}

/// The service-ca operator makes the Secret that the Service names, and the pods mount that one.
#[test]
fn with_service_ca_nothing_is_left_of_cert_manager() -> Result<()> {
    let objects = parse_documents(&kustomize("config/admission-service-ca")?)?;
    ensure!(!objects.iter().any(is_of_cert_manager), "something is left of cert-manager");
    let of = |kind, name| named(&objects, kind, name);
    let pod = &of("Deployment", "etch")?["spec"]["template"]["spec"];
    let environment = pod["containers"][0]["env"].as_array().context("env")?;
    let inject: Vec<_> =
        environment.iter().filter(|variable| variable["name"] == "ETCH_ADMISSION_INJECT").collect();
    assert_eq!(inject, [&json!({ "name": "ETCH_ADMISSION_INJECT", "value": "service-ca" })]);
    let annotations = &of("Service", "etch-admission")?["metadata"]["annotations"];
    let secret = &annotations["service.beta.openshift.io/serving-cert-secret-name"];
    assert_eq!(&pod["volumes"][0]["secret"]["secretName"], secret);
    ensure!(secret.is_string(), "the Service names no Secret");
    Ok(())
}

/// With certificates of its own, nothing is mounted, and nothing is left of cert-manager.
#[test]
fn self_managed_nothing_is_mounted() -> Result<()> {
    let objects = parse_documents(&kustomize("config/admission-self-managed")?)?;
    ensure!(!objects.iter().any(is_of_cert_manager), "something is left of cert-manager");
    let of = |kind, name| named(&objects, kind, name);
    let pod = &of("Deployment", "etch")?["spec"]["template"]["spec"];
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    ensure!(is_empty(&pod["volumes"]) && is_empty(&pod["containers"][0]["volumeMounts"]), "{pod:#}");
    let environment = pod["containers"][0]["env"].as_array().context("env")?;
    let name = "etch-admission-certificates";
    ensure!(environment.contains(&json!({ "name": "ETCH_ADMISSION_LISTEN", "value": "[::]:8443" })));
    ensure!(environment.contains(&json!({ "name": "ETCH_ADMISSION_CERTIFICATES_SECRET", "value": name })));
    ensure!(
        environment.iter().all(|variable| variable["name"] != "ETCH_ADMISSION_INJECT"),
        "{environment:?}"
    );
    let role = of("Role", name)?;
    assert_eq!(role["rules"][0]["resourceNames"], json!([name]));
    assert_eq!(of("RoleBinding", name)?["roleRef"]["name"], name);
    Ok(())
}

fn machine(name: &str, value: Value) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "Machine",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "providerSpec": { "value": value } },
    })
}

fn good() -> Value {
    let mut value = bad();
    value["ami"] = json!({ "id": "ami-1" });
    value["capacityReservationId"].take();
    value.as_object_mut().into_iter().for_each(|value| value.retain(|_, value| !value.is_null()));
    // Kept as it is, although no schema knows it.
    value["unheardOf"] = json!(0);
    value
}

/// Two faults: no AMI, and a capacity reservation that is none.
fn bad() -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "AWSMachineProviderConfig",
        "capacityReservationId": "none",
        "iamInstanceProfile": { "id": "worker" },
        "subnet": { "id": "subnet-1" },
    })
}

async fn dry(cluster: &Cluster, machine: &Value) -> Result<Answer> {
    let path = format!("{MACHINES}?fieldManager=author&dryRun=All");
    cluster.send("POST", &path, "application/json", serde_json::to_vec(machine)?).await
}

/// API servers use webhooks some time after they were written.
async fn denied_soon(cluster: &Cluster) -> Result<()> {
    eventually(GUARD, "a bad machine is denied", async || {
        let answer = dry(cluster, &machine("x", bad())).await?;
        Ok((answer.code == 422).then_some(()))
    })
    .await
}

async fn every_field_is_named(cluster: &Cluster) -> Result<()> {
    let bad = machine("bad", bad());
    let answer = cluster.send("POST", MACHINES, "application/json", serde_json::to_vec(&bad)?).await?;
    ensure!(answer.code == 422, "{}", answer.body);
    ensure!(answer.body["reason"] == "Invalid", "{}", answer.body);
    let causes = answer.body["details"]["causes"].as_array().context("causes")?;
    let mut fields: Vec<_> = causes.iter().filter_map(|cause| cause["field"].as_str()).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["providerSpec.ami", "providerSpec.capacityReservationId"]);
    let message = answer.body["message"].as_str().context("a message")?;
    ensure!(
        message.contains("Machine.machine.openshift.io \"bad\" is invalid: [")
            && message.contains("providerSpec.ami: Required value: an AMI has to be named by its id"),
        "{message}"
    );
    // A dry run gets the same answer.
    let answer = dry(cluster, &bad).await?;
    assert_eq!(answer.body["message"].as_str(), Some(message));
    Ok(())
}

fn label(machine: &Value) -> &str {
    machine["metadata"]["labels"]["machine.openshift.io/cluster-api-cluster"].as_str().unwrap_or_default()
}

async fn defaults_are_stored(cluster: &Cluster, name: &str, id: &str) -> Result<()> {
    cluster.create(MACHINES, "author", &machine(name, good())).await?;
    let raw = cluster.etcd().raw_object(GROUP, "machines", Some("default"), name).await?;
    let raw = raw.context("the machine is stored")?;
    let mut expected = good();
    expected["instanceType"] = json!("m5.large");
    expected["placement"] = json!({ "region": "eu-west-1" });
    expected["userDataSecret"] = json!({ "name": "worker-user-data" });
    expected["credentialsSecret"] = json!({ "name": "aws-cloud-credentials" });
    assert_eq!(raw["spec"]["providerSpec"]["value"], expected);
    assert_eq!(label(&raw), id);
    Ok(())
}

/// A machine whose faults are older than the schema can be labelled, annotated, finalized and deleted, and
/// nothing else.
async fn an_old_machine_is_left_in_peace(cluster: &Cluster) -> Result<()> {
    let old = format!("{MACHINES}/old");
    let patched = async |body: Value| cluster.patch(&old, Patch::Merge, "author", &body).await;
    for metadata in [
        json!({ "labels": { "a": "b" } }),
        json!({ "annotations": { "a": "b" } }),
        json!({ "finalizers": ["example.com/hold"] }),
    ] {
        patched(json!({ "metadata": metadata })).await?.ok()?;
    }
    // An old fault does not keep a field from changing, a new one does.
    let value = |value: Value| json!({ "spec": { "providerSpec": { "value": value } } });
    patched(value(json!({ "instanceType": "m5.xlarge" }))).await?.ok()?;
    let answer = patched(value(json!({ "instanceType": "" }))).await?;
    ensure!(answer.code == 422, "{}", answer.body);
    cluster.delete(&old).await?;
    patched(json!({ "metadata": { "finalizers": null } })).await?.ok()?;
    let gone = cluster.send("GET", &old, "application/json", Vec::new()).await?;
    assert_eq!(gone.code, 404, "{}", gone.body);
    Ok(())
}

/// Secrets are asked for one by one, and no value of a request is in the log.
async fn secrets_are_looked_up(stage: &Stage) -> Result<()> {
    let asked = stage.scene.requests(|event| event["objectRef"]["resource"] == "secrets")?;
    ensure!(!asked.is_empty(), "no Secret was asked for");
    ensure!(asked.iter().all(|event| event["verb"] == "get"), "{asked:?}");
    let log = fs::read_to_string(stage.scene.log_path())?;
    ensure!(!log.contains("subnet-1") && !log.contains("aws-cloud-credentials"), "a value is in the log");
    Ok(())
}

/// No request was refused, and `config/admission` grants nothing that admission did without.
fn what_is_granted_is_needed(stage: &Stage) -> Result<()> {
    let requests = stage.scene.requests(|event| {
        let resource = event["objectRef"]["resource"].as_str().unwrap_or_default();
        resource == "embeddedschemas" || resource.ends_with("webhookconfigurations")
    })?;
    let role = documents(&root().join("config/admission/role.yaml"))?;
    let differences = compare(&granted(&role)?, &used(&requests));
    ensure!(differences == Differences::default(), "granted and needed differ: {differences:?}");
    Ok(())
}

async fn authority(cluster: &Cluster) -> Result<Value> {
    Ok(cluster.get(WEBHOOKS[1]).await?["webhooks"][0]["clientConfig"]["caBundle"].clone())
}

async fn webhooks(cluster: &Cluster, which: usize) -> Result<usize> {
    Ok(cluster.get(WEBHOOKS[which]).await?["webhooks"].as_array().map_or(0, Vec::len))
}

fn clean(stage: &Stage) -> Result<()> {
    let ended = stage.scene.etch(&["clean"])?;
    ensure!(ended.code == Some(0), "{ended:?}");
    for kind in ["mutating", "validating"] {
        ensure!(ended.out.contains(&format!("{kind}webhookconfiguration/etch: removed")), "{ended:?}");
    }
    Ok(())
}
