//! One rule by itself: which fields of its object it names, and whether it holds over a value.
//!
//! It does not run the rules below the object, and knows no budget.

use serde_json::Value as Json;

use kube_structural_schema::path::Step;
use kube_structural_schema::schema::{Rule, Schema};

use super::check::{Checked, Global, Reference};
use super::data::read;
use super::eval::{Inputs, evaluate};
use super::library::Library;
use super::macros::{MAP_INSERT, SORT_BY_KEYS};
use super::model::{Fields, Node, Shape};
use super::names;
use super::plan::Plan;
use super::rule::{Expression, globals};
use super::tree::{Expr, Fold, Id, Tree};
use super::types::Type;
use super::value::Value;

/// Calls that pass values on as they are.
const PASS_ON: [&str; 12] = [
    "_?_:_",
    "_[_]",
    "_[?_]",
    "_+_",
    "optional.of",
    "or",
    "orValue",
    "value",
    "optional.unwrap",
    "unwrapOpt",
    MAP_INSERT,
    SORT_BY_KEYS,
];

/// Calls that only count or find that there are values.
const COUNT: [&str; 2] = ["hasValue", "size"];

/// A rule of an object, compiled.
#[derive(Debug)]
pub struct OwnRule {
    node: Node,
    plan: Plan,
    uses_old: bool,
    is_optional: bool,
    fields: Option<Box<[NamedField]>>,
    compared: Box<[Box<[String]>]>,
}

/// A field that a rule names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedField {
    /// As the schema spells it, not as CEL does.
    pub name: String,
    /// Whether the rule only asks whether the field is there, whatever its value is.
    pub only_presence: bool,
}

/// What a rule reads of a place below its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Whether the rule only asks whether something is there, whatever it is.
    pub only_presence: bool,
    /// Whether the rule reads nothing else of the object.
    pub is_alone: bool,
}

impl Reading {
    /// It may depend on anything.
    const WHOLE: Self = Self { only_presence: false, is_alone: false };
}

impl OwnRule {
    /// Compiles a rule of a schema; `None` if it does not compile or is blank. A resource root is the root of
    /// a CRD's schema or an embedded resource.
    pub fn compile(rule: &Rule, schema: &Schema, is_resource_root: bool) -> Option<Self> {
        Self::with_readings(rule, schema, is_resource_root, &[]).map(|(rule, _)| rule)
    }

    /// As [`Self::compile`], with what the rule reads of each of these places below its object: `None` where
    /// its result does not depend on the place.
    pub fn with_readings(
        rule: &Rule,
        schema: &Schema,
        is_resource_root: bool,
        places: &[&[Step]],
    ) -> Option<(Self, Vec<Option<Reading>>)> {
        let node = Node::new(schema, is_resource_root);
        let (plan, uses_old, fields, compared, readings) = {
            let globals = globals(rule, &node);
            let expression = Expression::new(&rule.rule, &globals, &Type::Bool, Library::ALL).ok()?;
            let Expression { tree, checked } = &expression;
            let reader = Reader { tree, checked, node: &node };
            let readings: Vec<_> = places.iter().map(|place| reader.reading(place)).collect();
            (
                expression.plan().ok()?,
                expression.names_old(),
                reader.fields(),
                compared(tree, checked),
                readings,
            )
        };
        let is_optional = rule.optional_old_self == Some(true);
        Some((Self { node, plan, uses_old, is_optional, fields, compared }, readings))
    }

    /// The fields of the object that the rule names, each once, those of `oldSelf` among them; `None` if its
    /// result may depend on others, as that of `self == self` does.
    pub fn fields(&self) -> Option<&[NamedField]> {
        self.fields.as_deref()
    }

    /// The fields of `oldSelf` that the rule compares with `==`: each as the names below the object, none of
    /// them for the object itself.
    ///
    /// `has(oldSelf.x)` compares nothing, and a comparison for more or less is a limit.
    pub fn compared_with_old(&self) -> impl Iterator<Item = &[String]> {
        self.compared.iter().map(|names| &**names)
    }

