//! The rules of a whole schema, and their evaluation over a value.
//! Rules are evaluated on what has passed the rest of validation.
//!
//! Source: apiextensions-apiserver `schema/cel/validation.go`, without ratcheting: an update is judged as if
//! all of it were new, but for the rules that compare with `oldSelf`. Each finding has what ratcheting makes
//! of it.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use kube_structural_schema::finding::{Finding, Kind, Refused};
use kube_structural_schema::path::{Path, Step, Trail, TrailStep};
use kube_structural_schema::schema::{Additional, Schema, SchemaType};

use super::data::read;
use super::eval::{Inputs, evaluate};
use super::fault::{Fault, Outcome};
use super::field_path;
use super::model::{Node, Shape};
use super::names;
use super::old_items::OldItems;
use super::plan::Plan;
use super::rule::CompiledRule;
use super::value::Value;

/// The longest message that an expression may give, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The requirement in findings about rules that were not run to the end, without values.
const TOO_EXPENSIVE: &str = "its rules cost more than the API server allows";

/// The rules of a schema, compiled once and run over any number of values.
#[derive(Debug)]
pub struct Program {
    node: Node,
    rules: Rules,
}

/// A rule that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRule {
    /// The place of the rule's node in the schema.
    pub place: Path,
    /// The rule's index in the node's list; `None` if no rule of the node can be compiled.
    pub index: Option<usize>,
    /// What is wrong with it.
    pub error: String,
}

/// The rules at a node and below it.
#[derive(Debug, Default)]
struct Rules {
    own: Vec<CompiledRule>,
    /// There are rules, and values of the node have no type in expressions.
    undeclared: bool,
    items: Option<Box<Rules>>,
    properties: BTreeMap<Box<str>, Rules>,
    additional: Option<Box<Rules>>,
    all_of: Vec<Rules>,
    /// The keys by which items are found again in an older list.
    list_keys: Box<[String]>,
    /// Whether fields and entries are found again in an older object.
    correlates: bool,
}

impl Program {
    /// Compiles all rules of a schema. A resource root is the root of a CRD's schema or an embedded resource.
    ///
    /// `None` if there is no rule outside `allOf`: then the server does not run those within it either.
    pub fn compile(schema: &Schema, is_resource_root: bool) -> Option<Self> {
        if !has_rules(schema) {
            return None;
        }
        let node = Node::new(schema, is_resource_root);
        let rules = Rules::new(schema, schema, Some(&node))?;
        Some(Self { node, rules })
    }

    /// Runs the rules over a value and, where it replaces one, over what it replaces.
    ///
    /// `base` is the place of the value as the server writes it, empty for a whole object. Returns what is
    /// left of the budget; when it is used up there is a finding for that, nothing more is run, and the
    /// result is negative.
    pub fn validate(
        &self,
        value: &Json,
        old: Option<&Json>,
        base: &str,
        budget: i64,
        findings: &mut Vec<Finding>,
    ) -> i64 {
        self.run(value, old, Run { base, budget, findings, misfits: None })
    }

    /// Runs the rules over a value that need not fit its schema: rules that fail because of that are in
    /// `misfits`, apart from all others.
    pub fn validate_any(
        &self,
        value: &Json,
        old: Option<&Json>,
        budget: i64,
        findings: &mut Vec<Finding>,
        misfits: &mut Vec<Finding>,
    ) -> i64 {
        self.run(value, old, Run { base: "", budget, findings, misfits: Some(misfits) })
    }

    fn run(&self, value: &Json, old: Option<&Json>, mut run: Run<'_>) -> i64 {
        run.validate(&self.rules, Some(&self.node), &Trail::ROOT, value, old);
        run.budget
    }

    /// Whether any rule compares a value with what it was.
    pub fn compares_with_old(&self) -> bool {
        self.rules.compare_with_old()
    }

    /// The rules that do not compile. Each of them fails every value that it would be run over.
    pub fn broken_rules(&self) -> Vec<BrokenRule> {
        let mut broken = Vec::new();
        self.rules.collect_broken(&mut Path::root(), &mut broken);
        broken
    }
}

fn has_rules(schema: &Schema) -> bool {
    !schema.rules.is_empty()
        || schema.items.as_deref().is_some_and(has_rules)
        || schema.additional_schema().is_some_and(has_rules)
        || schema.properties.iter().any(|(_, property)| has_rules(property))
}

