//! What texts of a format look like, as far as a pattern and a length describe that.

/// What all texts of a format have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// A pattern that all of them match.
    pub pattern: String,
    /// The most characters that they have; `None` if the pattern limits them, or nothing does.
    pub most: Option<u32>,
    /// Whether there are no other such texts.
    pub is_exact: bool,
}

/// The look of texts of a format; `None` if the server checks no format of that name, or lets all texts pass.
pub fn look(name: &str) -> Option<Look> {
    const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
    const DIGIT: &str = "[0-9a-fA-F]";
    let uuid = |version: &str, variant: &str| {
        format!("{DIGIT}{{8}}-?{DIGIT}{{4}}-?{version}{DIGIT}{{3}}-?{variant}{DIGIT}{{3}}-?{DIGIT}{{12}}")
    };
    let exact = |pattern: String| (pattern, None, true);
    let like = |pattern: &str| (pattern.to_owned(), None, false);
    let (pattern, most, is_exact) = match name.replace('-', "").as_str() {
        "bsonobjectid" => exact(format!("{DIGIT}{{24}}")),
        "hexcolor" => exact(format!("#?({DIGIT}{{3}}|{DIGIT}{{6}})")),
        "ssn" => exact("[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}".to_owned()),
        "uuid" => exact(uuid(DIGIT, DIGIT)),
        "uuid3" => exact(uuid("3", DIGIT)),
        "uuid4" => exact(uuid("4", "[89abAB]")),
        "uuid5" => exact(uuid("5", "[89abAB]")),
        "k8sshortname" => (LABEL.to_owned(), Some(63), true),
        "k8slongname" => (format!(r"{LABEL}(\.{LABEL})*"), Some(253), true),
        "hostname" => (".+".to_owned(), Some(255), false),
        "date" => like("[0-9]{4}-[0-9]{2}-[0-9]{2}"),
        "datetime" => like("[0-9]{4}-[0-9]{2}-[0-9]{2}[tT].{9,}"),
        // Any number of zeros may lead.
        "ipv4" => like("[0-9a-fA-F:.]{7,}"),
        "cidr" => like("[0-9a-fA-F:.]{2,}/[0-9]+"),
        "ipv6" => like("[0-9a-fA-F:.]{2,45}"),
        "mac" => like("[0-9a-fA-F:.-]{12,59}"),
        "byte" => like("[a-zA-Z0-9+/=]{4,}"),
        "rgbcolor" => like(r"rgb\(.{5,}\)"),
        "isbn" | "isbn10" | "isbn13" => like(".{10,}"),
        "creditcard" => like(".{13,}"),
        "email" | "uri" | "duration" => like(".+"),
        _ => return None,
    };
    Some(Look { pattern: format!("^(?s:{pattern})$"), most, is_exact })
}
