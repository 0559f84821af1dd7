//! Reads the DefaultsPolicies under which a command decides: those of the cluster, or of files.

use std::io::{self, Read};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use etch::cluster::Cluster;
use etch::source::{self, Document};
use etch_answers::policy::{Known, Unread, counted, of_documents};
use etch_core::api::Policies;
use etch_core::object::Object;

use super::none_of;
use crate::commands::streams::note;

/// Which policies to decide under.
#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyArg {
    /// Use the DefaultsPolicies in this file or folder, or - for standard input, instead of those of the
    /// cluster. Repeatable
    #[arg(long = "policy", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

impl PolicyArg {
    /// The policies in the files; `None` if no file is named.
    ///
    /// # Errors
    /// A file cannot be read, or holds no policy, or one that this version cannot read.
    pub(crate) fn read(&self, stdin: &mut dyn Read) -> anyhow::Result<Option<Known>> {
        if self.files.is_empty() {
            return Ok(None);
        }
        Ok(Some(Known::Read(from_files(&self.files, stdin).context("--policy")?)))
    }
}

/// The policies of a cluster. Where Etch's CRDs are not installed, or policies may not be read, there are
/// none.
///
/// # Errors
/// The cluster does not answer.
pub(crate) async fn of(cluster: &Cluster) -> anyhow::Result<Known> {
    match cluster.all_policies().await {
        Ok(Some(documents)) => Ok(Known::Read(counted(documents.iter().map(Object::json)))),
        Ok(None) => Ok(Known::Unread(Unread::NotInstalled)),
        Err(error) if error.code() == Some(403) => Ok(Known::Unread(Unread::Refused(error.to_string()))),
        Err(error) => Err(error).context("cannot read DefaultsPolicies"),
    }
}

/// Writes to standard error why the policies of the cluster were not read, if they were not.
pub(crate) fn announce(known: &Known) -> io::Result<()> {
    known.note().map_or(Ok(()), |text| note(&text))
}

/// The policies in files.
///
/// # Errors
/// A file cannot be read, or holds no policy, or one that a server refuses or this version cannot read.
pub(crate) fn from_files(files: &[PathBuf], stdin: &mut dyn Read) -> anyhow::Result<Policies> {
    let documents = source::documents(files, stdin)?;
    let found = of_documents(&documents)?;
    if found.is_empty() {
        bail!(none_of("DefaultsPolicy", files, documents.first().map(Document::what)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_policies() {
        let arg = PolicyArg { files: vec!["-".into()] };
        for (text, error) in [
            ("apiVersion: v1\nkind: Pod\n", "stdin: contains no DefaultsPolicy: found Pod of v1"),
            ("", "stdin: contains no DefaultsPolicy"),
        ] {
            let found = arg.read(&mut text.as_bytes()).expect_err("no policy");
            assert_eq!(format!("{found:#}"), format!("--policy: {error}"));
        }
        let none = PolicyArg { files: Vec::new() };
        assert!(none.read(&mut io::empty()).expect("no file").is_none());
    }
}
