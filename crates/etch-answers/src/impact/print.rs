//! How an impact is printed for people: a summary and the first objects.

use std::io::{self, Write};

use etch_core::api::{Settings, follow_line};
use etch_core::impact::{Changed, Counts, Effect, EffectKind, by_effect};
use etch_core::object::{IGNORE_ANNOTATION, Identity};
use etch_core::plan::{Ownership, Terms};
use etch_lint::Finding;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

use super::crd_impact::{CrdImpact, Detail};
use super::looked::Looked;
use crate::sample::write_left;
use crate::{Cell, Style, Table, Tone, counted, plain};

/// What is reported of one CRD, for people.
///
/// # Errors
/// What the writer answers.
pub fn table(out: &mut dyn Write, style: &Style, looked: &Looked) -> io::Result<()> {
    let impact = &looked.impact;
    let name = style.paint(Tone::Strong, plain(&impact.crd));
    writeln!(out, "{name} ({})", impact.versions())?;
    if !impact.in_cluster {
        writeln!(out, "The cluster does not have this CRD, so there are no objects to check.")?;
    }
    if impact.tally.counts.total > 0 {
        writeln!(out, "Policy: {}", plain(&impact.rules.in_words()))?;
    }
    if impact.is_same() {
        let objects = match impact.tally.counts.total {
            0 => String::new(),
            total => format!(" for {}", counted(total, "object")),
        };
        return writeln!(out, "Nothing changes{objects}.\n");
    }
    for refusal in &impact.refusals {
        let refused = style.paint(Tone::Bad, plain("The API server refuses it"));
        writeln!(out, "{refused}: {}", plain(&format!("{}: {}", refusal.place(), refusal.message)))?;
    }
    if impact.only_moves() {
        writeln!(out, "{ONLY_MOVES}")?;
    }
    schemas(out, style, impact)?;
    narrowed(out, style, &impact.narrowed, !impact.has_same_schemas())?;
    if impact.tally.counts.total > 0 {
        objects(out, style, looked)?;
    }
    for advice in floating(impact, &in_backticks) {
        writeln!(out, "\n{advice}")?;
    }
    writeln!(out)
}

/// What is said of a CRD of which only the storage version changes.
pub(super) const ONLY_MOVES: &str = "Only the version at which objects are stored changes.";

/// What changes at one place of a schema, for people.
pub(super) struct SchemaRow<'a> {
    pub(super) tone: Tone,
    pub(super) word: String,
    pub(super) path: &'a Path,
    pub(super) old: Option<&'a Json>,
    pub(super) new: Option<&'a Json>,
}

/// What changes in the schemas. Where it is not about the storage version, the word has the version.
pub(super) fn schema_rows(impact: &CrdImpact) -> Vec<SchemaRow<'_>> {
    let mut rows = Vec::new();
    for (version, changes) in impact.schema_changes() {
        let mut row = |tone, word: &str, path, old, new| {
            let version = version.map(|version| format!(" at {version}")).unwrap_or_default();
            rows.push(SchemaRow { tone, word: format!("{word}{version}"), path, old, new });
        };
        for (path, value) in &changes.defaults_added {
            row(Tone::Plain, "default added", path, None, Some(value));
        }
        for Changed { path, old, new } in &changes.defaults_changed {
            row(Tone::Warning, "default changed", path, Some(old), Some(new));
        }
        for (path, value) in &changes.defaults_removed {
            row(Tone::Warning, "default removed", path, Some(value), None);
        }
        for path in &changes.fields_removed {
            row(Tone::Bad, "field removed", path, None, None);
        }
        for path in &changes.unknown_removed {
            row(Tone::Bad, "unknown fields hidden", path, None, None);
        }
        for (path, default) in &changes.nulls_removed {
            let word = if default.is_some() { "nulls replaced" } else { "nulls dropped" };
            row(Tone::Warning, word, path, None, default.as_ref());
        }
    }
    rows
}

