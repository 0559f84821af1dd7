//! A declaration made ready for requests: places read, expressions checked, the schema prepared. Or what is
//! wrong with it.

use std::collections::BTreeMap;

use super::place::Place;
use super::problem::Problem;
use super::scope::{OLD_OBJECT, OLD_SELF, Scope, Scoped};
use super::spec::{
    self, Declaration, DefaultValue, Enforcement, FactObject, Missing, Operation, Ratcheting, Reference,
    Required, Rule, Severity, UnknownFields,
};
use kube_crd_validation::{Prepared, defaults, is_namespace_name};
use kube_structural_schema::compile::Compiled as Defaults;
use kube_structural_schema::finding::Kind;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::Schema;
use kube_structural_schema::schema::rules::structural_errors;
use kube_validation_rules::Wanted;

/// A declaration that can be served.
#[derive(Debug)]
pub struct Compiled {
    pub(super) targets: Vec<Target>,
    pub(super) facts: Vec<CompiledFact>,
    pub(super) scopes: Vec<Scope>,
    pub(super) when: Option<Scoped>,
    pub(super) extension: Option<Extension>,
    pub(super) unknown_fields: UnknownFields,
    pub(super) required: Option<Required>,
    pub(super) default_on: Vec<Operation>,
    pub(super) defaults: Vec<CompiledDefault>,
    pub(super) rules: Vec<CompiledRule>,
    pub(super) references: Vec<CompiledReference>,
    pub(super) ratcheting: Ratcheting,
    pub(super) enforcement: Enforcement,
    costs: Vec<(String, u64)>,
}

/// The schema of extensions, and what is prepared of it.
#[derive(Debug)]
pub(super) struct Extension {
    pub(super) schema: Schema,
    pub(super) defaults: Defaults,
    pub(super) prepared: Prepared,
}

#[derive(Debug)]
pub(super) struct Target {
    pub(super) declared: spec::Target,
    pub(super) place: Place,
}

#[derive(Debug)]
pub(super) struct CompiledFact {
    pub(super) declared: spec::Fact,
    pub(super) taken: Option<Taken>,
}

/// How a fact is taken from its object.
#[derive(Debug)]
pub(super) enum Taken {
    Place(Place),
    Expression(Scoped),
}

#[derive(Debug)]
pub(super) struct CompiledDefault {
    pub(super) scope: spec::Scope,
    pub(super) resources: Vec<String>,
    /// The lists and maps to go through.
    pub(super) items: Place,
    /// The names below each of their values.
    pub(super) fields: Vec<String>,
    pub(super) missing: Missing,
    pub(super) when: Option<Scoped>,
    pub(super) value: Scoped,
}

#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) declared: Rule,
    pub(super) scope: spec::Scope,
    pub(super) kind: Kind,
    pub(super) severity: Severity,
    pub(super) for_each: Option<Place>,
    pub(super) rule: Scoped,
    pub(super) message: Option<Scoped>,
    pub(super) names_old_self: bool,
    pub(super) names_old_object: bool,
}

#[derive(Debug)]
pub(super) struct CompiledReference {
    pub(super) declared: Reference,
    pub(super) place: Place,
    pub(super) namespace: Option<Scoped>,
    pub(super) severity: Severity,
}

