//! Which DefaultsPolicy a command decides under: those of the cluster, or of files.
//! It must not choose one itself: [`assign`] does, for the operator too.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use etch::api::{
    DefaultsPolicySpec, DefaultsReportStatus, GROUP, Mode, Policies, Settings, assign, counting,
};
use etch::cluster::Cluster;
use etch::controller::{DueChanges, due_changes};
use etch::domain::crd::Crd;
use etch::domain::json::Json;
use etch::domain::plan::{HiddenFields, Ownership, Terms};
use etch::{report, source};
use serde::Deserialize;
use serde_json::{Value, json};

use super::none_of;

/// How many CRDs a line names.
const NAMED: usize = 3;

/// The labels of a CRD.
pub(crate) type Labels = BTreeMap<String, String>;

/// Which policies to decide under.
#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyArg {
    /// Decide under the DefaultsPolicies in this file or folder, or - for standard input, instead of those of the cluster.
    /// May be given several times
    #[arg(long = "policy", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

/// The policies to decide under, or why there are none to be had.
#[derive(Default)]
pub(crate) struct Known {
    policies: Option<Policies>,
    unread: Option<Unread>,
}

/// Why the policies of a cluster were not read.
pub(crate) enum Unread {
    /// Etch's CRDs are not installed.
    NotInstalled,
    /// The server refused, in these words.
    Refused(String),
}

/// How the operator treats the objects of a CRD.
#[derive(Clone, Debug)]
pub(crate) enum Rules {
    /// No policies were read: objects are judged as under a policy that sets nothing.
    Assumed,
    /// No policy selects the CRD.
    Unselected,
    /// The settings of the policy that governs the CRD.
    Governed(Settings),
}

impl PolicyArg {
    /// The policies in the files; none where no file is named.
    ///
    /// # Errors
    /// A file cannot be read, or holds no policy, or one that this version cannot read.
    pub(crate) fn read(&self, stdin: &mut dyn Read) -> anyhow::Result<Option<Known>> {
        if self.files.is_empty() {
            return Ok(None);
        }
        let policies = from_files(&self.files, stdin).context("--policy")?;
        Ok(Some(Known { policies: Some(policies), unread: None }))
    }
}

impl Known {
    /// The policies of a cluster. Where Etch's CRDs are not installed, or policies may not be read, there are none.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn of(cluster: &Cluster) -> anyhow::Result<Self> {
        let unread = match cluster.all_policies().await {
            Ok(Some(documents)) => {
                let read = documents.iter().filter_map(|document| {
                    Some((document.name().to_owned(), counting(&document.json()["spec"])?))
                });
                return Ok(Self { policies: Some(read.collect()), unread: None });
            }
            Ok(None) => Unread::NotInstalled,
            Err(error) if error.code() == Some(403) => Unread::Refused(error.to_string()),
            Err(error) => return Err(error).context("DefaultsPolicies cannot be read"),
        };
        Ok(Self { policies: None, unread: Some(unread) })
    }

    /// Why the policies of the cluster were not read; none where they were, or were not wanted.
    pub(crate) fn unread(&self) -> Option<&Unread> {
        self.unread.as_ref()
    }

    /// Writes to standard error why the policies of the cluster were not read, if they were not.
    pub(crate) fn announce(&self) -> io::Result<()> {
        let why = match &self.unread {
            None => return Ok(()),
            Some(Unread::NotInstalled) => "Etch's CRDs are not installed".to_owned(),
            Some(Unread::Refused(error)) => {
                format!("DefaultsPolicies cannot be read: {}", report::plain(error))
            }
        };
        writeln!(io::stderr(), "note: {why}; assuming a policy without settings (see --policy)")
    }

    /// The policies, where there are any to be had.
    pub(crate) fn policies(&self) -> Option<&Policies> {
        self.policies.as_ref()
    }

    /// How the operator treats the objects of a CRD.
    pub(crate) fn rules(&self, crd: &Crd, labels: &Labels) -> Rules {
        let Some(policies) = &self.policies else { return Rules::Assumed };
        let assigned = assign(policies, crd.name(), crd.group(), labels, Duration::ZERO);
        assigned.map_or(Rules::Unselected, |assigned| Rules::Governed(assigned.settings))
    }
}

