//! A life that follows from a seed: a CRD, a policy, and what happens in each chapter.
//! A step that the cluster refuses is still a step.

use std::fmt;

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::schema::{Change, Crd};

/// How many chapters a life has. In every other one Etch is down, and comes back at its end.
const CHAPTERS: usize = 8;
/// How many objects there are by and by.
const OBJECTS: usize = 4;
/// The managers that write by server-side apply.
const APPLIERS: [&str; 2] = ["owner", "second"];

/// The life of one CRD.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) seed: u64,
    pub(crate) kind: String,
    pub(crate) plural: String,
    /// The CRD at first.
    pub(crate) crd: Crd,
    /// The policy at first.
    pub(crate) policy: Value,
    /// The steps of each chapter.
    pub(crate) chapters: Vec<Vec<Step>>,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Crd(Vec<Change>),
    Policy(Value),
    Admission(Admission),
    Act { object: usize, version: &'static str, deed: Deed },
}

/// What a mutating webhook does to each write.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Admission {
    #[default]
    None,
    /// Puts a label on it.
    Stamp,
    /// Changes it each time.
    Count,
    /// Takes some fields away.
    Strip,
}

/// What a user does to an object.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Create {
        spec: Value,
        status: bool,
        ignored: bool,
    },
    Put {
        part: Part,
        values: Value,
    },
    Merge {
        part: Part,
        values: Value,
    },
    JsonPatch(Value),
    Apply {
        manager: &'static str,
        part: Part,
        values: Value,
    },
    Scale {
        replicas: u8,
        put: bool,
    },
    Finalizer(bool),
    Delete,
    Ignore(bool),
    /// `managedFields` are cleared.
    Disown,
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    Main,
    Status,
}

impl Life {
    pub(crate) fn random(seed: u64, index: usize) -> Self {
        let mut rng = Rng::with_seed(seed);
        let rng = &mut rng;
        let kind = format!("Life{index}");
        let crd = Crd::random(rng);
        let policy = policy(rng);
        let mut now = crd.clone();
        let has_admission = rng.u8(..4) == 0;
        let chapters = (0..CHAPTERS).map(|chapter| {
            let count = if chapter == 0 { 3 } else { 1 + rng.usize(..5) };
            let mut steps: Vec<Step> = (0..count)
                .map(|index| match chapter {
                    0 => Step::Act { object: index, version: version(&now, rng), deed: create(&now, rng) },
                    _ => Step::random(rng, &mut now, has_admission),
                })
                .collect();
            // What an upgrade does is foretold before anything else happens.
            steps.sort_by_key(|step| !matches!(step, Step::Crd(_)) || rng.u8(..3) == 0);
            steps
        });
        let chapters = chapters.collect();
        Self { seed, plural: format!("{}s", kind.to_lowercase()), kind, crd, policy, chapters }
    }
}

/// Whether Etch is down while the steps of a chapter are made.
pub(crate) fn is_down(chapter: usize) -> bool {
    chapter % 2 == 1
}

impl Step {
    fn random(rng: &mut Rng, crd: &mut Crd, has_admission: bool) -> Self {
        match rng.u8(..16) {
            0..=4 => {
                let changes: Vec<Change> = (0..1 + rng.usize(..2))
                    .map(|_| {
                        let change = crd.change(rng);
                        crd.apply(&change);
                        change
                    })
                    .collect();
                Self::Crd(changes)
            }
            5 => Self::Policy(policy(rng)),
            6 | 7 if has_admission => Self::Admission(
                [Admission::None, Admission::Stamp, Admission::Count, Admission::Strip][rng.usize(..4)],
            ),
            _ => Self::Act { object: rng.usize(..OBJECTS), version: version(crd, rng), deed: deed(crd, rng) },
        }
    }
}

fn version(crd: &Crd, rng: &mut Rng) -> &'static str {
    let served: Vec<_> = crd.served().collect();
    served[rng.usize(..served.len())]
}

fn create(crd: &Crd, rng: &mut Rng) -> Deed {
    Deed::Create { spec: crd.values(rng), status: rng.u8(..4) == 0, ignored: rng.u8(..10) == 0 }
}

fn deed(crd: &Crd, rng: &mut Rng) -> Deed {
    let part = if rng.u8(..4) == 0 { Part::Status } else { Part::Main };
    let values = match part {
        Part::Main if rng.u8(..3) == 0 => json!({}),
        Part::Main => json!({ "spec": crd.values(rng) }),
        Part::Status => json!({ "status": { "seen": rng.u8(..9) } }),
    };
    match rng.u8(..20) {
        0..=2 => create(crd, rng),
        3..=6 => Deed::Merge { part, values },
        7..=9 => Deed::Apply { manager: APPLIERS[rng.usize(..2)], part, values },
        10 | 11 => Deed::Put { part, values },
        12 => Deed::JsonPatch(json!([{ "op": "remove", "path": format!("/spec/{}", crd.field(rng)) }])),
        13 => Deed::JsonPatch(json!([{ "op": "add", "path": "/spec/note", "value": "patched" }])),
        14 | 15 => Deed::Scale { replicas: rng.u8(..9), put: rng.bool() },
        16 => Deed::Finalizer(rng.u8(..3) > 0),
        17 => Deed::Delete,
        18 => Deed::Ignore(rng.bool()),
        _ => Deed::Disown,
    }
}

fn policy(rng: &mut Rng) -> Value {
    let mode = match rng.u8(..12) {
        0 => "Audit",
        1 => "Ignore",
        _ => "Persist",
    };
    let mut policy = Map::from_iter([("mode".to_owned(), json!(mode))]);
    if rng.u8(..8) == 0 {
        policy.insert("paused".to_owned(), json!(true));
    }
    if rng.u8(..5) == 0 {
        policy.insert("ownership".to_owned(), json!("Own"));
    }
    if rng.u8(..4) == 0 {
        policy.insert("hiddenFields".to_owned(), json!("Drop"));
    }
    Value::Object(policy)
}

/// The story, step by step.
impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  policy {}, conversion {:?}, status {}, scale {}",
            self.policy, self.crd.conversion, self.crd.status, self.crd.scale
        )?;
        for version in &self.crd.versions {
            let role = if version.storage { " (storage)" } else { "" };
            writeln!(f, "  {}{role}: {}", version.name, version.schema())?;
        }
        for (index, steps) in self.chapters.iter().enumerate() {
            writeln!(f, "  chapter {index}{}:", if is_down(index) { ", Etch is down" } else { "" })?;
            for step in steps {
                writeln!(f, "    {step:?}")?;
            }
        }
        Ok(())
    }
}