impl Compiled {
    /// Makes a declaration ready.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn new(declared: &Declaration) -> Result<Self, Vec<Problem>> {
        let mut compiler = Compiler::new(declared);
        let extension =
            declared.schema.as_ref().and_then(|schema| compiler.extension(&schema.open_api_v3_schema));
        compiler.extension = extension;
        compiler.scope_of(spec::Scope::Extension, None);
        let targets = compiler.targets(declared);
        let facts = compiler.facts(declared);
        let when = declared.when.as_deref().and_then(|source| {
            let scope = compiler.add(Scope::of_when(&compiler.facts));
            compiler.expression("spec.when", source, scope, Wanted::Bool)
        });
        let defaults = each(&declared.defaults, |index, default| compiler.default(index, default));
        let rules = each(&declared.rules, |index, rule| compiler.rule(index, rule));
        let references = each(&declared.references, |index, reference| compiler.reference(index, reference));
        if !compiler.problems.is_empty() {
            return Err(compiler.problems);
        }
        Ok(Self {
            targets,
            facts,
            scopes: compiler.scopes,
            when,
            extension: compiler.extension,
            unknown_fields: declared.unknown_fields.unwrap_or_default(),
            required: declared.required.clone(),
            default_on: match &declared.default_on[..] {
                [] => vec![Operation::Create],
                some => some.to_vec(),
            },
            defaults,
            rules,
            references,
            ratcheting: declared.ratcheting.unwrap_or_default(),
            enforcement: declared.enforcement.unwrap_or_default(),
            costs: compiler.costs,
        })
    }

    /// The most that each expression may cost in a request, as often as it may be evaluated for one
    /// extension, with its field in the declaration. All of a request may together cost
    /// [`RUNTIME_BUDGET`](kube_validation_rules::RUNTIME_BUDGET).
    pub fn costs(&self) -> &[(String, u64)] {
        &self.costs
    }

    /// The schema with every update judged as if all of it were new, whatever the declaration requests.
    #[must_use]
    pub fn without_ratcheting(self) -> Self {
        Self { ratcheting: Ratcheting::Disabled, ..self }
    }
}

fn each<'d, T, C>(declared: &'d [T], mut compile: impl FnMut(usize, &'d T) -> Option<C>) -> Vec<C> {
    declared.iter().enumerate().filter_map(|(index, one)| compile(index, one)).collect()
}

struct Compiler<'d> {
    facts: Vec<&'d str>,
    resources: Vec<&'d str>,
    extension: Option<Extension>,
    scopes: Vec<Scope>,
    /// The scopes that were needed so far, by what they are about and what they go through.
    known: BTreeMap<(bool, Option<&'d str>), usize>,
    costs: Vec<(String, u64)>,
    problems: Vec<Problem>,
}