    /// Whether it is a transition rule, which holds over every object that is created.
    pub fn is_transition(&self) -> bool {
        self.uses_old && !self.is_optional
    }

    /// Whether it holds over a new value; `None` if its evaluation fails. One about a change holds.
    pub fn holds(&self, value: &Json) -> Option<bool> {
        if self.is_transition() {
            return Some(true);
        }
        let old = self.uses_old.then_some(Ok(Value::Optional(None)));
        let inputs = Inputs { current: read(value, &self.node), old, named: Vec::new() };
        match evaluate(&self.plan, &inputs).0 {
            Ok(Value::Bool(holds)) => Some(holds),
            _ => None,
        }
    }
}

/// What the types of an expression show about the fields of a node: a value of the node's type is `self` or
/// `oldSelf`, whatever it is called there.
#[derive(Clone, Copy)]
struct Reader<'t> {
    tree: &'t Tree,
    checked: &'t Checked<'t>,
    node: &'t Node,
}

impl<'t> Reader<'t> {
    /// What the expression reads of a place below the node.
    fn reading(mut self, place: &[Step]) -> Option<Reading> {
        let mut is_alone = true;
        for (index, step) in place.iter().enumerate() {
            let below = match (&self.node.shape, step) {
                (Shape::Object(Fields { named, entries: None, .. }), Step::Field(name)) => {
                    let Some(fields) = self.fields() else { return Some(Reading::WHOLE) };
                    let field = fields.iter().find(|field| field.name == *name)?;
                    is_alone &= fields.len() == 1;
                    let only_presence = field.only_presence;
                    if index + 1 == place.len() {
                        return Some(Reading { only_presence, is_alone });
                    }
                    named.get(name.as_str()).filter(|_| !only_presence)?
                }
                (Shape::Array { items: Some(below), .. }, Step::Items)
                | (Shape::Map(below), Step::Values) => {
                    is_alone = false;
                    below
                }
                _ => return Some(Reading::WHOLE),
            };
            self.node = below;
        }
        Some(Reading::WHOLE)
    }

    fn fields(&self) -> Option<Box<[NamedField]>> {
        if !matches!(Type::of_node(self.node), Type::Object(_))
            || self.live().any(|(id, _)| self.reads_all(id))
        {
            return None;
        }
        let is_tested = |id: Id| {
            self.live().any(|(call, _)| self.called(call) == "hasValue" && self.target(call) == Some(id))
        };
        let mut fields: Vec<NamedField> = Vec::new();
        for (id, _) in self.live() {
            let Some((identifier, is_has)) = self.field(id) else { continue };
            let name = names::unescape(identifier)?;
            let only_presence = is_has || is_tested(id);
            match fields.iter_mut().find(|field| field.name == name) {
                Some(field) => field.only_presence &= only_presence,
                None => fields.push(NamedField { name: name.into_owned(), only_presence }),
            }
        }
        Some(fields.into())
    }

    /// The expressions that count.
    fn live(&self) -> impl Iterator<Item = (Id, &'t Expr)> {
        self.tree.iter().filter(|(id, _)| self.ty(*id).is_some())
    }

    fn ty(&self, id: Id) -> Option<&'t Type<'t>> {
        self.checked.types[id.index()].as_ref()
    }

