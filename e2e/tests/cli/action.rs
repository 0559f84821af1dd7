//! The composite actions `config/lint-action` and `config/impact-action`, step by step as a runner would run
//! them, without GitHub.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::install::actionlint;
use e2e::operator::binary;
use serde_json::{Value, json};

use super::process::{Ended, run};

const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, listKind: CronTabList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          image: {type: string, default: \"nginx:1.29\"}
";

/// A checked-out repository on a runner.
struct Runner {
    folder: tempfile::TempDir,
    action: Value,
}

impl Runner {
    fn new(action: &str) -> Result<Self> {
        let action = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config").join(action).join("action.yaml");
        let action = serde_yaml_ng::from_str(&fs::read_to_string(action)?)?;
        Ok(Self { folder: tempfile::tempdir()?, action })
    }

    fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        fs::write(&path, text)?;
        Ok(path)
    }

    fn step(&self, id: &str) -> Result<&Value> {
        let steps = self.action["runs"]["steps"].as_array().context("steps")?;
        steps.iter().find(|step| step["id"] == id).with_context(|| format!("a step {id}"))
    }

    /// Runs a step with the action's inputs, those that are not given at their defaults.
    fn run(&self, id: &str, inputs: &[(&str, &str)]) -> Result<Ended> {
        let step = self.step(id)?;
        ensure!(step["shell"] == "bash", "{step}");
        let mut command = Command::new("bash");
        // As a runner calls bash.
        command.args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c"]);
        command.arg(step["run"].as_str().context("a script")?).current_dir(self.folder.path());
        let etch = binary()?;
        let path = std::env::var("PATH")?;
        let own = self.folder.path().display();
        command.env("PATH", format!("{own}:{}:{path}", etch.parent().context("its folder")?.display()));
        for file in ["GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"] {
            command.env(file, self.folder.path().join(file));
        }
        command.env("RUNNER_TEMP", self.folder.path()).env("GITHUB_REPOSITORY", "acme/crds");
        for (variable, expression) in step["env"].as_object().into_iter().flatten() {
            let expression = expression.as_str().context("an expression")?;
            let input = expression
                .strip_prefix("${{ ")
                .and_then(|rest| rest.strip_suffix(" }}"))
                .with_context(|| format!("{expression} is no expression"))?;
            let input = input.strip_prefix("inputs.").unwrap_or(input);
            let declared = &self.action["inputs"][input];
            ensure!(declared.is_object() || input.starts_with("github."), "the action has no input {input}");
            let given = inputs.iter().find(|(name, _)| *name == input).map(|(_, value)| *value);
            command.env(variable, given.or(declared["default"].as_str()).unwrap_or_default());
        }
        run(command, b"")
    }

    fn read(&self, name: &str) -> Result<String> {
        fs::read_to_string(self.folder.path().join(name)).with_context(|| name.to_owned())
    }
}

#[test]
fn it_annotates_and_leaves_a_log_for_code_scanning() -> Result<()> {
    let runner = Runner::new("lint-action")?;
    runner.file("a crd.yaml", CRD)?;
    let built = runner.run("build", &[])?;
    ensure!(built.code == Some(0) && runner.read("GITHUB_PATH").is_err(), "etch is there: {built:?}");

    let ended = runner.run("lint", &[("files", "\na crd.yaml\n")])?;
    ensure!(ended.code == Some(1), "a warning fails the step: {ended:?}");
    ensure!(ended.out.starts_with("::warning file=a crd.yaml,line=18,title=ETCH012 "), "{ended:?}");
    ensure!(runner.read("GITHUB_OUTPUT")? == "sarif=etch.sarif\n");
    let sarif: Value = serde_json::from_str(&runner.read("etch.sarif")?)?;
    ensure!(sarif["runs"][0]["results"][0]["ruleId"] == "ETCH012", "{sarif:#}");

    let flags = "--allow=ETCH012\n--kubernetes=1.36";
    let ended = runner.run("lint", &[("files", "a crd.yaml"), ("flags", flags), ("sarif", "other.sarif")])?;
    ensure!(ended.code == Some(0), "{ended:?}");
    let sarif: Value = serde_json::from_str(&runner.read("other.sarif")?)?;
    ensure!(sarif["runs"][0]["results"] == serde_json::json!([]), "{sarif:#}");

    fs::remove_file(runner.folder.path().join("GITHUB_OUTPUT"))?;
    let ended = runner.run("lint", &[("files", "missing.yaml")])?;
    ensure!(ended.code == Some(2) && ended.err.lines().count() == 1, "one line, once: {ended:?}");
    ensure!(runner.read("GITHUB_OUTPUT").is_err(), "a command that failed has no log to upload");
    Ok(())
}

