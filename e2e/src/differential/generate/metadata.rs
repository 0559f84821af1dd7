//! ObjectMeta as it is, as it was years ago, and as no client ever wrote it.
//! It must not produce root metadata that no server could have stored: that is always an object.

use serde_json::{Map, Value};

use super::Generator;

impl Generator<'_> {
    /// The metadata of a stored object.
    pub(super) fn root_object_meta(&mut self) -> Value {
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), "x".into());
        if self.random.chance(50) {
            metadata.insert("namespace".to_owned(), "default".into());
        }
        if self.random.chance(25) {
            self.meta_fields(&mut metadata);
        }
        Value::Object(metadata)
    }

    /// Metadata, or what replaces it, of an object within an object.
    pub(super) fn embedded_meta(&mut self) -> Value {
        if self.random.chance(6) {
            return self.junk(2);
        }
        let mut metadata = Map::new();
        if self.random.chance(50) {
            let name = self.random.pick(&["n", "", "A", "a/b", "a.b", "-", "ok", "..", "%", "n-", "é"]);
            metadata.insert("name".to_owned(), name.into());
        }
        self.meta_fields(&mut metadata);
        Value::Object(metadata)
    }

    pub(super) fn meta_fields(&mut self, metadata: &mut Map<String, Value>) {
        for _ in 0..self.random.between(0, 3) {
            let (name, values) = FIELDS[self.random.below(FIELDS.len())];
            let text = self.random.pick(values);
            // The table is literal JSON; what is not would show as a case that never comes.
            if let Ok(value) = serde_json::from_str(text) {
                metadata.insert(name.to_owned(), value);
            }
        }
        if self.random.chance(5) {
            let (name, value) = (self.name(), self.junk(2));
            metadata.insert(name, value);
        }
    }
}

/// Fields of ObjectMeta and what they hold: right, odd and wrong.
const FIELDS: &[(&str, &[&str])] = &[
    ("name", &[r#""n""#, r#""""#, "null", "1", "{}", r#""A_b""#]),
    ("generateName", &[r#""n-""#, r#""N""#, "null", "false", r#""-""#, r#""a/""#]),
    ("namespace", &[r#""ns""#, r#""""#, r#""a.b""#, "null", "[]"]),
    (
        "labels",
        &[
            r#"{"a":"b"}"#,
            "{}",
            "null",
            r#"{"a":1}"#,
            r#"{"a":null}"#,
            r#"{"a b":"c"}"#,
            r#"{"a":"b c"}"#,
            "[]",
            r#""x""#,
            r#"{"a.b/c":"d"}"#,
            r#"{"/c":"d"}"#,
            r#"{"a/b/c":""}"#,
            r#"{"":""}"#,
            r#"{"A":"b","c":1}"#,
        ],
    ),
    (
        "annotations",
        &[
            r#"{"a":"b"}"#,
            "{}",
            "null",
            r#"{"a":1}"#,
            r#"{"a":null}"#,
            r#"{"a b":"c"}"#,
            r#"{"A":"b"}"#,
            "true",
        ],
    ),
    (
        "finalizers",
        &[
            r#"["a.b/c"]"#,
            "[]",
            "null",
            r#"["x"]"#,
            r#"["orphan"]"#,
            r#"["foregroundDeletion","orphan"]"#,
            r#"[1]"#,
            r#""x""#,
            r#"[""]"#,
            r#"["a","a"]"#,
        ],
    ),
    (
        "ownerReferences",
        &[
            r#"[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]"#,
            "[]",
            "null",
            "[{}]",
            r#"[{"uid":1}]"#,
            r#"[null]"#,
            r#"[{"apiVersion":"v1","kind":"Event","name":"p","uid":"u","controller":true}]"#,
            r#"[{"apiVersion":"a/b/c","kind":"K","name":"p","uid":"u","bogus":1}]"#,
            r#"[{"apiVersion":"v1","kind":"A","name":"a","uid":"u","controller":true},{"apiVersion":"v1","kind":"B","name":"b","uid":"v","controller":true}]"#,
            r#"[{"apiVersion":"","kind":"","name":"","uid":"","blockOwnerDeletion":null}]"#,
        ],
    ),
    (
        "creationTimestamp",
        &[
            "null",
            r#""2020-01-01T00:00:00Z""#,
            r#""2020-01-01T00:00:00.123Z""#,
            r#""2020-01-01T02:00:00+02:00""#,
            r#""yesterday""#,
            "0",
            r#""0001-01-01T00:00:00Z""#,
            r#""""#,
            r#""2020-01-01""#,
            r#""2020-01-01t00:00:00z""#,
        ],
    ),
    ("deletionTimestamp", &["null", r#""2020-01-01T00:00:00Z""#, r#""x""#, r#""0001-01-01T00:00:00Z""#]),
    (
        "deletionGracePeriodSeconds",
        &["0", "30", "null", "1.0", "1.5", r#""1""#, "-1", "9223372036854775808", "1e2"],
    ),
    (
        "generation",
        &[
            "0",
            "1",
            "-1",
            "null",
            "1.0",
            "1.5",
            r#""1""#,
            "9223372036854775807",
            "9223372036854775808",
            "1e3",
        ],
    ),
    ("resourceVersion", &[r#""1""#, r#""""#, "1", "null"]),
    ("uid", &[r#""u""#, r#""""#, "1", "null"]),
    ("selfLink", &[r#""/a""#, r#""""#, "1"]),
    ("clusterName", &[r#""c""#, "1"]),
    (
        "managedFields",
        &[
            r#"[{"manager":"m","operation":"Update","apiVersion":"v1","time":"2020-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}]"#,
            "[]",
            "null",
            "[{}]",
            r#"[{"fieldsV1":null}]"#,
            r#"[{"fieldsV1":1}]"#,
            r#"[{"time":"x"}]"#,
            r#"[{"operation":"Bogus"}]"#,
            r#"[{"manager":"m","operation":"Apply","bogus":1,"subresource":"status"}]"#,
            r#"[{"fieldsV1":{"f:a":1.0,"b":1e2,"c":null}}]"#,
        ],
    ),
    ("initializers", &[r#"{"pending":[]}"#]),
    ("Name", &[r#""n""#, "1"]),
    ("NAME", &["1"]),
    ("bogus", &["1", "null", "{}"]),
];
