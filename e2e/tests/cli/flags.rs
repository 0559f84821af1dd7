//! Each flag of each command, given what it cannot use: one clear line, exit status 2, and never a panic.
//!
//! `flags.json` has the values that each flag takes; a test of the command line compares it with the real
//! flags, so that a flag which is not tried here fails there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::operator::binary;
use serde_json::{Value, json};

use crate::process::{Ended, file, run};

/// Commands, their flags, and what those take.
type Flags = BTreeMap<String, BTreeMap<String, String>>;

/// A value that a flag cannot use, and a part of the error about it.
type Trial = (&'static str, &'static str);

/// How many values of the fuzzer's each flag is given.
const VALUES: usize = 12;

fn flags() -> Result<Flags> {
    Ok(serde_json::from_str(include_str!("flags.json"))?)
}

/// What cannot be used where such a thing is expected. Files are those of [`prepare`].
fn trials(takes: &str) -> Option<&'static [Trial]> {
    Some(match takes {
        "crds" => &[
            ("missing.yaml", "missing.yaml: cannot be read: No such file"),
            ("deployment.yaml", "contains no CustomResourceDefinition: found Deployment of apps/v1"),
            ("nonsense.yaml", "nonsense.yaml: is not text in UTF-8"),
            ("", ""),
        ],
        "before" => &[
            ("missing.yaml", "--old: missing.yaml: cannot be read: No such file"),
            ("deployment.yaml", "contains no CustomResourceDefinition: found Deployment of apps/v1"),
            ("nonsense.yaml", "nonsense.yaml: is not text in UTF-8"),
            ("", ""),
            ("git:", "--old: git:: is no revision; write git:REVISION"),
            ("git:--output=x", "--old: git:--output=x: is no revision; write git:REVISION"),
            ("git:HEAD", "git:HEAD crds.yaml: git: not a git repository"),
        ],
        "packages" => &[
            ("missing", "missing: cannot be read: No such file"),
            ("missing/...", "missing/...: cannot be read: No such file"),
            ("crds.yaml", "crds.yaml: cannot be read: Not a directory"),
            (".", "this folder contains no Go file with types"),
            ("", ""),
        ],
        "objects" => &[
            ("missing.yaml", "missing.yaml: cannot be read: No such file"),
            ("deployment.yaml", "Deployment of apps/v1"),
            ("nonsense.yaml", "nonsense.yaml: is not text in UTF-8"),
        ],
        "openapi" => &[
            ("missing.json", "missing.json: cannot be read: No such file"),
            ("deployment.yaml", "deployment.yaml"),
            ("nonsense.yaml", "nonsense.yaml: is not text in UTF-8"),
        ],
        "request" => &[
            ("missing.yaml", "missing.yaml: cannot be read: No such file"),
            ("nonsense.yaml", "nonsense.yaml: is not text in UTF-8"),
        ],
        "schemas" => &[
            ("missing.yaml", "missing.yaml: cannot be read: No such file"),
            ("deployment.yaml", "no EmbeddedSchema"),
            ("nonsense.yaml", "nonsense.yaml: is not text in UTF-8"),
        ],
        "facts" => &[
            ("missing.yaml", "missing.yaml: cannot be read: No such file"),
            ("nonsense.yaml", "nonsense.yaml: is not text in UTF-8"),
        ],
        "requests" => &[
            ("missing.jsonl", "missing.jsonl: cannot be read: No such file"),
            ("nonsense.yaml", "nonsense.yaml, line 1: "),
        ],
        "policy" => &[
            ("missing.yaml", "missing.yaml: cannot be read: No such file"),
            ("deployment.yaml", "deployment.yaml: contains no DefaultsPolicy: found Deployment"),
            ("nonsense.yaml", "nonsense.yaml: is not text in UTF-8"),
            ("nobody", "KUBECONFIG"),
        ],
        "policies" => &[
            ("missing.yaml", "--policy: missing.yaml: cannot be read: No such file"),
            ("deployment.yaml", "no DefaultsPolicy: found Deployment of apps/v1"),
            ("nonsense.yaml", "nonsense.yaml: is not text in UTF-8"),
        ],
        "exceptions" => &[
            ("missing.yaml", "--exceptions: missing.yaml: cannot be read: No such file"),
            ("deployment.yaml", "--exceptions: deployment.yaml"),
            ("nonsense.yaml", "nonsense.yaml: is not text in UTF-8"),
        ],
        "kubeconfig" => &[
            ("missing.yaml", "missing.yaml"),
            ("deployment.yaml", "deployment.yaml"),
            ("nonsense.yaml", "nonsense.yaml"),
            ("schemeless.yaml", "the cluster's server in the kubeconfig is not a URL"),
        ],
        "context" => &[("nobody", "cannot use the kubeconfig context \"nobody\"")],
        "certificate" => &[
            ("missing.pem", "missing.pem: No such file"),
            (".", "not a PEM file"),
            ("nonsense.yaml", "in PEM"),
        ],
        "snapshot" => &[
            ("missing.db", "missing.db: cannot be read: No such file"),
            ("deployment.yaml", "not a snapshot of etcd"),
            ("nonsense.yaml", "not a snapshot of etcd"),
        ],
        "endpoints" => &[
            ("127.0.0.1:1", "etcd at http://127.0.0.1:1 does not answer"),
            ("localhost:1,127.0.0.1:1", "etcd at http://127.0.0.1:1 does not answer"),
            ("http://127.0.0.1:1", "etcd at http://127.0.0.1:1 does not answer"),
            ("", "the host is missing"),
            ("127.0.0.1:x", "the port is not a number from 1 to 65535"),
            ("unix:///run/etcd.sock", "etcd is reached over http or https only"),
            ("localhost:1,", "the host is missing"),
        ],
        "number" => &[("abc", "invalid digit"), ("-1", "'-1'"), ("", "empty string")],
        "positive" => &[("abc", "abc"), ("0", "'0'"), ("-1", "-1"), ("99999999999999999999999", "9999")],
        "time" => &[
            ("abc", "expected a time such as 10s, 1m30s, 1h or 1d12h"),
            ("10", "expected a time such as 10s, 1m30s, 1h or 1d12h"),
            ("", "expected a time"),
        ],
        "address" => &[("abc", "invalid socket address"), ("1.2.3.4:99999", "invalid socket address")],
        "rule" => &[("ETCH999", "no rule is called ETCH999")],
        "choice" => &[("nonsense", "invalid value 'nonsense'"), ("", "value")],
        // Only a cluster knows what there is: tried with one elsewhere.
        "type" | "object" => &[("nosuch", "KUBECONFIG")],
        // Whatever is written is one.
        "prefix" | "text" => &[],
        "namespace" => &[("No Such", "'No Such'"), ("a/b", "'a/b'")],
        "folder" => &[
            ("deployment.yaml", "deployment.yaml: cannot be written: File exists"),
            ("deployment.yaml/man", "deployment.yaml/man: cannot be written: Not a directory"),
            ("", "a value is required"),
        ],
        "account" => &[
            ("etch", "expected NAMESPACE:NAME, such as etch-system:etch"),
            (":etch", "expected NAMESPACE:NAME"),
            ("", "NAMESPACE:NAME"),
        ],
        "switch" => &[("x", "unexpected value 'x'")],
        _ => return None,
    })
}