impl Rules {
    /// The rules of a schema, or of a part of `allOf`, over the values of a node and its schema.
    fn new(stated: &Schema, schema: &Schema, node: Option<&Node>) -> Option<Self> {
        let mut rules = Self::default();
        let declared = node.filter(|node| node.declared);
        rules.undeclared = !stated.rules.is_empty() && declared.is_none();
        rules.correlates = schema.map_type.as_deref().is_none_or(|ty| matches!(ty, "granular" | "atomic"));
        if schema.kind == SchemaType::Array && schema.list_type.as_deref() == Some("map") {
            rules.list_keys = schema.list_map_keys.clone();
        }
        if let Some(node) = declared {
            rules.own = stated.rules.iter().map(|rule| CompiledRule::new(rule, schema, node)).collect();
        }
        if let (Some(stated), Some(schema)) = (&stated.items, &schema.items) {
            rules.items = Self::new(stated, schema, declared.and_then(items_of)).map(Box::new);
        }
        if let (Some(Additional::Schema(stated)), Some(Additional::Schema(schema))) =
            (&stated.additional, &schema.additional)
        {
            rules.additional = Self::new(stated, schema, declared.and_then(values_of)).map(Box::new);
        }
        for (name, stated) in stated.properties.iter() {
            let Some(schema) = schema.properties.get(name) else { continue };
            if let Some(child) = node.and_then(|node| field_of(node, name))
                && let Some(below) = Self::new(stated, schema, Some(child))
            {
                rules.properties.insert(name.into(), below);
            }
        }
        if let Some(constraints) = &stated.constraints {
            rules.all_of =
                constraints.all_of.iter().filter_map(|stated| Self::new(stated, schema, node)).collect();
        }
        rules.are_any().then_some(rules)
    }

    fn are_any(&self) -> bool {
        !self.own.is_empty()
            || self.undeclared
            || self.items.is_some()
            || self.additional.is_some()
            || !self.properties.is_empty()
            || !self.all_of.is_empty()
    }

    fn compare_with_old(&self) -> bool {
        let mut below = self.items.iter().chain(&self.additional).map(|rules| &**rules);
        self.own.iter().any(|rule| rule.uses_old)
            || below.any(Self::compare_with_old)
            || self.properties.values().chain(&self.all_of).any(Self::compare_with_old)
    }

    fn collect_broken(&self, place: &mut Path, broken: &mut Vec<BrokenRule>) {
        if self.undeclared {
            let error = "failed to convert to declType for CEL validation rules".to_owned();
            broken.push(BrokenRule { place: place.clone(), index: None, error });
        }
        for (index, rule) in self.own.iter().enumerate() {
            if let Err(error) = &rule.plan {
                broken.push(BrokenRule { place: place.clone(), index: Some(index), error: error.clone() });
            }
        }
        self.all_of.iter().for_each(|rules| rules.collect_broken(place, broken));
        let below = self.properties.iter().map(|(name, rules)| (Step::Field(name.to_string()), rules));
        let items = self.items.iter().map(|rules| (Step::Items, &**rules));
        let values = self.additional.iter().map(|rules| (Step::Values, &**rules));
        for (step, rules) in below.chain(items).chain(values) {
            place.push(step);
            rules.collect_broken(place, broken);
            place.pop();
        }
    }
}

fn items_of(node: &Node) -> Option<&Node> {
    match &node.shape {
        Shape::Array { items, .. } => items.as_deref(),
        _ => None,
    }
}

fn values_of(node: &Node) -> Option<&Node> {
    match &node.shape {
        Shape::Map(values) => Some(values),
        Shape::Object(fields) => fields.entries.as_deref(),
        _ => None,
    }
}

/// The node of a property. Where values have no type in expressions the server runs no rule at or below the
/// property; where its name has no spelling it does.
fn field_of<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let spelled = names::escape(name).is_some();
    let Shape::Object(fields) = &node.shape else {
        return node.strays.get(name).filter(|field| field.declared && !spelled);
    };
    let reachable = (node.declared && fields.entries.is_none()) || !spelled;
    fields.named.get(name).filter(|field| field.declared && reachable)
}

/// The node by which a property's values are read: as the schema states it, whatever its rules are compiled
/// for.
fn stated_of<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    match &node.shape {
        Shape::Object(fields) => fields.stated.get(name).or_else(|| fields.named.get(name)),
        _ => node.strays.get(name),
    }
}

