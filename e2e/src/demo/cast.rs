//! The objects of the demo: two kinds, their releases and their objects, as the files of `yaml/` have them.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cluster::documents;

/// The namespace of every object.
pub(super) const NAMESPACE: &str = "default";

/// A kind of custom resource, in three releases.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// As users write it: `certificate`.
    pub(super) word: &'static str,
    /// The API group.
    pub(super) group: &'static str,
    /// The one version.
    pub(super) version: &'static str,
    /// The plural.
    pub(super) plural: &'static str,
    /// The folder in `yaml/`.
    pub(super) folder: &'static str,
    /// The file with its objects.
    pub(super) objects: &'static str,
    /// The part of an object that the story is about.
    pub(super) part: Field,
    /// The defaults that the second release adds.
    pub(super) defaults: [Field; 2],
    /// The one of them that a user may have set, and whose default the third release changes.
    pub(super) choice: Field,
    /// Without defaults, with them, and with others.
    pub(super) releases: [Release; 3],
}

/// The last release of CronTabs: the same, stored at another version.
pub(super) static NEW_VERSION: Release = Release {
    file: "crd-4-new-version.yaml",
    origin: "the same, with a version v2, at which objects are stored",
};

/// A CRD file, and where it comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Release {
    /// The file's name.
    pub(super) file: &'static str,
    /// Its origin, in a few words.
    pub(super) origin: &'static str,
}

/// An object, and how and by which manager it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Actor {
    /// Its kind.
    pub(super) kind: &'static Kind,
    /// Its name.
    pub(super) name: &'static str,
    /// The manager that wrote it.
    pub(super) manager: &'static str,
    /// By server-side apply; otherwise it was created.
    pub(super) applied: bool,
    /// What happens to it.
    pub(super) role: Role,
}

/// What happens to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Its defaults are stored by Etch.
    Stored,
    /// Its user had set the choice before it had a default.
    Chosen,
    /// An annotation makes Etch ignore it.
    Ignored,
    /// It is created after the last release.
    New,
}

/// A field of an object, as `.spec.replicas`; no name in it holds a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field(pub(super) &'static str);

/// cert-manager's Certificate.
pub(super) static CERTIFICATES: Kind = Kind {
    word: "certificate",
    group: "cert-manager.io",
    version: "v1",
    plural: "certificates",
    folder: "cert-manager",
    objects: "certificates.yaml",
    part: Field(".spec.issuerRef"),
    defaults: [Field(".spec.issuerRef.group"), Field(".spec.issuerRef.kind")],
    choice: Field(".spec.issuerRef.kind"),
    releases: [
        Release { file: "crd-1-without-defaults.yaml", origin: "cert-manager at 8d2dd3c, before v1.19.0" },
        Release { file: "crd-2-defaults-added.yaml", origin: "cert-manager at 236523b, in v1.19.0" },
        Release { file: "crd-3-defaults-removed.yaml", origin: "cert-manager at a22e21e, v1.19.1" },
    ],
};

/// The CronTab of the Kubernetes documentation.
pub(super) static CRONTABS: Kind = Kind {
    word: "crontab",
    group: "stable.example.com",
    version: "v1",
    plural: "crontabs",
    folder: "crontab",
    objects: "crontabs.yaml",
    part: Field(".spec"),
    defaults: [Field(".spec.cronSpec"), Field(".spec.replicas")],
    choice: Field(".spec.replicas"),
    releases: [
        Release { file: "crd-1-without-defaults.yaml", origin: "Kubernetes documentation" },
        Release { file: "crd-2-defaults-added.yaml", origin: "Kubernetes documentation, \"Defaulting\"" },
        Release { file: "crd-3-default-changed.yaml", origin: "the same, with one number changed" },
    ],
};

/// The objects that exist from the beginning.
pub(super) static ACTORS: [Actor; 6] = [
    Actor {
        kind: &CERTIFICATES,
        name: "web",
        manager: "argocd-controller",
        applied: true,
        role: Role::Stored,
    },
    Actor {
        kind: &CERTIFICATES,
        name: "mesh",
        manager: "kubectl-create",
        applied: false,
        role: Role::Chosen,
    },
    Actor {
        kind: &CERTIFICATES,
        name: "left-alone",
        manager: "kubectl-create",
        applied: false,
        role: Role::Ignored,
    },
    Actor {
        kind: &CRONTABS,
        name: "my-new-cron-object",
        manager: "kubectl",
        applied: true,
        role: Role::Stored,
    },
    Actor { kind: &CRONTABS, name: "chosen", manager: "kubectl-create", applied: false, role: Role::Chosen },
    Actor {
        kind: &CRONTABS,
        name: "left-alone",
        manager: "kubectl-create",
        applied: false,
        role: Role::Ignored,
    },
];

