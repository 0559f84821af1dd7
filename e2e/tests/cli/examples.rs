//! The examples in the help texts, run verbatim.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::operator::binary;

use crate::process::{etch, file, git, run, text};

/// What examples call beside etch; each prints what they go on with.
const OTHERS: [(&str, &str); 4] = [
    (
        "kubectl",
        r#"case "$*" in *raw*) cat published.json;; apply*) cat > /dev/null;; *) cat object.yaml;; esac"#,
    ),
    ("kustomize", "cat crds.yaml"),
    ("helm", "cat crds.yaml"),
    ("etcdctl", "true"),
];

#[test]
fn examples_do_what_they_show() -> Result<()> {
    let folder = tempfile::tempdir()?;
    prepare(folder.path())?;
    let help = etch(&["--help"])?.out;
    let listed = help.split_once("Commands:").and_then(|(_, rest)| rest.split_once("Options:"));
    let commands: Vec<&str> = listed
        .context("a list of commands")?
        .0
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    ensure!(commands.contains(&"lint") && commands.contains(&"fill"), "{commands:?}");
    let mut count = 0;
    for command in commands.into_iter().filter(|command| *command != "help") {
        let help = etch(&[command, "--help"])?.out;
        let Some((_, examples)) = help.split_once("Examples:\n") else { continue };
        // Where an etcd is asked for, or its backup, there is none here.
        let lines = examples.lines().map(str::trim).take_while(|line| !line.is_empty());
        for example in lines.filter(|example| !example.contains("--etcd-")) {
            let mut shell = Command::new("bash");
            let path = format!("{}:{}", text(folder.path()), std::env::var("PATH")?);
            shell.args(["-o", "pipefail", "-c", example]).env("PATH", path).env("HOME", folder.path());
            let ended = run(
                {
                    shell.current_dir(folder.path());
                    shell
                },
                b"",
            )?;
            let asks_cluster = ended.code == Some(2) && ended.err.contains("KUBECONFIG");
            ensure!(matches!(ended.code, Some(0 | 1)) || asks_cluster, "{example}: {ended:?}");
            count += 1;
        }
    }
    ensure!(count >= 12, "{count} examples only");
    Ok(())
}

#[test]
fn as_a_plugin_it_is_called_kubectl_etch() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let plugin = folder.path().join("kubectl-etch");
    symlink(binary()?, &plugin)?;
    let help = |arguments: &[&str]| {
        let mut command = Command::new(&plugin);
        command.args(arguments);
        run(command, b"")
    };
    ensure!(help(&["--help"])?.out.contains("Usage: kubectl etch [OPTIONS] <COMMAND>"));
    ensure!(help(&["lint", "--help"])?.out.contains("Usage: kubectl etch lint "));
    let wrong = help(&["lint"])?;
    ensure!(wrong.code == Some(2) && wrong.err.contains("see `kubectl etch lint --help`"), "{wrong:?}");
    ensure!(etch(&["lint", "--help"])?.out.contains("Usage: etch lint "));
    Ok(())
}

#[test]
fn version_says_what_it_is_for() -> Result<()> {
    ensure!(etch(&["version"])?.out.starts_with(concat!(
        "etch ",
        env!("CARGO_PKG_VERSION"),
        ", for Kubernetes 1.34 to 1.37"
    )));
    ensure!(etch(&["version", "-o", "json"])?.json()?["kubernetes"]["newest"] == "1.37");
    Ok(())
}

/// The files that the examples name, and the programs that they call.
fn prepare(folder: &Path) -> Result<()> {
    let objects: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(file("openapi/objects.json"))?)?;
    let object = |kind: &str| {
        let all = objects.as_array().into_iter().flatten().map(|pair| &pair["object"]);
        all.into_iter().find(|object| object["kind"] == kind).map(ToString::to_string).context("an object")
    };
    fs::write(folder.join("crds.yaml"), object("CustomResourceDefinition")?)?;
    fs::write(folder.join("object.yaml"), object("CronTab")?)?;
    fs::write(folder.join("deployment.yaml"), object("Deployment")?)?;
    for copy in ["published.json", "apps-v1.json", "v1.36/apps-v1.json", "v1.37/apps-v1.json"] {
        let copy = folder.join(copy);
        fs::create_dir_all(copy.parent().context("a folder")?)?;
        fs::copy(file("openapi/apps-v1.json"), copy)?;
    }
    let exceptions =
        "exceptions:\n- {code: ETCH303, path: .spec.mode, reason: no release has written the value}\n";
    fs::write(folder.join("exceptions.yaml"), exceptions)?;
    for copy in ["config/crd/crds.yaml", "crds/crds.yaml", "old.yaml", "new.yaml"] {
        let copy = folder.join(copy);
        fs::create_dir_all(copy.parent().context("a folder")?)?;
        fs::copy(folder.join("crds.yaml"), copy)?;
    }
    revision(folder)?;
    fs::create_dir_all(folder.join("objects"))?;
    fs::copy(folder.join("object.yaml"), folder.join("objects/object.yaml"))?;
    fs::create_dir_all(folder.join("api/v1"))?;
    fs::write(
        folder.join("api/v1/types.go"),
        "package v1\n\ntype Spec struct {\n\tName string `json:\"name\"`\n}\n",
    )?;
    prepare_admission(folder)?;
    fs::create_dir_all(folder.join(".zfunc"))?;
    fs::create_dir_all(folder.join(".config/fish/completions"))?;
    symlink(binary()?, folder.join("etch"))?;
    for (name, script) in OTHERS {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// A revision of the CRDs, by the names that examples give it.
fn revision(folder: &Path) -> Result<()> {
    for line in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "config"],
        &["commit", "--quiet", "--message=CRDs"],
        &["tag", "v1.2"],
    ] {
        ensure!(git(folder, line)?.code == Some(0), "git {line:?}");
    }
    Ok(())
}

/// A provider's EmbeddedSchema with what is known of a cluster, a schema without facts, and a Machine.
fn prepare_admission(folder: &Path) -> Result<()> {
    for name in ["aws.yaml", "provider.yaml"] {
        fs::copy(file("../yaml/machine-api/aws.yaml"), folder.join(name))?;
    }
    let facts = serde_json::json!({
        "clusterID": "demo", "region": "eu-west-1", "arch": "amd64", "dnsDisconnected": false,
        "featureGates": {},
        "platformStatus": { "type": "AWS", "aws": { "region": "eu-west-1" } },
    });
    fs::write(folder.join("facts.json"), facts.to_string())?;
    let machine = serde_json::json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": "worker", "namespace": "openshift-machine-api" },
        "spec": { "providerSpec": { "value": { "ami": { "id": "ami-1" } } } },
    });
    for name in ["machine.yaml", "before.yaml", "after.yaml"] {
        fs::write(folder.join(name), machine.to_string())?;
    }
    fs::write(folder.join("requests.jsonl"), serde_json::json!({ "object": machine }).to_string())?;
    let small = serde_json::json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "EmbeddedSchema", "metadata": { "name": "small" },
        "spec": {
            "targets": [{
                "group": "machine.openshift.io", "version": "v1beta1", "resource": "machines",
                "path": ".spec.providerSpec.value",
            }],
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "size": { "type": "string", "default": "small" },
            } } },
        },
    });
    fs::create_dir_all(folder.join("schemas"))?;
    fs::write(folder.join("schemas/small.yaml"), small.to_string())?;
    Ok(())
}
