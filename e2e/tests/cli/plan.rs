//! `etch plan` from files and from revisions of a git repository, without a cluster. Which steps there are is
//! tested with the library.

use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};
use e2e::cluster::{crd, with_spec};
use e2e::operator::binary;
use serde_json::{Value, json};

use crate::flags::is_one_line;
use crate::process::{Ended, git, run};

const GROUP: &str = "stable.example.com";

fn widgets(a: &Value) -> Value {
    crd(GROUP, "Widget", &[("v1", true, with_spec(json!({ "a": a })))])
}

/// A repository with a revision of the CRDs, and their state after an upgrade in its work tree.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new() -> Result<Self> {
        let repository = Self(tempfile::tempdir()?);
        fs::create_dir_all(repository.0.path().join("config/crd"))?;
        repository.write("config/crd/widgets.json", &widgets(&json!({ "type": "integer", "default": 1 })))?;
        for line in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["add", "config"],
            &["commit", "--quiet", "--message=CRDs"],
        ] {
            ensure!(git(repository.0.path(), line)?.code == Some(0), "git {line:?}");
        }
        repository.write("config/crd/widgets.json", &widgets(&json!({ "type": "integer", "default": 5 })))?;
        repository.write("new.json", &widgets(&json!({ "type": "integer" })))?;
        Ok(repository)
    }

    fn write(&self, name: &str, document: &Value) -> Result<()> {
        Ok(fs::write(self.0.path().join(name), document.to_string())?)
    }

    fn etch(&self, folder: &str, line: &[&str]) -> Result<Ended> {
        self.etch_with(folder, line, &std::env::var("PATH")?)
    }

    fn etch_with(&self, folder: &str, line: &[&str], path: &str) -> Result<Ended> {
        let mut command = Command::new(binary()?);
        command.args(line).current_dir(self.0.path().join(folder));
        command.env("HOME", self.0.path()).env("PATH", path);
        run(command, b"")
    }
}

#[test]
fn files_are_compared_with_a_revision_of_their_repository() -> Result<()> {
    let repository = Repository::new()?;
    for (folder, file) in [
        (".", "config/crd"),
        (".", "config/crd/widgets.json"),
        ("config", "crd"),
        ("config/crd", "widgets.json"),
        ("config/crd", "."),
    ] {
        let line = ["plan", "-f", file, "--old", "git:main", "-o", "json"];
        let ended = repository.etch(folder, &line)?;
        ensure!(ended.code == Some(1), "{folder} {file}: {ended:?}");
        let planned = &ended.json()?["crds"][0];
        let steps: Vec<&str> = planned["steps"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|step| step["step"].as_str())
            .collect();
        ensure!(steps.contains(&"persist") && steps.contains(&"apply"), "{folder} {file}: {planned:#}");
        ensure!(planned["dryRun"]["answer"].is_null() && planned["unknown"][0].is_string(), "{planned:#}");
        ensure!(planned.get("objects") == Some(&Value::Null), "nobody read them: {planned:#}");
    }
    let impact = repository.etch(".", &["impact", "-f", "config/crd", "--old", "git:HEAD", "-o", "json"])?;
    ensure!(impact.json()?["crds"][0]["defaultsChanged"][0]["old"] == 1, "{impact:?}");
    // The command that a plan gives for what is incompatible shows it.
    let lint = repository.etch(".", &["lint", "--old", "git:main", "config/crd"])?;
    ensure!(lint.code == Some(1) && lint.out.contains("ETCH323"), "{lint:?}");
    Ok(())
}

