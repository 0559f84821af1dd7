//! Broken input that may hold a secret: its reader reports what is wrong, and shows nothing of it.
//!
//! Each flag of `flags.json` that takes a file of YAML, JSON or PEM is given each broken one. Certificates of
//! the admission server have a test of their own, beside their reader.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use e2e::operator::binary;
use serde_json::{Value, json};

use crate::process::run;

/// What no output may contain, also not as base64.
const MARKER: &str = "SECRETMARKER4711";
const ENCODED: &str = "U0VDUkVUTUFSS0VSNDcxMQ";

/// Texts in which something is broken, for every reader of files.
const BROKEN: [(&str, &str); 33] = [
    ("flow", "users:\n- name: u\n  user:\n    token: MARKER\n   x: [\n"),
    ("plain", "MARKER"),
    ("list", "- MARKER\n- MARKER\n"),
    ("quoted", "a: \"MARKER\n"),
    ("colons", "a: MARKER: b: c\n"),
    ("tab", "a:\n\tb: MARKER\n"),
    ("alias", "a: &a MARKER\nb: *b\n"),
    ("unknown alias", "a: *MARKER\n"),
    ("tag", "a: !MARKER {b\n"),
    ("directive", "%MARKER\n"),
    ("twice", "MARKER: 1\nMARKER: 2\n"),
    ("merge", "<<: MARKER\n"),
    ("key", "? [MARKER]\n: 1\n"),
    ("binary", "a: !!binary MARKER\n"),
    ("bracket", "[MARKER}\n"),
    ("json", "{\"a\": \"MARKER\""),
    ("json twice", "{\"MARKER\": 1, \"MARKER\": 2}"),
    ("json trailing", "{\"a\": 1} MARKER"),
    ("json number", "{\"a\": 1MARKER}"),
    ("json items", "{\"apiVersion\": \"v1\", \"kind\": \"SecretList\", \"items\": \"MARKER\"}"),
    ("json text", "\"MARKER\""),
    ("secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: [MARKER]}\nstringData: {password: MARKER}\n"),
    (
        "mode",
        "apiVersion: etch-operator.io/v1alpha1\nkind: DefaultsPolicy\nmetadata: {name: a}\nspec: {mode: \
         MARKER}\n",
    ),
    (
        "selector",
        "apiVersion: etch-operator.io/v1alpha1\nkind: DefaultsPolicy\nmetadata: {name: a}\nspec: {selector: \
         MARKER}\n",
    ),
    (
        "rate",
        "apiVersion: etch-operator.io/v1alpha1\nkind: DefaultsPolicy\nmetadata: {name: a}\nspec: \
         {maxWritesPerSecond: MARKER}\n",
    ),
    (
        "change",
        "apiVersion: etch-operator.io/v1alpha1\nkind: DefaultsPolicy\nmetadata: {name: a}\nspec: {onChange: \
         [{path: .a, action: MARKER}]}\n",
    ),
    (
        "spec",
        "apiVersion: etch-operator.io/v1alpha1\nkind: DefaultsPolicy\nmetadata: {name: a}\nspec: MARKER\n",
    ),
    (
        "enforcement",
        "apiVersion: etch-operator.io/v1alpha1\nkind: EmbeddedSchema\nmetadata: {name: a}\nspec: {targets: \
         [], enforcement: MARKER}\n",
    ),
    (
        "targets",
        "apiVersion: etch-operator.io/v1alpha1\nkind: EmbeddedSchema\nmetadata: {name: a}\nspec: {targets: \
         MARKER}\n",
    ),
    ("exception", "exceptions: [{code: MARKER, path: .a, reason: x}]\n"),
    ("exceptions", "exceptions: MARKER\n"),
    ("request", "{\"object\": {\"kind\": \"A\"}, \"operation\": \"MARKER\"}"),
    ("secrets", "{\"object\": {\"kind\": \"A\"}, \"secrets\": \"MARKER\"}"),
];

