//! ETCH013: rules around fields with defaults, however they name them.

use super::*;

#[test]
fn rules_that_defaults_break_are_found_by_what_they_read() {
    let found = |rule: Value, fields: Value| {
        let mut schema = object(fields);
        schema["x-kubernetes-validations"] = json!([rule]);
        let found = found(object(json!({"o": schema, "other": {"type": "string"}})));
        let of_rules =
            found.into_iter().filter_map(|line| Some(line.strip_prefix("ETCH013 .spec.o ")?.to_owned()));
        of_rules.collect::<Vec<_>>()
    };
    let int = |default: i64| json!({"type": "integer", "default": default});
    let free = || json!({"type": "integer"});
    let limits = || json!({"min": int(10), "max": int(5)});
    let with = |mut fields: Value, name: &str| {
        fields[name] = free();
        fields
    };
    let dashed = || json!({"min-size": int(10), "max-size": int(5)});
    let reserved = || json!({"namespace": int(10), "in": int(5)});
    let broken = [
        ("self.min <= self.max", limits()),
        ("self.?min.orValue(0) <= self.?max.orValue(9)", limits()),
        ("!has(self.min) || !has(self.max) || self.min <= self.max", limits()),
        ("self.min <= self.max || 'self.z' == ''", with(limits(), "z")),
        ("[self].all(s, s.min <= s.max)", with(limits(), "z")),
        ("optional.of(self).optMap(s, s.min <= s.max).orValue(true)", with(limits(), "z")),
        ("{'o': self}['o'].min <= (true ? self : self).max", with(limits(), "z")),
        ("has(self.z) ? self.min <= self.max : self.min < self.max", with(limits(), "z")),
        ("self.?z.hasValue() ? self.min <= self.max : self.min < self.max", with(limits(), "z")),
        ("!has(self.min__dash__size) || self.min__dash__size <= self.max__dash__size", dashed()),
        ("self.?min__dash__size.orValue(0) <= self.max__dash__size", dashed()),
        ("self.__namespace__ <= self.__in__", reserved()),
        ("self.namespace <= self.?__in__.orValue(9)", reserved()),
    ];
    for (rule, fields) in broken {
        let expected = [format!("its defaults break a rule: failed rule: {rule}")];
        assert_eq!(found(json!({"rule": rule}), fields), expected, "{rule}");
    }
    let x = || json!({"x": int(1), "z": free(), "w": free()});
    let excluded = [
        ("!(has(self.x) && has(self.z))", "z"),
        ("!has(self.z) || !self.?x.hasValue()", "z"),
        ("[has(self.x), has(self.z), has(self.w)].exists_one(is, is)", "z, w"),
        ("(has(self.x) ? 1 : 0) + (has(self.z) ? 1 : 0) + (has(self.w) ? 1 : 0) <= 1", "z, w"),
        ("!(has(self.z) && has(self.w)) || !has(self.x)", ""),
    ];
    for (rule, names) in excluded {
        let lines: &[String] = &found(json!({"rule": rule}), x());
        match names {
            "" => assert_eq!(lines, [""; 0], "{rule}"),
            _ => assert_eq!(lines, [format!("its defaults exclude {names} by a rule: {rule}")]),
        }
    }
    let passing = [
        // A user may have to set another field, or can set it to something that passes.
        ("has(self.z)", with(limits(), "z")),
        ("self.min <= self.max || has(self.z)", with(limits(), "z")),
        ("self.min <= self.?z.orValue(5)", with(limits(), "z")),
        ("self.min <= self.max && self == self", with(limits(), "z")),
        ("[self].exists(s, s.min <= s.max || dyn(s).?z.hasValue())", with(limits(), "z")),
        ("[dyn(self)].all(s, s.min <= s.max)", with(limits(), "z")),
        // It is about values: another one of the field with the default passes.
        ("self.min != 10 || !has(self.z)", with(limits(), "z")),
        // The field can never be set, with the default or without it.
        ("has(self.min) && !has(self.z)", with(limits(), "z")),
        ("!has(self.z) || has(self.w)", x()),
        ("!has(self.z) || self.z > 0 || !has(self.x)", x()),
        ("self.min >= self.max", limits()),
    ];
    for (rule, fields) in passing {
        assert_eq!(found(json!({"rule": rule}), fields), [""; 0], "{rule}");
    }
    let message = json!({
        "rule": "self.min <= self.max", "message": " no ",
        "messageExpression": "string(self.min) + ' is more'",
    });
    assert_eq!(found(message, limits()), ["its defaults break a rule: 10 is more"]);
    let twice = json!({"rule": "self.min <= self.max", "reason": "FieldValueDuplicate"});
    assert_eq!(found(twice, limits()), ["its defaults break a rule: self.min <= self.max"]);
}

