//! What a policy lets the operator do after an upgrade.

use super::*;
use crate::plan::{FormerDefault, HiddenEvidence, HiddenFields, changes, past_of};
use crate::report::former_defaults::of_upgrade;

/// The effect on an object all of which is stored, in a cluster whose policy has these terms and follows
/// `.spec.a`, or does not write.
fn governed(old: Value, new: Value, object: &Object, terms: Terms, writes: bool) -> Vec<String> {
    let (old, new) = (crd(&[("v1", true, spec(old))]), crd(&[("v1", true, spec(new))]));
    let followed = [".spec.a".parse().expect("a path")];
    let changes = changes(&past_of(&old), &new, &followed);
    let former = of_upgrade(&old, &new);
    reported(
        &Upgrade::new(&old, &new).under(terms, changes, former, writes).on_record(object, &all_stored()).0,
    )
}

#[test]
fn what_a_policy_follows_changes_although_it_is_stored() {
    let integer = |default: Value| json!({ "a": { "type": "integer", "default": default } });
    let (old, new) = (integer(json!(1)), integer(json!(5)));
    let stored = tab(json!({ "a": 1 }), json!({}));
    let owned = tab(json!({ "a": 1 }), json!({ "f:a": {} }));
    let terms = Terms::default();
    assert_eq!(governed(old.clone(), new.clone(), &stored, terms.clone(), true), ["follows .spec.a"]);
    assert_eq!(governed(old.clone(), new.clone(), &stored, terms.clone(), false), [""; 0], "nobody writes");
    assert_eq!(governed(old.clone(), new.clone(), &owned, terms.clone(), true), [""; 0], "it has an owner");
    let gone = json!({ "a": { "type": "integer" } });
    assert_eq!(
        governed(old.clone(), gone, &stored, terms.clone(), true),
        ["follows .spec.a"],
        "with the default"
    );
    // What would follow once it were stored, `etch persist` does not protect.
    let (old, new) = (crd(&[("v1", true, spec(old))]), crd(&[("v1", true, spec(new))]));
    let changes = changes(&past_of(&old), &new, &[".spec.a".parse().expect("a path")]);
    let phantom = tab(json!({ "a": 1 }), json!({}));
    let upgrade = Upgrade::new(&old, &new).under(terms, changes, Vec::new(), true);
    assert_eq!(reported(&upgrade.object(&phantom)), ["changes .spec.a"]);
}

#[test]
fn what_a_field_that_goes_costs_depends_on_the_policy() {
    let old = json!({ "b": { "type": "integer" } });
    let new = json!({ "a": { "type": "integer", "default": 1 } });
    let drop = Terms { hidden_fields: HiddenFields::Drop, ..Terms::default() };
    let owned = tab(json!({ "b": 1 }), json!({ "f:b": {} }));
    let effect = |object: &Object, terms, writes| governed(old.clone(), new.clone(), object, terms, writes);
    assert_eq!(
        effect(&owned, Terms::default(), true),
        ["appears .spec.a", "hidden .spec.b", "held HiddenFields"]
    );
    assert_eq!(effect(&owned, drop.clone(), true), ["appears .spec.a", "hidden .spec.b", "dropped yes"]);
    assert_eq!(effect(&owned, drop.clone(), false), ["appears .spec.a", "hidden .spec.b"]);
    let unowned = tab(json!({ "b": 1 }), json!({}));
    assert_eq!(
        effect(&unowned, Terms::default(), true),
        ["appears .spec.a", "hidden .spec.b", "dropped yes"],
        "nobody names the field, so the write that destroys it is made"
    );
    let no_default = json!({ "a": { "type": "integer" } });
    assert_eq!(governed(old, no_default, &owned, drop, true), ["hidden .spec.b"], "nothing is to be stored");
}

#[test]
fn an_object_on_record_is_left_alone_where_no_default_changes() {
    let with = |more: Value| {
        let mut properties = json!({ "a": { "type": "integer", "default": 1 } });
        properties.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
        crd(&[("v1", true, spec(properties))])
    };
    let (old, new) = (with(json!({ "b": { "type": "integer" } })), with(json!({})));
    let object = tab(json!({ "a": 1, "b": 1 }), json!({ "f:b": {} }));
    for (hidden_fields, unproved) in
        [(HiddenFields::Drop, "dropped yes"), (HiddenFields::Hold, "held HiddenFields")]
    {
        let terms = Terms { hidden_fields, ..Terms::default() };
        let upgrade = Upgrade::new(&old, &new).under(terms, Vec::new(), Vec::new(), true);
        assert_eq!(reported(&upgrade.on_record(&object, &all_stored()).0), ["hidden .spec.b"]);
        assert_eq!(reported(&upgrade.on_record(&object, &Record::default()).0)[1..], [unproved]);
        let written_at = |revision: u64| {
            let stored = upgrade.stored(object.json().clone(), revision, &all_stored());
            reported(&stored.expect("a readable object").1)
        };
        assert_eq!(written_at(5), ["hidden .spec.b"]);
        assert_eq!(written_at(0)[1..], [unproved], "nobody knows when it was written");
    }
}

#[test]
fn persist_protects_what_nothing_on_record_shows_a_write_would_harm() {
    let integer = |default: Value| spec(json!({ "a": { "type": "integer", "default": default } }));
    let (old, new) = (crd(&[("v1", true, integer(json!(1)))]), crd(&[("v1", true, integer(json!(5)))]));
    let protected = |object: &Object, hidden: HiddenEvidence| {
        let mut effect = Upgrade::new(&old, &new).object(object);
        assert!(!effect.protected.is_empty());
        let mut tally = Tally::default();
        let record = Record { hidden: Arc::new(hidden), ..Record::default() };
        tally.add(&mut effect, Some((object, &old, &record)));
        tally.counts.protected
    };
    let gone = || ".spec.gone".parse::<Path>().expect("a path");
    let (plain, owned) = (tab(json!({ "a": 1 }), json!({})), tab(json!({ "a": 1 }), json!({ "f:gone": {} })));
    let former =
        HiddenEvidence { former: vec![FormerDefault::of_any_time(gone())], ..HiddenEvidence::default() };
    let cleared = [("1".to_owned(), [gone()].into())].into();
    assert_eq!(protected(&plain, HiddenEvidence::default()), 1);
    assert_eq!(protected(&plain, former), 0, "etcd may hold a former default");
    assert_eq!(protected(&owned, HiddenEvidence::default()), 0);
    assert_eq!(protected(&owned, HiddenEvidence { cleared, ..HiddenEvidence::default() }), 1, "it is gone");
}
