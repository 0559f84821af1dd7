//! The health of CRDs that Argo CD and Flux show with the checks of `config/health`, run as they run them.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use e2e::go::go;
use e2e::install::root;
use e2e::target::target_folder;
use etch_core::condition::{EventType, Reason};
use serde_json::{Value, json};

/// Objects, and what Argo CD and Flux make of them.
#[derive(Default)]
struct Cases {
    names: Vec<String>,
    objects: Vec<Value>,
    expected: Vec<(&'static str, &'static str)>,
}

impl Cases {
    /// A CRD of generation 2 with these conditions beside those of one that is served.
    fn served(&mut self, name: &str, conditions: &[Value], argo: &'static str, flux: &'static str) {
        let served =
            [of("NamesAccepted", "True", "NoConflicts"), of("Established", "True", "InitialNamesAccepted")];
        self.bare(name, json!([&served[..], conditions].concat()), argo, flux);
    }

    fn bare(&mut self, name: &str, conditions: Value, argo: &'static str, flux: &'static str) {
        let crd = json!({ "metadata": { "name": "tabs.example.com", "generation": 2 },
                          "status": { "conditions": conditions } });
        self.object(name, crd, argo, flux);
    }

    fn object(&mut self, name: &str, crd: Value, argo: &'static str, flux: &'static str) {
        self.names.push(name.to_owned());
        self.objects.push(crd);
        self.expected.push((argo, flux));
    }
}

fn of(kind: &str, status: &str, reason: &str) -> Value {
    json!({ "type": kind, "status": status, "reason": reason, "message": "in words" })
}

fn cases() -> Cases {
    let mut all = Cases::default();
    all.bare("no conditions", Value::Null, "Progressing", "InProgress");
    all.bare("none yet", json!([]), "Progressing", "InProgress");
    all.bare("names", json!([of("NamesAccepted", "False", "ListKindConflict")]), "Degraded", "Failed");
    all.bare("not served", json!([of("NamesAccepted", "True", "NoConflicts")]), "Progressing", "InProgress");
    all.served("no policy", &[], "Healthy", "Current");
    all.served("the server's word", &[of("NonStructuralSchema", "True", "Violations")], "Degraded", "Failed");
    let mut terminating =
        json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "generation": 2 } });
    terminating["status"]["conditions"] = json!([of("Established", "True", "InitialNamesAccepted")]);
    all.object("terminating", terminating, "Progressing", "InProgress");
    for kind in ["InvalidDefaults", "NonStructural"] {
        let with = |reason| [of(kind, "True", "Violations"), of("DefaultsPersisted", "False", reason)];
        all.served(kind, &with("InvalidDefaults"), "Degraded", "Failed");
        all.served(kind, &with("InProgress"), "Degraded", "Failed");
    }
    // Every reason of Etch's conditions is one of these.
    for reason in Reason::ALL {
        let (argo, flux) = match reason {
            Reason::Settling | Reason::InProgress => ("Progressing", "InProgress"),
            Reason::Paused | Reason::CanaryWaiting => ("Suspended", "Current"),
            Reason::AuditOnly => ("Healthy", "Current"),
            Reason::ConversionFailed | Reason::Forbidden => ("Degraded", "Current"),
            Reason::NonStructural => ("Degraded", "Failed"),
            other if other.event() == Some(EventType::Warning) => ("Degraded", "Failed"),
            // These are never False.
            _ => continue,
        };
        let persisted = |status| of("DefaultsPersisted", status, reason.as_str());
        all.served(reason.as_str(), &[persisted("False")], argo, flux);
        all.served(reason.as_str(), &[persisted("Unknown")], "Healthy", "Current");
    }
    for (generation, argo, flux) in [(1, "Progressing", "InProgress"), (2, "Healthy", "Current")] {
        let mut persisted = of("DefaultsPersisted", "True", "AllPersisted");
        persisted["observedGeneration"] = json!(generation);
        all.served("generation", &[of("InvalidDefaults", "False", "Valid"), persisted], argo, flux);
    }
    let mut stale =
        [of("InvalidDefaults", "True", "InvalidDefaults"), of("DefaultsPersisted", "True", "AllPersisted")];
    stale[1]["observedGeneration"] = json!(1);
    all.served("of another generation", &stale, "Progressing", "InProgress");
    all
}

fn read(file: &str) -> Result<Value> {
    let path = root().join("config/health").join(file);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_yaml_ng::from_str(&text)?)
}

/// Answers by the program in `e2e/oracle/health`.
fn answers(question: &Value) -> Result<Value> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/health");
    let folder = target_folder()?.join("oracle/health");
    fs::create_dir_all(&folder)?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let program = folder.join("health");
    let built = go().args(["build", "-o"]).arg(&program).arg(".").current_dir(&sources).status();
    let built = built.context("run go")?;
    ensure!(built.success(), "go: {built}");
    let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().context("a pipe")?.write_all(&serde_json::to_vec(question)?)?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[test]
fn argo_cd_and_flux_show_what_etch_says_of_a_crd() -> Result<()> {
    let (argo, flux) = (read("argocd-cm.yaml")?, read("flux.yaml")?);
    let script =
        &argo["data"]["resource.customizations.health.apiextensions.k8s.io_CustomResourceDefinition"];
    let checks = &flux["healthCheckExprs"][0];
    ensure!(
        (&checks["apiVersion"], &checks["kind"])
            == (&json!("apiextensions.k8s.io/v1"), &json!("CustomResourceDefinition"))
    );
    let cases = cases();
    let answers = answers(&json!({ "lua": script, "cel": checks, "objects": cases.objects }))?;
    let answers = answers.as_array().context("a list")?;
    ensure!(answers.len() == cases.names.len() && answers.len() > 30, "{}", answers.len());
    for ((answer, name), expected) in answers.iter().zip(&cases.names).zip(&cases.expected) {
        let shown = (answer["argo"]["status"].as_str(), answer["flux"].as_str());
        ensure!(shown == (Some(expected.0), Some(expected.1)), "{name}: {answer} instead of {expected:?}");
        ensure!(
            answer["argo"]["message"].as_str().is_some_and(|message| !message.is_empty()),
            "{name}: {answer}"
        );
    }
    Ok(())
}
