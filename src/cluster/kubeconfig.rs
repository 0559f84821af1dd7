//! The kubeconfig files that are read where none is named, as kubectl reads them.

use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kube::config::{Kubeconfig, KubeconfigError};

/// Why there is no kubeconfig, and which file the error is about.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) path: Option<PathBuf>,
    pub(super) error: KubeconfigError,
}

impl Unread {
    /// Whether nothing that was read names a cluster: kubectl then takes that of the pod.
    ///
    /// Source: client-go `tools/clientcmd/merged_client_builder.go`.
    pub(super) fn names_no_cluster(&self) -> bool {
        match &self.error {
            KubeconfigError::FindPath | KubeconfigError::CurrentContextNotSet => true,
            KubeconfigError::ReadConfig(error, _) => error.kind() == ErrorKind::NotFound,
            _ => false,
        }
    }
}

/// What a file holds. kubectl writes `current-context: ""` where there is none.
///
/// # Errors
/// The file cannot be used.
pub(super) fn read(path: &Path) -> Result<Kubeconfig, KubeconfigError> {
    let mut kubeconfig = Kubeconfig::read_from(path)?;
    kubeconfig.current_context = kubeconfig.current_context.filter(|name| !name.is_empty());
    Ok(kubeconfig)
}

/// What the files of `KUBECONFIG` hold together, or the usual file.
///
/// # Errors
/// A file cannot be used, or there is none.
pub(super) fn usual() -> Result<Kubeconfig, Unread> {
    let named = env::var_os("KUBECONFIG").unwrap_or_default();
    let named: Vec<PathBuf> = env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect();
    match named.is_empty() {
        true => merged(env::home_dir().map(|home| home.join(".kube").join("config"))),
        false => merged(named),
    }
}

/// What files hold together. Files that do not exist are passed over, as kubectl does, if another one exists.
fn merged(files: impl IntoIterator<Item = PathBuf>) -> Result<Kubeconfig, Unread> {
    let (mut found, mut missing) = (None::<Kubeconfig>, None);
    for path in files {
        let unread = |error| Unread { path: Some(path.clone()), error };
        match read(&path) {
            Ok(next) => {
                let before = found.take().unwrap_or_default();
                found = Some(before.merge(next).map_err(unread)?);
            }
            Err(KubeconfigError::ReadConfig(error, of)) if error.kind() == ErrorKind::NotFound => {
                missing.get_or_insert(unread(KubeconfigError::ReadConfig(error, of)));
            }
            Err(error) => return Err(unread(error)),
        }
    }
    found.ok_or_else(|| missing.unwrap_or(Unread { path: None, error: KubeconfigError::FindPath }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(name: &str) -> String {
        format!("{{apiVersion: v1, kind: Config, current-context: {name}, contexts: [{{name: {name}}}]}}")
    }

    #[test]
    fn files_that_do_not_exist_are_passed_over_where_another_one_exists() {
        let folder = tempfile::tempdir().expect("a folder");
        let [absent, first, second, broken, unset] =
            ["absent", "first", "second", "broken", "unset"].map(|name| folder.path().join(name));
        for (path, text) in [
            (&first, context("first")),
            (&second, context("second")),
            (&broken, "[".to_owned()),
            (&unset, "current-context: ''".to_owned()),
        ] {
            std::fs::write(path, text).expect("a file");
        }
        let read = |files: &[&PathBuf]| merged(files.iter().map(|path| (*path).clone()));
        let found = read(&[&absent, &unset, &first, &second, &absent]).expect("two files exist");
        let names: Vec<&str> = found.contexts.iter().map(|context| context.name.as_str()).collect();
        assert_eq!((found.current_context.as_deref(), names), (Some("first"), vec!["first", "second"]));
        let unread = read(&[&absent, &second, &broken]).expect_err("one is no kubeconfig");
        assert_eq!(unread.path, Some(broken));
        assert!(matches!(unread.error, KubeconfigError::Parse(_)) && !unread.names_no_cluster());
        let unread = read(&[&absent]).expect_err("there is none");
        assert_eq!(unread.path, Some(absent));
        assert!(matches!(unread.error, KubeconfigError::ReadConfig(..)) && unread.names_no_cluster());
        let unread = read(&[]).expect_err("there is none");
        assert!(matches!(unread.error, KubeconfigError::FindPath) && unread.names_no_cluster());
    }
}