/// Kustomize bases and charts are often shared by links. A CRD behind one must not count as new.
#[test]
fn a_link_of_a_revision_leads_to_what_the_revision_has_there() -> Result<()> {
    let repository = Repository::new()?;
    let at = |name: &str| repository.0.path().join(name);
    for folder in ["links", "ends", "pointer"] {
        fs::create_dir(at(folder))?;
    }
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, at(name));
    link("../config/crd/widgets.json", "links/first.json")?;
    link("first.json", "links/widgets.json")?;
    link("../config", "links/folder.json")?;
    link("../nothing.json", "ends/widgets.json")?;
    let oid = "0123456789abcdef".repeat(4);
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 4000\n");
    fs::write(at("pointer/widgets.json"), pointer)?;
    for line in [&["add", "links", "ends", "pointer"][..], &["commit", "--quiet", "--message=links"]] {
        ensure!(git(repository.0.path(), line)?.code == Some(0), "git {line:?}");
    }
    for (folder, file) in
        [(".", "links"), (".", "links/widgets.json"), ("links", "first.json"), ("links", ".")]
    {
        let impact = repository.etch(folder, &["impact", "-f", file, "--old", "git:main~", "-o", "json"])?;
        ensure!(impact.err.contains("has no manifest"), "{folder} {file}: {impact:?}");
        let impact = repository.etch(folder, &["impact", "-f", file, "--old", "git:main", "-o", "json"])?;
        ensure!(impact.json()?["crds"][0]["defaultsChanged"][0]["old"] == 1, "{folder} {file}: {impact:?}");
        let plan = repository.etch(folder, &["plan", "-f", file, "--old", "git:main"])?;
        ensure!(plan.code == Some(1) && plan.out.contains("1 becomes 5"), "{folder} {file}: {plan:?}");
        let lint = repository.etch(folder, &["lint", "--old", "git:main", file])?;
        ensure!(lint.code == Some(1) && lint.out.contains("ETCH323"), "{folder} {file}: {lint:?}");
    }
    for name in ["ends", "pointer"] {
        fs::remove_file(at(&format!("{name}/widgets.json")))?;
        repository.write(&format!("{name}/widgets.json"), &widgets(&json!({ "type": "integer" })))?;
    }
    for (folder, says) in [
        ("ends", "git:main ends/widgets.json: is a link that leads to no file in this revision"),
        ("pointer", "main:pointer/widgets.json: is a Git LFS pointer"),
    ] {
        for line in [
            &["plan", "--old", "git:main", "-f", folder][..],
            &["impact", "--old", "git:main", "-f", folder],
            &["lint", "--old", "git:main", folder],
        ] {
            let ended = repository.etch(".", line)?;
            ensure!(ended.code == Some(2) && ended.err.contains(says), "{line:?}: {ended:?}");
        }
    }
    Ok(())
}

/// Clients of the version create objects by it, and objects that are stored at it are read by it.
#[test]
fn a_default_of_a_version_that_is_not_the_storage_version_is_named_with_it() -> Result<()> {
    let repository = Repository::new()?;
    let versions = |a: &Value| {
        let schema = |a: &Value| {
            let spec = json!({ "type": "object", "properties": { "a": a } });
            json!({ "type": "object", "properties": { "spec": spec } })
        };
        crd(
            GROUP,
            "Widget",
            &[("v1beta1", false, schema(a)), ("v1", true, schema(&json!({ "type": "integer" })))],
        )
    };
    repository.write("one.json", &versions(&json!({ "type": "integer", "default": 1 })))?;
    repository.write("five.json", &versions(&json!({ "type": "integer", "default": 5 })))?;
    let line = ["impact", "--old", "one.json", "-f", "five.json", "-o"];
    for (output, says) in [
        ("table", "default changed at v1beta1   .spec.a"),
        ("markdown", "default changed at v1beta1"),
        ("html", "default changed at v1beta1"),
    ] {
        let ended = repository.etch(".", &[&line[..], &[output]].concat())?;
        ensure!(ended.code == Some(1) && ended.out.contains(says), "{output}: {ended:?}");
        ensure!(!ended.out.contains("Nothing changes"), "{output}: {ended:?}");
    }
    let json = repository.etch(".", &[&line[..], &["json"]].concat())?.json()?;
    let of_crd = &json["crds"][0];
    let changed = json!([{ "path": ".spec.a", "old": 1, "new": 5 }]);
    let expected = json!([{
        "version": "v1beta1", "defaultsAdded": [], "defaultsChanged": changed, "defaultsRemoved": [],
    }]);
    ensure!(of_crd["otherVersions"] == expected && of_crd["kinds"] == json!(["change"]), "{json:#}");
    // Where nothing shows at which version an object is stored, its value may be the default of any that is
    // served.
    let metadata = json!({ "name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7" });
    let object = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": metadata, "spec": { "a": 1 },
    });
    repository.write("object.json", &object)?;
    let ended = repository.etch(".", &[&line[..], &["table", "--objects", "object.json"]].concat())?;
    ensure!(ended.code == Some(1) && ended.out.contains("may change"), "{ended:?}");
    Ok(())
}