fn schemas(out: &mut dyn Write, style: &Style, impact: &CrdImpact) -> io::Result<()> {
    let mut table = Table::new(["SCHEMA", "PATH", "OLD", "NEW"]);
    let text = |value: Option<&Json>| match value {
        Some(value) => Cell::new(value.to_string(), Tone::Plain),
        None => Cell::default(),
    };
    for SchemaRow { tone, word, path, old, new } in schema_rows(impact) {
        table.row([Cell::new(word, tone), path.to_string().into(), text(old), text(new)]);
    }
    table.write(out, style)
}

/// What can refuse objects, whether or not there are any.
fn narrowed(out: &mut dyn Write, style: &Style, findings: &[Finding], follows: bool) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    if follows {
        writeln!(out)?;
    }
    let mut table = Table::new(["CAN REFUSE OBJECTS", "VERSION", "PATH", "CHANGE"]);
    for finding in findings {
        table.row([
            Cell::new(finding.rule.code, Tone::Bad),
            finding.version.as_str().into(),
            finding.path.to_string().into(),
            finding.message.as_str().into(),
        ]);
    }
    table.write(out, style)
}

/// What happens to the objects, and what to do about it.
fn objects(out: &mut dyn Write, style: &Style, looked: &Looked) -> io::Result<()> {
    let impact = &looked.impact;
    if !impact.has_same_schemas() || !impact.narrowed.is_empty() {
        writeln!(out)?;
    }
    let total = counted(impact.tally.counts.total, "object");
    if impact.details.all() == 0 {
        writeln!(out, "{total}; nothing changes for them.")?;
    } else {
        writeln!(out, "{total}, {}:", affected(impact))?;
        of_objects(out, style, impact)?;
    }
    for advice in advice(looked, &in_backticks) {
        writeln!(out, "\n{advice}")?;
    }
    Ok(())
}

/// The numbers by effect and place, then the first objects.
fn of_objects(out: &mut dyn Write, style: &Style, impact: &CrdImpact) -> io::Result<()> {
    let mut table = Table::new(["OBJECTS", "EFFECT", "WHERE"]).numbers(&["OBJECTS"]);
    for (place, objects) in &impact.tally.summary {
        let effect = Cell::new(word(place.effect, place.is_open), tone(place.effect));
        table.row([objects.to_string().into(), effect, place.text.as_str().into()]);
    }
    table.write(out, style)?;
    writeln!(out)?;
    let mut table = Table::new(["OBJECT", "EFFECT", "WHERE"]);
    for (identity, detail) in impact.details.iter() {
        let name = named(identity, detail);
        for Happening { kind, word, places } in happenings(&detail.effect, true) {
            table.row([name.as_str().into(), Cell::new(word, tone(kind)), places.join(" ").into()]);
        }
    }
    table.write(out, style)?;
    write_left(out, impact.details.left())
}

/// How many objects something happens to, in words.
pub(super) fn affected(impact: &CrdImpact) -> String {
    of_affected(impact.details.all(), impact.tally.counts.only_open)
}

fn of_affected(all: u64, only_open: u64) -> String {
    match only_open {
        0 => format!("{all} affected"),
        open if open == all => format!("up to {all} affected"),
        open => format!("{} affected, and up to {open} more", all - open),
    }
}

/// An object, and why Etch skips it if it does.
pub(super) fn named(identity: &Identity, detail: &Detail) -> String {
    match detail.skipped {
        Some(why) => format!("{identity} ({})", why.in_words()),
        None => identity.to_string(),
    }
}

/// What happens to an object, in one row.
pub(super) struct Happening {
    pub(super) kind: EffectKind,
    pub(super) word: &'static str,
    pub(super) places: Vec<String>,
}

/// What happens to an object, in rows. Keys of maps, which are data of users, may be left out.
pub(super) fn happenings(effect: &Effect, with_keys: bool) -> Vec<Happening> {
    let shown = |path: &Path| if with_keys { path.to_string() } else { path.without_keys().to_string() };
    let mut rows = Vec::new();
    for (kind, paths) in by_effect(effect) {
        for is_open in [false, true] {
            let such = paths.iter().filter(|path| effect.open.is_open(kind, path) == is_open);
            let mut places: Vec<_> = such.map(shown).collect();
            // Without keys, places of one map are one.
            places.dedup();
            if !places.is_empty() {
                rows.push(Happening { kind, word: word(kind, is_open), places });
            }
        }
    }
    rows.extend(effect.problems.iter().map(|problem| {
        let kind = EffectKind::Problem;
        let word = word(kind, effect.open.problems.contains(problem));
        let place = if with_keys { problem.to_string() } else { problem.to_schema().to_string() };
        Happening { kind, word, places: vec![place] }
    }));
    rows
}