/// The changed defaults whose old values the operator has still to look for, by the last report.
pub(crate) fn due(report: Option<&DefaultsReportStatus>, crd: &Crd, rules: &Rules) -> Option<DueChanges> {
    let settings = rules.settings().filter(|_| !rules.is_ignored())?;
    Some(due_changes(report?, crd, settings))
}

/// The labels in a document.
pub(crate) fn labels(document: &Json) -> Labels {
    let labels = document["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

fn from_files(files: &[PathBuf], stdin: &mut dyn Read) -> anyhow::Result<Policies> {
    let documents = source::documents(files, stdin)?;
    let mut found = Policies::new();
    for document in documents.iter().filter(|document| is_policy(document)) {
        let origin = &document.origin;
        let name = document.json["metadata"]["name"].as_str().filter(|name| !name.is_empty());
        let name = name.with_context(|| format!("{origin}: metadata.name is missing"))?;
        let spec = read_spec(&document.json["spec"]).with_context(|| origin.to_string())?;
        if found.insert(name.to_owned(), spec).is_some() {
            bail!("{origin}: DefaultsPolicy {name} was given before");
        }
    }
    if found.is_empty() {
        bail!(none_of("DefaultsPolicy", files, documents.first().map(source::Document::what)));
    }
    Ok(found)
}

fn is_policy(document: &source::Document) -> bool {
    let group = document.api_version().split_once('/').map(|(group, _)| group);
    document.kind() == "DefaultsPolicy" && group == Some(GROUP)
}

/// A spec without a field that no policy has: that is a typing error.
fn read_spec(spec: &Value) -> anyhow::Result<DefaultsPolicySpec> {
    let Some(fields) = spec.as_object() else { return Ok(DefaultsPolicySpec::default()) };
    // Serde's message may quote a value; a policy holds none of an object.
    let read = DefaultsPolicySpec::deserialize(spec).context("spec cannot be read")?;
    let known = serde_json::to_value(&read)?;
    // An empty list is left out when it is written.
    match fields.keys().find(|field| known.get(field).is_none() && *field != "onChange") {
        Some(field) => bail!("spec.{field}: unknown field"),
        None => Ok(read),
    }
}

impl Rules {
    /// What writes may do.
    pub(crate) fn terms(&self) -> Terms {
        self.settings().map(|settings| settings.terms).unwrap_or_default()
    }

    /// The settings of the policy that governs the CRD; none where none does.
    pub(crate) fn settings(&self) -> Option<&Settings> {
        match self {
            Self::Governed(settings) => Some(settings),
            Self::Assumed | Self::Unselected => None,
        }
    }

    /// Whether the operator looks at the objects at all.
    pub(crate) fn is_ignored(&self) -> bool {
        match self {
            Self::Assumed => false,
            Self::Unselected => true,
            Self::Governed(settings) => settings.mode == Mode::Ignore,
        }
    }

    /// Why the operator writes to no object of the CRD; none where it writes.
    pub(crate) fn idle(&self) -> Option<String> {
        let settings = match self {
            Self::Assumed => return None,
            Self::Unselected => return Some("no DefaultsPolicy selects this CRD".to_owned()),
            Self::Governed(settings) => settings,
        };
        let mode = |mode| Some(format!("DefaultsPolicy {} has mode: {mode}", settings.policy));
        match settings.mode {
            Mode::Ignore => mode("Ignore"),
            Mode::Audit => mode("Audit"),
            Mode::Persist => settings.pause.as_ref().map(|pause| format!("{pause} has paused writes")),
        }
    }

    /// Whether the operator is known to write to objects of the CRD.
    pub(crate) fn writes(&self) -> bool {
        self.settings().is_some() && self.idle().is_none()
    }

    /// The same in a line, without a full stop.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Assumed => "none read; assuming one without settings".to_owned(),
            Self::Unselected => "none selects this CRD, so Etch ignores its objects".to_owned(),
            Self::Governed(settings) => {
                let mut words = Vec::new();
                if settings.mode != Mode::Persist {
                    words.push(format!("mode: {}", mode(settings.mode)));
                }
                if settings.terms.ownership == Ownership::Own {
                    words.push("ownership: Own".to_owned());
                }
                if settings.terms.hidden_fields == HiddenFields::Drop {
                    words.push("hiddenFields: Drop".to_owned());
                }
                let followed: Vec<_> = settings.follow.iter().map(ToString::to_string).collect();
                if !followed.is_empty() {
                    words.push(format!("onChange: Follow {}", followed.join(" ")));
                }
                let words = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
                let pause = settings.pause.as_ref().map(|pause| format!("; writes paused by {pause}"));
                format!("{}{words}{}", settings.policy, pause.unwrap_or_default())
            }
        }
    }

    /// For programs: null where no policies were read, and without a name where none selects the CRD.
    pub(crate) fn document(&self) -> Value {
        let form = |name: Option<&str>, how: Mode, terms: &Terms| {
            json!({
                "name": name,
                "mode": mode(how),
                "ownership": terms.ownership,
                "hiddenFields": terms.hidden_fields,
                "follow": [],
                "pausedBy": null,
            })
        };
        match self {
            Self::Assumed => Value::Null,
            Self::Unselected => form(None, Mode::Ignore, &Terms::default()),
            Self::Governed(settings) => {
                let mut document = form(Some(&settings.policy), settings.mode, &settings.terms);
                document["follow"] = settings.follow.iter().map(ToString::to_string).collect();
                document["pausedBy"] = settings.pause.as_ref().map(ToString::to_string).into();
                document
            }
        }
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Persist => "Persist",
        Mode::Audit => "Audit",
        Mode::Ignore => "Ignore",
    }
}

