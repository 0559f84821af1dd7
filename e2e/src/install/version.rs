//! The version of Etch in files that are written by hand; `Cargo.toml` sets it.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::root;
use crate::drift::File;

/// The files, and the keys whose value is the version.
const FILES: [(&str, &[&str]); 2] = [
    ("config/chart/Chart.yaml", &["version", "appVersion"]),
    ("config/manager/kustomization.yaml", &["newTag"]),
];

/// Each of these files as it should be.
///
/// # Errors
/// A file lacks a key.
pub fn versioned() -> Result<Vec<File>> {
    let file = |(name, keys): (&str, &[&str])| {
        let path = root().join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("read {name}"))?;
        let text = stamp(&text, keys, env!("CARGO_PKG_VERSION")).with_context(|| name.to_owned())?;
        Ok(File { name: name.to_owned(), path, text })
    };
    FILES.into_iter().map(file).collect()
}

fn stamp(text: &str, keys: &[&str], version: &str) -> Result<String> {
    let mut stamped = 0;
    let lines = text.lines().map(|line| {
        let key = line.trim_start().split_once(": ").map(|(key, _)| key).filter(|key| keys.contains(key));
        let Some(key) = key else { return format!("{line}\n") };
        stamped += 1;
        format!("{}{key}: {version}\n", &line[..line.len() - line.trim_start().len()])
    });
    let text = lines.collect();
    ensure!(stamped == keys.len(), "{stamped} of the keys {keys:?} are there");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::stamp;

    #[test]
    fn a_version_is_put_where_its_keys_are() {
        let text = "name: version\nversion: 1\nimages:\n- name: a\n  newTag: 1\n";
        let wanted = "name: version\nversion: 2\nimages:\n- name: a\n  newTag: 2\n";
        assert_eq!(stamp(text, &["version", "newTag"], "2").expect("stamped"), wanted);
        assert!(stamp(text, &["appVersion"], "2").is_err());
    }
}
