//! Objects that are invalid after an upgrade, and which writes are rejected for that.

use super::*;

#[test]
fn an_object_that_a_new_default_makes_invalid_is_named_with_the_place_and_no_value() {
    let rule = json!([{ "rule": "self.min <= self.max" }]);
    let with = |max: Value| {
        let mut spec = spec(json!({ "min": { "type": "integer" }, "max": max }));
        spec["x-kubernetes-validations"] = rule.clone();
        spec
    };
    let old = crd(&[("v1", true, with(json!({ "type": "integer", "default": 50 })))]);
    let new = crd(&[("v1", true, with(json!({ "type": "integer", "default": 5 })))]);
    let object = tab(json!({ "min": 10, "max": 50 }), json!({ "f:min": {} }));
    let effect = Upgrade::new(&old, &new).object(&object);
    assert_eq!(
        reported(&effect),
        [
            "changes .spec.max",
            "protected .spec.max",
            "problems .spec: self.min <= self.max; writes that change it are rejected, and so is creating \
             the object again"
        ]
    );
}

#[test]
fn what_is_wrong_is_named_at_the_objects_own_place_and_counted_at_that_of_the_schema() {
    let pools = |pool: Value| spec(json!({ "pools": { "type": "object", "additionalProperties": pool } }));
    let size = |size: Value| {
        spec(json!({ "size": size, "tags": { "type": "array", "items": { "type": "string" } } }))
    };
    let mut limited = size(json!({ "type": "integer", "maximum": 3 }));
    limited["properties"]["tags"]["items"]["enum"] = json!(["a"]);
    limited["x-kubernetes-validations"] =
        json!([{ "rule": "self.size != 7", "message": "size must not be seven" }]);
    let old = crd(&[("v1", true, pools(size(json!({ "type": "integer" }))))]);
    let new = crd(&[("v1", true, pools(limited))]);
    let upgrade = Upgrade::new(&old, &new);
    let mut tally = Tally::default();
    for (keys, size, tags) in [
        (["hunter2.io", "a.hunter2"], 8, json!(["hunter2", "a", "hunter2"])),
        (["hunter2", "7"], 7, json!(["a"])),
    ] {
        let pools = json!({ keys[0]: { "size": size, "tags": tags }, keys[1]: { "size": 9, "tags": tags } });
        let object = tab(json!({ "pools": pools }), json!({ "f:pools": {} }));
        let mut effect = upgrade.object(&object);
        let problems: Vec<String> = effect.problems.iter().map(ToString::to_string).collect();
        for key in keys {
            let place = format!(".spec.pools[{key:?}].size: it must be at most 3;");
            assert!(problems.iter().any(|problem| problem.starts_with(&place)), "{place} {problems:?}");
        }
        assert!(problems.iter().all(|problem| problem.starts_with(".spec.pools[\"")), "{problems:?}");
        tally.add(&mut effect, Some((&object, &old, &Record::default())));
    }
    let end = "; writes that change it are rejected, and so is creating the object again";
    let summary: Vec<_> = tally.summary.iter().map(|(place, objects)| (&*place.text, *objects)).collect();
    assert_eq!(
        summary,
        [
            (&*format!(".spec.pools{{}}.size: it must be at most 3{end}"), 2),
            (&*format!(".spec.pools{{}}.tags[]: it must be one of the values of its enum{end}"), 1),
            (&*format!(".spec.pools{{}}: size must not be seven{end}"), 1),
        ]
    );
}