struct Run<'a> {
    base: &'a str,
    budget: i64,
    findings: &'a mut Vec<Finding>,
    /// Where rules are reported that met a value which does not fit its schema; none for among the others.
    misfits: Option<&'a mut Vec<Finding>>,
}

impl Run<'_> {
    fn validate(
        &mut self,
        rules: &Rules,
        node: Option<&Node>,
        place: &Trail<'_>,
        value: &Json,
        old: Option<&Json>,
    ) {
        if value.is_null() || self.budget < 0 {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        self.run_own(rules, node, place, value, old);
        for part in &rules.all_of {
            self.validate(part, node, place, value, old);
        }
        match value {
            Json::Array(items) => self.validate_items(rules, node, place, items, old),
            Json::Object(fields) => self.validate_fields(rules, node, place, fields, old),
            _ => {}
        }
    }

    fn validate_items(
        &mut self,
        rules: &Rules,
        node: Option<&Node>,
        place: &Trail<'_>,
        items: &[Json],
        old: Option<&Json>,
    ) {
        let Some(below) = &rules.items else { return };
        let before = OldItems::new(&rules.list_keys, old);
        for (index, item) in items.iter().enumerate() {
            let at = place.join(TrailStep::Index(index));
            self.validate(below, node.and_then(items_of), &at, item, before.get(item));
        }
    }

    fn validate_fields(
        &mut self,
        rules: &Rules,
        node: Option<&Node>,
        place: &Trail<'_>,
        fields: &serde_json::Map<String, Json>,
        old: Option<&Json>,
    ) {
        let before = old.and_then(Json::as_object).filter(|_| rules.correlates);
        for (key, value) in fields {
            let old = before.and_then(|before| before.get(key));
            if let Some(below) = &rules.additional {
                let at = place.join(TrailStep::Key(key));
                self.validate(below, node.and_then(values_of), &at, value, old);
            }
            if let Some(below) = rules.properties.get(&**key) {
                let at = place.join(TrailStep::Field(key));
                self.validate(below, node.and_then(|node| stated_of(node, key)), &at, value, old);
            }
        }
    }

    /// Reports rules that could not be run. `asked` states that without values. The server lets no update
    /// pass because its value is an old one: it does so only for a rule that is false.
    fn report(&mut self, place: &Trail<'_>, asked: String, detail: impl Into<String>) {
        let finding = Finding::new(Kind::Invalid, field_path::render(self.base, place), detail);
        self.findings.push(finding.asking(asked).refusing(Refused::Always));
    }

    fn stop(&mut self, place: &Trail<'_>, detail: impl Into<String>) {
        self.report(place, TOO_EXPENSIVE.to_owned(), detail);
        self.budget = -1;
    }

    fn run_own(
        &mut self,
        rules: &Rules,
        node: Option<&Node>,
        place: &Trail<'_>,
        value: &Json,
        old: Option<&Json>,
    ) {
        if rules.undeclared {
            let error =
                "rule compiler initialization error: failed to convert to declType for CEL validation rules";
            return self.report(place, "its rules cannot be compiled".to_owned(), error);
        }
        let Some(node) = node.filter(|_| !rules.own.is_empty()) else { return };
        if self.budget <= 0 {
            return self.stop(place, OUT_OF_BUDGET);
        }
        let current = read(value, node);
        // Upstream hands out `oldSelf` where any rule of the node names it, be it in its expression only.
        let has_old = rules.own.iter().any(|rule| rule.uses_old);
        let before = old.map(|old| read(old, node));
        for rule in &rules.own {
            match &rule.plan {
                Ok(None) => {}
                Err(error) => {
                    let asked = format!("a rule cannot be compiled: {}", rule.rule.name());
                    self.report(place, asked, format!("rule compile error: {error}"));
                }
                // A rule about a change does not apply to a new value, unless it sets `optionalOldSelf`.
                Ok(Some(_)) if rule.uses_old && old.is_none() && !rule.is_optional() => {}
                Ok(Some(plan)) => {
                    let old = has_old.then(|| old_self(rule, before.as_ref())).flatten();
                    let inputs = Inputs { current: current.clone(), old, named: Vec::new() };
                    let reported = self.findings.len();
                    self.run_rule(rule, plan, place, &inputs);
                    if rule.uses_old && self.budget >= 0 {
                        // The server lets none of these pass because its value is an old one. What holds over
                        // a new value shows nothing about updates.
                        let refused = if before.is_some() { Refused::Always } else { Refused::Changes };
                        self.findings[reported..].iter_mut().for_each(|finding| finding.refused = refused);
                    }
                }
            }
            if self.budget < 0 {
                return;
            }
        }
    }

    fn run_rule(&mut self, rule: &CompiledRule, plan: &Plan, place: &Trail<'_>, inputs: &Inputs<'_>) {
        let (result, cost) = evaluate(plan, inputs);
        if !self.spend(cost) {
            return self.stop(place, OUT_OF_BUDGET);
        }
        let name = rule.rule.name();
        let asked = || format!("a rule cannot be evaluated: {name}");
        match result {
            Ok(Value::Bool(true)) => {}
            Ok(_) => self.fail(rule, place, inputs),
            Err(fault @ (Fault::NoOverload | Fault::NoOverloadOf(_))) => self.report(
                place,
                asked(),
                format!(
                    "'{fault}': call arguments did not match a supported operator, function or macro \
                     signature for rule: {name}"
                ),
            ),
            Err(fault @ Fault::TooExpensive) => self.stop(
                place,
                format!(
                    "'{fault}': no further validation rules will be run due to call cost exceeds limit \
                    for rule: {name}"
                ),
            ),
            Err(fault) => {
                let detail = format!("{fault} evaluating rule: {name}");
                match &mut self.misfits {
                    Some(misfits) if fault.is_misfit() => {
                        let field = field_path::render(self.base, place);
                        misfits.push(Finding::new(Kind::Invalid, field, detail).asking(asked()));
                    }
                    _ => self.report(place, asked(), detail),
                }
            }
        }
    }

    fn spend(&mut self, cost: u64) -> bool {
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.budget => {
                self.budget -= cost;
                true
            }
            _ => false,
        }
    }

    /// Reports a rule that does not hold, at the place and with the message that it sets.
    fn fail(&mut self, rule: &CompiledRule, place: &Trail<'_>, inputs: &Inputs<'_>) {
        let at = match &rule.field_path {
            Some(below) => field_path::render_child(self.base, place, below),
            None => field_path::render(self.base, place),
        };
        let message = match &rule.message {
            Some(plan) => self.message(plan, &rule.rule.message_expression, inputs),
            None => Ok(None),
        };
        let detail = match message {
            Ok(Some(message)) => message,
            Ok(None) if rule.rule.message.is_empty() => format!("failed rule: {}", rule.rule.name()),
            Ok(None) => rule.rule.name().to_owned(),
            Err(error) => {
                let finding = Finding::new(Kind::Invalid, at, error).asking(TOO_EXPENSIVE);
                self.findings.push(finding.refusing(Refused::Always));
                self.budget = -1;
                return;
            }
        };
        let (kind, detail) = match rule.rule.reason.as_deref() {
            Some("FieldValueForbidden") => (Kind::Forbidden, detail),
            Some("FieldValueRequired") => (Kind::Required, detail),
            Some("FieldValueDuplicate") => (Kind::Duplicate, String::new()),
            _ => (Kind::Invalid, detail),
        };
        let judged = field_path::below(self.base, place);
        self.findings.push(Finding::new(kind, at, detail).asking(rule.rule.name()).judged_at(&judged));
    }

    /// The message that an expression gives, if it is one that can be shown.
    ///
    /// # Errors
    /// It used up the budget.
    fn message(&mut self, plan: &Plan, source: &str, inputs: &Inputs<'_>) -> Result<Option<String>, String> {
        let (result, cost) = evaluate(plan, inputs);
        if !self.spend(cost) {
            return Err("messageExpression evaluation failed due to running out of cost budget, no further \
                validation rules will be run"
                .to_owned());
        }
        match result {
            Ok(Value::String(text)) => {
                let text = text.as_str().trim();
                let fits = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
                Ok(fits.then(|| text.to_owned()))
            }
            Err(Fault::TooExpensive) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for \
                 messageExpression: {source:?}"
            )),
            _ => Ok(None),
        }
    }
}

/// `oldSelf` as a rule has it.
fn old_self<'v>(rule: &CompiledRule, old: Option<&Outcome<Value<'v>>>) -> Option<Outcome<Value<'v>>> {
    if !rule.is_optional() {
        return old.cloned();
    }
    Some(Ok(match old {
        None => Value::Optional(None),
        Some(old) => Value::some(old.clone().unwrap_or_else(Value::Misfit)),
    }))
}