/// A command line that does its work, or would if there were a cluster, for a flag to be added to.
fn base(command: &str, flag: &str) -> Result<Vec<&'static str>> {
    Ok(match (command, flag) {
        ("plan", "--filename") => vec!["plan", "--old", "crds.yaml"],
        ("plan", "--old" | "--live") => vec!["plan", "-f", "crds.yaml"],
        ("plan", _) => vec!["plan", "-f", "crds.yaml", "--old", "crds.yaml"],
        ("impact", "--filename") => vec!["impact", "--old", "crds.yaml"],
        ("impact", "--objects") => vec!["impact", "-f", "crds.yaml", "--old", "crds.yaml"],
        ("impact", "--live") => vec!["impact", "-f", "crds.yaml"],
        ("impact", "--old") => vec!["impact", "-f", "crds.yaml"],
        ("impact", "--openapi") => vec!["impact", "--openapi", "published.json"],
        ("impact", "--etcd-cacert" | "--etcd-prefix") => {
            vec!["impact", "-f", "crds.yaml", "--old", "crds.yaml", "--etcd-endpoints", "https://127.0.0.1:1"]
        }
        ("impact", "--etcd-cert" | "--etcd-key") => {
            let mut base = vec!["impact", "-f", "crds.yaml", "--old", "crds.yaml"];
            base.extend(with_other(flag));
            base
        }
        ("impact", _) => vec!["impact", "-f", "crds.yaml", "--old", "crds.yaml"],
        ("audit", "--etcd-cacert" | "--etcd-prefix") => {
            vec!["audit", "--etcd-endpoints", "https://127.0.0.1:1"]
        }
        ("audit", "--etcd-cert" | "--etcd-key") => {
            let mut base = vec!["audit"];
            base.extend(with_other(flag));
            base
        }
        ("audit", _) | ("", _) => vec!["audit"],
        ("explain", "TYPE") => vec!["explain"],
        ("explain", "NAME" | "--openapi" | "--live") => vec!["explain", "crontabs"],
        ("explain", "--etcd-cert" | "--etcd-key") => {
            let mut base = vec!["explain", "crontabs", "a"];
            base.extend(with_other(flag));
            base
        }
        ("explain", "--etcd-cacert" | "--etcd-prefix") => {
            vec!["explain", "crontabs", "a", "--etcd-endpoints", "https://127.0.0.1:1"]
        }
        ("explain", _) => vec!["explain", "crontabs", "a"],
        ("persist", "CRD") => vec!["persist"],
        ("persist", _) => vec!["persist", "crontabs"],
        ("revert", "CRD") => vec!["revert"],
        ("revert", _) => vec!["revert", "crontabs"],
        ("resume", _) => vec!["resume"],
        ("lint", "FILE" | "--live" | "--explain" | "--go") => vec!["lint"],
        ("lint", _) => vec!["lint", "crds.yaml"],
        ("fill", "OBJECT") => vec!["fill", "--crd", "crds.yaml"],
        ("fill", "--crd" | "--openapi" | "--live") => vec!["fill", "object.yaml"],
        ("fill", _) => vec!["fill", "--crd", "crds.yaml", "object.yaml"],
        ("admit", "OBJECT" | "--requests") => vec!["admit", "--schema=schema.yaml"],
        ("admit", "--schema") => vec!["admit", "object.yaml"],
        ("admit", _) => vec!["admit", "--schema=schema.yaml", "object.yaml"],
        ("rbac", "FILE" | "--live") => vec!["rbac"],
        ("rbac", _) => vec!["rbac", "crds.yaml"],
        ("run", _) => vec!["run"],
        ("crds", _) => vec!["crds"],
        ("clean", _) => vec!["clean"],
        ("completions", _) => vec!["completions"],
        ("man", _) => vec!["man"],
        ("status", _) => vec!["status"],
        ("version", _) => vec!["version"],
        _ => anyhow::bail!("no command line for {command} {flag}"),
    })
}

