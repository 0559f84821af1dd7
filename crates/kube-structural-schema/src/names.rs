//! The naming rules of Kubernetes, and the server's message if one is broken.
//!
//! Source: apimachinery `pkg/api/validate/content` and `pkg/util/validation/validation.go`.

/// The unit of lengths in messages of `pkg/api/validate/content`.
pub const BYTES: &str = "bytes";
/// The unit of lengths in messages of `pkg/util/validation`, which counts bytes as well.
pub const CHARACTERS: &str = "characters";

/// A label of RFC 1123.
pub fn dns_label(name: &str, unit: &str) -> Vec<String> {
    let mut problems = too_long(name, 63, unit);
    if !is_dns_label(name) {
        problems.push(if is_subdomain(name) {
            "must not contain dots".to_owned()
        } else {
            malformed(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
                 must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    problems
}

/// A label of RFC 1035, which begins with a letter.
pub fn dns_1035_label(name: &str, unit: &str) -> Vec<String> {
    let mut problems = too_long(name, 63, unit);
    if !is_label(name, |first| first.is_ascii_lowercase()) {
        problems.push(malformed(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
             alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    problems
}

/// A subdomain of RFC 1123: the name of most objects.
pub fn dns_subdomain(name: &str, unit: &str) -> Vec<String> {
    let mut problems = too_long(name, 253, unit);
    if !is_subdomain(name) {
        problems.push(malformed(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    problems
}

/// The key of a label or an annotation, or a finalizer: a name, perhaps with a subdomain in front.
pub fn qualified_name(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let parts: Vec<&str> = name.split('/').collect();
    let name = match *parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            let prefixed = match prefix.is_empty() {
                true => vec!["must be non-empty".to_owned()],
                false => dns_subdomain(prefix, BYTES),
            };
            problems.extend(prefixed.into_iter().map(|problem| format!("prefix part {problem}")));
            name
        }
        _ => {
            let text = malformed(KEY_MESSAGE, KEY, KEY_EXAMPLES);
            return vec![format!(
                "a valid label key {text} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    }
    problems.extend(too_long(name, 63, BYTES).into_iter().map(|problem| format!("name part {problem}")));
    if !is_key(name) {
        problems.push(format!("name part {}", malformed(KEY_MESSAGE, KEY, KEY_EXAMPLES)));
    }
    problems
}

/// The value of a label, which may be empty.
pub fn label_value(value: &str) -> Vec<String> {
    let mut problems = too_long(value, 63, BYTES);
    if !value.is_empty() && !is_key(value) {
        problems.push(malformed(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    problems
}

/// A name that may be followed by more. If it ends in a dash, upstream looks at it with its last two
/// characters replaced.
pub fn masked(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut kept = rest.to_owned();
            kept.pop();
            kept.push('a');
            kept
        }
        _ => name.to_owned(),
    }
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
    with an alphanumeric character";
const KEY_EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_dns_label)
}

/// Whether a text has the form of a label of RFC 1123, however long it is.
pub(crate) fn is_dns_label(text: &str) -> bool {
    is_label(text, |first| first.is_ascii_lowercase() || first.is_ascii_digit())
}

fn is_label(name: &str, is_first: impl Fn(u8) -> bool) -> bool {
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.bytes().all(|byte| small(byte) || byte == b'-')
        && name.bytes().next().is_some_and(is_first)
        && name.bytes().next_back().is_some_and(small)
}

fn is_key(name: &str) -> bool {
    let end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    end(name.bytes().next())
        && end(name.bytes().next_back())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Lengths count bytes, whatever unit the message names.
fn too_long(name: &str, max: usize, unit: &str) -> Vec<String> {
    if name.len() > max { vec![format!("must be no more than {max} {unit}")] } else { Vec::new() }
}

fn malformed(message: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}
