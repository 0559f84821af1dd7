//! Inputs that are given twice, that are not there, or that are others than those that were meant.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};
use e2e::cluster::{crd, with_spec};
use e2e::operator::binary;
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::flags::is_one_line;
use crate::process::{Ended, git, run};

const GROUP: &str = "stable.example.com";

/// A schema with this default of an integer.
pub(crate) fn schema(default: impl Serialize) -> Value {
    with_spec(json!({ "a": { "type": "integer", "default": default } }))
}

fn widget(name: &str, a: i64) -> Value {
    let metadata = json!({ "name": name, "namespace": "default" });
    json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": metadata, "spec": { "a": a } })
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Result<Self> {
        let this = Self(tempfile::tempdir()?);
        fs::create_dir(this.path("objects"))?;
        // A default of the wrong type is an error.
        this.write("old.json", &crd(GROUP, "Widget", &[("v1", true, schema(1))]))?;
        this.write("new.json", &crd(GROUP, "Widget", &[("v1", true, schema("x"))]))?;
        this.write("gadget.json", &crd(GROUP, "Gadget", &[("v1", true, schema(1))]))?;
        this.write("objects/a.json", &widget("a", 1))?;
        this.write("objects/b.json", &widget("b", 1))?;
        std::os::unix::fs::symlink("objects/a.json", this.path("link.json"))?;
        Ok(this)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, document: &Value) -> Result<()> {
        Ok(fs::write(self.path(name), document.to_string())?)
    }

    fn etch(&self, line: &[&str]) -> Result<Ended> {
        let mut command = Command::new(binary()?);
        command.args(line).current_dir(self.0.path()).env("HOME", self.0.path());
        run(command, b"")
    }

    /// Expects one line with these texts, and nothing else.
    fn fails(&self, line: &[&str], says: &[&str]) -> Result<()> {
        let ended = self.etch(line)?;
        is_one_line(&line.iter().map(ToString::to_string).collect::<Vec<_>>(), &ended)?;
        ensure!(
            says.iter().all(|says| ended.err.contains(says)),
            "{line:?} does not say {says:?}: {ended:?}"
        );
        Ok(())
    }
}

#[test]
fn a_file_counts_once_however_often_it_is_named() -> Result<()> {
    let folder = Folder::new()?;
    let impact = |objects: &[&str]| -> Result<Value> {
        let line = ["impact", "-f", "gadget.json", "-f", "old.json", "-f", "./old.json", "--old", "old.json"];
        let line = [&line[..], &["-o", "json", "--objects"], objects].concat();
        Ok(folder.etch(&line)?.json()?["crds"][1]["objects"]["total"].clone())
    };
    for objects in [
        &["objects"][..],
        &["objects", "objects"],
        &["objects", "objects/a.json"],
        &["link.json", "objects", "./objects"],
    ] {
        ensure!(impact(objects)? == 2, "{objects:?}: {}", impact(objects)?);
    }
    let counts = |line: &[&str]| -> Result<String> {
        let ended = folder.etch(&[&["lint"], line].concat())?;
        ensure!(ended.err.is_empty(), "{line:?}: {ended:?}");
        Ok(ended.out.lines().last().unwrap_or_default().to_owned())
    };
    let once = counts(&["new.json"])?;
    ensure!(once.starts_with("1 CRD: "), "{once}");
    ensure!(counts(&["new.json", "./new.json"])? == once, "{}", counts(&["new.json", "./new.json"])?);
    let all = counts(&["."]);
    ensure!(counts(&[".", "new.json", "."])? == all?);
    let filled = folder.etch(&["fill", "--crd", "old.json", "--crd", "old.json", "objects", "link.json"])?;
    ensure!(filled.code == Some(0) && filled.out.matches("---\n").count() == 2, "{filled:?}");
    Ok(())
}