#[test]
fn which_writes_are_rejected_depends_on_what_is_wrong() {
    let list = |kind: Option<&str>| {
        let mut list = json!({ "type": "array", "items": { "type": "integer" } });
        if let Some(kind) = kind {
            list["x-kubernetes-list-type"] = json!(kind);
        }
        list
    };
    let pod = |embedded: bool| {
        json!({
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-embedded-resource": embedded,
        })
    };
    let old = json!({ "l": list(None), "n": { "type": "integer" }, "p": pod(false) });
    let new = json!({ "l": list(Some("set")), "n": { "type": "integer", "maximum": 1 }, "p": pod(true) });
    let object = tab(
        json!({
            "l": [1, 1], "n": 2, "p": { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a/b" } },
        }),
        json!({ "f:l": {}, "f:n": {}, "f:p": {} }),
    );
    let (old, new) = (crd(&[("v1", true, spec(old))]), crd(&[("v1", true, spec(new))]));
    let reported: Vec<String> =
        Upgrade::new(&old, &new).object(&object).problems.iter().map(ToString::to_string).collect();
    assert_eq!(reported.len(), 3, "{reported:?}");
    for (place, end) in [
        (".spec.n: ", "; writes that change it are rejected, and so is creating the object again"),
        (".spec.p.metadata.name: ", "; every write of the object is rejected, and so is creating it again"),
        (".spec.l[1]: it is there twice", "; creating the object again is rejected, and writes are not"),
    ] {
        let is_it = |text: &String| text.starts_with(place) && text.ends_with(end);
        assert!(reported.iter().any(is_it), "{place} {reported:?}");
    }
}

#[test]
fn each_problem_names_the_writes_that_are_rejected_for_it() {
    let int = json!({ "type": "integer" });
    let plain = spec(json!({ "a": int, "b": int }));
    let object = tab(json!({ "a": 5 }), json!({ "f:a": {} }));
    let reported = |new: Value| {
        reported(
            &Upgrade::new(&crd(&[("v1", true, plain.clone())]), &crd(&[("v1", true, new)])).object(&object),
        )
    };
    let ruled = |rule: Value| {
        let mut ruled = plain.clone();
        ruled["x-kubernetes-validations"] = json!([rule]);
        ruled
    };
    let creating = ", and so is creating the object again";
    let every = "every write of the object is rejected";
    let mut required = plain.clone();
    required["required"] = json!(["b"]);
    for (new, what, writes) in [
        (required, ".spec.b: it is required", format!("writes that change .spec are rejected{creating}")),
        (
            ruled(json!({ "rule": "self.a > 7", "fieldPath": ".a" })),
            ".spec.a: self.a > 7",
            format!("writes that change .spec are rejected{creating}"),
        ),
        (
            ruled(json!({ "rule": "self.b > 5" })),
            ".spec: a rule cannot be evaluated: self.b > 5",
            format!("{every}, and so is creating it again"),
        ),
        (ruled(json!({ "rule": "self.a > oldSelf.a" })), ".spec: self.a > oldSelf.a", every.to_owned()),
        (
            ruled(json!({ "rule": "!oldSelf.hasValue() && self.a > 7", "optionalOldSelf": true })),
            ".spec: !oldSelf.hasValue() && self.a > 7",
            format!("{every}, and so is creating it again"),
        ),
    ] {
        assert_eq!(reported(new), [format!("problems {what}; {writes}")]);
    }
    let compared = ruled(json!({ "rule": "self.a > oldSelf.a" }));
    let known = Upgrade::new(&crd(&[("v1", true, compared.clone())]), &crd(&[("v1", true, compared)]))
        .object(&object);
    assert!(known.problems.iter().all(Problem::is_known) && !known.problems.is_empty(), "{known:?}");
}

#[test]
fn what_was_invalid_before_is_told_apart() {
    let old = json!({ "a": { "type": "integer", "maximum": 1 } });
    let new = json!({ "a": { "type": "integer", "maximum": 1 }, "b": { "default": 1 } });
    let object = tab(json!({ "a": 2 }), json!({ "f:a": {} }));
    assert_eq!(
        effect(old, new, &object),
        ["appears .spec.b", "problems .spec.a: it must be at most 1, under the old schema too"]
    );
}

#[test]
fn a_default_that_no_reader_sees_yet_can_make_every_write_invalid() {
    let plain = spec(json!({ "a": { "type": "integer" } }));
    let mut ruled =
        spec(json!({ "a": { "type": "integer" }, "color": { "type": "string", "default": "red" } }));
    ruled["x-kubernetes-validations"] = json!([{ "rule": "!has(self.color) || self.a < 2" }]);
    let old = crd(&[("v1beta1", true, plain.clone())]);
    let new = crd(&[("v1beta1", false, plain), ("v1", true, ruled)]);
    let reported = |a: i64| {
        let bytes =
            json!({ "apiVersion": "example.com/v1beta1", "metadata": { "name": "a" }, "spec": { "a": a } });
        reported(&Upgrade::new(&old, &new).stored(bytes.into(), 0, &Record::default()).expect("readable").1)
    };
    let appears = "appears on write .spec.color";
    assert_eq!(reported(1), [appears]);
    assert_eq!((reported(2).len(), &*reported(2)[0]), (2, appears));
    assert!(
        reported(2)[1].starts_with("problems .spec: !has(self.color) || self.a < 2;"),
        "{:?}",
        reported(2)
    );
}