/// A pull request may bring a file, or a folder.
#[test]
fn what_a_revision_does_not_have_is_new() -> Result<()> {
    let repository = Repository::new()?;
    fs::create_dir(repository.0.path().join("more"))?;
    fs::copy(repository.0.path().join("new.json"), repository.0.path().join("more/[new].json"))?;
    for (folder, file) in [(".", "new.json"), (".", "more"), ("more", "[new].json"), ("more", ".")] {
        let note = format!("note: git:main has no manifest at {file}: its CRDs count as new\n");
        let planned = repository.etch(folder, &["plan", "-f", file, "--old", "git:main", "-o", "json"])?;
        ensure!(planned.code == Some(0) && planned.err == note, "{folder} {file}: {planned:?}");
        let steps = planned.json()?["crds"][0]["steps"].clone();
        ensure!(steps.as_array().is_some_and(|steps| steps.len() == 1), "{steps:#}");
        ensure!(steps[0]["step"] == "apply", "{steps:#}");
        let impact = repository.etch(folder, &["impact", "-f", file, "--old", "git:main"])?;
        ensure!(impact.err == note, "{folder} {file}: {impact:?}");
        let lint = repository.etch(folder, &["lint", "--old", "git:main", file])?;
        ensure!(lint.err == note, "{folder} {file}: {lint:?}");
    }
    Ok(())
}

#[test]
fn what_git_cannot_show_is_told_in_one_line() -> Result<()> {
    let repository = Repository::new()?;
    let path = std::env::var("PATH")?;
    for (line, path, says) in [
        (&["-f", "new.json", "--old", "git:nosuch"][..], path.as_str(), "nosuch"),
        (&["-f", "config", "--old", "git:nosuch"], &path, "nosuch"),
        (&["-f", "-", "--old", "git:main"], &path, "a revision has no standard input"),
        (&["-f", "config", "--old", "git:main", "--old", "new.json"], &path, "give --old once"),
        (&["-f", "config", "--old", "git:main"], "/nonexistent", "git is not installed"),
        (&["-f", "config"], &path, "--old <OLD>"),
    ] {
        let line = [&["plan"], line].concat();
        let ended = match line.contains(&"-") {
            true => {
                let mut command = Command::new(binary()?);
                command.args(&line).current_dir(repository.0.path());
                run(command, widgets(&json!({ "type": "integer" })).to_string().as_bytes())?
            }
            false => repository.etch_with(".", &line, path)?,
        };
        let shown: Vec<String> = line.iter().map(ToString::to_string).collect();
        is_one_line(&shown, &ended)?;
        ensure!(
            ended.err.contains(says) && ended.out.is_empty(),
            "{line:?} does not say {says:?}: {ended:?}"
        );
    }
    Ok(())
}

#[test]
fn steps_are_numbered_and_have_their_commands() -> Result<()> {
    let repository = Repository::new()?;
    let etch = |more: &[&str]| {
        repository.etch(".", &[&["plan", "-f", "config/crd", "--old", "git:main"], more].concat())
    };
    let table = etch(&[])?;
    for says in [
        "widgets.stable.example.com (v1)\n\nBefore the upgrade\n",
        "     - .spec.a: 1 becomes 5\n",
        "lint --old git:main config/crd\n",
        "persist widgets.stable.example.com\n",
        "\nUpgrade\n",
        " kubectl apply --server-side -f config/crd\n",
        "\nNot known\n",
    ] {
        ensure!(table.out.contains(says), "{says:?}: {}", table.out);
    }
    let markdown = etch(&["-o", "markdown"])?;
    for says in [
        "## CRD upgrade plan\n\n- `widgets.stable.example.com` (`v1`)\n\n1. **Before the upgrade:** ",
        "   - `.spec.a: 1 becomes 5`\n",
        "\n   ```sh\n   kubectl apply --server-side -f config/crd\n   ```\n",
    ] {
        ensure!(markdown.out.contains(says), "{says:?}: {}", markdown.out);
    }
    let (json, yaml) = (etch(&["-o", "json"])?.json()?, etch(&["-o", "yaml"])?);
    let yaml: Value = serde_yaml_ng::from_str(&yaml.out)?;
    ensure!(json == yaml, "{json:#}");
    Ok(())
}

