//! Commands on a snapshot of etcd that is made by hand: a file that was cut, a namespace without objects, a
//! list of stored versions that was shortened by hand. Real snapshots are read on a control plane.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::cluster::crd;
use serde_json::{Value, json};

use crate::flags::is_one_line;
use crate::pages::{PAGE, branch, database, leaf, version};
use crate::process::{Ended, etch, text};
use crate::repeated::schema;

const GROUP: &str = "stable.example.com";
/// What precedes the older values in the file: two meta pages, the root, a branch and the newest value.
const BEFORE_OLDER: usize = 5 * PAGE;

/// A snapshot with these values, the last one in a page before the others: as an etcd that freed and used a
/// page again has it.
fn saved(values: &[(String, Value)]) -> Vec<u8> {
    let written = values.iter().zip(1..);
    let written = written.map(|((key, value), at)| version(at, key, Some(&value.to_string())));
    let versions: Vec<_> = written.collect();
    let (newest, older) = versions.split_last().expect("values");
    let newest = leaf(4, 0, std::slice::from_ref(newest));
    database(&[branch(3, &[5, 4]), newest, leaf(5, 0, older)], 9)
}

/// A CRD with the storage version `v1`, as etcd holds it.
fn stored_crd(kind: &str, listed: &[&str]) -> (String, Value) {
    let mut crd = crd(GROUP, kind, &[("v1beta1", false, schema(1)), ("v1", true, schema(1))]);
    crd["metadata"]["uid"] = kind.into();
    crd["status"] = json!({ "storedVersions": listed });
    let name = crd["metadata"]["name"].as_str().unwrap_or_default();
    (format!("/registry/apiextensions.k8s.io/customresourcedefinitions/{name}"), crd)
}

fn stored_object(kind: &str, version: &str, name: &str) -> (String, Value) {
    let object = json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": kind,
        "metadata": { "name": name, "namespace": "default", "uid": name }, "spec": {},
    });
    (format!("/registry/{GROUP}/{}/default/{name}", e2e::cluster::plural(kind)), object)
}

/// A folder with a snapshot, and a CRD after an upgrade.
struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    /// Widgets have an object at `v1beta1`, which their list lacks; gadgets have one at `v1`, and so has
    /// theirs.
    fn new() -> Result<Self> {
        let this = Self { folder: tempfile::tempdir()? };
        let values = [
            stored_crd("Widget", &["v1"]),
            stored_crd("Gadget", &["v1"]),
            stored_object("Widget", "v1beta1", "old"),
            stored_object("Widget", "v1", "new"),
            stored_object("Gadget", "v1", "new"),
            ("/registry/namespaces/default".to_owned(), json!({})),
        ];
        fs::write(this.snapshot(), saved(&values))?;
        let new = crd(GROUP, "Widget", &[("v1beta1", false, schema(5)), ("v1", true, schema(5))]);
        fs::write(this.path("new.json"), new.to_string())?;
        Ok(this)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn snapshot(&self) -> PathBuf {
        self.path("backup.db")
    }

    fn etch(&self, line: &[&str]) -> Result<Ended> {
        let (snapshot, new) = (self.snapshot(), self.path("new.json"));
        let line = line.iter().map(|word| if *word == "NEW" { text(&new) } else { word });
        etch(&line.chain(["--etcd-snapshot", text(&snapshot)]).collect::<Vec<_>>())
    }
}

#[test]
fn a_snapshot_that_was_cut_is_named_by_every_command() -> Result<()> {
    let folder = Folder::new()?;
    let whole = fs::read(folder.snapshot())?;
    fs::write(folder.snapshot(), &whole[..BEFORE_OLDER])?;
    for line in [&["audit"][..], &["audit", "--stored-versions"], &["impact", "-f", "NEW"]] {
        let ended = folder.etch(line)?;
        is_one_line(&line.iter().map(ToString::to_string).collect::<Vec<_>>(), &ended)?;
        let says = format!("{}: cut: it has ", folder.snapshot().display());
        ensure!(ended.err.contains(&says), "{line:?} does not say {says:?}: {ended:?}");
    }
    Ok(())
}

#[test]
fn a_namespace_without_objects_is_noted() -> Result<()> {
    let folder = Folder::new()?;
    let note = "note: no objects of these CRDs found in namespace \"nosuch\" of the snapshot\n";
    for line in [&["audit"][..], &["audit", "--stored-versions"], &["impact", "-f", "NEW"]] {
        let ended = folder.etch(&[line, &["-n", "nosuch"]].concat())?;
        ensure!(ended.code != Some(2) && ended.err == note, "{line:?}: {ended:?}");
        let ended = folder.etch(&[line, &["-n", "default"]].concat())?;
        ensure!(ended.code == Some(1) && ended.err.is_empty(), "{line:?}: {ended:?}");
        let ended = folder.etch(line)?;
        ensure!(ended.code == Some(1) && ended.err.is_empty(), "{line:?}: {ended:?}");
    }
    Ok(())
}

#[test]
fn objects_at_a_version_that_the_list_lacks_are_found() -> Result<()> {
    let folder = Folder::new()?;
    let ended = folder.etch(&["audit", "--stored-versions", "-o", "json"])?;
    ensure!(ended.code == Some(1), "{ended:?}");
    let document = ended.json()?;
    let crds = document["crds"].as_array().context("CRDs")?;
    // All gadgets are where they should be, so that nothing is to be said of them.
    ensure!(document["snapshot"] == true, "{document:#}");
    ensure!(crds.len() == 1 && crds[0]["crd"] == format!("widgets.{GROUP}"), "{document:#}");
    ensure!(crds[0]["at"] == json!({ "v1beta1": 1 }) && crds[0]["proved"] == 1, "{document:#}");
    let kept = "1 object is stored at v1beta1, which status.storedVersions does not list";
    let old = json!([{ "name": "v1beta1", "removable": false, "kept": [kept] }]);
    ensure!(crds[0]["oldVersions"] == old, "{document:#}");
    let table = folder.etch(&["audit", "--stored-versions"])?;
    ensure!(table.code == Some(1) && table.out.contains(kept), "{table:?}");
    ensure!(table.out.contains("A snapshot shows what was stored when it was taken."), "{table:?}");
    let defaults = folder.etch(&["audit"])?;
    ensure!(defaults.out.contains("A snapshot shows what was stored when it was taken."), "{defaults:?}");
    ensure!(folder.etch(&["audit", "-o", "json"])?.json()?["snapshot"] == true);
    let gadgets = folder.etch(&["audit", "--stored-versions", &format!("gadgets.{GROUP}")])?;
    ensure!(gadgets.code == Some(0) && gadgets.out.contains("gadgets"), "{gadgets:?}");
    Ok(())
}

#[test]
fn an_impact_on_a_snapshot_is_of_the_time_when_it_was_taken() -> Result<()> {
    let folder = Folder::new()?;
    for form in ["table", "markdown", "html"] {
        let ended = folder.etch(&["impact", "-f", "NEW", "-o", form])?;
        let says = "A snapshot shows what was stored when it was taken.";
        ensure!(ended.code == Some(1) && ended.out.matches(says).count() == 1, "{form}: {ended:?}");
        ensure!(!ended.out.contains("that the cluster has now"), "{form}: {ended:?}");
    }
    let json = folder.etch(&["impact", "-f", "NEW", "-o", "json"])?.json()?;
    ensure!(json["crds"][0]["objects"]["total"] == 2, "{json:#}");
    Ok(())
}
