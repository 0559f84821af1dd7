//! Items of lists are documents.

use super::read;

#[test]
fn items_of_lists_are_documents() {
    let yaml = "apiVersion: v1\nitems:\n- {a: 1}\n- {a: 2}\nkind: List\n---\nkind: K\nitems: [1]\n";
    let expected = "stdin, item 1: {\"a\":1}\nstdin, item 2: {\"a\":2}\nstdin, document 2: \
        {\"items\":[1],\"kind\":\"K\"}";
    assert_eq!(read(yaml), expected);
    let json = r#"{"kind":"KList","items":[{"a":1},{"a":2}]} {"items":[{"a":3}],"kind":"KList"}"#;
    let expected = "stdin, item 1: {\"a\":1}\nstdin, item 2: {\"a\":2}\nstdin, document 2, item 1: {\"a\":3}";
    assert_eq!(read(json), expected);
    assert_eq!(read(r#"{"kind":"KList","items":[]}"#), "");
    for none in [
        r#"{"kind":"KList","items":null} {"a":1}"#,
        "kind: KList\nitems:\n---\na: 1\n",
        "kind: KList\nitems: {b: 1}\n---\na: 1\n",
        "apiVersion: v1\nkind: List\n---\na: 1\n",
    ] {
        let error = "error: stdin: is a list without a list of items, which kubectl refuses; write items: []";
        assert_eq!(read(none), format!("{error}\nstdin, document 2: {{\"a\":1}}"), "{none}");
    }
}

#[test]
fn items_that_are_no_objects_are_refused_as_by_kubectl() {
    let refused =
        |item| format!("error: stdin, item {item}: is no object, which kubectl refuses in a list; remove it");
    let expected = [refused(1), refused(2), refused(3), "stdin, item 4: {\"a\":1}".to_owned()].join("\n");
    for text in
        ["kind: KList\nitems:\n-\n- b\n- []\n- {a: 1}\n", r#"{"kind":"KList","items":[null,"b",[],{"a":1}]}"#]
    {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn lists_in_lists_are_refused_as_by_kubectl() {
    let expected = "error: stdin, item 1: is a list in a list, which kubectl refuses; put its items into the \
        outer list\n\
        error: stdin, item 2: is a list in a list, which kubectl refuses; put its items into the outer list\n\
        stdin, item 3: {\"items\":null,\"kind\":\"List\"}\nstdin, item 4: {\"a\":3}";
    for text in [
        "kind: List\nitems:\n- kind: List\n  items:\n  - {a: 1}\n- {kind: K, items: []}\n- {kind: List, \
         items: null}\n- {a: 3}\n",
        r#"{"kind":"List","items":[{"kind":"List","items":[{"a":1}]},{"kind":"K","items":[]},{"kind":"List","items":null},{"a":3}]}"#,
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn items_without_a_type_have_that_of_their_list() {
    let items = "stdin, item 1: {\"a\":1,\"apiVersion\":\"g/v1\",\"kind\":\"K\"}\n\
                 stdin, item 2: {\"b\":{},\"kind\":\"L\"}";
    for text in [
        r#"{"kind":"KList","apiVersion":"g/v1","items":[{"a":1},{"b":{},"kind":"L"}]}"#,
        r#"{"apiVersion":"g/v1","items":[{"a":1},{"b":{},"kind":"L"}],"kind":"KList"}"#,
        "kind: KList\napiVersion: g/v1\nitems:\n- {a: 1}\n- {b: {}, kind: L}\n",
        "apiVersion: g/v1\nitems:\n- {a: 1}\n- {b: {}, kind: L}\nkind: KList\n",
    ] {
        assert_eq!(read(text), items, "{text}");
    }
    for text in ["{apiVersion: v1, kind: List, items: [{a: 1}]}", "{kind: KList, items: [{a: 1}]}"] {
        assert_eq!(read(&format!("---\n{text}")), "stdin, item 1: {\"a\":1}", "{text}");
    }
}