    /// The full name of the function that is called.
    fn called(&self, id: Id) -> &'t str {
        match &self.checked.references[id.index()] {
            Reference::Call { name, .. } => name,
            _ => "",
        }
    }

    fn target(&self, id: Id) -> Option<Id> {
        match self.tree.get(id) {
            Expr::Call { target, .. } => *target,
            _ => None,
        }
    }

    /// The field of the object that an expression takes, as CEL spells it, and whether it is in `has()`.
    fn field(&self, id: Id) -> Option<(&'t str, bool)> {
        let (operand, field, test) = selected(self.tree, id)?;
        let (ty, _) = self.ty(operand)?.unwrap_optional();
        self.is_object(&ty).then_some((field, test))
    }

    /// Whether the result of an expression depends on more of the object than on the fields that it names.
    fn reads_all(&self, id: Id) -> bool {
        let parts: Vec<Id> = match self.tree.get(id) {
            Expr::Call { .. } if selected(self.tree, id).is_some() || COUNT.contains(&self.called(id)) => {
                return false;
            }
            Expr::Call { target, args, .. } => target.iter().chain(args).copied().collect(),
            Expr::List(items) => items.iter().map(|(item, _)| *item).collect(),
            Expr::Map(entries) => entries.iter().flat_map(|entry| [entry.key, entry.value]).collect(),
            _ => return false,
        };
        // What becomes `dyn` is lost: its fields are no longer recognized.
        let is_passed_on = self.holds_object(id)
            && (!matches!(self.tree.get(id), Expr::Call { .. }) || PASS_ON.contains(&self.called(id)));
        !is_passed_on && parts.into_iter().any(|part| self.holds_object(part))
    }

    /// Whether the value of an expression is the object, or has it inside.
    fn holds_object(&self, id: Id) -> bool {
        self.ty(id).is_some_and(|ty| self.is_in(ty))
    }

    fn is_in(&self, ty: &Type<'_>) -> bool {
        match ty {
            Type::List(inner) | Type::Optional(inner) | Type::Meta(inner) => self.is_in(inner),
            Type::Map(entry) => self.is_in(&entry.0) || self.is_in(&entry.1),
            Type::Array(_) | Type::Mapping(_) => self.is_in(&ty.open()),
            other => self.is_object(other),
        }
    }

    fn is_object(&self, ty: &Type<'_>) -> bool {
        matches!(ty, Type::Object(node) if std::ptr::eq(*node, self.node))
    }
}