#[test]
fn defaults_with_which_a_rule_cannot_be_evaluated_are_found() {
    let found = |rule: &str, fields: Value| {
        let mut schema = object(fields);
        schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
        let found = found(object(json!({"o": schema})));
        let start = "ETCH013 .spec.o its defaults make a rule fail: ";
        found
            .iter()
            .filter_map(|line| Some(line.strip_prefix(start)?.to_owned()))
            .collect::<Vec<_>>()
            .join("; ")
    };
    let text = |default: &str| json!({"s": {"type": "string", "default": default}, "z": {"type": "integer"}});
    let int = |default: i64| json!({"type": "integer", "default": default});
    let port = |default: Value| json!({"p": {"x-kubernetes-int-or-string": true, "default": default}});
    let list = |items: &str, default: Value| {
        json!({
            "l": {"type": "array", "items": {"type": items}, "default": default},
        })
    };
    let failing = [
        ("duration(self.s) > duration('1s')", text("1d"), "type conversion error"),
        ("quantity(self.s).isGreaterThan(quantity('1'))", text("1x"), ""),
        ("url(self.s).getHost() == 'a'", text("::"), ""),
        ("ip(self.s).family() == 4", text(""), ""),
        ("timestamp(self.s) > timestamp('2020-01-01T00:00:00Z')", text("ab"), ""),
        ("int(self.s) > 5", text("abc"), ""),
        ("has(self.z) || int(self.s) > 5", text("abc"), "never"),
        ("!has(self.z) && int(self.s) > 5", text("abc"), ""),
        ("int(self.p) > 5", port(json!("80%")), ""),
        ("self.p > 5", port(json!("80")), "'no such overload'"),
        (
            "self.a / self.b > 0",
            json!({"a": int(1), "b": int(0)}),
            "division by zero evaluating rule: self.a / self.b > 0",
        ),
        ("self.a % self.b > 0", json!({"a": int(1), "b": int(0)}), "modulus by zero"),
        ("self.a + 1 > self.a", json!({"a": int(i64::MAX)}), ""),
        ("self.l[0] == 'x'", list("string", json!([])), "index out of bounds: 0"),
        ("self.l.max() == 5", list("integer", json!([])), ""),
        ("self.s.substring(3) == ''", text("ab"), ""),
        ("self.s.charAt(3) == ''", text("ab"), ""),
        (
            "self.l.all(x, x.b == 2)",
            json!({
                "l": {
                    "type": "array", "default": [{}], "items": {
                        "type": "object", "properties": {"b": {"type": "integer"}},
                    },
                },
            }),
            "no such key: b",
        ),
        // A user must or may set what is missing.
        ("self.a / self.z > 0", json!({"a": int(0), "z": {"type": "integer"}}), "never"),
        ("int(self.s) + self.z > 5", text("abc"), "never"),
        ("int('x') > 5", text("abc"), "never"),
        ("int(self.s) > 5", text("6"), "never"),
        ("self.a / self.b > 0 || self.a == 1", json!({"a": int(1), "b": int(0)}), "never"),
    ];
    for (rule, fields, start) in failing {
        let line = found(rule, fields);
        match start {
            "never" => assert_eq!(line, "", "{rule}"),
            start => assert!(!line.is_empty() && line.starts_with(start), "{rule}: {line}"),
        }
    }
    // The object that is required may have the key.
    let inner = json!({"type": "object", "properties": {"x": {"type": "integer"}, "y": int(0)}});
    let around = json!({"type": "object", "required": ["o"], "properties": {"o": inner},
        "x-kubernetes-validations": [{"rule": "self.o.x > 3"}, {"rule": "1 / self.o.y > 3"}]});
    let lines = super::found(around);
    let of_rules: Vec<_> = lines.iter().filter(|line| line.starts_with("ETCH013")).collect();
    assert_eq!(
        of_rules,
        ["ETCH013 .spec its defaults make a rule fail: division by zero evaluating rule: 1 / self.o.y > 3"]
    );
}

#[test]
fn a_rule_may_ask_for_a_field_unless_the_object_comes_by_itself() {
    let with = |default: Option<Value>| {
        let mut a = json!({"type": "object",
            "x-kubernetes-validations": [{"rule": "self.mode != 'tls' || \
                has(self.secret)", "message": "no secret"}],
            "properties": {"mode": {"type": "string", "default": "tls"}, "secret": {"type": "string"}}});
        if let Some(default) = default {
            a["default"] = default;
        }
        found(json!({"type": "object", "properties": {"a": a}}))
    };
    assert!(!with(None).iter().any(|text| text.starts_with("ETCH013")));
    assert!(
        with(Some(json!({}))).contains(&"ETCH013 .spec.a its defaults break a rule: no secret".to_owned())
    );
}

#[test]
fn a_rule_may_ask_for_the_name_of_a_reference() {
    let reference = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.name != ''"}],
        "properties": {"name": {"type": "string", "default": ""}}});
    assert_eq!(found(object(json!({"a": reference}))), [""; 0]);
    let other = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.zone != ''"}],
        "properties": {"zone": {"type": "string", "default": ""}}});
    assert_eq!(found(other), ["ETCH013 .spec its defaults break a rule: failed rule: self.zone != ''"]);
}
