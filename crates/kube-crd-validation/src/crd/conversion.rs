//! `conversion`: the strategy, and the webhook's client and versions.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`,
//! `validateCustomResourceConversion`, and apiserver `pkg/util/webhook/validation.go`.

use super::ca_bundle;
use super::document::{Client, Conversion, Service};
use super::options::Options;
use super::report::Report;
use crate::metadata::names::{dns_1035_label, dns_subdomain};
use go_text::url::Url;

const AT: &str = "spec.conversion";

/// The versions of `ConversionReview` that the server knows.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// Whether the server knows one of these versions, or there is none.
pub(super) fn is_recognized(versions: &[&str]) -> bool {
    versions.is_empty() || versions.iter().any(|version| REVIEWS.contains(version))
}

pub(super) fn check(conversion: &Conversion<'_>, options: &Options<'_>, report: &mut Report) {
    match conversion.strategy {
        "None" | "Webhook" => {}
        "" => report.required(format!("{AT}.strategy"), ""),
        _ => report.not_supported(format!("{AT}.strategy"), &["None", "Webhook"]),
    }
    let at = format!("{AT}.webhookClientConfig");
    if conversion.strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if conversion.client.is_some() {
            report.forbidden(at, detail);
        }
        if !conversion.review_versions.is_empty() {
            report.forbidden(format!("{AT}.conversionReviewVersions"), detail);
        }
        return;
    }
    match &conversion.client {
        Some(config) => client(config, &at, options, report),
        None => report.required(at, "required when strategy is set to Webhook"),
    }
    review_versions(&conversion.review_versions, options, report);
}

fn client(config: &Client<'_>, at: &str, options: &Options<'_>, report: &mut Report) {
    match (config.url, &config.service) {
        (Some(address), None) => url(address, &format!("{at}.url"), report),
        (None, Some(of)) => service(of, &format!("{at}.service"), report),
        _ => report.required(at, "exactly one of url or service is required"),
    }
    if !config.ca_bundle.is_empty()
        && !options.allow_invalid_ca_bundle
        && let Some(problem) = ca_bundle::problem(&config.ca_bundle)
    {
        report.invalid(format!("{at}.caBundle"), problem);
    }
}

fn url(address: &str, at: &str, report: &mut Report) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(address) {
        Ok(url) => url,
        Err(error) => return report.required(at, format!("url must be a valid URL: {error}{FORM}")),
    };
    if url.scheme() != "https" {
        report.invalid(at, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host().is_empty() {
        report.invalid(at, format!("host must be specified{FORM}"));
    }
    if url.has_user() {
        report.invalid(at, "user information is not permitted in the URL");
    }
    if url.has_fragment() {
        report.invalid(at, "fragments are not permitted in the URL");
    }
    if url.has_query() {
        report.invalid(at, "query parameters are not permitted in the URL");
    }
}

/// The server confuses the name and the namespace, and so it is here.
fn service(service: &Service<'_>, at: &str, report: &mut Report) {
    if service.namespace.is_empty() {
        report.required(format!("{at}.name"), "");
    }
    if service.name.is_empty() {
        report.required(format!("{at}.namespace"), "");
    }
    if !(1..=65_535).contains(&service.port) {
        report.invalid(format!("{at}.port"), "port is not valid: must be between 1 and 65535, inclusive");
    }
    let at = format!("{at}.path");
    let Some(path) = service.path.filter(|path| !matches!(*path, "" | "/")) else { return };
    if path == "//" {
        return report.invalid(at, "segment[0] may not be empty");
    }
    if !path.starts_with('/') {
        report.invalid(&at, "must start with a '/'");
    }
    // Upstream cuts off the first byte, whatever it is.
    let rest = String::from_utf8_lossy(&path.as_bytes()[1..]).into_owned();
    let rest = rest.strip_suffix('/').unwrap_or(&rest);
    for (index, step) in rest.split('/').enumerate() {
        if step.is_empty() {
            report.invalid(&at, format!("segment[{index}] may not be empty"));
            continue;
        }
        for problem in dns_subdomain(step) {
            report.invalid(&at, format!("segment[{index}]: {problem}"));
        }
    }
}

fn review_versions(versions: &[&str], options: &Options<'_>, report: &mut Report) {
    let at = format!("{AT}.conversionReviewVersions");
    if versions.is_empty() {
        return report.required(at, "");
    }
    for (index, version) in versions.iter().enumerate() {
        if versions[..index].contains(version) {
            report.invalid(format!("{at}[{index}]"), "duplicate version");
            continue;
        }
        for problem in dns_1035_label(version) {
            report.invalid(format!("{at}[{index}]"), problem);
        }
    }
    if options.require_recognized_review && !is_recognized(versions) {
        report.invalid(at, format!("must include at least one of {}", REVIEWS.join(", ")));
    }
}