#[test]
fn the_exit_status_says_whether_there_is_more_to_do_than_to_apply() -> Result<()> {
    let repository = Repository::new()?;
    let described = json!({ "type": "integer", "default": 1, "description": "a" });
    repository.write("described.json", &widgets(&described))?;
    repository.write("old.json", &widgets(&json!({ "type": "integer", "default": 1 })))?;
    let plan = |new: &str| repository.etch(".", &["plan", "-f", new, "--old", "old.json"]);
    let same = plan("old.json")?;
    ensure!(same.code == Some(0) && same.out.contains("\nNothing to do.\n"), "{same:?}");
    let apply = plan("described.json")?;
    ensure!(apply.code == Some(0) && apply.out.contains("  1. Apply the CRD\n"), "{apply:?}");
    ensure!(!apply.out.contains("  2. "), "{apply:?}");
    ensure!(plan("new.json")?.code == Some(1), "a default is removed");
    Ok(())
}

#[test]
fn what_comes_before_the_upgrade_of_any_crd_comes_before_that_of_all() -> Result<()> {
    let repository = Repository::new()?;
    let gadgets = |a: &Value| crd(GROUP, "Gadget", &[("v1", true, with_spec(json!({ "a": a })))]);
    let plain = json!({ "type": "integer" });
    let (one, five) =
        (json!({ "type": "integer", "default": 1 }), json!({ "type": "integer", "default": 5 }));
    let list = |gadget: &Value, widget: &Value| {
        json!({
            "apiVersion": "v1", "kind": "List", "items": [gadgets(gadget), widgets(widget)],
        })
    };
    repository.write("old.json", &list(&plain, &one))?;
    repository.write("both.json", &list(&one, &five))?;
    let plan =
        |form: &str| repository.etch(".", &["plan", "-f", "both.json", "--old", "old.json", "-o", form]);
    let (table, markdown) = (plan("table")?, plan("markdown")?);
    ensure!(table.code == Some(1) && markdown.code == Some(1), "{table:?} {markdown:?}");
    for (shown, heads) in [(&table.out, "\nUpgrade\n"), (&markdown.out, ". **Upgrade:** ")] {
        let upgrade = shown.find(heads).ok_or_else(|| anyhow::anyhow!("{shown}"))?;
        let (before, after) = shown.split_at(upgrade);
        ensure!(before.contains("persist widgets.stable.example.com"), "{shown}");
        ensure!(after.contains("persist gadgets.stable.example.com"), "{shown}");
        ensure!(shown.matches("kubectl apply --server-side -f both.json").count() == 1, "{shown}");
        ensure!(after.contains("Apply the CRDs, all at once"), "{shown}");
    }
    repository.write("one.json", &list(&plain, &five))?;
    let one = repository.etch(".", &["plan", "-f", "one.json", "--old", "old.json"])?;
    ensure!(one.out.contains("gadgets.stable.example.com (v1): nothing to do\n"), "{one:?}");
    ensure!(one.err.is_empty(), "{one:?}");
    repository.write("fewer.json", &gadgets(&plain))?;
    let lacks = "-f lacks widgets.stable.example.com, which --old has";
    let fewer = repository.etch(".", &["plan", "-f", "fewer.json", "--old", "old.json"])?;
    ensure!(fewer.err.starts_with(&format!("note: {lacks}")), "{fewer:?}");
    // All its objects are a loss.
    for form in ["table", "markdown", "html", "json"] {
        let impact = ["impact", "-f", "fewer.json", "--old", "old.json", "--fail-on", "losses", "-o", form];
        let fewer = repository.etch(".", &impact)?;
        let names = if form == "json" { "\"gone\": [\n    \"widgets.stable.example.com\"" } else { lacks };
        ensure!(fewer.code == Some(1) && fewer.out.contains(names), "{fewer:?}");
    }
    Ok(())
}