/// An endpoint, and the other half of a client certificate.
fn with_other(flag: &str) -> [&'static str; 4] {
    let other = if flag == "--etcd-cert" { "--etcd-key" } else { "--etcd-cert" };
    ["--etcd-endpoints", "https://127.0.0.1:1", other, "other.pem"]
}

/// The command line with a value for a flag, or for a positional argument.
fn with(command: &str, flag: &str, value: &str) -> Result<Vec<String>> {
    let mut line: Vec<String> = base(command, flag)?.into_iter().map(str::to_owned).collect();
    match flag.starts_with("--") {
        true => line.push(format!("{flag}={value}")),
        // What looks like a flag is none behind this.
        false => line.extend(["--".to_owned(), value.to_owned()]),
    }
    if (command, flag) == ("explain", "TYPE") {
        line.push("a".to_owned());
    }
    Ok(line)
}

#[test]
fn what_a_flag_cannot_use_is_told_in_one_line() -> Result<()> {
    let folder = tempfile::tempdir()?;
    prepare(folder.path())?;
    let mut wrong = Vec::new();
    for (command, flags) in flags()? {
        for (flag, takes) in flags {
            for (value, says) in
                trials(&takes).with_context(|| format!("{command} {flag}: no trials of {takes:?}"))?
            {
                let line = with(&command, &flag, value)?;
                let ended = etch_in(folder.path(), &line, &[])?;
                wrong.extend(is_one_line(&line, &ended).err().map(|error| error.to_string()));
                if !ended.err.contains(says) || !ended.out.is_empty() {
                    wrong.push(format!("{line:?} does not say {says:?}: {ended:?}"));
                }
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn no_cluster_is_told_in_one_line() -> Result<()> {
    let folder = tempfile::tempdir()?;
    prepare(folder.path())?;
    for line in [
        &["audit"][..],
        &["explain", "crontabs", "a"],
        &["persist"],
        &["persist", "--dry-run"],
        &["revert", "crontabs"],
        &["revert", "crontabs", "--to", "crds.yaml", "--yes"],
        &["resume", "crontabs"],
        &["plan", "-f", "crds.yaml", "--live"],
        &["impact", "-f", "crds.yaml"],
        &["impact", "-f", "crds.yaml", "--old", "crds.yaml", "--live"],
        &["lint", "--live"],
        &["lint", "--openapi", "--live"],
        &["explain", "--live", "pods"],
        &["fill", "--live", "object.yaml"],
        &["impact", "--openapi", "published.json"],
        &["rbac"],
        &["rbac", "crds.yaml", "--policy", "default"],
        &["clean", "--dry-run"],
        &["status"],
        &["run"],
    ] {
        let line: Vec<String> = line.iter().map(ToString::to_string).collect();
        let ended = etch_in(folder.path(), &line, &[])?;
        is_one_line(&line, &ended)?;
        ensure!(ended.err.contains("set KUBECONFIG") && ended.out.is_empty(), "{line:?}: {ended:?}");
        if line[0] == "run" {
            // The operator waits for its cluster.
            continue;
        }
        let away = ["--kubeconfig".to_owned(), "away.yaml".to_owned()];
        let line = [&away[..], &line].concat();
        let ended = etch_in(folder.path(), &line, &[])?;
        is_one_line(&line, &ended)?;
        ensure!(
            ended.err.contains("cannot reach the API server")
                && ended.err.contains("connection refused")
                && ended.out.is_empty(),
            "{line:?}: {ended:?}"
        );
    }
    Ok(())
}

/// What can be set in the environment is checked as on the command line.
#[test]
fn the_environment_is_checked_as_well() -> Result<()> {
    let folder = tempfile::tempdir()?;
    prepare(folder.path())?;
    for (flag, takes) in flags()?.remove("run").context("run")? {
        let name = format!("ETCH_{}", flag.trim_start_matches("--").replace('-', "_").to_uppercase());
        for (value, says) in trials(&takes).context("trials")?.iter().filter(|(value, _)| !value.is_empty()) {
            let ended = etch_in(folder.path(), &["run".to_owned()], &[(&name, value)])?;
            is_one_line(&[format!("{name}={value}")], &ended)?;
            let says = if value.starts_with('-') { value } else { says };
            ensure!(ended.err.contains(says), "{name}={value} does not say {says:?}: {ended:?}");
        }
    }
    Ok(())
}

#[test]
fn nothing_that_is_typed_makes_it_panic() -> Result<()> {
    let folder = tempfile::tempdir()?;
    prepare(folder.path())?;
    let mut random = fastrand::Rng::with_seed(0xE7C4);
    for (command, flags) in flags()? {
        for flag in flags.keys() {
            for _ in 0..VALUES {
                let line = with(&command, flag, &nonsense(&mut random))?;
                let ended = etch_in(folder.path(), &line, &[])?;
                match ended.code {
                    Some(2) => is_one_line(&line, &ended)?,
                    code => {
                        ensure!(matches!(code, Some(0 | 1)) && ended.err.is_empty(), "{line:?}: {ended:?}")
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn policy_words_are_understood_as_policies_write_them() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for words in ["Own Drop", "own drop", "OWN DROP", "None Hold", "none hold"] {
        let (ownership, hidden) = words.split_once(' ').context("two words")?;
        let line = ["persist", "--ownership", ownership, "--hidden-fields", hidden].map(str::to_owned);
        let ended = etch_in(folder.path(), &line, &[])?;
        ensure!(ended.err.contains("KUBECONFIG"), "{words}: {ended:?}");
    }
    let help = etch_in(folder.path(), &["persist".to_owned(), "--help".to_owned()], &[])?.out;
    for word in ["None:", "Own:", "Hold:", "Drop:"] {
        ensure!(help.contains(word), "{word}: {help}");
    }
    Ok(())
}

/// A value that no flag expects: of the kinds that parsers of numbers, addresses, paths and names stumble
/// over.
fn nonsense(random: &mut fastrand::Rng) -> String {
    const PIECES: [&str; 40] = [
        "",
        "-",
        "--",
        "=",
        ",",
        ":",
        "/",
        "//",
        "://",
        "http",
        "https://",
        "[::1]",
        "[",
        "]",
        "@",
        "%",
        "%zz",
        "?a#b",
        "..",
        "~",
        "*",
        "'",
        "\"",
        "\\",
        "\n",
        "\r",
        "\t",
        "\u{1b}[2J",
        "\u{7f}",
        "\u{202e}",
        "ü",
        "💥",
        "18446744073709551616",
        "-1",
        "0",
        "1e999",
        "NaN",
        "10s",
        "localhost",
        "default",
    ];
    let mut value = String::new();
    for _ in 0..random.usize(0..5) {
        value.push_str(PIECES[random.usize(0..PIECES.len())]);
    }
    if random.u8(..) == 0 {
        value = value.repeat(1000);
    }
    // Folders that are there have files that are: what is read of them is no matter of what is typed.
    let is_file = value.starts_with(['/', '~']) || value.contains("..") || value == "-";
    if is_file { format!("x{value}") } else { value }
}

pub(crate) fn is_one_line(line: &[String], ended: &Ended) -> Result<()> {
    ensure!(ended.code == Some(2), "{line:?}: {ended:?}");
    ensure!(ended.err.starts_with("error: ") && ended.err.lines().count() == 1, "{line:?}: {ended:?}");
    ensure!(!ended.err.trim_end().contains(char::is_control), "{line:?}: {ended:?}");
    Ok(())
}

/// Runs it in a folder, where it finds no cluster.
fn etch_in(folder: &Path, line: &[String], environment: &[(&str, &str)]) -> Result<Ended> {
    let mut command = Command::new(binary()?);
    command.args(line).current_dir(folder).env("HOME", folder).envs(environment.iter().copied());
    run(command, b"")
}

/// What the command lines name: files that can be used, and files that cannot.
fn prepare(folder: &Path) -> Result<()> {
    let objects: Value = serde_json::from_str(&fs::read_to_string(file("openapi/objects.json"))?)?;
    for (name, kind) in [
        ("crds.yaml", "CustomResourceDefinition"),
        ("object.yaml", "CronTab"),
        ("deployment.yaml", "Deployment"),
    ] {
        let all = objects.as_array().into_iter().flatten().map(|pair| &pair["object"]);
        let object = all.into_iter().find(|object| object["kind"] == kind).context("an object")?;
        fs::write(folder.join(name), object.to_string())?;
    }
    fs::copy(file("openapi/apps-v1.json"), folder.join("published.json"))?;
    let schema = json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "EmbeddedSchema", "metadata": { "name": "a" },
        "spec": {
            "targets": [{ "group": "a", "version": "v1", "resource": "holders", "path": ".spec.ext" }],
        },
    });
    fs::write(folder.join("schema.yaml"), schema.to_string())?;
    fs::write(folder.join("nonsense.yaml"), (0..=255).cycle().take(1 << 12).collect::<Vec<u8>>())?;
    // Enough for either half of a pair; the other one is checked first, or is the only one.
    fs::write(folder.join("other.pem"), "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n")?;
    for (name, server) in [("away.yaml", "http://127.0.0.1:1"), ("schemeless.yaml", "127.0.0.1:1")] {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{ "name": "a", "cluster": { "server": server } }],
            "users": [{ "name": "a", "user": {} }],
            "contexts": [{ "name": "a", "context": { "cluster": "a", "user": "a" } }],
        });
        fs::write(folder.join(name), kubeconfig.to_string())?;
    }
    Ok(())
}