fn in_backticks(code: &str) -> String {
    format!("`{}`", plain(code))
}

/// How stored values follow the changed defaults that are meant to float, and that the policy does not
/// follow.
pub(super) fn floating(impact: &CrdImpact, code: &dyn Fn(&str) -> String) -> Vec<String> {
    let followed = impact.rules.settings().map(|settings| &settings.follow[..]).unwrap_or_default();
    let changed = impact.schemas.defaults_changed.iter();
    let floating = changed.filter(|changed| {
        !followed.contains(&changed.path) && etch_lint::floats(&changed.path, &changed.new)
    });
    let advice = floating.filter_map(|Changed { path, .. }| {
        let line = follow_line(path)?;
        Some(format!(
            "{} is a version or an image: objects that store the old default keep it. To have them follow \
             it, add to onChange of their DefaultsPolicy: {}",
            code(&path.to_string()),
            code(&line)
        ))
    });
    advice.collect()
}

/// What to do about the objects, in sentences. `code` makes a command stand out.
pub(super) fn advice(looked: &Looked, code: &dyn Fn(&str) -> String) -> Vec<String> {
    let impact = &looked.impact;
    let counts = &impact.tally.counts;
    let mut advice = Vec::new();
    let mut unknown = Vec::new();
    if counts.claimed > 0 {
        let objects = counted(counts.claimed, "object");
        unknown.push(format!(
            "Some defaults of {objects} count as stored because managedFields name them, which can be stale."
        ));
    }
    if counts.open > 0 {
        unknown.push("What may happen depends on what etcd holds.".to_owned());
    }
    if !unknown.is_empty() {
        let persist = match looked.settling.filter(|_| !impact.tally.may_break()) {
            Some(options) => {
                let within = &looked.within;
                format!("run {} first, or ", code(&format!("etch persist {}{options}{within}", impact.crd)))
            }
            None => String::new(),
        };
        advice.push(format!(
            "{} To know it, {persist}give access to etcd (--etcd-endpoints) or a snapshot of it.",
            unknown.join(" ")
        ));
    }
    if counts.gaining_on_write > 0 {
        advice.push(on_write(impact));
    }
    if counts.held > 0 {
        let held = counted(counts.held, "object");
        advice.push(format!("After the upgrade Etch holds {held}; -o json has the reason for each."));
    }
    if counts.protected > 0 {
        let flags = persist_flags(&impact.rules.terms());
        let (command, kept) = (
            format!("etch persist {}{flags}{}", impact.crd, looked.within),
            counted(counts.protected, "object"),
        );
        advice.push(format!("{} before the upgrade keeps values of {kept} as they are.", code(&command)));
    }
    if counts.unprotected > 0 {
        let persist = code("etch persist");
        let (ignored, whose) = match counts.unprotected {
            1 => (format!("1 object is ignored by annotation, and {persist} skips it"), "its"),
            more => (format!("{more} objects are ignored by annotation, and {persist} skips them"), "their"),
        };
        advice.push(format!("{ignored}. To keep {whose} values, remove {IGNORE_ANNOTATION} first."));
    }
    advice
}

/// Who writes the objects that show defaults only then, and at which version these are.
fn on_write(impact: &CrdImpact) -> String {
    let Counts { gaining_on_write, open, .. } = impact.tally.counts;
    let at_most = if open > 0 { "up to " } else { "" };
    let objects = counted(gaining_on_write, "object");
    let is_written = impact.rules.settings().is_none_or(Settings::writes) && !impact.rules.is_ignored();
    let writer = match is_written {
        true => "Etch makes in its pass after the upgrade, unless it holds or skips the object",
        false => "Etch does not make under this policy",
    };
    format!(
        "On {at_most}{objects}, new defaults of {} appear only with the next write, which {writer}.",
        impact.new_version
    )
}

