//! Inputs that are broken, hostile or simply something else: one clear line, soon, and never a panic.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use e2e::operator::binary;

use crate::process::{Ended, etch, limited, text};

/// Writes the inputs that files can be, each with what the error must contain.
fn inputs(folder: &Path) -> Result<Vec<(String, &'static str)>> {
    let mut inputs = Vec::new();
    let mut add = |name: &str, content: &[u8], says: &'static str| {
        fs::write(folder.join(name), content)?;
        inputs.push((name.to_owned(), says));
        anyhow::Ok(())
    };
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    let mut merged = "a0: &a0 {x: 1}\n".to_owned();
    for level in 1..30 {
        let below = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [below.as_str(); 10].join(",")));
        merged.push_str(&format!("a{level}: &a{level} {{a: {below}, b: {below}, <<: {below}}}\n"));
    }
    add("bomb.yaml", bomb.as_bytes(), "too large")?;
    add("merged.yaml", merged.as_bytes(), "too large")?;
    add("binary.yaml", &(0..=255).cycle().take(1 << 16).collect::<Vec<u8>>(), "not text")?;
    add("nul.yaml", b"a: \0\n", "not text")?;
    add("wide.yaml", "- a\n".repeat(15 << 20).as_bytes(), "too large")?;
    add("wide.json", format!("{{\"a\":[{}0]}}", "0,".repeat(30 << 20)).as_bytes(), "too large")?;
    add("maps.json", format!("{{\"a\":[{}0]}}", "{\"a\":0},".repeat(6 << 20)).as_bytes(), "too large")?;
    add("deep.json", format!("{{\"a\":{}", "[".repeat(5 << 20)).as_bytes(), "EOF")?;
    add("deep.yaml", format!("a: {}", "[".repeat(1 << 20)).as_bytes(), "levels deep")?;
    let tower: String = (0..400).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    add("tower.yaml", tower.as_bytes(), "no CustomResourceDefinition")?;
    add(
        "ten-thousand.json",
        format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000)).as_bytes(),
        "1000 levels deep",
    )?;
    // The last of two values counts.
    add("twice.yaml", b"kind: A\nkind: B\n", "found B")?;
    add("twice.json", br#"{"kind":"A","kind":"B"}"#, "found B")?;
    add("cut.json", br#"{"kind":"#, "EOF")?;
    add("template.yaml", b"kind: {{ .Values.kind }}\n", "line 1")?;
    add("kind.yaml", b"apiVersion: apps/v1\nkind: Deployment\n", "found Deployment of apps/v1")?;
    add("text.yaml", b"just a text", "something without a kind")?;
    add("list.yaml", b"[1, 2, 3]", "something without a kind")?;
    add("empty.yaml", b"", "no CustomResourceDefinition")?;
    add(
        "old.yaml",
        b"apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n",
        "v1beta1",
    )?;
    add(
        "crd.yaml",
        b"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: \
            1\n",
        "spec.versions is missing or not a list of versions",
    )?;
    let levels = 400;
    let schema = format!(
        "{}{{\"type\":\"string\",\"default\":\"x\"}}{}",
        r#"{"type":"object","nullable":true,"default":{"a":{}},"properties":{"a":"#.repeat(levels),
        "}}".repeat(levels)
    );
    let nested = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"as.g"}},"spec":{{
        "group":"g","names":{{"kind":"A","plural":"as"}},"versions":[{{"name":"v1","served":true,"storage":true,
        "schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#
    );
    add("nested.json", nested.as_bytes(), "nested more than 300 levels deep")?;
    File::create(folder.join("long.yaml"))?.set_len(100 << 20)?;
    inputs.push(("long.yaml".to_owned(), "longer than 64 MiB"));
    symlink("round.yaml", folder.join("round.yaml"))?;
    inputs.push(("round.yaml".to_owned(), "cannot be read"));
    fs::create_dir(folder.join("circle"))?;
    symlink("..", folder.join("circle/up"))?;
    inputs.push(("circle".to_owned(), "no .yaml, .yml or .json file"));
    inputs.push(("missing.yaml".to_owned(), "No such file"));
    inputs.push(("/dev/zero".to_owned(), "longer than 64 MiB"));
    Ok(inputs)
}

#[test]
fn whatever_a_file_holds_it_ends_with_one_line() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let crd = crate::process::file("corpus/pairs/cert-manager__certificates.cert-manager.io__1/new.yaml");
    for (name, says) in inputs(folder.path())? {
        let path = folder.path().join(&name);
        let (path, crd) = (text(&path), text(&crd));
        // What is wrong with a CRD is not looked for where another kind is asked for.
        let commands: [(&[&str], bool); 9] = [
            (&["lint", path], true),
            (&["impact", "-f", path, "--old", crd], true),
            (&["impact", "-f", crd, "--old", path], true),
            (&["impact", "-f", crd, "--old", crd, "--objects", path], false),
            (&["rbac", path], false),
            (&["rbac", crd, "--policy", path], false),
            (&["fill", "--crd", crd, path], false),
            (&["fill", "--crd", path, crd], name != "nested.json"),
            (&["fill", "--openapi", path, crd], false),
        ];
        for (command, reads_crds) in commands {
            let ended = limited(command, b"")?;
            // Permissions do not depend on schemas.
            let is_fine = command[0] == "rbac" && name == "nested.json" && command.len() == 2;
            if is_fine {
                ensure!(ended.code == Some(0) && ended.err.is_empty(), "{command:?}: {ended:?}");
                continue;
            }
            is_one_line(command, &ended)?;
            // As a CRD to fill by, it is fine; what is missing is a schema of the object.
            let is_named = ended.err.contains(&name) || name == "nested.json" && command[0] == "fill";
            ensure!(is_named, "{command:?} does not name the file: {ended:?}");
            let is_worded = ended.err.contains(says) || !reads_crds && says_of_crds(says);
            ensure!(is_worded, "{command:?} does not say {says:?}: {ended:?}");
        }
        let snapshots: [&[&str]; 2] = [
            &["audit", "--etcd-snapshot", path],
            &["impact", "-f", crd, "--old", crd, "--etcd-snapshot", path],
        ];
        for command in snapshots {
            let ended = limited(command, b"")?;
            is_one_line(command, &ended)?;
            ensure!(ended.err.contains(&name), "{command:?}: {ended:?}");
            let is_worded = ["not a snapshot of etcd", "cannot be read"]
                .iter()
                .any(|wording| ended.err.contains(wording));
            ensure!(is_worded, "{command:?}: {ended:?}");
        }
    }
    Ok(())
}

/// Whether a text is about what a CRD holds, or about there being none.
fn says_of_crds(says: &str) -> bool {
    ["CustomResourceDefinition", "without a kind", "found ", "v1beta1", "spec.", "300 levels"]
        .iter()
        .any(|about| says.contains(about))
}

fn is_one_line(command: &[&str], ended: &Ended) -> Result<()> {
    ensure!(ended.code == Some(2), "{command:?}: {ended:?}");
    // What a command skips, it reports in a note.
    let lines: Vec<_> = ended.err.lines().filter(|line| !line.starts_with("note: skipped: ")).collect();
    ensure!(lines.len() == 1 && lines[0].starts_with("error: "), "{command:?}: {ended:?}");
    // Nothing is printed twice.
    let parts: Vec<&str> = lines[0].split(": ").collect();
    ensure!((1..parts.len()).all(|at| !parts[..at].contains(&parts[at])), "{command:?}: {ended:?}");
    ensure!(ended.err.len() < 1000, "{command:?}: {ended:?}");
    Ok(())
}

#[test]
fn certificates_are_small_files() -> Result<()> {
    for option in ["--etcd-cacert", "--etcd-cert", "--etcd-key"] {
        let mut command = vec!["audit", "--etcd-endpoints", "https://127.0.0.1:1", option, "/dev/zero"];
        let others = ["--etcd-cert", "--etcd-key"].into_iter().filter(|other| *other != option);
        if option != "--etcd-cacert" {
            command.extend(others.flat_map(|other| [other, "/dev/zero"]));
        }
        let ended = limited(&command, b"")?;
        is_one_line(&command, &ended)?;
        ensure!(ended.err.contains("/dev/zero: not a PEM file"), "{command:?}: {ended:?}");
    }
    Ok(())
}

#[test]
fn standard_input_is_asked_for_once() -> Result<()> {
    for command in
        [&["impact", "-f", "-", "--old", "-"][..], &["fill", "--crd", "-", "-"], &["rbac", "-", "-"]]
    {
        let ended = limited(command, b"kind: A\n")?;
        is_one_line(command, &ended)?;
        ensure!(ended.err.contains("- can be read only once"), "{command:?}: {ended:?}");
    }
    Ok(())
}

#[test]
fn a_folder_is_checked_in_spite_of_what_else_is_in_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let crd =
        crate::process::file("corpus/pairs/kubernetes-sigs-kueue__workloads.kueue.x-k8s.io__2/new.yaml");
    fs::copy(crd, folder.path().join("crd.yaml"))?;
    fs::write(folder.path().join("broken.yaml"), "a: [")?;
    fs::write(folder.path().join("other.yaml"), "kind: Kustomization\n")?;
    let ended = limited(&["lint", text(folder.path())], b"")?;
    ensure!(ended.code == Some(2) && ended.err.lines().count() == 1, "{ended:?}");
    ensure!(ended.err.contains("broken.yaml: line ") && ended.out.contains("ETCH008"), "{ended:?}");
    Ok(())
}

#[test]
fn a_reader_that_goes_away_changes_nothing() -> Result<()> {
    let corpus = crate::process::file("corpus/pairs");
    for output in ["json", "table", "sarif"] {
        let line = ["lint", "--severity", "info", "-o", output, text(&corpus)];
        let whole = etch(&line)?;
        let mut child = Command::new(binary()?)
            .args(line)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut first = [0; 10];
        child.stdout.take().context("its output")?.read_exact(&mut first)?;
        let ended = child.wait_with_output()?;
        ensure!(ended.status.code() == whole.code && ended.stderr.is_empty(), "{output}: {ended:?}");
    }
    Ok(())
}

#[test]
fn no_cluster_is_a_failure_that_says_what_to_do() -> Result<()> {
    let ended = limited(&["lint", "--live"], b"")?;
    ensure!(ended.code == Some(2) && ended.err.contains("KUBECONFIG"), "{ended:?}");
    let ended = limited(&["lint", "--live", "--kubeconfig", "/nonexistent"], b"")?;
    ensure!(ended.code == Some(2) && ended.err.contains("/nonexistent"), "{ended:?}");
    let ended = limited(&["lint", "--live", "--context", "none"], b"")?;
    ensure!(ended.code == Some(2) && ended.err.contains("\"none\""), "{ended:?}");
    Ok(())
}

#[test]
fn files_do_not_move_the_cursor() -> Result<()> {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: \
        \"\\e[2Ja\"}\n\
        spec:\n  group: g\n  names: {kind: A, plural: as}\n  versions:\n  - name: \"v\\e[31m1\"\n    served: \
        true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: \
        object, properties: {\"x\\e[1m\": {type: string, nullable: true, default: a}}}}}}\n";
    let ended = limited(&["lint", "-"], crd.as_bytes())?;
    ensure!(
        ended.code == Some(1) && ended.out.contains("ETCH010") && !ended.out.contains('\u{1b}'),
        "{ended:?}"
    );
    Ok(())
}
