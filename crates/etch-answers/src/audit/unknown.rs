//! What a write of unknown objects would meet: only objects that can be written get that advice.

use std::io::{self, Write};

use etch_core::object::Identity;
use etch_core::words;

use crate::{counted, plain};

/// How many objects are named.
const NAMED: usize = 3;

/// Why a write of an unknown object is no way to know what etcd holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unwritable<'a> {
    /// It would do harm.
    Held,
    /// The last one was rejected, or the object was held then; with the reason where it is known.
    Refused(Option<&'a str>),
    /// Etch skips the object, or writes none of its CRD.
    Skipped,
}

/// Unknown objects, by what a write of them meets.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    writable: u64,
    held: u64,
    refused: u64,
    /// The first of those that were refused.
    named: Vec<String>,
}

impl Unknown {
    /// Counts an unknown object of a CRD.
    pub(super) fn add(&mut self, crd: &str, identity: &Identity, unwritable: Option<Unwritable<'_>>) {
        match unwritable {
            None => self.writable += 1,
            Some(Unwritable::Held) => self.held += 1,
            Some(Unwritable::Skipped) => {}
            Some(Unwritable::Refused(why)) => {
                self.refused += 1;
                if self.named.len() < NAMED {
                    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
                    self.named.push(format!("{crd} {identity}{why}"));
                }
            }
        }
    }

    /// Writes what to do about those of all CRDs. In a snapshot they are what a conversion webhook converts.
    pub(super) fn write<'a>(
        all: impl Iterator<Item = &'a Self>,
        is_snapshot: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if is_snapshot {
            return writeln!(
                out,
                "Only the conversion webhook shows what becomes of unknown objects. With --etcd-endpoints \
                 `etch audit` has the API server ask it."
            );
        }
        let mut sum = Self::default();
        for Self { writable, held, refused, named } in all {
            sum.writable += writable;
            sum.held += held;
            sum.refused += refused;
            sum.named.extend(named.iter().take(NAMED - sum.named.len()).cloned());
        }
        let persist = if sum.writable > 0 { "run `etch persist`, or " } else { "" };
        writeln!(
            out,
            "Nothing shows what etcd holds of unknown objects. To know it, {persist}give access to etcd \
             (--etcd-endpoints) or a snapshot of it."
        )?;
        if sum.held > 0 {
            writeln!(
                out,
                "`etch persist` does not write {}, because a write would do harm; `etch explain` shows why.",
                counted(sum.held, "unknown object")
            )?;
        }
        if sum.refused > 0 {
            writeln!(
                out,
                "The last pass was refused the write of {}, or held it: {}. Correct that before \
                 `etch persist`.",
                counted(sum.refused, "unknown object"),
                plain(&words::first(&sum.named, sum.refused, sum.named.len()))
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(unwritable: &[Option<Unwritable<'_>>]) -> Vec<String> {
        let mut unknown = Unknown::default();
        for (index, unwritable) in unwritable.iter().enumerate() {
            let identity = Identity {
                namespace: Some("web".to_owned()),
                name: format!("o{index}"),
                uid: index.to_string(),
            };
            unknown.add("things.example.com", &identity, *unwritable);
        }
        let mut out = Vec::new();
        Unknown::write([&unknown, &Unknown::default()].into_iter(), false, &mut out).expect("memory");
        String::from_utf8(out).expect("text").lines().map(str::to_owned).collect()
    }

    #[test]
    fn whoever_has_a_snapshot_is_not_asked_for_one() {
        let mut out = Vec::new();
        Unknown::write([&Unknown::default()].into_iter(), true, &mut out).expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("--etcd-endpoints") && !text.contains("snapshot"), "{text}");
    }

    #[test]
    fn a_write_is_advised_only_where_nothing_was_refused() {
        let advised = "Nothing shows what etcd holds of unknown objects. To know it, run `etch persist`, or \
            give access to etcd (--etcd-endpoints) or a snapshot of it.";
        let no_write = advised.replace("run `etch persist`, or ", "");
        let refused = Some(Unwritable::Refused(Some("webhook w refused it")));
        assert_eq!(written(&[None, Some(Unwritable::Skipped)]), [advised]);
        assert_eq!(written(&[Some(Unwritable::Skipped)]), [no_write.as_str()]);
        assert_eq!(
            written(&[Some(Unwritable::Held), Some(Unwritable::Held)]),
            [
                no_write.as_str(),
                "`etch persist` does not write 2 unknown objects, because a write would do harm; \
                 `etch explain` shows why.",
            ]
        );
        assert_eq!(
            written(&[refused, Some(Unwritable::Refused(None)), None]),
            [
                advised,
                "The last pass was refused the write of 2 unknown objects, or held it: things.example.com \
                 web/o0 (webhook w refused it), things.example.com web/o1. Correct that before \
                 `etch persist`.",
            ]
        );
        let many = written(&[refused; 5]);
        assert!(
            many[1].contains("5 unknown objects")
                && many[1].contains("web/o2 (webhook w refused it) and 2 more.")
        );
    }
}
