//! How the operator treats the objects of a CRD, for people and for programs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use etch_core::api::{DefaultsReportStatus, Mode, Settings};
use etch_core::crd::Crd;
use etch_core::plan::{HiddenFields, Ownership, Terms};
use etch_core::prediction::{PendingChanges, pending_changes};
use serde_json::{Value, json};

use crate::{first, plain};

/// How the operator treats the objects of a CRD.
#[derive(Clone, Debug, Default)]
pub enum Rules {
    /// No policies were read: objects are judged as under a policy that sets nothing.
    #[default]
    Assumed,
    /// No policy selects the CRD.
    Unselected,
    /// The settings of the policy that governs the CRD, and the equally specific ones that do not.
    Governed(Settings, Vec<String>),
}

impl Rules {
    /// What writes may do.
    pub fn terms(&self) -> Terms {
        self.settings().map(|settings| settings.terms.clone()).unwrap_or_default()
    }

    /// The settings of the policy that governs the CRD; `None` if none does.
    pub fn settings(&self) -> Option<&Settings> {
        match self {
            Self::Governed(settings, _) => Some(settings),
            Self::Assumed | Self::Unselected => None,
        }
    }

    /// Whether the operator looks at the objects at all.
    pub fn is_ignored(&self) -> bool {
        match self {
            Self::Assumed => false,
            Self::Unselected => true,
            Self::Governed(settings, _) => settings.mode == Mode::Ignore,
        }
    }

    /// The changed defaults whose old values the operator has still to look for, by the last report.
    pub fn due(&self, report: Option<&DefaultsReportStatus>, crd: &Crd) -> Option<PendingChanges> {
        let settings = self.settings().filter(|_| !self.is_ignored())?;
        Some(pending_changes(report?, crd, settings))
    }

    /// Why the operator writes to no object of the CRD, if it does not.
    pub fn idle(&self) -> Option<String> {
        let settings = match self {
            Self::Assumed => return None,
            Self::Unselected => return Some("no DefaultsPolicy selects this CRD".to_owned()),
            Self::Governed(settings, _) => settings,
        };
        let mode = |mode| Some(format!("DefaultsPolicy {} has mode: {mode}", settings.policy));
        match settings.mode {
            Mode::Ignore => mode("Ignore"),
            Mode::Audit => mode("Audit"),
            Mode::Persist => {
                let pause = settings.pause.as_ref()?;
                Some(format!("{pause} has paused writes; to end the pause, {}", pause.remedy()))
            }
        }
    }

    /// The command that grants the operator what it needs for the objects of the CRD. `flags` lead to the
    /// cluster, with a space before each.
    pub fn grant(&self, flags: &str) -> String {
        let settings = self.settings();
        let policy = settings.map_or("--live".to_owned(), |settings| format!("--policy {}", settings.policy));
        // The account matters only for a RoleBinding.
        let is_bound = settings.is_some_and(|settings| settings.terms.selection.selector().is_some());
        let account = if is_bound { " --service-account NAMESPACE:NAME" } else { "" };
        format!("etch rbac {policy}{account}{flags} | kubectl apply{flags} -f -")
    }

    /// How the operator treats the CRD, in a line, without a full stop.
    pub fn in_words(&self) -> String {
        match self {
            Self::Assumed => "none read; assuming one without settings".to_owned(),
            Self::Unselected => "none selects this CRD, so Etch ignores its objects".to_owned(),
            Self::Governed(settings, ties) => {
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
                if let Some(selector) = settings.terms.selection.selector() {
                    words.push(format!("objects: {selector}"));
                }
                let followed: Vec<_> = settings.follow.iter().map(ToString::to_string).collect();
                if !followed.is_empty() {
                    words.push(format!("onChange: Follow {}", followed.join(" ")));
                }
                let words = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
                let pause = settings.pause.as_ref().map(|pause| format!("; writes paused by {pause}"));
                let tie = match &ties[..] {
                    [] => String::new(),
                    ties => format!(
                        "; {} governs in the tie with {}, as the first by name",
                        settings.policy,
                        first(ties)
                    ),
                };
                format!("{}{words}{}{tie}", settings.policy, pause.unwrap_or_default())
            }
        }
    }

    /// For programs: null where no policies were read, and without a name where none selects the CRD.
    pub fn document(&self) -> Value {
        let form = |name: Option<&str>, how: Mode, terms: &Terms| {
            json!({
                "name": name,
                "mode": mode(how),
                "ownership": terms.ownership,
                "hiddenFields": terms.hidden_fields,
                "objects": terms.selection.selector(),
                "follow": [],
                "pausedBy": null,
            })
        };
        match self {
            Self::Assumed => Value::Null,
            Self::Unselected => form(None, Mode::Ignore, &Terms::default()),
            Self::Governed(settings, _) => {
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
///
/// # Errors
/// What the writer answers.
pub fn write_all<'a>(out: &mut dyn Write, all: impl Iterator<Item = (&'a str, &'a Rules)>) -> io::Result<()> {
    let mut by_words: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (crd, rules) in all {
        by_words.entry(rules.in_words()).or_default().push(crd);
    }
    let is_one = by_words.len() == 1;
    for (words, crds) in by_words {
        let whose = if is_one { String::new() } else { format!(" of {}", first(&crds)) };
        writeln!(out, "Policy{}: {}", plain(&whose), plain(&words))?;
    }
    Ok(())
}