/// The flags with which `etch persist` keeps values on the terms of the policy. It destroys none: what a
/// policy lets the operator destroy is not for a command that is to keep values.
pub fn persist_flags(terms: &Terms) -> &'static str {
    if terms.ownership == Ownership::Own { " --ownership Own" } else { "" }
}

/// The word for an effect, which may be no more than possible.
pub(super) fn word(kind: EffectKind, is_open: bool) -> &'static str {
    if is_open { kind.as_possibility() } else { kind.as_str() }
}

pub(super) fn tone(kind: EffectKind) -> Tone {
    match kind {
        EffectKind::Appears | EffectKind::AppearsOnWrite => Tone::Plain,
        EffectKind::Changes | EffectKind::Follows | EffectKind::Disappears => Tone::Warning,
        EffectKind::Hidden | EffectKind::Dropped | EffectKind::Problem => Tone::Bad,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use etch_core::crd::Crd;
    use etch_core::impact::{Open, Tally};
    use kube_manifests::Origin;
    use kube_structural_schema::path::Step;
    use serde_json::json;

    use super::*;
    use crate::impact::given::Given;
    use crate::policy::Rules;

    #[test]
    fn what_is_sure_of_one_effect_is_sure_of_the_object() {
        let place = |name: &str| Path::from(vec![Step::Field(name.to_owned())]);
        let effect = |appears: &[&str], changes: &[&str]| {
            let of = |names: &[&str]| names.iter().map(|name| place(name)).collect::<Vec<_>>();
            let open = changes.iter().map(|name| (EffectKind::Changes, place(name))).collect();
            let open = Open { places: open, problems: Vec::new() };
            Effect { appears: of(appears), changes: of(changes), open, ..Effect::default() }
        };
        let counted = |effects: Vec<Effect>| {
            let mut tally = Tally::default();
            let all = effects.len();
            effects.into_iter().for_each(|mut effect| drop(tally.add(&mut effect, None)));
            of_affected(all as u64, tally.counts.only_open)
        };
        assert_eq!(counted(vec![effect(&["a"], &["b"])]), "1 affected");
        assert_eq!(counted(vec![effect(&[], &["b"])]), "up to 1 affected");
        assert_eq!(
            counted(vec![effect(&["a"], &["b"]), effect(&[], &["b"])]),
            "1 affected, and up to 1 more"
        );
    }

    #[test]
    fn a_pass_is_advised_only_where_it_writes_objects() {
        let spec = json!({ "type": "object", "properties": { "size": { "type": "integer" } } });
        let written = Json::from(json!({
            "metadata": { "name": "things.example.com" },
            "spec": {
                "group": "example.com", "names": { "kind": "Thing", "plural": "things" },
                "versions": [{ "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } } }],
            },
        }));
        let new = Crd::read(&written).expect("a CRD");
        let mut impact = CrdImpact::new("things.example.com", None, &new, None, Rules::Assumed);
        impact.tally.counts.open = 1;
        let origin = Origin { file: "new.yaml".into(), document: 1, item: None };
        let new = Given { crd: new, labels: BTreeMap::new(), written, origin };
        let settling = Some(" --every-object");
        let mut looked = Looked { impact, new, present: None, settling, within: String::new() };
        let with =
            "To know it, run `etch persist things.example.com --every-object` first, or give access to etcd";
        assert!(advice(&looked, &in_backticks)[0].contains(with));
        looked.within = " -n web".to_owned();
        assert!(advice(&looked, &in_backticks)[0].contains("--every-object -n web` first"));
        looked.impact.tally.counts.protected = 1;
        assert!(
            advice(&looked, &in_backticks)[1].contains("`etch persist things.example.com -n web` before")
        );
        looked.impact.tally.counts.protected = 0;
        looked.settling = None;
        let advice = advice(&looked, &in_backticks);
        assert!(advice[0].contains("To know it, give access to etcd") && !advice[0].contains("persist"));
    }
}