impl<'d> Compiler<'d> {
    fn new(declared: &'d Declaration) -> Self {
        Self {
            facts: declared.facts.iter().map(|fact| fact.name.as_str()).collect(),
            resources: declared.targets.iter().map(|target| target.resource.as_str()).collect(),
            extension: None,
            scopes: Vec::new(),
            known: BTreeMap::new(),
            costs: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn fail(&mut self, at: impl Into<String>, problem: impl Into<String>) {
        self.problems.push(Problem { field: at.into(), problem: problem.into() });
    }

    fn add(&mut self, scope: Scope) -> usize {
        self.scopes.push(scope);
        self.scopes.len() - 1
    }

    fn extension(&mut self, document: &serde_json::Value) -> Option<Extension> {
        const AT: &str = "spec.schema.openAPIV3Schema";
        let schema = match Schema::parse(document) {
            Ok(schema) => schema,
            Err(error) => {
                self.fail(AT, error.to_string());
                return None;
            }
        };
        let at = |field: &str| format!("spec.schema.{field}");
        for finding in structural_errors(&schema).into_iter().chain(defaults(&schema).by_server) {
            self.fail(at(&finding.field), finding.requirement());
        }
        let prepared = Prepared::of(&schema);
        for broken in prepared.broken_rules() {
            let rule = broken.index.map(|index| format!("[{index}].rule")).unwrap_or_default();
            self.fail(
                format!("{AT}{}.x-kubernetes-validations{rule}", declared(&broken.place)),
                broken.error,
            );
        }
        Some(Extension { defaults: Defaults::new(&schema), prepared, schema })
    }

    fn place(&mut self, at: &str, text: &str) -> Option<Place> {
        Place::read(text).map_err(|error| self.fail(at, error.to_string())).ok()
    }

    fn expression(&mut self, at: &str, source: &str, scope: usize, wanted: Wanted) -> Option<Scoped> {
        let compiled = self.scopes[scope].compile(source, wanted);
        let expression = compiled.map_err(|error| self.fail(at, error)).ok()?;
        let cost = expression.max_cost().saturating_mul(self.scopes[scope].evaluations());
        self.costs.push((at.to_owned(), cost));
        Some(Scoped { expression, scope })
    }

    /// The scope of what is about an extension or an object, or about each value at a place in it.
    fn scope_of(&mut self, about: spec::Scope, items: Option<(&'d str, &Place)>) -> usize {
        let key = (about == spec::Scope::Extension, items.map(|(text, _)| text));
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let schema = self.extension.as_ref().map(|extension| &extension.schema);
        let scope = match about {
            spec::Scope::Extension => Scope::of_extension(&self.facts, schema),
            spec::Scope::Object => Scope::of_object(&self.facts),
        };
        let scope = match (items, about) {
            (Some((_, place)), spec::Scope::Extension) => scope.of_items(place, schema),
            (Some((_, place)), spec::Scope::Object) => scope.of_items(place, None),
            (None, _) => scope,
        };
        let place = self.add(scope);
        self.known.insert(key, place);
        place
    }

    fn targets(&mut self, declared: &Declaration) -> Vec<Target> {
        if declared.targets.is_empty() {
            self.fail("spec.targets", "names no resource");
        }
        each(&declared.targets, |index, target| {
            let at = format!("spec.targets[{index}]");
            if let Some((field, why)) = target.misnamed() {
                self.fail(format!("{at}.{field}"), why);
            }
            let same = |other: &&spec::Target| {
                (&other.group, &other.version, &other.resource)
                    == (&target.group, &target.version, &target.resource)
            };
            // A request is judged by one path.
            if let Some(before) = declared.targets[..index].iter().position(|other| same(&other)) {
                let problem = format!("spec.targets[{before}] is the same version of the same resource");
                self.fail(&at, format!("{problem}; declare this path in another EmbeddedSchema"));
            }
            let place = self.place(&format!("{at}.path"), &target.path)?;
            Some(Target { declared: target.clone(), place })
        })
    }

    fn facts(&mut self, declared: &Declaration) -> Vec<CompiledFact> {
        each(&declared.facts, |index, fact| {
            let at = format!("spec.facts[{index}]");
            if !is_fact_name(&fact.name) {
                self.fail(format!("{at}.name"), "must have only letters and digits, and begin with a letter");
            }
            if let Some((field, why)) = fact.object.as_ref().and_then(misnamed) {
                self.fail(format!("{at}.object.{field}"), why);
            }
            let taken = match (&fact.path, &fact.expression) {
                (Some(path), None) => self.place(&format!("{at}.path"), path).map(Taken::Place),
                (None, Some(source)) => {
                    let scope = self.add(Scope::of_object(&[]));
                    let at = format!("{at}.expression");
                    self.expression(&at, source, scope, Wanted::Any).map(Taken::Expression)
                }
                (Some(_), Some(_)) => {
                    self.fail(&at, "must have either a path or an expression");
                    None
                }
                (None, None) => None,
            };
            if fact.constant.is_some() == fact.object.is_some() {
                self.fail(&at, "must have either a constant or an object");
            } else if fact.object.is_some() != (fact.path.is_some() || fact.expression.is_some()) {
                self.fail(
                    &at,
                    "must have a path or an expression if it has an object, and neither otherwise",
                );
            }
            Some(CompiledFact { declared: fact.clone(), taken })
        })
    }

    fn resources(&mut self, at: &str, named: &[String]) {
        for resource in named {
            if !self.resources.contains(&resource.as_str()) {
                self.fail(format!("{at}.resources"), format!("no target has the resource {resource}"));
            }
        }
    }

    fn default(&mut self, index: usize, declared: &'d DefaultValue) -> Option<CompiledDefault> {
        let at = format!("spec.defaults[{index}]");
        let place = self.place(&format!("{at}.path"), &declared.path)?;
        let (items, fields) = place.split();
        let about = declared.scope.unwrap_or_default();
        let missing = declared.missing.unwrap_or_default();
        if fields.is_empty() && missing != Missing::Merge {
            self.fail(format!("{at}.path"), "must end with a name, unless its value is merged");
        }
        let lists = declared.path.rfind("[*]").filter(|_| !items.parts().is_empty());
        let lists = lists.map(|end| &declared.path[..end + 3]);
        let scope = self.scope_of(about, lists.map(|text| (text, &items)));
        self.resources(&at, &declared.resources);
        let when = declared.when.as_deref();
        let when = when.map(|source| self.expression(&format!("{at}.when"), source, scope, Wanted::Bool));
        let wanted = if missing == Missing::Merge { Wanted::Object } else { Wanted::Any };
        let value = self.expression(&format!("{at}.value"), &declared.value, scope, wanted)?;
        Some(CompiledDefault {
            scope: about,
            resources: declared.resources.clone(),
            items,
            fields,
            missing,
            when: match when {
                Some(compiled) => Some(compiled?),
                None => None,
            },
            value,
        })
    }

    fn rule(&mut self, index: usize, declared: &'d Rule) -> Option<CompiledRule> {
        let at = format!("spec.rules[{index}]");
        let about = declared.scope.unwrap_or_default();
        let for_each = declared.for_each.as_deref();
        let for_each = match for_each {
            Some(text) => Some((text, self.place(&format!("{at}.forEach"), text)?)),
            None => None,
        };
        let scope = self.scope_of(about, for_each.as_ref().map(|(text, place)| (*text, place)));
        self.resources(&at, &declared.resources);
        let message = declared
            .message_expression
            .as_deref()
            .map(|source| self.expression(&format!("{at}.messageExpression"), source, scope, Wanted::Text));
        let rule = self.expression(&format!("{at}.rule"), &declared.rule, scope, Wanted::Bool)?;
        Some(CompiledRule {
            scope: about,
            kind: kind_of(declared.fault.unwrap_or_default()),
            severity: declared.severity.unwrap_or_default(),
            for_each: for_each.map(|(_, place)| place),
            message: message.flatten(),
            names_old_self: about == spec::Scope::Extension && rule.expression.uses(OLD_SELF),
            names_old_object: rule.expression.uses(OLD_OBJECT),
            rule,
            declared: declared.clone(),
        })
    }

    fn reference(&mut self, index: usize, declared: &'d Reference) -> Option<CompiledReference> {
        let at = format!("spec.references[{index}]");
        let place = self.place(&format!("{at}.path"), &declared.path)?;
        let scope = self.scope_of(spec::Scope::Extension, None);
        let namespace = match declared.namespace.as_deref() {
            Some(source) => Some(self.expression(&format!("{at}.namespace"), source, scope, Wanted::Text)?),
            None => None,
        };
        let severity = declared.severity.unwrap_or(Severity::Warn);
        Some(CompiledReference { declared: declared.clone(), place, namespace, severity })
    }
}

/// Whether expressions can name it `facts.NAME`.
fn is_fact_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|character| character.is_ascii_alphanumeric())
}

/// The field of a fact's object whose text is no name of its kind, and why. To RBAC a `*` is every resource
/// and an empty name every list, so a role for them would grant more than the fact reads.
fn misnamed(object: &FactObject) -> Option<(&'static str, &'static str)> {
    let FactObject { group, version, resource, namespace, name } = object;
    let of_target = spec::Target {
        group: group.clone(),
        version: version.clone(),
        resource: resource.clone(),
        ..Default::default()
    };
    if let Some((field, why)) = of_target.misnamed() {
        return Some((field, if field == "version" { "no version has this name" } else { why }));
    }
    let is_name = !matches!(name.as_str(), "" | "." | "..") && !name.contains(['/', '%']);
    [
        ("version", "must not be empty", !version.is_empty()),
        ("resource", "must not be empty", !resource.is_empty()),
        ("name", "no object has this name", is_name),
        (
            "namespace",
            "no namespace has this name; leave it out for cluster-scoped resources",
            namespace.as_deref().is_none_or(is_namespace_name),
        ),
    ]
    .into_iter()
    .find_map(|(field, why, is_name)| (!is_name).then_some((field, why)))
}

/// Where a schema declares a place, as the API server writes it: `.properties[a].items`.
fn declared(place: &Path) -> String {
    let step = |step: &Step| match step {
        Step::Field(name) | Step::Key(name) => format!(".properties[{name}]"),
        Step::Items | Step::Index(_) => ".items".to_owned(),
        Step::Values => ".additionalProperties".to_owned(),
    };
    place.steps().iter().map(step).collect()
}

fn kind_of(fault: spec::FaultType) -> Kind {
    match fault {
        spec::FaultType::Required => Kind::Required,
        spec::FaultType::Invalid => Kind::Invalid,
        spec::FaultType::Forbidden => Kind::Forbidden,
        spec::FaultType::NotSupported => Kind::NotSupported,
        spec::FaultType::TooMany => Kind::TooMany,
        spec::FaultType::Duplicate => Kind::Duplicate,
    }
}
