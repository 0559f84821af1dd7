//! URLs: `url(x)`, `isURL(x)` and the parts of a URL.
//! `go-text` reads them, as Go's `net/url` does.
//!
//! Source: apiserver `pkg/cel/library/urls.go`.

use std::sync::Arc;

use go_text::url::Url;

use super::args::{kind, text};
use super::table::Table;
use crate::fault::Fault;
use crate::price::{ONE, TEXT};
use crate::value::{Key, Value};

pub(super) fn declare(table: &mut Table) {
    table.function("url", "string_to_url", "string -> url", TEXT, |args| {
        const PLAIN: &str = "URL parse error during conversion from string";
        let text = text(args, 0)?;
        let url = Url::parse_request_uri(text).and_then(|_| Url::parse(text));
        url.map(Value::kind).map_err(|error| Fault::quoting(PLAIN, format!("{PLAIN}: {error}")))
    });
    table.function("isURL", "is_url_string", "string -> bool", ONE, |args| {
        Ok(Value::Bool(Url::parse_request_uri(text(args, 0)?).is_ok()))
    });
    table.method("getScheme", "url_get_scheme", "url -> string", ONE, |args| {
        Ok(Value::text(kind::<Url>(args, 0)?.scheme()))
    });
    table.method("getHost", "url_get_host", "url -> string", ONE, |args| {
        Ok(Value::text(kind::<Url>(args, 0)?.host()))
    });
    table.method("getHostname", "url_get_hostname", "url -> string", ONE, |args| {
        Ok(Value::text(kind::<Url>(args, 0)?.hostname()))
    });
    table.method("getPort", "url_get_port", "url -> string", ONE, |args| {
        Ok(Value::text(kind::<Url>(args, 0)?.port()))
    });
    table.method("getEscapedPath", "url_get_escaped_path", "url -> string", ONE, |args| {
        Ok(Value::text(kind::<Url>(args, 0)?.escaped_path()))
    });
    table.method("getQuery", "url_get_query", "url -> map<string, list<string>>", ONE, |args| {
        let query = kind::<Url>(args, 0)?.query();
        let entries = query.into_iter().map(|(key, values)| (Key::String(key.into()), Value::texts(values)));
        Ok(Value::Map(Arc::new(entries.collect())))
    });
}
