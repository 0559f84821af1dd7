mod lists;

use kube_structural_schema::json::Json;

use super::*;

/// What is read from a text, in short: places and kinds, and the error that ends it.
fn read(text: &str) -> String {
    read_bytes(text.as_bytes())
}

fn read_bytes(bytes: &[u8]) -> String {
    let mut seen = Vec::new();
    let _ = super::read("stdin", bytes.to_vec(), &mut |document| {
        seen.push(match document {
            Ok(document) => {
                format!("{}: {}", document.origin, String::from_utf8_lossy(&document.json.to_vec()))
            }
            Err((origin, error)) => format!("error: {origin}: {error}"),
        });
        ControlFlow::Continue(())
    });
    seen.join("\n")
}

#[test]
fn documents_are_counted_and_blank_ones_are_none() {
    let text = "# nothing\n---\na: 1\n---\n---\n{}\n---\nb: [x, {c: yes}]\n";
    assert_eq!(read(text), "stdin: {\"a\":1}\nstdin, document 4: {\"b\":[\"x\",{\"c\":true}]}");
    assert_eq!(read("{\"a\":1}\n {\"b\":1.0}"), "stdin: {\"a\":1}\nstdin, document 2: {\"b\":1}");
}

#[test]
fn marks_beside_a_text_in_brackets_are_read_as_kubectl_does() {
    for (text, expected) in [
        ("x: {a: }", r#"stdin: {"x":{"a":null}}"#),
        ("x: {a:b}", r#"stdin: {"x":{"a:b":null}}"#),
        ("x: {'a':, \"b?\": '?'}", r#"stdin: {"x":{"a":null,"b?":"?"}}"#),
        ("x: {? a: 1}", r#"stdin: {"x":{"a":1}}"#),
        ("x: [http://x:80, a: -b]", r#"stdin: {"x":["http://x:80",{"a":"-b"}]}"#),
        ("x: a?\ny?: [b]\nz: b:", "error: stdin: line 3: "),
        ("x: a?\ny?: [b]\n?z: 1", r#"stdin: {"?z":1,"x":"a?","y?":["b"]}"#),
    ] {
        assert!(read(text).starts_with(expected), "{text}: {}", read(text));
    }
    for text in [
        "{a:}",
        "{a:,b: 1}",
        "[a:]",
        "{?a: 1}",
        "[a?b]",
        "[[?a]]",
        "{u: http://x?y=1}",
        "{:a: 1}",
        "{a: :b}",
        "{a: [b ?c]}",
    ] {
        let read = read(&format!("x: {text}"));
        assert!(read.starts_with("error: stdin: line 1: kubectl reads a ? or :"), "{text}: {read}");
    }
}

/// The keys that occur again, each with its document, place and line.
fn duplicates(text: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let _ = super::read("stdin", text.as_bytes().to_vec(), &mut |document| {
        let Document { origin, json, duplicates, .. } = document.expect("a document");
        seen.push(format!("{origin}: {}", String::from_utf8_lossy(&json.to_vec())));
        seen.extend(duplicates.iter().map(|DuplicateKey { place, line, is_other_type }| {
            format!("{place:?} {line:?}{}", if *is_other_type { " of another type" } else { "" })
        }));
        ControlFlow::Continue(())
    });
    seen
}

#[test]
fn the_last_of_two_values_with_one_key_counts() {
    assert_eq!(
        duplicates("a: 1\nb:\n- c: {d: 1,\n    d: 2}\na: 3\n---\ne: 1\n"),
        [
            "stdin: {\"a\":3,\"b\":[{\"c\":{\"d\":2}}]}",
            "[Field(\"b\"), Item(0), Field(\"c\"), Field(\"d\")] Some(4)",
            "[Field(\"a\")] Some(5)",
            "stdin, document 2: {\"e\":1}",
        ]
    );
    assert_eq!(
        duplicates("\"1\": a\n1: b\n0x1: c\n'true': a\nyes: b\n1.0: d\nx: 1\n\"x\": 2\n"),
        [
            "stdin: {\"1\":\"d\",\"true\":\"b\",\"x\":2}",
            "[Field(\"1\")] Some(2) of another type",
            "[Field(\"1\")] Some(3)",
            "[Field(\"true\")] Some(5) of another type",
            "[Field(\"1\")] Some(6) of another type",
            "[Field(\"x\")] Some(8)",
        ]
    );
    let json = r#"{"a":1,"b":[{"c":{"d":1,"d":2}}],"a":3} {"e":1}"#;
    assert_eq!(
        duplicates(json),
        [
            "stdin: {\"a\":3,\"b\":[{\"c\":{\"d\":2}}]}",
            "[Field(\"b\"), Item(0), Field(\"c\"), Field(\"d\")] None",
            "[Field(\"a\")] None",
            "stdin, document 2: {\"e\":1}",
        ]
    );
    let items = ["stdin, item 1: {\"a\":1}", "stdin, item 2: {\"b\":2}", "[Field(\"b\")] "];
    let of = |text: &str| {
        duplicates(text)
            .iter()
            .map(|line| line.replace("Some(5)", "").replace("None", ""))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("kind: List\nitems:\n- a: 1\n- b: 1\n  b: 2\n"), items);
    assert_eq!(of(r#"{"kind":"List","items":[{"a":1},{"b":1,"b":2}]}"#), items);
    assert_eq!(of(r#"{"items":[{"a":1},{"b":1,"b":2}],"kind":"List"}"#), items);
    assert_eq!(of("items:\n- a: 1\n-\n  b: 1\n  b: 2\nkind: List\n"), items);
}

#[test]
fn a_key_that_a_merge_replaces_occurs_twice_and_one_that_replaces_a_merge_does_not() {
    let text = "p: &p {a: 1, b: 1}\nq:\n- <<: *p\n  a: 2\n- a: 2\n  <<: [*p, *p]\n  <<: *p\n\
                \u{20}\u{20}b: 3\n  c: 4\n  c: 5\n";
    assert_eq!(
        duplicates(text),
        [
            "stdin: {\"p\":{\"a\":1,\"b\":1},\"q\":[{\"a\":2,\"b\":1},{\"a\":1,\"b\":3,\"c\":5}]}",
            "[Field(\"q\"), Item(1), Field(\"a\")] Some(6)",
            "[Field(\"q\"), Item(1), Field(\"c\")] Some(10)",
        ]
    );
}

/// What the reader of kubectl 1.37 makes of these texts: k8s.io/apimachinery 0.37.1 on sigs.k8s.io/yaml 1.6.0
/// and go.yaml.in/yaml/v2 2.4.4, as `kubectl apply -f` calls it.
#[test]
fn texts_mean_what_kubectl_reads() {
    #[derive(serde::Deserialize)]
    struct Case {
        text: String,
        /// Those before an error, too.
        documents: Vec<Json>,
        #[serde(default)]
        is_refused: bool,
    }

    for line in include_str!("kubectl.jsonl").lines() {
        let case: Case = serde_json::from_str(line).expect("a case");
        let (mut documents, mut is_refused) = (Vec::new(), false);
        let _ = super::read("stdin", case.text.into_bytes(), &mut |document| {
            match document {
                Ok(document) => documents.push(document.json),
                Err(_) => is_refused = true,
            }
            ControlFlow::Continue(())
        });
        assert_eq!((documents, is_refused), (case.documents, case.is_refused), "{line}");
    }
}

#[test]
fn a_tab_may_stand_where_no_line_is_indented() {
    assert_eq!(
        read("a:\t1\t# c\nb: {x: 1,\n\tz: 2}\nc: |\n  x\n  \tz\nd: x\ne: |1\n \tx\nf:\n- g:\th\n"),
        r#"stdin: {"a":1,"b":{"x":1,"z":2},"c":"x\n\tz\n","d":"x","e":"\tx\n","f":[{"g":"h"}]}"#
    );
}

#[test]
fn what_kubectl_refuses_is_refused_with_its_line() {
    let cases = [
        ("a: 1\nb: !!int 5.0\n", "line 2: the value does not fit its tag !!int"),
        (
            "---\na: 1\nb: \"\\/\"\n",
            "line 3: kubectl refuses this escape in YAML: write the character itself",
        ),
        (
            "a: 1\nb: x\u{2028}y\n",
            "line 2: kubectl takes the invisible character U+0085, U+2028 or U+2029 in it for the end of a \
             line: remove it",
        ),
        (
            "a: 1\n\t\nb: 1\n",
            "line 2: kubectl refuses a tab in the white space that a line begins with: write spaces",
        ),
        (
            "a: 1\n# c\n \t# d\n",
            "line 3: kubectl refuses a tab in the white space that a line begins with: write spaces",
        ),
        (
            "e: |\n  x\n\t\nf: 1\n",
            "line 3: kubectl refuses a tab in the white space that a line begins with: write spaces",
        ),
        (
            "a: {b: 1}\n\t\n",
            "line 2: kubectl refuses a tab in the white space that a line begins with: write spaces",
        ),
        (
            "? a\n:\tb\n",
            "line 2: kubectl refuses a tab in the white space that a line begins with: write spaces",
        ),
        (
            "a:\n  -\tb\n",
            "line 2: kubectl refuses a tab in the white space that a line begins with: write spaces",
        ),
        (
            "a:\n  - -\tb\n",
            "line 2: kubectl refuses a tab in the white space that a line begins with: write spaces",
        ),
        (
            "a:\n  ? \tb\n  : c\n",
            "line 2: kubectl refuses a tab in the white space that a line begins with: write spaces",
        ),
        (
            "a:\n  - \t\n    b: c\n",
            "line 2: kubectl refuses a tab in the white space that a line begins with: write spaces",
        ),
        (
            "a: |\n  \tb\n",
            "line 2: kubectl refuses a tab in the white space that a line begins with: write spaces",
        ),
        (
            "a:\n  b: >- # |\n\n    \tc\n    d\n",
            "line 4: kubectl refuses a tab in the white space that a line begins with: write spaces",
        ),
        ("# c\n%YAML 1.2\n---\na: 1\n", "line 2: kubectl refuses directives such as %YAML"),
        (
            "a: 1\nb: &x.y {d: 1}\nc: *x.y\n",
            "line 2: kubectl refuses this name of an anchor: use letters of ASCII, digits, - and _",
        ),
        (
            "a: 1\nb: &é {d: 1}\nc: *é\n",
            "line 2: kubectl refuses this name of an anchor: use letters of ASCII, digits, - and _",
        ),
        ("--- !!map\na: 1\n", "line 1: only a comment may stand behind the --- that separates documents"),
        ("p: &p [{}]\na:\n  <<: *p\n", "line 3: `<<` merges something other than a mapping"),
        (
            "a: 1\n18446744073709551615: 1\n",
            "line 2: an integer that does not fit 64 bits with a sign is no key to kubectl",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), format!("error: stdin: {expected}"), "{text}");
    }
    assert_eq!(
        read("a: 1\n---\nb: 1\n---\nc:\n\n  d: !!bool 1\n"),
        "stdin: {\"a\":1}\nstdin, document 2: {\"b\":1}\n\
         error: stdin, document 3: line 7: the value does not fit its tag !!bool"
    );
    let after_json = |text: &str| read(&format!("{{\"a\":1}}\n{text}")).replace("stdin: {\"a\":1}\n", "");
    assert_eq!(
        after_json("{b: 2}\n---\nc: 3\n"),
        "stdin, document 2: {\"b\":2}\nstdin, document 3: {\"c\":3}"
    );
    assert_eq!(
        after_json("---\nb: !!int x\n"),
        "error: stdin, document 2: line 3: the value does not fit its tag !!int"
    );
    assert_eq!(
        after_json("{\"b\":"),
        "error: stdin, document 2: is not JSON: EOF while parsing a value at line 2 column 5"
    );
}

#[test]
fn bytes_that_are_no_text_become_replacement_characters() {
    let cases: [(&[u8], &str); 8] = [
        (b"# caf\xe9\na: caf\xe9 x\n", "{\"a\":\"caf\u{fffd} x\"}"),
        (b"caf\xe9: \"\xe2\x82\"\n", "{\"caf\u{fffd}\":\"\u{fffd}\"}"),
        (b"a: \xed\xa0\x80\n", "{\"a\":\"\u{fffd}\u{fffd}\u{fffd}\"}"),
        (b"{\"a\":\"\xff\"}", "{\"a\":\"\u{fffd}\"}"),
        (b"\xff\xfea\0:\0 \0\x3d\xd8\n\0", "{\"a\":\"\u{fffd}\"}"),
        (b"\xff\xfea\0:\0 \0b\0\n", "{\"a\":\"b\u{fffd}\"}"),
        (
            b"{\"a\":\"\\ud83d\",\"\\ude00\":\"\\ud83d\\ude00\"}",
            "{\"a\":\"\u{fffd}\",\"\u{fffd}\":\"\u{1f600}\"}",
        ),
        (b"{\"a\":\"\\\\ud83d \\ud83d\\ud83d\\ude00\"}", "{\"a\":\"\\\\ud83d \u{fffd}\u{1f600}\"}"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(read_bytes(bytes), format!("stdin: {expected}"), "{bytes:?}");
    }
    let binary = read_bytes(b"\x1f\x8b\x08a\xff\xfeb");
    assert!(binary.starts_with("error: stdin: "), "{binary}");
}

#[test]
fn editors_on_windows_are_understood() {
    let text = "a: \u{e9}\r\n";
    let little: Vec<u8> =
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
    let utf_8 = format!("\u{feff}{text}").into_bytes();
    for bytes in [little, big, utf_8] {
        assert_eq!(read_bytes(&bytes), "stdin: {\"a\":\"\u{e9}\"}", "{bytes:?}");
    }
    let together = "\u{feff}a: 1\r\n---\r\n\u{feff}a: \"\u{feff}\"\r\n";
    assert_eq!(read(together), "stdin: {\"a\":1}\nstdin, document 2: {\"a\":\"\u{feff}\"}");
}

#[test]
fn binaries_and_odd_keys_are_read_as_kubectl_does() {
    assert_eq!(read("a: !!binary aGVsbG8=\n.inf: 1\n"), "stdin: {\".inf\":1,\"a\":\"hello\"}");
}

#[test]
fn anchors_and_merges_are_resolved() {
    let text = "base: &b {x: 1, y2: 2}\nuse: {<<: *b, x: 3}\nagain: *b\n";
    assert_eq!(
        read(text),
        "stdin: {\"again\":{\"x\":1,\"y2\":2},\"base\":{\"x\":1,\"y2\":2},\"use\":{\"x\":3,\"y2\":2}}"
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let cases = [
        (
            "\n{{- if .Values.crds }}\na: 1\n{{- end }}\n",
            "error: stdin: line 2: is a Helm template; render it first",
        ),
        (
            "a: 1\nlabels: {{ include \"x\" . }}\n",
            "error: stdin: line 2: is a Helm template; render it first",
        ),
        ("{{- /*\nCopyright\n*/}}\na: 1\n", "error: stdin: line 1: is a Helm template; render it first"),
        ("a: |\n  as {{.name}} has it\nb: [\n", "error: stdin: line 3: unclosed bracket '['"),
        ("{\"a\":", "error: stdin: is not JSON: EOF while parsing a value at line 1 column 5"),
        ("? [a]\n: 1\n", "error: stdin: line 1: a key is not a scalar"),
        ("a: .nan\n", "error: stdin: line 1: a number that is not finite has no form in JSON"),
        ("a: &x [*x]\n", "error: stdin: line 1: an alias inside the value that it refers to"),
        (
            "a: 1\n---\nb: !!binary aGk\n",
            "stdin: {\"a\":1}\nerror: stdin, document 2: line 3: !!binary is not in base64",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
    }
    const BINARY: &str = "error: stdin: is not text in UTF-8, nor in UTF-16 with a byte order mark";
    for bytes in [&b"a: \0"[..], b"a\0:\0 \x001\0", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", &[0xfe, 0xff, 0, 0]] {
        assert_eq!(read_bytes(bytes), BINARY, "{bytes:?}");
    }
    assert!(read("a: [").starts_with("error: stdin: line "), "{}", read("a: ["));
}

#[test]
fn what_is_wrong_is_told_without_the_value() {
    assert_eq!(
        read(r#"{"kind":"List","items":"hidden"}"#),
        "error: stdin: is not JSON: invalid type: string, expected a list at line 1 column 31"
    );
}

#[test]
fn bombs_are_too_large_and_endless_towers_too_deep() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..20 {
        let below = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [below.as_str(); 10].join(",")));
    }
    assert!(read(&bomb).contains("too large"), "{}", read(&bomb));
    let endless = format!("a: {}", "[".repeat(20_000));
    assert_eq!(read(&endless), "error: stdin: is nested more than 10000 levels deep");
    let broken = read(&format!("{{\"a\":{}", "[".repeat(20_000)));
    assert!(broken.starts_with("error: stdin: is not JSON: EOF"), "{broken}");
    let many = format!("{{\"a\":[{}1]}}", "1,".repeat(4 << 20));
    assert!(read(&many).contains("too large"));
}

/// A list that stands in an object, nested so many levels deep together.
fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels - 1), "]".repeat(levels - 1))
}

#[test]
fn beyond_a_thousand_levels_a_document_is_an_error_of_its_own() {
    const TOO_DEEP: &str = "K ns/n is nested more than 1000 levels deep";
    let metadata = r#"{"name":"n","namespace":"ns"}"#;
    for (levels, is_too_deep) in [(1_000, false), (1_001, true), (9_000, true)] {
        let object = format!(r#"{{"a":{},"kind":"K","metadata":{metadata}}}"#, nested(levels));
        let reported = |place: &str| match is_too_deep {
            true => format!("error: {place}: {TOO_DEEP}"),
            false => format!("{place}: {object}"),
        };
        // As JSON, and as YAML.
        for begins in ["", "---\n"] {
            let fine = "stdin, document 2: {\"kind\":\"K\"}";
            let next = if begins.is_empty() { "" } else { "\n---\n" };
            assert_eq!(
                read(&format!("{begins}{object}{next}{{\"kind\":\"K\"}}")),
                format!("{}\n{fine}", reported("stdin"))
            );
            let list = format!(r#"{begins}{{"kind":"List","items":[{object},{{"kind":"K"}}]}}"#);
            let fine = "stdin, item 2: {\"kind\":\"K\"}";
            assert_eq!(read(&list), format!("{}\n{fine}", reported("stdin, item 1")));
        }
    }
    // What an alias stands for is nested in what it stands in.
    for (levels, is_too_deep) in [(498, false), (499, true)] {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        let text = format!("kind: K\na: &a {}\nb: {open}*a{close}\nc: *a\n", nested(502));
        let read = read(&text);
        assert_eq!(
            read.starts_with("error: stdin: a document without a name is nested"),
            is_too_deep,
            "{read}"
        );
    }
}

/// What is read from a file, in short: whether it is a part of a CRD, and whether it is for kustomize only.
fn uses(name: &str, text: &str) -> (bool, bool) {
    let mut found = None;
    let _ = super::read(name, text.as_bytes().to_vec(), &mut |document| {
        let document = document.expect("a document");
        assert_eq!(document.what().starts_with("a part of a Custom"), document.is_part_of_crd(), "{text}");
        found = Some((document.is_part_of_crd(), document.is_for_kustomize()));
        ControlFlow::Continue(())
    });
    found.expect("a document")
}

#[test]
fn a_crd_is_one_whatever_its_api_version() {
    for version in ["", "apiVersion: apiextension.k8s.io/v1\n", "apiVersion: apiextensions.k8s.io/v1beta1\n"]
    {
        let text = format!("{version}kind: CustomResourceDefinition\nspec: {{group: b.c}}\n");
        let _ = super::read("crd.yaml", text.into_bytes(), &mut |document| {
            assert!(document.expect("a document").is_crd(), "{version}");
            ControlFlow::Continue(())
        });
    }
}

#[test]
fn what_kustomize_puts_together_is_known() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.c";
    for more in [
        "}\nspec: {conversion: {strategy: None}}",
        "}\nspec: {names: {shortNames: [a]}}",
        ", annotations: {a: b}}",
        "}\n$patch: delete",
    ] {
        assert_eq!(uses("patch.yaml", &format!("{crd}{more}")), (true, false), "{more}");
    }
    for more in ["}\nspec: {group: b.c}", "}\nspec: {names: {plural: a}}", "}\nspec: {}", "}"] {
        assert_eq!(uses("crd.yaml", &format!("{crd}{more}")), (false, false), "{more}");
    }
    for (name, text) in [
        ("kustomization.yaml", "resources: [a.yaml]"),
        ("config/crd/kustomization.yml", "namePrefix: a-"),
        ("kustomizeconfig.yaml", "nameReference: []"),
        ("a.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component"),
        ("stdin", "kind: Kustomization\nresources: []"),
        ("patch.yaml", "- {op: add, path: /spec/a, value: 1}\n- {op: remove, path: /spec/b}"),
    ] {
        assert_eq!(uses(name, text), (false, true), "{text}");
    }
    for (name, text) in [
        ("a.yaml", "resources: [a.yaml]"),
        ("a.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization"),
        ("kustomization.yaml", "apiVersion: v1\nkind: Secret"),
        ("a.yaml", "- {op: add}"),
    ] {
        assert_eq!(uses(name, text), (false, false), "{text}");
    }
}
