//! CRDs as a revision of a git repository has them, by running git.
//! It changes nothing in the repository, and reads only what the revision has.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use kube_manifests::{Document, Origin};

use super::files::is_manifest;
use super::{DistinctFiles, Reason, SourceError};

/// The prefix of a revision in place of a file.
const PREFIX: &str = "git:";

/// The revision that is named in place of a file; `None` if it is a file.
pub fn revision(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(PREFIX)
}

/// All documents that a revision has at the paths of these files and folders, and the paths at which it has
/// no manifest.
///
/// # Errors
/// git cannot be run, or knows no such revision, or a document cannot be read, or a link leads to no file of
/// the revision; and standard input has no path.
pub fn documents(revision: &str, paths: &[PathBuf]) -> Result<(Vec<Document>, Vec<PathBuf>), SourceError> {
    // What begins with a hyphen would be an option.
    if revision.is_empty() || revision.starts_with('-') || revision.contains(':') {
        return Err(failed(revision, Path::new(""), Reason::NoRevision));
    }
    let (mut files, mut found, mut lacks) = (DistinctFiles::default(), Vec::new(), Vec::new());
    for path in paths {
        if path == Path::new("-") {
            return Err(failed(revision, Path::new("stdin"), Reason::NoPath));
        }
        let is_there = match path.is_dir() {
            true => folder(revision, path, &mut files, &mut found)?,
            false if !files.is_new(path) => true,
            false => single(revision, path, &mut found)?,
        };
        if !is_there {
            lacks.push(path.clone());
        }
    }
    Ok((found, lacks))
}

/// Where a document of one of these revisions, or of a file, is in the working tree, if it is there still.
pub fn without_revision(origin: Origin, paths: &[PathBuf]) -> Origin {
    let mut revisions = paths.iter().filter_map(|path| revision(path));
    let file = revisions.find_map(|revision| origin.file.strip_prefix(revision)?.strip_prefix(':'));
    match file.map(Arc::from) {
        Some(file) => Origin { file, ..origin },
        None => origin,
    }
}

/// The manifests in a folder and below, as those of a folder on the disk are chosen; whether there is one.
fn folder(
    revision: &str,
    path: &Path,
    files: &mut DistinctFiles,
    found: &mut Vec<Document>,
) -> Result<bool, SourceError> {
    let listed = git(path, &["ls-tree", "-r", "-z", "--name-only", revision], b"");
    let listed = listed.map_err(|reason| failed(revision, path, reason))?;
    let names = listed.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
    let is_shown = |name: &&str| !name.is_empty() && !name.split('/').any(|part| part.starts_with('.'));
    let mut is_empty = true;
    for name in names.filter(is_shown).map(Path::new).filter(|name| is_manifest(name)) {
        let shown = path.join(name);
        // A link to a folder is passed over.
        if !files.is_new(&shown) || file(revision, path, name, &shown, found)? {
            is_empty = false;
        }
    }
    Ok(!is_empty)
}

/// A file that is named; whether it is there.
fn single(revision: &str, path: &Path, found: &mut Vec<Document>) -> Result<bool, SourceError> {
    let name = Path::new(path.file_name().unwrap_or_default());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let below = format!("./{}", name.display());
    // A revision of which git knows nothing is an error, and a file of which it knows nothing is none.
    let listing = ["--literal-pathspecs", "ls-tree", "-z", "--name-only", revision, "--", &below];
    if git(folder, &listing, b"").map_err(|reason| failed(revision, path, reason))?.is_empty() {
        return Ok(false);
    }
    file(revision, folder, name, path, found)
}

/// One file, by its name below a folder; whether it is one, and not a folder.
fn file(
    revision: &str,
    folder: &Path,
    name: &Path,
    shown: &Path,
    found: &mut Vec<Document>,
) -> Result<bool, SourceError> {
    let text = blob(folder, &format!("{revision}:./{}", name.display()));
    let Some(text) = text.map_err(|reason| failed(revision, shown, reason))? else { return Ok(false) };
    let origin = format!("{revision}:{}", shown.display());
    let mut failure = None;
    let flow = super::file(&origin, Ok(&mut text.as_slice()), &mut |document| match document {
        Ok(document) => {
            found.push(document);
            ControlFlow::Continue(())
        }
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    });
    match failure {
        Some(error) if flow.is_break() => Err(error),
        _ => Ok(true),
    }
}

/// What the revision has in a file, and for a link, in the file of the revision to which it leads: the blob
/// of a link is only the path of its target. `None` for a folder.
fn blob(folder: &Path, object: &str) -> Result<Option<Vec<u8>>, Reason> {
    let mut answer =
        git(folder, &["cat-file", "--batch", "--follow-symlinks"], format!("{object}\n").as_bytes())?;
    let end = answer.iter().position(|byte| *byte == b'\n').unwrap_or(answer.len());
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut words = head.rsplit(' ');
    match (words.next().unwrap_or_default().parse().ok(), words.next()) {
        (Some(length), Some("blob")) => {
            answer.drain(..answer.len().min(end + 1));
            answer.truncate(length);
            Ok(Some(answer))
        }
        (Some(_), Some("tree")) => Ok(None),
        _ => Err(Reason::Link),
    }
}

fn git(folder: &Path, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, Reason> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.spawn().and_then(|mut child| {
        if let Some(mut stdin) = child.stdin.take() {
            // If git exits before it reads all input, its error explains why.
            let _ = stdin.write_all(input);
        }
        child.wait_with_output()
    });
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Reason::NoGit,
        _ => Reason::Read(error),
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let words = words.lines().next().unwrap_or_default();
    Err(Reason::Git { words: words.trim_start_matches("fatal: ").to_owned() })
}

fn failed(revision: &str, path: &Path, reason: Reason) -> SourceError {
    let file = format!("{PREFIX}{revision} {}", path.display());
    SourceError { origin: Origin { file: file.trim_end().into(), document: 1, item: None }, reason }
}