/// The caller's repository may pin an older Rust, which would not build Etch.
#[test]
fn it_is_built_in_its_own_repository() -> Result<()> {
    for action in ["lint-action", "impact-action"] {
        let runner = Runner::new(action)?;
        let cargo = runner.file("cargo", "#!/bin/sh\npwd -P >\"$RUNNER_TEMP/where\"\n")?;
        fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755))?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c"]);
        command.arg(runner.step("build")?["run"].as_str().context("a script")?);
        command.current_dir(runner.folder.path()).env("RUNNER_TEMP", runner.folder.path());
        // Without an `etch`.
        command.env("PATH", format!("{}:/usr/bin:/bin", runner.folder.path().display()));
        command.env("GITHUB_ACTION_PATH", root.join("config").join(action));
        command.env("GITHUB_PATH", runner.folder.path().join("GITHUB_PATH"));
        let ended = run(command, b"")?;
        ensure!(ended.code == Some(0), "{ended:?}");
        assert_eq!(Path::new(runner.read("where")?.trim_end()), root, "{action}");
        ensure!(runner.read("GITHUB_PATH")?.trim_end().ends_with("/etch/bin"), "{action}");
    }
    Ok(())
}

#[test]
fn with_the_crds_in_force_it_judges_the_update() -> Result<()> {
    let runner = Runner::new("lint-action")?;
    runner.file("old.yaml", CRD)?;
    runner.file("new.yaml", &CRD.replace("Namespaced", "Cluster"))?;
    let ended = runner.run("lint", &[("files", "new.yaml"), ("old", "old.yaml")])?;
    ensure!(ended.code == Some(1), "{ended:?}");
    ensure!(ended.out.contains("title=ETCH015") && ended.out.contains("spec.scope"), "{ended:?}");
    Ok(())
}

#[test]
fn an_impact_is_a_report_in_the_summary() -> Result<()> {
    let runner = Runner::new("impact-action")?;
    runner.file("old.yaml", CRD)?;
    runner.file("new crd.yaml", &CRD.replace("nginx:1.29", "nginx:1.30"))?;
    let inputs = [("files", "\nnew crd.yaml\n"), ("old", "old.yaml")];
    let ended = runner.run("impact", &inputs)?;
    ensure!(ended.code == Some(0), "a default that changes is no loss: {ended:?}");
    ensure!(runner.read("GITHUB_OUTPUT")? == "report=etch-impact.md\n");
    let report = runner.read("etch-impact.md")?;
    ensure!(report.contains("| `.image` | `\"nginx:1.29\"` → `\"nginx:1.30\"` |\n"), "{report}");
    ensure!(report.contains("`- {path: '.image', action: Follow}`\n"), "how values follow: {report}");
    ensure!(runner.read("GITHUB_STEP_SUMMARY")? == report, "{report}");
    let ended = runner.run("impact", &[&inputs[..], &[("flags", "--fail-on=any")]].concat())?;
    ensure!(ended.code == Some(1) && runner.read("etch-impact.md")? == report, "{ended:?}");
    fs::remove_file(runner.folder.path().join("GITHUB_OUTPUT"))?;
    let ended = runner.run("impact", &[("files", "missing.yaml"), ("old", "old.yaml")])?;
    ensure!(ended.code == Some(2) && ended.err.lines().count() == 1, "{ended:?}");
    ensure!(runner.read("GITHUB_OUTPUT").is_err(), "a command that failed has no report");
    Ok(())
}