/// Every way in which a file is read, `FILE` in its place.
const READERS: [&[&str]; 28] = [
    &["lint", "FILE"],
    &["lint", "crd.yaml", "--old", "FILE"],
    &["lint", "crd.yaml", "--exceptions", "FILE"],
    &["lint", "--openapi", "FILE"],
    &["fill", "--crd", "FILE", "object.yaml"],
    &["fill", "--crd", "crd.yaml", "FILE"],
    &["fill", "--openapi", "FILE", "object.yaml"],
    &["impact", "-f", "crd.yaml", "--old", "crd.yaml", "--policy", "FILE"],
    &["impact", "-f", "FILE", "--old", "crd.yaml"],
    &["impact", "-f", "crd.yaml", "--old", "FILE"],
    &["impact", "-f", "crd.yaml", "--old", "crd.yaml", "--objects", "FILE"],
    &["impact", "--openapi", "FILE"],
    &["audit", "--policy", "FILE"],
    &["explain", "a", "b", "--policy", "FILE"],
    &["revert", "x", "--to", "FILE"],
    &["explain", "--openapi", "FILE", "a"],
    &["rbac", "FILE"],
    &["rbac", "crd.yaml", "--policy", "FILE"],
    &["admit", "--schema", "FILE", "object.yaml"],
    &["admit", "--schema", "schema.yaml", "FILE"],
    &["admit", "--schema", "schema.yaml", "--operation", "UPDATE", "--old", "FILE", "object.yaml"],
    &["admit", "--schema", "schema.yaml", "--facts", "FILE", "object.yaml"],
    &["admit", "--schema", "schema.yaml", "--requests", "FILE"],
    &["audit", "--etcd-snapshot", "FILE"],
    &["audit", "--etcd-endpoints", "https://127.0.0.1:1", "--etcd-cacert", "FILE"],
    &["audit", "--etcd-endpoints", "https://127.0.0.1:1", "--etcd-cert", "FILE", "--etcd-key", "FILE"],
    &["audit", "--kubeconfig", "FILE"],
    &["run", "--kubeconfig", "FILE", "--listen=127.0.0.1:0"],
];

/// Commands that look for a cluster. The operator goes on looking.
const CONNECTING: [&[&str]; 8] = [
    &["audit"],
    &["persist", "x"],
    &["revert", "x"],
    &["explain", "a", "b"],
    &["rbac"],
    &["clean"],
    &["status"],
    &["lint", "--live"],
];

/// A kubeconfig that is one in form.
fn kubeconfig(cluster: &Value, user: &Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{ "name": "a", "cluster": cluster }], "users": [{ "name": "a", "user": user }],
        "contexts": [{ "name": "a", "context": { "cluster": "a", "user": "a" } }],
    })
    .to_string()
}

/// Kubeconfigs in which a part that holds a secret cannot be used.
fn kubeconfigs() -> Vec<(String, String)> {
    // No process listens there.
    let server = json!({ "server": "https://127.0.0.1:1" });
    let with = |field: &str, value: Value| {
        let mut cluster = server.clone();
        cluster[field] = value;
        cluster
    };
    let exec = |script: &str| {
        json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
            "interactiveMode": "Never",
        } })
    };
    let pem = |label: &str| format!("-----BEGIN {label}-----\n{ENCODED}==\n-----END {label}-----\n");
    let base64 =
        |text: &str| serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec())).expect("base64");
    let of_cluster = [
        ("server", json!({ "server": MARKER })),
        ("server with a password", json!({ "server": format!("https://u:{MARKER}@:x") })),
        ("server without a host", json!({ "server": format!("/{MARKER}") })),
        ("authority", with("certificate-authority-data", json!(format!("{MARKER}!")))),
        ("authority of nonsense", with("certificate-authority-data", base64(&pem("CERTIFICATE")))),
        ("authority that is a file", with("certificate-authority", json!(MARKER))),
        ("proxy", with("proxy-url", json!(format!("ftp://u:{MARKER}@h")))),
        ("proxy that is no URL", with("proxy-url", json!(format!("{MARKER} {MARKER}")))),
        ("switch", with("insecure-skip-tls-verify", json!(MARKER))),
    ];
    let key = json!({
        "client-certificate-data": base64(&pem("CERTIFICATE")),
        "client-key-data": base64(&pem("PRIVATE KEY")),
    });
    let of_user = [
        ("token of another type", json!({ "token": [MARKER] })),
        ("token of two lines", json!({ "token": format!("{MARKER}\n{MARKER}") })),
        ("token file", json!({ "tokenFile": MARKER })),
        ("password", json!({ "username": "u", "password": format!("{MARKER}\n{MARKER}") })),
        ("certificate", json!({ "client-certificate-data": format!("{MARKER}!"), "client-key-data": "" })),
        ("key", json!({ "client-certificate-data": "", "client-key-data": format!("{MARKER}!") })),
        ("key that is a file", json!({ "client-certificate": MARKER, "client-key": MARKER })),
        ("key of nonsense", key),
        ("plugin that fails", exec(&format!("echo {MARKER}; echo {MARKER} >&2; exit 1"))),
        ("plugin that prints nonsense", exec(&format!("echo '{{\"status\": {MARKER}'"))),
        (
            "plugin that prints another type",
            exec(&format!("echo '{{\"kind\": \"ExecCredential\", \"status\": \"{MARKER}\"}}'")),
        ),
        (
            "plugin that is none",
            json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": MARKER } }),
        ),
        ("provider", json!({ "auth-provider": { "name": MARKER, "config": { "token": MARKER } } })),
    ];
    let clusters =
        of_cluster.into_iter().map(|(name, cluster)| (name.to_owned(), kubeconfig(&cluster, &json!({}))));
    let users = of_user.into_iter().map(|(name, user)| (name.to_owned(), kubeconfig(&server, &user)));
    clusters.chain(users).collect()
}

