//! Why an input cannot be read.
//! It must not hold values of the input.

use std::io;

use etch_core::crd::CrdError;
use etch_core::object::Object;
use etch_lint::go_types::NotGo;
use etch_lint::published::OpenApiError;
use kube_manifests::{Malformed, Origin};

/// What is wrong with an input, and where.
#[derive(Debug, thiserror::Error)]
#[error("{origin}: {reason}")]
pub struct SourceError {
    /// Which document.
    pub origin: Origin,
    /// What is wrong with it.
    #[source]
    pub reason: Reason,
}

/// What is wrong with an input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The file cannot be opened or read.
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
    /// A pipe, a socket or a device in a folder.
    #[error("is not a regular file; name it itself to read it")]
    NoFile,
    /// More than is read of any file.
    #[error("is longer than 64 MiB; split it")]
    TooLong,
    /// What Git LFS commits in place of a file.
    #[error("is a Git LFS pointer; run git lfs pull, and name the file itself")]
    LfsPointer,
    /// Text that Helm renders, and that is neither YAML nor JSON before.
    #[error("line {line}: is a Helm template; render it first: helm template CHART | etch lint -")]
    Template {
        /// Counted from 1.
        line: usize,
    },
    /// A text that is no manifest.
    #[error(transparent)]
    Malformed(Malformed),
    /// A file where a CRD was asked for, and none is there.
    #[error("contains no CustomResourceDefinition: found {found}")]
    NoCrd {
        /// What is there.
        found: String,
    },
    /// A CRD of a version that no supported Kubernetes knows, or of none.
    #[error("is a CustomResourceDefinition {}", other_crd(.api_version))]
    OtherCrd {
        /// What it is of.
        api_version: String,
    },
    /// A CRD that cannot be read.
    #[error("CustomResourceDefinition: {0}")]
    Crd(#[source] CrdError),
    /// A document that is no Kubernetes object.
    #[error("is not a Kubernetes object: {missing} is missing")]
    NoObject {
        /// The field.
        missing: &'static str,
    },
    /// A document that is none of OpenAPI v3.
    #[error("{0}")]
    OpenApi(#[source] OpenApiError),
    /// OpenAPI without a type that API servers have objects of.
    #[error("it contains no OpenAPI v3 document with types")]
    NoType,
    /// A declaration that is no Go.
    #[error(transparent)]
    Go(#[from] NotGo),
    /// A folder without any Go file that may hold types.
    #[error("this folder contains no Go file with types; append /... to include the folders below it")]
    NoGo,
    /// A name behind `git:` that is no revision.
    #[error("is no revision; write git:REVISION, such as git:HEAD or git:v1.2")]
    NoRevision,
    /// Standard input, of which a revision of a repository has no other state.
    #[error("a revision has no standard input; name the files after the upgrade with -f")]
    NoPath,
    /// There is no git.
    #[error("git is not installed, or not on the PATH; name the files before the upgrade instead")]
    NoGit,
    /// A link in a revision that leads to none of its files.
    #[error("is a link that leads to no file in this revision; name the files before the upgrade instead")]
    Link,
    /// git refuses, in these words.
    #[error("git: {words}")]
    Git {
        /// In one line.
        words: String,
    },
    /// A folder without any file of YAML or JSON.
    #[error("this folder contains no .yaml, .yml or .json file")]
    Empty,
}

fn other_crd(api_version: &str) -> String {
    match api_version {
        "" => "without apiVersion; write apiextensions.k8s.io/v1".to_owned(),
        old if old.starts_with("apiextensions.k8s.io/") => {
            format!("of {old}; convert it to apiextensions.k8s.io/v1")
        }
        other => format!("of {other}; write apiextensions.k8s.io/v1"),
    }
}

impl SourceError {
    /// The object, where it is only nested too deeply.
    ///
    /// # Errors
    /// Anything else.
    pub fn too_deep(self) -> Result<Object, Self> {
        match self.reason {
            Reason::Malformed(Malformed::TooDeep(outline)) => Ok(Object::too_deep(outline)),
            reason => Err(Self { reason, ..self }),
        }
    }
}

impl From<Malformed> for Reason {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Template { line } => Self::Template { line },
            malformed => Self::Malformed(malformed),
        }
    }
}