/// The object that is created last.
pub(super) static LATECOMER: Actor = Actor {
    kind: &CRONTABS,
    name: "created-later",
    manager: "kubectl-create",
    applied: false,
    role: Role::New,
};

impl Kind {
    /// The name of the CRD.
    pub(super) fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// The CRD of a release, without a conversion webhook: there is no such service here.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub(super) fn crd(&self, release: &Release) -> Result<Value> {
        let [mut crd] = <[Value; 1]>::try_from(documents(&self.file(release.file))?)
            .ok()
            .with_context(|| format!("{} holds one CRD", release.file))?;
        ensure!(crd["metadata"]["name"] == self.crd_name(), "{} is another CRD", release.file);
        if let Some(spec) = crd["spec"].as_object_mut()
            && spec.get("conversion").is_some_and(|conversion| conversion["strategy"] == "Webhook")
        {
            spec.remove("conversion");
        }
        Ok(crd)
    }

    /// The CRD of a release without one of its versions.
    ///
    /// # Errors
    /// See [`Kind::crd`].
    pub(super) fn crd_without(&self, release: &Release, version: &str) -> Result<Value> {
        let mut crd = self.crd(release)?;
        if let Some(versions) = crd["spec"]["versions"].as_array_mut() {
            versions.retain(|other| other["name"] != version);
        }
        Ok(crd)
    }

    /// Where a file of this kind is.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../yaml")).join(self.folder).join(name)
    }

    /// The columns that show the choice of each object, as kubectl takes them.
    pub(super) fn columns(&self) -> String {
        let name = self.choice.names().last().unwrap_or_default().to_uppercase();
        format!("NAME:.metadata.name,{name}:{}", self.choice)
    }

    /// Where objects of this kind are in the API.
    pub(super) fn collection(&self) -> String {
        let Self { group, version, plural, .. } = self;
        format!("/apis/{group}/{version}/namespaces/{NAMESPACE}/{plural}")
    }
}

impl Actor {
    /// The object as its file has it.
    ///
    /// # Errors
    /// The file cannot be read, or does not hold it.
    pub(super) fn manifest(&self) -> Result<Value> {
        let file = if self.role == Role::New { "created-later.yaml" } else { self.kind.objects };
        let mut found = documents(&self.kind.file(file))?.into_iter();
        let found = found.find(|object| object["metadata"]["name"] == self.name);
        found.with_context(|| format!("{file} holds {}", self.name))
    }

    /// Where it is in the API.
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.kind.collection(), self.name)
    }
}

impl Display for Actor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.word, self.name)
    }
}

impl Field {
    /// The value in an object.
    pub(super) fn of<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.names().try_fold(object, |value, name| value.get(name))
    }

    /// Puts a value into an object, with what it takes around it.
    pub(super) fn set(&self, object: &mut Value, value: Value) {
        *self.names().fold(object, |inner, name| &mut inner[name]) = value;
    }

    /// The default that a CRD's first version declares for it.
    pub(super) fn default_in<'a>(&self, crd: &'a Value) -> Option<&'a Value> {
        let root = crd.pointer("/spec/versions/0/schema/openAPIV3Schema")?;
        self.names().try_fold(root, |schema, name| schema.get("properties")?.get(name))?.get("default")
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.split('.').skip(1)
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ACTORS, CERTIFICATES, CRONTABS, LATECOMER, Role};

    #[test]
    fn columns_are_about_the_kind() {
        assert_eq!(CERTIFICATES.columns(), "NAME:.metadata.name,KIND:.spec.issuerRef.kind");
        assert_eq!(CRONTABS.columns(), "NAME:.metadata.name,REPLICAS:.spec.replicas");
    }

    #[test]
    fn the_files_hold_what_the_story_tells() {
        for kind in [&CERTIFICATES, &CRONTABS] {
            let crds = kind.releases.each_ref().map(|release| kind.crd(release).expect("a CRD"));
            for field in kind.defaults {
                assert_eq!(field.default_in(&crds[0]), None, "{field}");
                assert!(field.default_in(&crds[1]).is_some(), "{field}");
            }
            let [_, added, changed] = crds.each_ref().map(|crd| kind.choice.default_in(crd));
            assert_ne!(added, changed, "{}", kind.choice);
        }
        for actor in ACTORS.iter().chain([&LATECOMER]) {
            let manifest = actor.manifest().expect("an object");
            let chosen = actor.kind.choice.of(&manifest).is_some();
            assert_eq!(chosen, actor.role == Role::Chosen, "{actor}");
            let ignored = manifest["metadata"]["annotations"] == json!({"etch-operator.io/ignore": "true"});
            assert_eq!(ignored, actor.role == Role::Ignored, "{actor}");
        }
    }
}