/// What an expression takes a field of, the field as CEL spells it, and whether it is in `has()`.
fn selected(tree: &Tree, id: Id) -> Option<(Id, &str, bool)> {
    match tree.get(id) {
        Expr::Select { operand, field, test } => Some((*operand, field, *test)),
        Expr::Call { function, args, .. } if **function == *"_?._" => {
            match (&args[..], tree.get(*args.get(1)?)) {
                ([operand, _], Expr::Literal(Value::String(field))) => {
                    Some((*operand, field.as_str(), false))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The fields of `oldSelf` on either side of `==`.
fn compared(tree: &Tree, checked: &Checked<'_>) -> Box<[Box<[String]>]> {
    let mut found = Vec::new();
    OldValues { tree, checked, scope: Vec::new() }.compared(tree.root, &mut found);
    found.into()
}

/// Finds values of `oldSelf`, also under the names that `optMap` and its like give them.
struct OldValues<'t> {
    tree: &'t Tree,
    checked: &'t Checked<'t>,
    /// The variables around an expression, the innermost last; each with the value that it names, and none
    /// for what a loop goes through.
    scope: Vec<(&'t str, Option<Id>)>,
}

impl<'t> OldValues<'t> {
    fn compared(&mut self, id: Id, found: &mut Vec<Box<[String]>>) {
        match self.tree.get(id) {
            Expr::Literal(_) | Expr::Ident(_) | Expr::Message(_) => {}
            Expr::Select { operand, .. } => self.compared(*operand, found),
            Expr::Call { function, target, args } => {
                if **function == *"_==_" {
                    found.extend(args.iter().filter_map(|side| self.below_old(*side)));
                }
                target.iter().chain(args).for_each(|part| self.compared(*part, found));
            }
            Expr::List(items) => items.iter().for_each(|(item, _)| self.compared(*item, found)),
            Expr::Map(entries) => entries.iter().for_each(|entry| {
                self.compared(entry.key, found);
                self.compared(entry.value, found);
            }),
            Expr::Fold(fold) => {
                self.compared(fold.range, found);
                self.compared(fold.init, found);
                self.within(fold, |inside| {
                    for part in [fold.condition, fold.step, fold.result] {
                        inside.compared(part, found);
                    }
                });
            }
        }
    }

    /// The names that lead from `oldSelf` to the value of an expression, where there is one.
    fn below_old(&mut self, id: Id) -> Option<Box<[String]>> {
        if let Some((operand, field, is_test)) = selected(self.tree, id) {
            let field = names::unescape(field).filter(|_| !is_test)?.into_owned();
            let mut names = self.below_old(operand)?.into_vec();
            names.push(field);
            return Some(names.into());
        }
        match (self.tree.get(id), &self.checked.references[id.index()]) {
            (Expr::Call { target, args, .. }, Reference::Call { name, .. }) => {
                match (&**name, *target, &args[..]) {
                    ("value" | "or" | "orValue", Some(target), _) => self.below_old(target),
                    ("optional.of" | "optional.ofNonZeroValue", _, [value]) => self.below_old(*value),
                    ("_?_:_", None, [_, then, otherwise]) => {
                        self.below_old(*then).or_else(|| self.below_old(*otherwise))
                    }
                    _ => None,
                }
            }
            (Expr::Fold(fold), _) => self.within(fold, |inside| inside.below_old(fold.result)),
            (Expr::Ident(_), Reference::Global(Global::Old)) => Some(Box::default()),
            (Expr::Ident(name), Reference::Local) => self.below_named(name),
            _ => None,
        }
    }

    /// The same of the value that a variable names, which stands outside of that variable.
    fn below_named(&mut self, name: &str) -> Option<Box<[String]>> {
        let declared = self.scope.iter().rposition(|(known, _)| *known == name)?;
        let value = self.scope[declared].1?;
        let inner = self.scope.split_off(declared);
        let names = self.below_old(value);
        self.scope.extend(inner);
        names
    }

    /// Looks at what is inside of a loop. One that goes through nothing gives a value a name.
    fn within<T>(&mut self, fold: &'t Fold, look: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.scope.len();
        let is_name = matches!(self.tree.get(fold.range), Expr::List(items) if items.is_empty());
        let variables = std::iter::once(&fold.var).chain(&fold.var2).map(|name| (&**name, None));
        self.scope.extend(variables);
        self.scope.push((&*fold.accu, is_name.then_some(fold.init)));
        let result = look(self);
        self.scope.truncate(outer);
        result
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_rule_reads_of_a_place_is_told_from_what_it_reads_beside_it() {
        let field = || json!({ "type": "integer" });
        let pair = || json!({ "type": "object", "properties": { "x": field(), "y": field() } });
        let schema = json!({ "type": "object", "properties": {
            "a": pair(), "b": pair(), "n": field(), "l": { "type": "array", "items": pair() },
            "m": { "type": "object", "additionalProperties": pair() },
        } });
        let schema = Schema::parse(&schema).expect("a schema");
        let name = |name: &str| Step::Field(name.to_owned());
        let [ax, n] = [vec![name("a"), name("x")], vec![name("n")]];
        let [lx, mx] = [vec![name("l"), Step::Items, name("x")], vec![name("m"), Step::Values, name("x")]];
        let places = [&ax[..], &n, &lx, &mx];
        let read = |only_presence, is_alone| Some(Reading { only_presence, is_alone });
        for (rule, expected) in [
            ("self.a.x > 1", [read(false, true), None, None, None]),
            ("has(self.a.x)", [read(true, true), None, None, None]),
            ("has(self.a) && self.a.y > self.n", [None, read(false, false), None, None]),
            ("self.a.x < self.n", [read(false, false), read(false, false), None, None]),
            ("self.a == self.a", [read(false, false), None, None, None]),
            ("self.a.y == self.b.x", [None; 4]),
            ("self.l.all(item, item.x > 1)", [None, None, read(false, false), None]),
            ("self.l.all(item, item.y > 1) && size(self.l) > 0", [None; 4]),
            ("self.l == self.l", [None, None, read(false, false), None]),
            ("self.m.all(key, self.m[key].x > 1)", [None, None, None, read(false, false)]),
            ("size(self.m) > 0", [None; 4]),
        ] {
            let own = Rule { rule: rule.to_owned(), ..Rule::default() };
            let readings =
                OwnRule::with_readings(&own, &schema, false, &places).map(|(_, readings)| readings);
            assert_eq!(readings.as_deref(), Some(&expected[..]), "{rule}");
        }
    }
}
