//! The clusters that are explored: how a CRD changes, what users send, and what a policy allows.
//! It must not hold more than it takes: every field and every request multiplies the states.

use etch_core::plan::{HiddenFields, Ownership, Terms};
use kube_structural_schema::path::Path;
use serde_json::{Value, json};

use super::admission::Admission;
use super::server::{GROUP, KIND, NAME, NAMESPACE, Release, Request, Untypable, Verb};

/// One cluster's possible lives.
pub struct World {
    /// Its name.
    pub name: &'static str,
    /// What the CRD may be, one after the other.
    pub versions: Vec<Versions>,
    /// The properties of `status` for each of these; empty if the CRD has no status subresource.
    pub status: Vec<Value>,
    /// The versions that are not served, for each of these; empty if all of them are.
    pub unserved: Vec<&'static [&'static str]>,
    /// The fields of `spec` that its conversion webhook knows: it leaves out the others. None where objects
    /// are converted by their `apiVersion` alone.
    pub webhook_knows: Option<&'static [&'static str]>,
    /// The CRD as it comes to be.
    pub releases: Vec<Release>,
    /// What users may send at any time.
    pub menu: Vec<Request>,
    /// What a policy allows.
    pub terms: Terms,
    /// The defaults that values follow.
    pub follow: Vec<Path>,
    /// What a webhook makes of what is written.
    pub admission: Option<Admission>,
    /// What its servers do with owners' terms that they cannot use.
    pub untypable: Untypable,
}

impl World {
    /// It from one of the CRD's states on, with some of the requests.
    #[must_use]
    pub fn cut(mut self, from: usize, menu: &[usize]) -> Self {
        self.versions.drain(..from);
        self.releases.drain(..from);
        self.status.drain(..from.min(self.status.len()));
        self.unserved.drain(..from.min(self.unserved.len()));
        self.menu = menu.iter().map(|request| self.menu[*request].clone()).collect();
        self
    }
}

