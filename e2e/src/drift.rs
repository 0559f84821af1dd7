//! Programs that write the repository's generated files, or name those that are out of date.

#![expect(clippy::print_stderr, reason = "a command line program talks to its user")]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

/// A file, and what it should hold.
#[derive(Clone, Debug)]
pub struct File {
    /// How it is called in messages.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What it should hold.
    pub text: String,
}

/// Writes generated files of the repository.
#[derive(Parser)]
struct Arguments {
    /// Write nothing; exit with 1 if a file is not what it should be.
    #[arg(long)]
    check: bool,
}

/// Runs a program of this name; `recipe` is how the justfile calls it. A file is taken once those before it
/// are written: it may be made from them.
pub fn main<Files>(program: &str, recipe: &str, files: impl FnOnce() -> Result<Files>) -> ExitCode
where
    Files: IntoIterator<Item = Result<File>>,
{
    let Arguments { check } = Arguments::parse();
    let say = |line: &str| eprintln!("{program}: {line}");
    match files().and_then(|files| each(files, check, recipe, &say)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Whether every file is what it should be, now.
fn each(
    files: impl IntoIterator<Item = Result<File>>,
    check: bool,
    recipe: &str,
    say: &dyn Fn(&str),
) -> Result<bool> {
    let mut clean = true;
    for file in files {
        let File { name, path, text } = file?;
        let found = fs::read_to_string(&path).unwrap_or_default();
        if found == text {
            continue;
        }
        if check {
            clean = false;
            let line = 1 + found.lines().zip(text.lines()).take_while(|(found, text)| found == text).count();
            say(&format!("{name} differs from line {line} on; run `just {recipe}` and commit the result"));
        } else {
            fs::write(&path, text).with_context(|| format!("write {name}"))?;
            say(&format!("{name} is new"));
        }
    }
    Ok(clean)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_file_that_differs_is_named_with_the_line_and_written_where_that_is_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("one.yaml");
        fs::write(&path, "a\nb\n").expect("written");
        let wanted = || [Ok(File { name: "one".to_owned(), path: path.clone(), text: "a\nc\n".to_owned() })];
        let wording = RefCell::new(Vec::new());
        let say = |line: &str| wording.borrow_mut().push(line.to_owned());
        let run = |check| each(wanted(), check, "generate", &say).expect("it can be read and written");
        assert!(!run(true));
        assert!(run(false) && run(true));
        assert_eq!(
            *wording.borrow(),
            ["one differs from line 2 on; run `just generate` and commit the result", "one is new"]
        );
        assert_eq!(fs::read_to_string(&path).expect("there"), "a\nc\n");
    }

    #[test]
    fn a_file_that_is_made_from_another_is_made_from_what_that_is_now() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let texts: [(&str, &dyn Fn() -> Result<String>); 2] =
            [("one", &|| Ok("a".to_owned())), ("both", &|| Ok(fs::read_to_string(path("one"))? + "b"))];
        let files = texts.map(|(name, text)| (name.to_owned(), path(name), text));
        let files = files.into_iter().map(|(name, path, text)| Ok(File { name, path, text: text()? }));
        assert!(each(files, false, "generate", &|_| ()).expect("it can be written"));
        assert_eq!(fs::read_to_string(path("both")).expect("there"), "ab");
    }
}