/// Writes for people under which policy each CRD was judged: one line where it is the same for all.
pub(crate) fn write_all<'a>(
    out: &mut dyn Write,
    all: impl Iterator<Item = (&'a str, &'a Rules)>,
) -> io::Result<()> {
    let mut by_words: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (crd, rules) in all {
        by_words.entry(rules.in_words()).or_default().push(crd);
    }
    let is_one = by_words.len() == 1;
    for (words, crds) in by_words {
        let whose = if is_one { String::new() } else { format!(" of {}", first(&crds)) };
        writeln!(out, "Policy{}: {}", report::plain(&whose), report::plain(&words))?;
    }
    Ok(())
}

/// The first few names, and how many more there are.
pub(crate) fn first(names: &[&str]) -> String {
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names[..names.len().min(NAMED)].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd() -> Crd {
        let version = json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } });
        let document = json!({
            "metadata": { "name": "things.example.com" },
            "spec": { "group": "example.com", "names": { "kind": "Thing", "plural": "things" }, "versions": [version] },
        });
        Crd::read(&document.into()).expect("a CRD")
    }

    fn read(text: &str) -> Result<Known, String> {
        let arg = PolicyArg { files: vec!["-".into()] };
        let known = arg.read(&mut text.as_bytes()).map_err(|error| format!("{error:#}"))?;
        Ok(known.expect("a file is named"))
    }

    fn policy(name: &str, spec: &str) -> String {
        format!(
            "---\napiVersion: {GROUP}/v1alpha1\nkind: DefaultsPolicy\nmetadata: {{name: {name}}}\nspec: {spec}\n"
        )
    }

    fn rules(policies: &[(&str, &str)]) -> Rules {
        let text: String = policies.iter().map(|(name, spec)| policy(name, spec)).collect();
        read(&text).expect("policies").rules(&crd(), &Labels::from([("tier".to_owned(), "gold".to_owned())]))
    }

    #[test]
    fn each_setting_decides_as_for_the_operator() {
        for (policies, words, idle) in [
            (&[("default", "{}")][..], "default", None),
            (
                &[("default", "{hiddenFields: Drop, ownership: Own}")],
                "default (ownership: Own, hiddenFields: Drop)",
                None,
            ),
            (
                &[(
                    "default",
                    "{onChange: [{path: .spec.a, action: Follow}, {path: .spec.b, action: Keep}]}",
                )],
                "default (onChange: Follow .spec.a)",
                None,
            ),
            (
                &[("default", "{mode: Audit}")],
                "default (mode: Audit)",
                Some("DefaultsPolicy default has mode: Audit"),
            ),
            (
                &[("default", "{}"), ("gold", "{selector: {matchLabels: {tier: gold}}, mode: Ignore}")],
                "gold (mode: Ignore)",
                Some("DefaultsPolicy gold has mode: Ignore"),
            ),
            (
                &[("default", "{}"), ("other", "{selector: {groups: [other.io]}, pauseAll: true}")],
                "default; writes paused by DefaultsPolicy other (pauseAll)",
                Some("DefaultsPolicy other (pauseAll) has paused writes"),
            ),
            (
                &[("other", "{selector: {groups: [other.io]}}")],
                "none selects this CRD, so Etch ignores its objects",
                Some("no DefaultsPolicy selects this CRD"),
            ),
        ] {
            let rules = rules(policies);
            assert_eq!((rules.in_words().as_str(), rules.idle().as_deref()), (words, idle), "{policies:?}");
            assert_eq!(rules.writes(), idle.is_none());
        }
        assert_eq!(rules(&[("default", "{hiddenFields: Drop}")]).terms().hidden_fields, HiddenFields::Drop);
        assert_eq!(
            rules(&[("default", "{paused: true}")]).document(),
            json!({
                "name": "default", "mode": "Persist", "ownership": "None", "hiddenFields": "Hold", "follow": [],
                "pausedBy": "DefaultsPolicy default (paused)",
            })
        );
        let none = Known::default().rules(&crd(), &Labels::new());
        assert_eq!((none.document(), none.idle(), none.writes()), (Value::Null, None, false));
    }

    #[test]
    fn a_file_has_policies_that_can_be_read() {
        let twice = policy("a", "{}") + &policy("a", "{}");
        for (text, error) in [
            (policy("a", "{hiddenField: Drop}"), "--policy: stdin: spec.hiddenField: unknown field"),
            (policy("a", "{mode: Dream}"), "--policy: stdin: spec cannot be read: unknown variant `Dream`"),
            (policy("''", "{}"), "--policy: stdin: metadata.name is missing"),
            (twice, "--policy: stdin, document 2: DefaultsPolicy a was given before"),
            ("apiVersion: v1\nkind: Pod\n".to_owned(), "--policy: -: no DefaultsPolicy: found Pod of v1"),
            (String::new(), "--policy: -: no DefaultsPolicy"),
        ] {
            let found = read(&text).err().expect("an error");
            assert!(found.starts_with(error), "{found}");
        }
        assert!(read(&policy("a", "{onChange: []}")).is_ok());
    }

    #[test]
    fn one_line_where_all_are_judged_alike() {
        let lines = |all: &[(&str, &Rules)]| {
            let mut out = Vec::new();
            write_all(&mut out, all.iter().copied()).expect("memory");
            String::from_utf8(out).expect("text")
        };
        let (default, audit) = (rules(&[("default", "{}")]), rules(&[("a", "{mode: Audit}")]));
        assert_eq!(lines(&[("x", &default), ("y", &default)]), "Policy: default\n");
        assert_eq!(
            lines(&[("v", &default), ("w", &default), ("x", &default), ("y", &default), ("z", &audit)]),
            "Policy of z: a (mode: Audit)\nPolicy of v, w, x and 1 more: default\n"
        );
    }
}