#[test]
fn an_impact_replaces_its_own_comment_and_no_other() -> Result<()> {
    let runner = Runner::new("impact-action")?;
    runner.file("etch-impact.md", "the report\n")?;
    let gh = "#!/bin/sh\necho \"$@\" >>calls\ncase \"$*\" in *--paginate*) cat ids;; esac\n";
    let gh = runner.file("gh", gh)?;
    fs::set_permissions(&gh, fs::Permissions::from_mode(0o755))?;
    let body = format!("body=@{}/etch-comment.md", runner.folder.path().display());
    for (ids, expected) in [
        ("", format!("api --silent repos/acme/crds/issues/7/comments --field {body}")),
        (
            "11\n12\n",
            format!("api --silent --method PATCH repos/acme/crds/issues/comments/11 --field {body}"),
        ),
    ] {
        runner.file("ids", ids)?;
        runner.file("calls", "")?;
        let ended = runner.run("comment", &[("github.event.pull_request.number", "7")])?;
        ensure!(ended.code == Some(0), "{ended:?}");
        let calls = runner.read("calls")?;
        ensure!(
            calls.lines().next().is_some_and(|call| call.contains("startswith(\"<!-- etch impact -->\")"))
        );
        assert_eq!(calls.lines().nth(1), Some(expected.as_str()), "{calls}");
        assert_eq!(runner.read("etch-comment.md")?, "<!-- etch impact -->\nthe report\n");
    }
    runner.file("etch-impact.md", &"a row\n".repeat(20_000))?;
    let ended = runner.run("comment", &[("github.event.pull_request.number", "7")])?;
    let comment = runner.read("etch-comment.md")?;
    ensure!(ended.code == Some(0) && comment.starts_with("<!-- etch impact -->\n"), "{ended:?}");
    ensure!(comment.len() < 1_000 && comment.contains("summary of the run"), "{comment}");
    Ok(())
}

/// actionlint reads workflows, so each action becomes one, with its inputs and steps.
#[test]
fn actions_have_no_mistakes_that_actionlint_finds() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut workflows = Vec::new();
    for action in ["lint-action", "impact-action"] {
        let Runner { action: read, .. } = Runner::new(action)?;
        let inputs = read["inputs"].as_object().context("inputs")?.iter().map(|(name, input)| {
            let default = input["default"].as_str().filter(|default| !default.contains("${{"));
            (name.clone(), json!({ "type": "string", "default": default.unwrap_or_default() }))
        });
        let inputs: serde_json::Map<String, Value> = inputs.collect();
        let workflow = json!({
            "on": { "workflow_call": { "inputs": inputs } },
            "jobs": { "all": { "runs-on": "ubuntu-latest", "steps": read["runs"]["steps"] } },
        });
        let path = folder.path().join(format!("{action}.yaml"));
        fs::write(&path, serde_yaml_ng::to_string(&workflow)?)?;
        workflows.push(path);
    }
    actionlint(workflows.iter().map(PathBuf::as_path))
}

/// What the runner itself does with the rest of the file cannot be run here; that its names agree can be
/// seen.
#[test]
fn its_names_agree() -> Result<()> {
    for action in ["lint-action", "impact-action"] {
        let runner = Runner::new(action)?;
        let text = runner.action.to_string();
        let inputs = runner.action["inputs"].as_object().context("inputs")?;
        for input in inputs.keys() {
            ensure!(text.contains(&format!("inputs.{input} ")), "{action}: nothing uses the input {input}");
        }
        let last = runner.action["runs"]["steps"].as_array().context("steps")?.last().context("a step")?;
        ensure!(
            last["if"].as_str().is_some_and(|condition| condition.contains("!cancelled()")),
            "also after findings"
        );
    }
    let action = Runner::new("lint-action")?.action;
    let upload = action["runs"]["steps"].as_array().context("steps")?.last().context("a step")?;
    ensure!(upload["with"]["sarif_file"] == action["outputs"]["sarif"]["value"], "{upload:#}");
    Ok(())
}
