//! What is or would be removed, what stays, and why, for people and programs.

use std::io::{self, Write};

use etch_core::plan::{RecordedDefault, Standing};
use etch_core::words;
use serde_json::{Value, json};

use super::CrdRevert;
use super::tally::Counts;
use crate::sample::write_left;
use crate::{Cell, Style, Table, Tone, counted, plain, shortened};

/// The longest value of a default that a table shows, in characters.
const SHOWN: usize = 40;
/// How many defaults that the schema still has are named.
const NAMED: usize = 3;

/// A number, its key, and its label for that many objects.
type Count = (&'static str, fn(&Counts) -> u64, &'static str);

const COUNTS: [Count; 9] = [
    ("removed", |counts| counts.removed, "had stored defaults removed"),
    ("removable", |counts| counts.removable, "with stored defaults to remove"),
    ("unchangedSincePass", |counts| counts.unchanged, "of them not written since the pass"),
    ("kept", |counts| counts.kept, "with values that stay"),
    ("held", |counts| counts.held, "held"),
    ("skipped", |counts| counts.skipped, "skipped"),
    ("rejected", |counts| counts.rejected, "rejected"),
    ("unknown", |counts| counts.unknown, "unknown"),
    ("gone", |counts| counts.gone, "deleted meanwhile"),
];

/// The answer for programs.
pub fn document(reverted: &CrdRevert) -> Value {
    let CrdRevert { crd, unstorable, more_defaults, wanted, removes, tally, error } = reverted;
    let default = |(default, standing): (&RecordedDefault, &Standing)| {
        let version = match standing {
            Standing::StillDefault(version) => Some(version),
            _ => None,
        };
        let values: Vec<&Value> = default.stored.iter().map(|stored| &*stored.value).collect();
        json!({
            "path": default.path.to_string(), "stored": values, "standing": standing.as_str(),
            "version": version,
            "rollBackFirst": wanted.contains(&default.path),
        })
    };
    let mut document = json!({
        "crd": crd.name(),
        "storageVersion": crd.storage().name,
        "dryRun": !removes,
        "defaults": unstorable.defaults().map(default).collect::<Vec<_>>(),
        "moreDefaults": more_defaults,
        "objects": tally.counts.objects,
        "summary": tally.summary.document(),
        "details": tally.objects.iter().map(|(identity, entry)| entry.document(identity)).collect::<Vec<_>>(),
    });
    for (key, count, _) in COUNTS {
        document[key] = count(&tally.counts).into();
    }
    if let Some(error) = error {
        document["error"] = error.as_str().into();
    }
    document
}

/// Writes the answer for people.
///
/// # Errors
/// What the writer answers.
pub fn table(out: &mut dyn Write, style: &Style, reverted: &CrdRevert) -> io::Result<()> {
    defaults(out, style, reverted)?;
    let tally = &reverted.tally;
    let mut numbers = Table::new(["OBJECTS", "ACTION", "REASON", "WHERE"]).numbers(&["OBJECTS"]);
    tally.summary.rows(tone).for_each(|cells| numbers.row(cells));
    numbers.write_below(out, style)?;
    let mut objects = Table::new(["OBJECT", "ACTION", "REASON", "WHERE"]);
    for (identity, entry) in tally.objects.iter() {
        let message = entry.message.iter().map(|message| format!("({message})"));
        objects.row(entry.action.cells(identity, tone(entry.action.word), message));
    }
    objects.write_below(out, style)?;
    write_left(out, tally.objects.left())?;
    writeln!(out, "\n{}", summary(&tally.counts))?;
    match (reverted.removes, tally.counts.removable) {
        (false, 1..) => writeln!(out, "Nothing was written; --yes removes them."),
        _ => Ok(()),
    }
}

/// The recorded defaults, except those that are meant to be there.
fn defaults(out: &mut dyn Write, style: &Style, reverted: &CrdRevert) -> io::Result<()> {
    let mut table = Table::new(["DEFAULT", "STORED", "REMOVABLE"]);
    let mut still = Vec::new();
    for (default, standing) in reverted.unstorable.defaults() {
        let is_wanted = reverted.wanted.contains(&default.path);
        if matches!(standing, Standing::StillDefault(_)) && !is_wanted {
            still.push(default.path.to_string());
            continue;
        }
        let mut values: Vec<String> =
            default.stored.iter().map(|stored| shortened(&stored.value.to_string(), SHOWN)).collect();
        values.dedup();
        let (answer, tone) = match standing {
            Standing::Removable => ("yes".to_owned(), Tone::Good),
            other => (format!("no: {}", why(other)), Tone::Warning),
        };
        table.row([default.path.to_string().into(), values.join(", ").into(), Cell::new(answer, tone)]);
    }
    table.write(out, style)?;
    if !still.is_empty() {
        let count = counted(still.len() as u64, "recorded default");
        let verb = if still.len() == 1 { "is" } else { "are" };
        writeln!(
            out,
            "{count} {verb} still in the CRD, where nothing can be removed: {}",
            plain(&words::first(&still, still.len() as u64, NAMED))
        )?;
    }
    if reverted.more_defaults > 0 {
        writeln!(
            out,
            "{} more than the report lists are not known",
            counted(reverted.more_defaults, "default")
        )?;
    }
    if table.is_empty() && still.is_empty() {
        writeln!(out, "No default is on record.")?;
    }
    Ok(())
}

/// Why values of a default cannot be removed.
fn why(standing: &Standing) -> String {
    match standing {
        Standing::Removable => String::new(),
        Standing::StillDefault(version) => {
            format!(
                "version {version} of the CRD in the cluster still has a default here; apply the CRD of \
                --to first"
            )
        }
        Standing::FieldGone => {
            "the storage version no longer has the field; no read shows what etcd holds, and the next write \
             drops it"
                .to_owned()
        }
        Standing::NotRemovable => {
            "it is in status or metadata, is an item or a map's value itself, tells an item from others, or \
             is set through the scale subresource"
                .to_owned()
        }
        Standing::NoPass => "no complete pass on record stored it; one that did not end, such as a canary, \
            may have stored it in some objects"
            .to_owned(),
        Standing::NoValue => "the value is too long for the report".to_owned(),
    }
}

fn tone(action: &str) -> Tone {
    match action {
        "remove" | "removed" => Tone::Good,
        "rejected" => Tone::Bad,
        "hold" | "skip" | "unknown" => Tone::Warning,
        _ => Tone::Plain,
    }
}

/// The numbers in a sentence.
fn summary(counts: &Counts) -> String {
    let parts: Vec<String> = COUNTS
        .iter()
        .map(|(_, count, what)| (count(counts), what))
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    let parts = if parts.is_empty() { "nothing to remove".to_owned() } else { parts.join(", ") };
    format!("{}: {parts}.", counted(counts.objects, "object"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_a_sentence() {
        assert_eq!(summary(&Counts { objects: 1, ..Counts::default() }), "1 object: nothing to remove.");
        let counts = Counts { objects: 7, removable: 3, unchanged: 2, kept: 4, held: 1, ..Counts::default() };
        assert_eq!(
            summary(&counts),
            "7 objects: 3 with stored defaults to remove, 2 of them not written since the pass, 4 with \
             values that stay, 1 held."
        );
    }

    #[test]
    fn a_long_value_is_cut() {
        assert_eq!(shortened("1", SHOWN), "1");
        assert_eq!(shortened(&"é".repeat(SHOWN + 1), SHOWN).chars().count(), SHOWN);
    }
}