#[test]
fn a_file_of_a_revision_counts_once_as_well() -> Result<()> {
    let folder = Folder::new()?;
    for line in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "--message=CRDs"]] {
        ensure!(git(folder.0.path(), line)?.code == Some(0), "git {line:?}");
    }
    let line = ["impact", "-f", "gadget.json", "-f", ".", "-f", "gadget.json", "--old", "git:HEAD"];
    // Both states of widgets are in the folder.
    fs::remove_file(folder.path("new.json"))?;
    for line in [&["rm", "--quiet", "--cached", "new.json"][..], &["commit", "--quiet", "--message=one"]] {
        ensure!(git(folder.0.path(), line)?.code == Some(0), "git {line:?}");
    }
    let ended = folder.etch(&line)?;
    ensure!(ended.code == Some(0) && ended.err.is_empty(), "{ended:?}");
    Ok(())
}

#[test]
fn two_documents_of_one_object_are_one_or_an_error() -> Result<()> {
    let folder = Folder::new()?;
    let line = |other| {
        ["impact", "-f", "old.json", "--old", "old.json", "-o", "json", "--objects", "objects", other]
    };
    folder.write("same.json", &widget("a", 1))?;
    let same = folder.etch(&line("same.json"))?.json()?;
    ensure!(same["crds"][0]["objects"]["total"] == 2, "{same:#}");
    folder.write("other.json", &widget("a", 77_777))?;
    folder.fails(&line("other.json"), &["other.json: Widget default/a is also in objects/a.json"])?;
    let ended = folder.etch(&line("other.json"))?;
    ensure!(!ended.err.contains("77777") && ended.out.is_empty(), "{ended:?}");
    Ok(())
}

/// A chart renders the CRDs of a subchart once for each copy of it.
#[test]
fn two_documents_of_one_crd_are_one_or_an_error() -> Result<()> {
    let folder = Folder::new()?;
    let old = fs::read_to_string(folder.path("old.json"))?;
    let new = fs::read_to_string(folder.path("new.json"))?;
    fs::write(folder.path("twice.yaml"), format!("{old}\n---\n{old}\n"))?;
    fs::write(folder.path("both.yaml"), format!("{old}\n---\n{new}\n"))?;
    fs::copy(folder.path("old.json"), folder.path("copy.json"))?;
    for (line, code) in [
        (&["lint", "--old", "twice.yaml", "old.json"][..], 0),
        (&["lint", "--old", "old.json", "--old", "copy.json", "old.json"], 0),
        (&["impact", "--old", "twice.yaml", "-f", "twice.yaml"], 0),
        (&["plan", "--old", "twice.yaml", "-f", "old.json", "-f", "copy.json"], 0),
        (&["fill", "--crd", "twice.yaml", "--crd", "copy.json", "objects"], 0),
    ] {
        let ended = folder.etch(line)?;
        ensure!(ended.code == Some(code) && ended.err.is_empty(), "{line:?}: {ended:?}");
    }
    let says = "widgets.stable.example.com is also in both.yaml, with another content; give one of them";
    for line in [
        &["lint", "--old", "both.yaml", "new.json"][..],
        &["impact", "--old", "both.yaml", "-f", "new.json"],
        &["impact", "--old", "old.json", "-f", "both.yaml"],
        &["plan", "--old", "both.yaml", "-f", "new.json"],
    ] {
        folder.fails(line, &["both.yaml, document 2", says])?;
    }
    folder.fails(
        &["lint", "--old", "old.json", "--old", "new.json", "new.json"],
        &["--old: new.json: CRD widgets.stable.example.com is also in old.json"],
    )?;
    folder.fails(
        &["fill", "--crd", "both.yaml", "objects"],
        &["the CRD of Widget of stable.example.com is also in"],
    )
}