/// The versions of a CRD: name and properties of `spec`; the last one is the storage version.
pub type Versions = Vec<(&'static str, Value)>;

/// A number.
pub fn number() -> Value {
    json!({ "type": "integer" })
}

/// A text.
pub fn text() -> Value {
    json!({ "type": "string" })
}

fn with(mut schema: Value, default: impl Into<Value>) -> Value {
    schema["default"] = default.into();
    schema
}

fn map(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// The CRD with these versions, of which some are not served, and these properties of `status`; `generation`
/// tells its states apart.
pub fn definition(
    versions: &[(&'static str, Value)],
    unserved: &[&str],
    status: Option<&Value>,
    generation: usize,
) -> Value {
    let last = versions.len() - 1;
    let versions = versions.iter().enumerate().map(|(index, (name, properties))| {
        let mut schema = map(json!({ "spec": map(properties.clone()) }));
        let is_served = !unserved.contains(name);
        let mut version = json!({ "name": name, "served": is_served, "storage": index == last });
        if let Some(properties) = status {
            schema["properties"]["status"] = with(map(properties.clone()), json!({}));
            version["subresources"] = json!({ "status": {} });
        }
        version["schema"] = json!({ "openAPIV3Schema": schema });
        version
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("things.{GROUP}"), "uid": "crd", "generation": generation },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "kind": KIND, "plural": "things", "singular": "thing", "listKind": "ThingList" },
            "versions": versions.collect::<Vec<_>>(),
        },
    })
}

/// The CRD as it comes to be these.
pub fn releases(all: Vec<Versions>, status: &[Value]) -> Vec<Release> {
    let mut stored: Vec<String> = Vec::new();
    let mut releases = Vec::new();
    for (index, versions) in all.into_iter().enumerate() {
        stored.retain(|name| versions.iter().any(|(known, _)| known == name));
        if let Some((last, _)) = versions.last().filter(|(last, _)| !stored.iter().any(|name| name == last)) {
            stored.push((*last).to_owned());
        }
        releases.push(Release::new(definition(&versions, &[], status.get(index), index + 1), &stored));
    }
    releases
}

/// A request for the object.
pub fn request(verb: Verb, manager: &str, version: &str, spec: Value) -> Request {
    let body = match verb {
        Verb::Create | Verb::Apply | Verb::Force => json!({
            "apiVersion": format!("{GROUP}/{version}"), "kind": KIND,
            "metadata": { "name": NAME, "namespace": NAMESPACE }, "spec": spec,
        }),
        Verb::Edit | Verb::Merge => json!({ "spec": spec }),
        Verb::Json | Verb::DryRun => spec,
        Verb::Delete => Value::Null,
    };
    Request { version: version.to_owned(), manager: manager.to_owned(), verb, is_to_status: false, body }
}

fn menu(requests: Vec<(Verb, &str, &str, Value)>) -> Vec<Request> {
    requests.into_iter().map(|(verb, manager, version, spec)| request(verb, manager, version, spec)).collect()
}

/// A request for the status of the object.
fn status_request(verb: Verb, manager: &str, version: &str, status: &Value) -> Request {
    let mut request = request(verb, manager, version, json!({}));
    request.is_to_status = true;
    request.body["status"] = status.clone();
    request
}

/// Everything that is explored.
pub fn all() -> Vec<World> {
    use Verb::{Apply, Create, Delete, Edit, Merge};
    let keep = Terms::default();
    let own = Terms { ownership: Ownership::Own, ..keep.clone() };
    let drop = Terms { hidden_fields: HiddenFields::Drop, ..keep.clone() };
    let trims = Terms { moves: true, repairs: true, ..keep.clone() };
    let [keep, own, drop, trims] = [&keep, &own, &drop, &trims];
    let size = || vec![".spec.size".parse().expect("a path")];
    let world = |name, releases: Vec<Versions>, menu, terms: &Terms, follow, untypable| World {
        name,
        versions: releases.clone(),
        status: Vec::new(),
        unserved: Vec::new(),
        webhook_knows: None,
        releases: self::releases(releases, &[]),
        menu,
        terms: terms.clone(),
        follow,
        admission: None,
        untypable,
    };
    let changing = || {
        vec![
            vec![("v1", json!({ "note": text(), "size": number() }))],
            vec![("v1", json!({ "note": text(), "size": with(number(), 1) }))],
            vec![("v1", json!({ "note": text(), "size": with(number(), 5) }))],
            vec![("v1", json!({ "note": text(), "size": with(number(), 1) }))],
        ]
    };
    let beside = || {
        let size = |size| vec![("v1", json!({ "note": with(text(), "n"), "size": size }))];
        vec![size(number()), size(with(number(), 1)), size(with(number(), 5)), size(number())]
    };
    let removed = || {
        vec![
            vec![("v1", json!({ "note": text(), "size": with(number(), 1) }))],
            vec![("v1", json!({ "note": with(text(), "n"), "size": number() }))],
            vec![("v1", json!({ "note": with(text(), "n"), "size": with(number(), 7) }))],
        ]
    };
    let sized = || {
        menu(vec![
            (Create, "b", "v1", json!({})),
            (Apply, "a", "v1", json!({ "size": 1 })),
            (Apply, "a", "v1", json!({ "note": "x" })),
            (Merge, "b", "v1", json!({ "size": 7 })),
            (Merge, "b", "v1", json!({ "size": null })),
            (Edit, "b", "v1", json!({ "note": "e" })),
            (Delete, "b", "v1", json!(null)),
        ])
    };
    let nested = vec![
        vec![("v1", json!({ "note": text(), "net": map(json!({ "host": text(), "port": number() })) }))],
        vec![(
            "v1",
            json!({ "note": text(), "net": map(json!({ "host": text(), "port": with(number(), 80) })) }),
        )],
        vec![(
            "v1",
            json!({
                "note": json!({ "type": "string", "nullable": true, "default": "n" }),
                "net": with(map(json!({ "host": text(), "port": with(number(), 80) })), json!({})),
            }),
        )],
    ];
    let nets = || {
        menu(vec![
            (Create, "b", "v1", json!({ "note": null })),
            (Create, "b", "v1", json!({ "net": {} })),
            (Apply, "a", "v1", json!({ "net": { "host": "h" } })),
            (Apply, "a", "v1", json!({ "net": { "port": 8 } })),
            (Merge, "b", "v1", json!({ "net": null })),
            (Edit, "b", "v1", json!({ "net": { "host": "i" } })),
            (Delete, "b", "v1", json!(null)),
        ])
    };
    // A field goes, and comes back with a default below it: a server that lags behind shows none of it.
    let returning = vec![
        vec![("v1", json!({ "note": text(), "net": map(json!({ "host": text() })) }))],
        vec![("v1", json!({ "note": text() }))],
        vec![(
            "v1",
            json!({ "note": text(), "net": map(json!({ "host": text(), "port": with(number(), 80) })) }),
        )],
    ];
    let introduced = || {
        vec![
            vec![("v1", json!({ "note": text() }))],
            vec![
                ("v1", json!({ "note": text() })),
                ("v2", json!({ "note": text(), "color": with(text(), "red") })),
            ],
            vec![
                ("v1", json!({ "note": text(), "color": text() })),
                ("v2", json!({ "note": text(), "color": with(text(), "blue") })),
            ],
            vec![("v2", json!({ "note": text(), "color": with(text(), "blue") }))],
        ]
    };
    // Versions without defaults.
    let renamed = {
        let properties = || json!({ "note": text(), "color": text() });
        let both = || vec![("v1", properties()), ("v2", properties())];
        vec![vec![("v1", properties())], both(), vec![("v2", properties())], both()]
    };
    let colored = || {
        menu(vec![
            (Create, "b", "v1", json!({ "note": "x" })),
            (Apply, "a", "v1", json!({ "note": "x" })),
            (Apply, "a", "v2", json!({ "note": "y", "color": "green" })),
            (Merge, "b", "v1", json!({ "note": "z" })),
            (Merge, "b", "v2", json!({ "color": "red" })),
            (Edit, "b", "v2", json!({ "note": "e" })),
            (Delete, "b", "v2", json!(null)),
        ])
    };
    let hiding = || {
        vec![
            vec![("v1", json!({ "note": text(), "old": text() }))],
            vec![("v1", json!({ "note": text(), "size": with(number(), 1) }))],
            vec![("v1", json!({ "note": text(), "old": with(text(), "o"), "size": with(number(), 1) }))],
        ]
    };
    let losing = vec![
        vec![("v1", json!({ "note": text(), "old": text(), "size": with(number(), 1) }))],
        vec![("v1", json!({ "note": text(), "size": with(number(), 1) }))],
        vec![("v1", json!({ "note": text(), "old": with(text(), "o"), "size": with(number(), 1) }))],
    ];
    let olds = || {
        menu(vec![
            (Create, "b", "v1", json!({ "note": "x" })),
            (Apply, "a", "v1", json!({ "old": "x" })),
            (Merge, "b", "v1", json!({ "old": "y" })),
            (Apply, "a", "v1", json!({ "note": "z" })),
            (Edit, "b", "v1", json!({ "note": "e" })),
            (Delete, "b", "v1", json!(null)),
        ])
    };
    // A default comes and goes with its field, and comes back.
    let rolling = vec![
        vec![("v1", json!({ "note": text(), "size": with(number(), 1) }))],
        vec![("v1", json!({ "note": text(), "old": with(text(), "o"), "size": with(number(), 1) }))],
        vec![("v1", json!({ "note": text(), "size": with(number(), 1) }))],
        vec![("v1", json!({ "note": with(text(), "n"), "size": with(number(), 1) }))],
        vec![("v1", json!({ "note": with(text(), "n"), "old": text(), "size": with(number(), 1) }))],
        vec![("v1", json!({ "note": with(text(), "m"), "size": with(number(), 1) }))],
    ];
    let narrow = || {
        menu(vec![
            (Create, "b", "v1", json!({ "note": "x" })),
            (Apply, "a", "v1", json!({ "old": "x" })),
            (Apply, "a", "v1", json!({ "note": "z" })),
            (Create, "b", "v2", json!({})),
            (Merge, "b", "v2", json!({ "note": "y" })),
            (Edit, "b", "v2", json!({ "note": "e" })),
            (Delete, "b", "v2", json!(null)),
        ])
    };
    // The storage version lacks a field, whose default another version stores.
    let narrowing = vec![
        vec![("v1", json!({ "note": text(), "old": with(text(), "o") }))],
        vec![
            ("v1", json!({ "note": text(), "old": with(text(), "o") })),
            ("v2", json!({ "note": text(), "size": with(number(), 1) })),
        ],
        vec![("v2", json!({ "note": with(text(), "n"), "size": with(number(), 1) }))],
    ];
    // What is held stays at the version that it was stored at, whose defaults may change.
    let holding = vec![
        vec![("v1", json!({ "note": text(), "old": text(), "size": number() }))],
        vec![
            ("v1", json!({ "note": text(), "old": text(), "size": number() })),
            ("v2", json!({ "note": text(), "size": with(number(), 1) })),
        ],
        vec![
            ("v1", json!({ "note": with(text(), "n"), "old": text(), "size": number() })),
            ("v2", json!({ "note": text(), "size": with(number(), 1) })),
        ],
    ];
    let held = menu(vec![
        (Create, "b", "v1", json!({ "old": "x", "size": 7 })),
        (Create, "b", "v1", json!({ "size": 7 })),
        (Apply, "a", "v1", json!({ "note": "z" })),
        (Merge, "b", "v1", json!({ "old": null })),
        (Edit, "b", "v2", json!({ "size": 3 })),
        (Delete, "b", "v1", json!(null)),
    ]);
    let phases = |phase: Value| json!({ "seen": number(), "phase": phase });
    let sized_once = || vec![("v1", json!({ "size": with(number(), 1) }))];
    let stated = || {
        let status =
            vec![phases(text()), phases(with(text(), "New")), phases(with(text(), "Ready")), phases(text())];
        let requests = vec![
            (Create, "b", "v1", json!({})),
            (Create, "b", "v1", json!({ "size": 2 })),
            (Apply, "a", "v1", json!({ "size": 2 })),
            (Merge, "b", "v1", json!({ "size": 7 })),
            (Edit, "b", "v1", json!({ "size": 3 })),
            (Delete, "b", "v1", json!(null)),
        ];
        let written = [
            status_request(Merge, "c", "v1", &json!({ "seen": 1 })),
            status_request(Merge, "c", "v1", &json!({ "phase": "Busy" })),
            status_request(Apply, "c", "v1", &json!({ "seen": 2 })),
        ];
        let requests = [menu(requests), written.to_vec()].concat();
        let releases = vec![sized_once(); status.len()];
        World {
            releases: self::releases(releases.clone(), &status),
            status,
            ..world("stated", releases, requests, keep, Vec::new(), Untypable::Keeps)
        }
    };
    // The webhook is older than the field: a write at another version than the storage version stores none.
    let converting = || {
        let both = |color: Value| {
            let properties = json!({ "note": text(), "color": color });
            vec![("v1", properties.clone()), ("v2", properties)]
        };
        let versions = vec![
            vec![("v1", json!({ "note": text(), "color": text() }))],
            both(with(text(), "red")),
            both(with(text(), "blue")),
        ];
        let requests = vec![
            (Create, "b", "v1", json!({ "note": "x" })),
            (Create, "b", "v1", json!({ "note": "x", "color": "green" })),
            (Apply, "a", "v1", json!({ "note": "z" })),
            (Apply, "a", "v2", json!({ "color": "green" })),
            (Merge, "b", "v1", json!({ "note": "y" })),
            (Edit, "b", "v2", json!({ "note": "e" })),
            (Delete, "b", "v1", json!(null)),
        ];
        World {
            webhook_knows: Some(&["note"]),
            ..world("converting", versions, menu(requests), keep, Vec::new(), Untypable::Keeps)
        }
    };
    // A version without the default comes and goes, gets it, and becomes the storage version in place of the
    // other.
    let serving = || {
        let plain = || json!({ "note": text(), "color": text() });
        let red = || json!({ "note": text(), "color": with(text(), "red") });
        let (old, alike) = ([("v1beta1", plain()), ("v1", red())], [("v1beta1", red()), ("v1", red())]);
        let moved = [("v1", plain()), ("v1beta1", red())];
        let versions = vec![
            old.to_vec(),
            old.to_vec(),
            old.to_vec(),
            alike.to_vec(),
            old.to_vec(),
            moved.to_vec(),
            moved.to_vec(),
        ];
        let requests = vec![
            (Create, "b", "v1", json!({ "note": "x" })),
            (Create, "b", "v1beta1", json!({ "note": "x" })),
            (Apply, "a", "v1", json!({ "note": "z" })),
            (Apply, "a", "v1beta1", json!({ "color": "green" })),
            // Written back as it was read.
            (Edit, "b", "v1beta1", json!({})),
            (Edit, "b", "v1", json!({})),
            (Merge, "b", "v1beta1", json!({ "note": "y" })),
            (Delete, "b", "v1", json!(null)),
        ];
        World {
            unserved: vec![&[], &["v1beta1"], &[], &[], &["v1beta1"], &["v1"], &[]],
            ..world("serving", versions, menu(requests), keep, Vec::new(), Untypable::Keeps)
        }
    };
    // Its owners are moved to a new version before a value follows.
    let followed = vec![
        vec![("v1", json!({ "note": text(), "color": text() }))],
        vec![("v1", json!({ "note": text(), "color": with(text(), "red") }))],
        vec![
            ("v1", json!({ "note": text(), "color": text() })),
            ("v2", json!({ "note": text(), "color": with(text(), "blue"), "size": with(number(), 1) })),
        ],
    ];
    let followers = menu(vec![
        (Create, "b", "v1", json!({ "note": "x" })),
        (Create, "b", "v1", json!({ "color": "red" })),
        (Apply, "a", "v1", json!({ "note": "x" })),
        (Merge, "b", "v1", json!({ "note": "z" })),
        (Edit, "b", "v1", json!({ "note": "e" })),
        (Delete, "b", "v1", json!(null)),
    ]);
    let color = vec![".spec.color".parse().expect("a path")];
    let admitted = |name, admission| World {
        admission: Some(admission),
        ..world(name, beside(), sized(), keep, Vec::new(), Untypable::Keeps)
    };
    use Untypable::{Keeps, Wipes};
    vec![
        admitted("set by admission", Admission::Sets),
        admitted("counted by admission", Admission::Counts),
        admitted("refused by admission", Admission::Refuses),
        World { follow: size(), ..admitted("following, set by admission", Admission::Sets) },
        World {
            admission: Some(Admission::Sets),
            ..world("moving, set by admission", renamed.clone(), colored(), trims, Vec::new(), Keeps)
        },
        World {
            admission: Some(Admission::Sets),
            ..world("removed, set by admission", removed(), sized(), keep, size(), Keeps)
        },
        converting(),
        serving(),
        stated(),
        world("changing", changing(), sized(), keep, Vec::new(), Keeps),
        world("following", changing(), sized(), keep, size(), Keeps),
        world("changing beside another", beside(), sized(), keep, Vec::new(), Keeps),
        world("following beside another", beside(), sized(), keep, size(), Keeps),
        world("following to a version", followed, followers, keep, color, Keeps),
        world("removed", removed(), sized(), keep, Vec::new(), Keeps),
        world("following a removal", removed(), sized(), keep, size(), Keeps),
        world("owning", changing(), sized(), own, Vec::new(), Keeps),
        world("nested", nested, nets(), keep, Vec::new(), Keeps),
        world("returning", returning, nets(), keep, Vec::new(), Keeps),
        world("introduced", introduced(), colored(), keep, Vec::new(), Keeps),
        world("introduced, up to 1.36", introduced(), colored(), keep, Vec::new(), Wipes),
        world("holding", holding, held, keep, Vec::new(), Keeps),
        world("hiding", hiding(), olds(), keep, Vec::new(), Keeps),
        world("dropping", hiding(), olds(), drop, Vec::new(), Keeps),
        world("losing a field", losing, olds(), keep, Vec::new(), Keeps),
        world("rolling back", rolling.clone(), olds(), keep, Vec::new(), Keeps),
        world("rolling back, dropping", rolling, olds(), drop, Vec::new(), Keeps),
        world("narrowing", narrowing.clone(), narrow(), keep, Vec::new(), Keeps),
        world("narrowing and trimming", narrowing, narrow(), trims, Vec::new(), Keeps),
        world("trimming", introduced(), colored(), trims, Vec::new(), Keeps),
        world("moving", renamed, colored(), trims, Vec::new(), Keeps),
    ]
}
