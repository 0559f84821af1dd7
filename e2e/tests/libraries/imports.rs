//! Which file takes what from which, and that no way of imports leads back to where it began.
//! It reads `use` declarations and paths, and no Rust beyond that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, ensure};

use crate::{libraries, root, sources};

/// The modules of a package, or of a part of one: names as `crate::…` spells them.
type Module = Vec<String>;

struct Package {
    code: BTreeMap<Module, String>,
    /// By module, the names that it takes from elsewhere, and maybe gives on.
    taken: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

impl Package {
    /// Reads the modules in a folder, which is that of `parent`.
    fn read(folder: &Path, parent: &[&str]) -> Result<Self> {
        let mut files = Vec::new();
        sources(folder, &mut files)?;
        ensure!(!files.is_empty(), "no files in {}", folder.display());
        let mut package = Self { code: BTreeMap::new(), taken: BTreeMap::new() };
        for (path, code) in files {
            let below = path.strip_prefix(folder)?.with_extension("");
            let below = below.iter().map(|part| part.to_string_lossy().into_owned());
            let mut module: Module = parent.iter().map(|name| (*name).to_owned()).chain(below).collect();
            if matches!(module.last().map(String::as_str), Some("mod" | "lib")) {
                module.pop();
            }
            ensure!(!code.contains("pub(in "), "{}: a name is public here, or in its crate", path.display());
            let taken = uses(&code).into_iter().map(|path| (path.last().cloned().unwrap_or_default(), path));
            package.taken.insert(module.clone(), taken.collect());
            package.code.insert(module, code);
        }
        Ok(package)
    }

    /// The module in which a path written in `module` ends; `None` if it leaves the package.
    fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Option<Module> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.to_vec(),
            "super" => module[..module.len().checked_sub(1)?].to_vec(),
            name => {
                let child = [module, &[name.to_owned()]].concat();
                self.code.contains_key(&child).then_some(child)?
            }
        };
        while let Some((next, after)) = rest.split_first() {
            let child = [&at[..], std::slice::from_ref(next)].concat();
            if next == "super" {
                at.pop();
            } else if self.code.contains_key(&child) {
                at = child;
            } else {
                let given = self.taken.get(&at)?.get(next).filter(|given| *given != path && depth < 8);
                return given.and_then(|given| self.resolve(&at, given, depth + 1)).or(Some(at));
            }
            rest = after;
        }
        Some(at)
    }

    fn arrows(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let arrows = self.code.iter().map(|(module, code)| {
            let rest = rest(code);
            // What is only given on from the folder of a module is not taken.
            let is_used =
                |path: &Module| path.last().is_some_and(|name| words(&rest).any(|word| word == name));
            let taken = uses(code).into_iter().filter(is_used).chain(paths(&rest));
            let to = taken.filter_map(|path| self.resolve(module, &path, 0)).filter(|to| to != module);
            (module.clone(), to.collect())
        });
        arrows.collect()
    }
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
}

/// Every path of the `use` declarations, groups spelled out.
fn uses(code: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for part in code.replace('\n', " ").split("use ").skip(1) {
        if let Some((tree, _)) = part.split_once(';') {
            spell_out(tree, &mut Vec::new(), &mut found);
        }
    }
    found
}

fn spell_out(tree: &str, before: &mut Vec<String>, found: &mut Vec<Module>) {
    let (head, group) = tree.split_once('{').map_or((tree, None), |(head, group)| (head, Some(group)));
    let steps: Vec<String> =
        head.split("::").map(str::trim).filter(|step| !step.is_empty()).map(plain).collect();
    let length = before.len();
    before.extend(steps);
    match group {
        None => found.push(before.clone()),
        Some(group) => {
            let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
            let (mut depth, mut start) = (0, 0);
            for (index, letter) in group.char_indices().chain([(group.len(), ',')]) {
                match letter {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        if !group[start..index].trim().is_empty() {
                            spell_out(&group[start..index], before, found);
                        }
                        start = index + 1;
                    }
                    _ => {}
                }
            }
        }
    }
    before.truncate(length);
}

/// A step without ` as other`.
fn plain(step: &str) -> String {
    step.split(' ').next().unwrap_or_default().to_owned()
}

/// The code without declarations of `use` and `mod`.
fn rest(code: &str) -> String {
    let code: String =
        code.lines().filter(|line| !line.contains("mod ")).flat_map(|line| [line, " "]).collect();
    let mut parts = code.split("use ");
    let first = parts.next();
    let behind = parts.filter_map(|part| part.split_once(';').map(|(_, behind)| behind));
    first.into_iter().chain(behind).collect()
}

/// The paths in a piece of code.
fn paths(code: &str) -> impl Iterator<Item = Module> {
    let is_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let texts = code.split(move |letter| !is_path(letter)).filter(|text| text.contains("::"));
    texts.map(|text| text.split("::").filter(|step| !step.is_empty()).map(str::to_owned).collect())
}

/// Files that lead back to themselves, one circle of them.
fn circle(arrows: &BTreeMap<Module, BTreeSet<Module>>) -> Option<Vec<Module>> {
    let mut left = arrows.clone();
    loop {
        let free: Vec<_> = left
            .iter()
            .filter(|(_, to)| !to.iter().any(|to| left.contains_key(to)))
            .map(|(from, _)| from.clone())
            .collect();
        if free.is_empty() {
            break;
        }
        free.iter().for_each(|module| drop(left.remove(module)));
    }
    let mut way = vec![left.keys().next()?.clone()];
    loop {
        let next = left.get(way.last()?)?.iter().find(|to| left.contains_key(*to))?.clone();
        if let Some(start) = way.iter().position(|module| *module == next) {
            return Some(way.split_off(start));
        }
        way.push(next);
    }
}

#[test]
fn no_import_leads_back() -> Result<()> {
    let library = |name: &String| (root().join("crates").join(name).join("src"), &[][..]);
    let libraries = libraries()?;
    let mut circles = Vec::new();
    let product = [(root().join("src/operator"), &["controller"][..])];
    for (folder, parent) in libraries.iter().map(library).chain(product) {
        let arrows = Package::read(&folder, parent)?.arrows();
        ensure!(arrows.values().any(|to| !to.is_empty()), "no imports in {}", folder.display());
        circles.extend(circle(&arrows).map(|circle| format!("{}: {circle:?}", folder.display())));
    }
    ensure!(circles.is_empty(), "{}", circles.join("\n"));
    Ok(())
}