#[test]
fn a_crd_that_the_old_ones_lack_is_named() -> Result<()> {
    let folder = Folder::new()?;
    let ended = folder.etch(&["lint", "--old", "gadget.json", "old.json"])?;
    let says = "error: --old: gadget.json: contains no CRD that is checked: found \
        gadgets.stable.example.com; it lacks widgets.stable.example.com (old.json)\n";
    ensure!(ended.code == Some(2) && ended.err == says, "{ended:?}");
    ensure!(ended.out.contains("1 CRD"), "{ended:?}");
    let ended = folder.etch(&["lint", "--old", "gadget.json", "old.json", "gadget.json"])?;
    let says = "note: --old does not contain widgets.stable.example.com (old.json), so nothing is compared \
        with it\n";
    ensure!(ended.code == Some(0) && ended.err == says, "{ended:?}");
    let ended = folder.etch(&["lint", "--old", "old.json", "old.json"])?;
    ensure!(ended.code == Some(0) && ended.err.is_empty(), "{ended:?}");
    let ended = folder.etch(&["lint", "--old", "old.json", "--old", "gadget.json", "old.json"])?;
    ensure!(ended.code == Some(1) && ended.err.is_empty() && ended.out.contains("ETCH329"), "{ended:?}");
    ensure!(ended.out.contains("gadgets.stable.example.com"), "{ended:?}");
    let sarif =
        folder.etch(&["lint", "--old", "old.json", "--old", "gadget.json", "old.json", "-o", "sarif"])?;
    let sarif: Value = serde_json::from_str(&sarif.out)?;
    let location = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
    ensure!(
        location["uri"] == "gadget.json",
        "code scanning refuses a log with a result in no file: {sarif:#}"
    );
    let ended = folder.etch(&[
        "lint",
        "--old",
        "old.json",
        "--old",
        "gadget.json",
        "old.json",
        "--allow",
        "ETCH329",
    ])?;
    ensure!(ended.code == Some(0) && ended.err.is_empty(), "{ended:?}");
    Ok(())
}

#[test]
fn a_file_without_an_object_is_named() -> Result<()> {
    let folder = Folder::new()?;
    for (name, text) in [
        ("empty.yaml", ""),
        ("comment.yaml", "# nothing\n---\n# here\n"),
        ("list.yaml", "kind: List\napiVersion: v1\nitems: []\n"),
    ] {
        fs::write(folder.path(name), text)?;
        let says = format!("{name}: contains no Kubernetes object");
        for output in ["yaml", "json"] {
            folder.fails(&["fill", "--crd", "old.json", "-o", output, name], &[&says])?;
            let ended = folder.etch(&["fill", "--crd", "old.json", "-o", output, name])?;
            ensure!(ended.out.is_empty(), "{ended:?}");
        }
        let both = folder.etch(&["fill", "--crd", "old.json", name, "objects/a.json"])?;
        ensure!(both.code == Some(2) && both.err.contains(&says), "{both:?}");
        ensure!(both.out.contains("name: a\n"), "{both:?}");
    }
    Ok(())
}

/// One reader for all commands: with a field that is ignored, a policy may select everything.
#[test]
fn a_policy_with_a_typing_error_is_refused_by_every_command() -> Result<()> {
    let folder = Folder::new()?;
    let policy = "apiVersion: etch-operator.io/v1alpha1\nkind: DefaultsPolicy\nmetadata: {name: a}\nspec: ";
    for (spec, says) in [
        ("{selector: {group: [other.io]}}", "p.yaml: spec.selector.group: unknown field"),
        ("{objects: {namespace: [x]}}", "p.yaml: spec.objects.namespace: unknown field"),
    ] {
        fs::write(folder.path("p.yaml"), format!("{policy}{spec}\n"))?;
        for line in [
            &["rbac", "old.json", "--policy", "p.yaml"][..],
            &["impact", "-f", "old.json", "--old", "old.json", "--policy", "p.yaml"],
            &["plan", "-f", "old.json", "--old", "old.json", "--policy", "p.yaml"],
        ] {
            folder.fails(line, &[says])?;
        }
    }
    fs::write(folder.path("p.yaml"), policy.replace("{name: a}", "{}") + "{}\n")?;
    folder.fails(&["rbac", "old.json", "--policy", "p.yaml"], &["p.yaml: metadata.name is missing"])
}
