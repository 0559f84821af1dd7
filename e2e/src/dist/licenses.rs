//! The license texts of the crates in the binary: most licenses ask to pass their text on.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

use super::archive::Entry;
use super::crates::{Crate, Id};

/// How files with licenses are called, in lower case.
const NAMES: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];

/// One file with all texts, each once, below the crates that have it.
pub(super) fn entries(crates: &BTreeMap<Id, Crate>) -> Result<Vec<Entry>> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = String::new();
    let delivered = crates.iter().filter(|(_, known)| known.is_linked && known.checksum.is_some());
    for ((name, version), known) in delivered {
        let title = format!("{name} {version} ({})", known.license);
        let mut found = Vec::new();
        for entry in fs::read_dir(&known.folder).with_context(|| known.folder.display().to_string())? {
            let path = entry?.path();
            let file = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            if NAMES.iter().any(|name| file.starts_with(name)) && path.is_file() {
                found.push(String::from_utf8_lossy(&fs::read(&path)?).replace('\r', "").trim().to_owned());
            }
        }
        if found.is_empty() {
            let place = known.repository.as_deref().unwrap_or("crates.io");
            without.push_str(&format!("{title}: {place}\n"));
        }
        for text in found {
            let titles = texts.entry(text).or_default();
            if titles.last() != Some(&title) {
                titles.push(title.clone());
            }
        }
    }
    let mut all = format!("Etch contains these crates.\n\nWithout a license text of their own:\n{without}");
    let mut texts: Vec<_> = texts.into_iter().map(|(text, titles)| (titles.join("\n"), text)).collect();
    texts.sort();
    for (titles, text) in texts {
        all.push_str(&format!("\n{}\n{titles}\n\n{text}\n", "-".repeat(80)));
    }
    Ok(vec![Entry::new("THIRD-PARTY-LICENSES.txt", all)])
}