fn prepare(folder: &Path) -> Result<()> {
    let spec = json!({ "type": "object", "properties": { "a": { "type": "string", "default": "x" } } });
    let crd = e2e::cluster::crd(
        "leaks.example.com",
        "Leak",
        &[("v1", true, json!({ "type": "object", "properties": { "spec": spec } }))],
    );
    fs::write(folder.join("crd.yaml"), crd.to_string())?;
    let object = json!({
        "apiVersion": "leaks.example.com/v1", "kind": "Leak", "metadata": { "name": "a" }, "spec": {},
    });
    fs::write(folder.join("object.yaml"), object.to_string())?;
    let schema = json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "EmbeddedSchema", "metadata": { "name": "a" },
        "spec": {
            "targets": [{
                "group": "leaks.example.com", "version": "v1", "resource": "leaks", "path": ".spec",
            }],
        },
    });
    fs::write(folder.join("schema.yaml"), schema.to_string())?;
    Ok(())
}

/// Runs `etch` in a folder; nothing of the input may be in what it prints.
fn shows_nothing(folder: &Path, what: &str, line: &[String], environment: &[(&str, &str)]) -> Result<()> {
    let mut command = Command::new("timeout");
    command.arg("60").arg("env").args(environment.iter().map(|(name, value)| format!("{name}={value}")));
    command.arg(binary()?).args(line).current_dir(folder);
    let ended = run(command, b"")?;
    // A user who asks for an object with its defaults gets it, if it can be read.
    let is_answer = ["fill", "admit"].contains(&&*line[0]) && ended.code != Some(2);
    for text in [Some(&ended.err), Some(&ended.out).filter(|_| !is_answer)].into_iter().flatten() {
        ensure!(
            !text.contains(MARKER) && !text.contains(ENCODED),
            "{what}: `etch {}`: {text}",
            line.join(" ")
        );
    }
    ensure!(ended.code != Some(101), "{what}: `etch {}` panicked: {}", line.join(" "), ended.err);
    Ok(())
}

#[test]
fn no_reader_shows_anything_of_an_input_that_is_broken() -> Result<()> {
    let folder = tempfile::tempdir()?;
    prepare(folder.path())?;
    for (what, text) in BROKEN {
        fs::write(folder.path().join("broken.yaml"), text.replace("MARKER", MARKER))?;
        for reader in READERS {
            let line: Vec<String> = reader.iter().map(|word| word.replace("FILE", "broken.yaml")).collect();
            shows_nothing(folder.path(), what, &line, &[])?;
        }
    }
    Ok(())
}

#[test]
fn no_command_shows_anything_of_a_kubeconfig_that_cannot_be_used() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("config");
    let texts = BROKEN.iter().map(|(what, text)| ((*what).to_owned(), text.replace("MARKER", MARKER)));
    for (index, (what, text)) in texts.chain(kubeconfigs()).enumerate() {
        fs::write(&path, text)?;
        // Each command, in turn, by one of the ways to name it.
        let line: Vec<String> =
            CONNECTING[index % CONNECTING.len()].iter().map(ToString::to_string).collect();
        let by_name = [line.clone(), vec!["--kubeconfig=config".to_owned()]].concat();
        shows_nothing(folder.path(), &what, &by_name, &[])?;
        let audit = ["audit".to_owned()];
        shows_nothing(
            folder.path(),
            &what,
            &audit,
            &[("KUBECONFIG", "config"), ("ETCH_LOG", "trace,kube_client::config=trace")],
        )?;
        let context = ["audit".to_owned(), "--context=a".to_owned()];
        shows_nothing(folder.path(), &what, &context, &[("KUBECONFIG", "config")])?;
    }
    Ok(())
}
