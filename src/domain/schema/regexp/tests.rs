//! `cases.json`: patterns and what Go 1.26 says of them; an empty text where it compiles them.

use super::syntax_error;

#[test]
fn says_what_go_says() {
    let cases: Vec<(String, String)> =
        serde_json::from_str(include_str!("cases.json")).expect("well-formed cases");
    for (pattern, expected) in cases {
        assert_eq!(syntax_error(&pattern).unwrap_or_default(), expected, "{pattern:?}");
    }
}

#[test]
fn knows_the_names_of_unicode() {
    for (name, known) in [
        ("Greek", true),
        ("lower-case LETTER", true),
        ("_l_u_", true),
        ("Any", true),
        ("Zzzz", false),
        ("", false),
        // Go 1.26 knows the script and does not find it.
        ("Old_Italic", false),
    ] {
        assert_eq!(syntax_error(&format!(r"\p{{{name}}}")).is_none(), known, "{name}");
        assert_eq!(syntax_error(&format!(r"[^\P{{^{name}}}]")).is_none(), known, "{name}");
    }
}

/// The greatest counts that Go 1.26 accepts.
#[test]
fn limits_size_and_depth_where_go_does() {
    let nested =
        |open: &str, close: &str, count: usize| format!("{}a{}", open.repeat(count), close.repeat(count));
    for (open, close, most) in [
        ("(", ")", 999),
        ("(", ")*", 499),
        ("(?:b.", ")*", 499),
        ("(.", ")", 499),
        ("(bb|", ")", 499),
        ("(?:", ")", 5000),
    ] {
        assert!(syntax_error(&nested(open, close, most)).is_none(), "{open}{close}");
        let error = syntax_error(&nested(open, close, most + 1)).unwrap_or_default();
        assert_eq!(error.contains("expression nests too deeply"), most < 5000, "{open}{close}: {error:.60}");
    }
    for (part, most) in [
        ("a{1000}", 3355),
        ("(a){1000}", 1118),
        ("(..){1000}", 838),
        ("a{1000,}", 3352),
        ("a{0,1000}", 1677),
        ("(?:a*){1000}", 1118),
        ("(?:a+){1000}", 1677),
        ("(?:a?){1000}", 1677),
        ("(?:aa|bc){1000}", 671),
        ("(?:|a.){1000}", 838),
    ] {
        assert!(syntax_error(&part.repeat(most)).is_none(), "{part}");
        let error = syntax_error(&part.repeat(most + 1)).unwrap_or_default();
        assert!(error.contains("expression too large"), "{part}: {error:.60}");
    }
}

#[test]
fn limits_the_product_of_nested_counts() {
    for (pattern, accepted) in [
        ("(?:a{10}){100}", true),
        ("(?:a{10}){101}", false),
        ("(?:(?:a{10}b){10}){11}", false),
        ("(?:a{1000,}){2}", false),
        ("(?:a{0}){1000}", true),
        ("(?:(?:a{1000}){0}){1000}", true),
        ("(?:a{0,}){1000}", true),
        ("(?:(?:a{2,}){0,}){501}", false),
        ("(?:(?:a{1000})*){1}", true),
        ("(?:(?:a{1000})*){2}", false),
    ] {
        assert_eq!(syntax_error(pattern).is_none(), accepted, "{pattern}");
    }
}
