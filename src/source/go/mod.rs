//! Go packages from folders, as the go command names them (`./api/...`), without the go command.
//! It does not look outside of the modules of the packages that it is asked for.

mod folders;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::folders::Modules;
use super::files::failed;
use super::{Reason, SourceError, bytes, files};
use etch_lint::go_types::{GoParser, Package, Packages};

/// Reads the packages that patterns name, and those that they import from the same modules.
///
/// A pattern is a folder, or one with `/...` behind it, which stands for all folders below as well; as for
/// the go command, these are not those that begin with a point or an underscore, nor `testdata` and `vendor`.
/// Left out are tests, generated files that hold no types, and files that the go command does not build for
/// Linux on amd64. What can be read is read; the rest is an error each.
pub fn packages(patterns: &[PathBuf]) -> (Packages, Vec<SourceError>) {
    let parser = match GoParser::new() {
        Ok(parser) => parser,
        Err(error) => return (Packages::default(), vec![failed(Path::new("go"), error.into())]),
    };
    let mut reader = Reader {
        parser,
        modules: Modules::default(),
        packages: Packages::default(),
        imported: BTreeSet::new(),
        errors: Vec::new(),
    };
    for pattern in patterns {
        reader.pattern(pattern);
    }
    reader.follow_imports();
    (reader.packages, reader.errors)
}

struct Reader {
    parser: GoParser,
    modules: Modules,
    packages: Packages,
    /// The import paths that types and references name.
    imported: BTreeSet<String>,
    errors: Vec<SourceError>,
}

impl Reader {
    fn pattern(&mut self, pattern: &Path) {
        let (folder, is_tree) = folders::split(pattern);
        let mut found = Vec::new();
        if let Err(error) = folders::with_go(&folder, is_tree, &mut found) {
            return self.fail(pattern, Reason::Read(error));
        }
        if found.is_empty() {
            return self.fail(pattern, Reason::NoGo);
        }
        let mut is_any = false;
        for (folder, files) in found {
            let path = self.modules.import_path(&folder);
            is_any |= self.package(path, &files, true);
        }
        if !is_any {
            self.fail(pattern, Reason::NoGo);
        }
    }

    /// Reads what is imported from modules that are known, until nothing new is.
    fn follow_imports(&mut self) {
        let mut seen = BTreeSet::new();
        while let Some(path) = self.imported.pop_first() {
            if self.packages.get(&path).is_some() || !seen.insert(path.clone()) {
                continue;
            }
            let Some(folder) = self.modules.folder(&path) else { continue };
            let mut found = Vec::new();
            // What is not there is declared elsewhere, for all that is known.
            if folders::with_go(&folder, false, &mut found).is_ok() {
                for (_, files) in found {
                    self.package(path.clone(), &files, false);
                }
            }
        }
    }

    /// Reads a package. False where no file is part of it.
    fn package(&mut self, path: String, files: &[PathBuf], is_asked: bool) -> bool {
        if let Some(known) = self.packages.0.get_mut(&path) {
            known.is_asked |= is_asked;
            return true;
        }
        let mut package = Package { path: path.clone(), is_asked, ..Package::default() };
        let mut is_any = false;
        for file in files {
            let name: Arc<str> = file.strip_prefix(".").unwrap_or(file).to_string_lossy().into();
            let bytes = files::open(file).and_then(|mut opened| bytes(&mut opened));
            let read = bytes
                .and_then(|bytes| Ok(self.parser.read(bytes, name, &mut package, &mut self.imported)?));
            match read {
                Ok(is_built) => is_any |= is_built,
                Err(reason) => {
                    is_any = true;
                    if is_asked {
                        self.fail(file, reason);
                    }
                }
            }
        }
        if is_any {
            self.packages.0.insert(path, package);
        }
        is_any
    }

    fn fail(&mut self, path: &Path, reason: Reason) {
        self.errors.push(failed(path, reason));
    }
}

#[cfg(test)]
mod tests;
