//! ETCH101: defaults that a Go client never gets.

use super::site::{Report, Site};
use crate::go_types::Unset;
use crate::rule::{Rule, Severity};
use crate::site::shown;

pub(super) const RULE: Rule = Rule {
    code: "ETCH101",
    name: "go-unset-scalar",
    severity: Severity::Warning,
    summary: "a scalar field in Go has a default other than its zero value, and neither a pointer nor \
        omitempty",
    help: "\
Go always writes such a field: an unset one as its zero value. A CRD's default does not replace a value that
is present, so Go clients never get the default, and users of YAML do; for built-in types the default replaces
a zero that a user set on purpose. KEP-1929 (Non-pointer scalar fields) requires omitempty unless the default
is the zero value.

The same holds for structs that write their JSON themselves, such as metav1.Duration, resource.Quantity,
intstr.IntOrString and those with a MarshalJSON of their own, and for arrays such as [2]int32, with omitempty
as well: that omits neither. An unset metav1.Time is null, which the server replaces with the default.

Add `omitempty` to the json tag; for a struct or an array make it `omitzero`, from Go 1.24 on. If users must
be able to set the zero value as well, make the field a pointer.",
    check: None,
};

pub(super) fn check(site: &Site<'_>, report: &mut Report) {
    let sent = site.resolved.unset(site.packages, site.field);
    let what = match &sent {
        Unset::Value(sent) if site.resolved.writes_itself() || sent.is_array() => shown(sent),
        Unset::Value(_) => "the zero value".to_owned(),
        Unset::Written => "what the method of its type writes".to_owned(),
        Unset::Absent | Unset::Null | Unset::Object | Unset::Unknown => return,
    };
    let Some(default) = site.value() else { return };
    if site.resolved.may_be_sent(site.packages, &sent, &default) {
        return;
    }
    let why = match &sent {
        _ if site.resolved.is_omitted(site.packages) => "it has no omitempty",
        Unset::Value(sent) if sent.is_array() => "only omitzero or a pointer omits an array",
        _ => "only omitzero or a pointer omits such a struct",
    };
    let default = shown(&default);
    let message =
        format!("the default is {default}, but Go clients send {what} if they do not set the field: {why}");
    report.field(&RULE, site, message);
}
