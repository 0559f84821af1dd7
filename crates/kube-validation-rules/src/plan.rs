//! How a checked expression is evaluated: names become slots, field chains one step, and what is constant is
//! done.
//!
//! The steps are cel-go's own, one for one, since what evaluation costs is counted by them.
//! Source: cel-go `interpreter/{planner,decorators}.go`, with the options that Kubernetes sets.

use std::collections::BTreeSet;

use go_text::regexp::Pattern;

use super::check::{Checked, Global, Reference};
use super::library::{CONVERSIONS, Overload, Search};
use super::macros::MAP_INSERT;
use super::price::{Counted, ONE};
use super::tree::{Expr, Fold, Id, Tree};
use super::value::{Key, Value, to_int, to_uint};

/// The place of a step in its plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepId(u32);

/// The place of an attribute in its plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttributeId(u32);

/// An expression that can be evaluated.
#[derive(Debug)]
pub(super) struct Plan {
    steps: Vec<Step>,
    attributes: Vec<Attribute>,
    pub(super) root: StepId,
    /// How many variables there are at once.
    pub(super) slots: usize,
}

#[derive(Debug)]
pub(super) enum Step {
    Constant(Value<'static>),
    Read(AttributeId),
    /// `has()`
    Present(AttributeId),
    And(StepId, StepId),
    Or(StepId, StepId),
    Equal {
        left: StepId,
        right: StepId,
        negated: bool,
    },
    /// Whether a value is anything but `false`, an error included.
    NotFalse(StepId),
    /// `or` and `orValue`: the right side only where the left is absent.
    Otherwise {
        optional: StepId,
        other: StepId,
        unwrap: bool,
    },
    Call(Box<Call>),
    /// `in` a list of constants.
    OneOf(StepId, BTreeSet<Key>),
    List(Vec<(StepId, bool)>),
    Map(Vec<(StepId, StepId, bool)>),
    Fold(Box<Loop>),
}

/// A call of a function.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) function: Box<str>,
    pub(super) candidates: Vec<&'static Overload>,
    pub(super) args: Vec<StepId>,
    pub(super) counted: Counted,
    /// Whether it does not run where that is too much.
    pub(super) is_priced_before: bool,
    /// Whether it is `+`, whose result may be much larger than its price.
    pub(super) is_sum: bool,
    /// The regular expression, if it is a constant.
    pub(super) search: Option<(Search, Pattern)>,
    /// The accumulator that is the first argument and will be replaced by the result: it may be changed in
    /// place.
    pub(super) grows: Option<usize>,
    /// Whether all arguments are evaluated even if the first has no value.
    pub(super) binary: bool,
}

/// A loop of a macro. All its variables are slots.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) range: StepId,
    pub(super) var: usize,
    pub(super) var2: Option<usize>,
    pub(super) accu: usize,
    pub(super) init: StepId,
    pub(super) condition: StepId,
    pub(super) step: StepId,
    pub(super) result: StepId,
}

/// Something that is read, and what of it.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) base: Base,
    pub(super) qualifiers: Vec<Qualifier>,
}

#[derive(Debug)]
pub(super) enum Base {
    Global(Global),
    Slot(usize),
    Step(StepId),
    /// `a ? b : c`; qualifiers are those of the branches.
    Choice {
        condition: StepId,
        yes: AttributeId,
        no: AttributeId,
    },
}

/// A field, key or index.
#[derive(Clone, Debug)]
pub(super) struct Qualifier {
    pub(super) key: QualifierKey,
    /// Behind a `?`: where it is absent, so is the whole.
    pub(super) optional: bool,
    /// Of `has()`: only whether it is there.
    pub(super) test: bool,
}

#[derive(Clone, Debug)]
pub(super) enum QualifierKey {
    Constant(Value<'static>),
    Attribute(AttributeId),
}

impl Attribute {
    pub(super) fn is_choice(&self) -> bool {
        matches!(self.base, Base::Choice { .. })
    }
}

impl Plan {
    /// Plans an expression.
    ///
    /// # Errors
    /// A constant has no value, such as `int('x')`.
    pub(super) fn new(tree: &Tree, checked: &Checked<'_>) -> Result<Self, String> {
        let mut planner =
            Planner { tree, checked, steps: Vec::new(), attributes: Vec::new(), scope: Vec::new(), slots: 0 };
        let root = planner.plan(tree.root)?;
        Ok(Self { steps: planner.steps, attributes: planner.attributes, root, slots: planner.slots })
    }

    pub(super) fn step(&self, id: StepId) -> &Step {
        &self.steps[id.0 as usize]
    }

    pub(super) fn attribute(&self, id: AttributeId) -> &Attribute {
        &self.attributes[id.0 as usize]
    }
}

struct Planner<'t, 'm> {
    tree: &'t Tree,
    checked: &'t Checked<'m>,
    steps: Vec<Step>,
    attributes: Vec<Attribute>,
    /// The names in reach and their slots.
    scope: Vec<(Box<str>, usize)>,
    slots: usize,
}

impl Planner<'_, '_> {
    fn plan(&mut self, id: Id) -> Result<StepId, String> {
        let tree = self.tree;
        let step = match (tree.get(id), &self.checked.references[id.index()]) {
            (_, Reference::Type(name)) => Step::Constant(Value::Type(name)),
            (_, Reference::Global(global)) => Step::Read(self.attribute(Base::Global(*global))),
            (Expr::Literal(value), _) => Step::Constant(value.clone()),
            (Expr::Ident(name), _) => {
                let slot = self.scope.iter().rev().find(|(known, _)| known == name).map(|(_, slot)| *slot);
                let slot = slot.ok_or_else(|| format!("undeclared reference to '{name}'"))?;
                Step::Read(self.attribute(Base::Slot(slot)))
            }
            (Expr::Select { operand, field, test }, _) => {
                let operand = self.plan(*operand)?;
                let attribute = self.attribute_of(operand);
                let key = QualifierKey::Constant(Value::text(&**field));
                self.qualify(attribute, &Qualifier { key, optional: false, test: *test });
                if *test { Step::Present(attribute) } else { Step::Read(attribute) }
            }
            (Expr::Call { function, target, args }, reference) => {
                return self.plan_call(function, *target, args, reference);
            }
            (Expr::List(items), _) => self.plan_list(items)?,
            (Expr::Map(entries), _) => {
                let mut planned = Vec::with_capacity(entries.len());
                for entry in entries {
                    planned.push((self.plan(entry.key)?, self.plan(entry.value)?, entry.optional));
                }
                self.fold_map(planned)
            }
            (Expr::Fold(fold), _) => self.plan_fold(fold)?,
            (Expr::Message(name), _) => return Err(format!("unknown type: {name}")),
        };
        Ok(self.add(step))
    }

    fn add(&mut self, step: Step) -> StepId {
        self.steps.push(step);
        StepId(u32::try_from(self.steps.len() - 1).unwrap_or(u32::MAX))
    }

    fn step(&self, id: StepId) -> &Step {
        &self.steps[id.0 as usize]
    }

    fn constant(&self, id: StepId) -> Option<&Value<'static>> {
        match self.step(id) {
            Step::Constant(value) => Some(value),
            _ => None,
        }
    }

    fn attribute(&mut self, base: Base) -> AttributeId {
        self.attributes.push(Attribute { base, qualifiers: Vec::new() });
        AttributeId(u32::try_from(self.attributes.len() - 1).unwrap_or(u32::MAX))
    }

    /// The attribute that a step reads, or a new one on its result.
    fn attribute_of(&mut self, step: StepId) -> AttributeId {
        match self.step(step) {
            Step::Read(attribute) | Step::Present(attribute) => *attribute,
            _ => self.attribute(Base::Step(step)),
        }
    }

    fn qualify(&mut self, id: AttributeId, qualifier: &Qualifier) {
        let attribute = &mut self.attributes[id.0 as usize];
        if let Base::Choice { yes, no, .. } = attribute.base {
            self.qualify(yes, qualifier);
            self.qualify(no, qualifier);
        } else {
            attribute.qualifiers.push(qualifier.clone());
        }
    }

    fn plan_call(
        &mut self,
        function: &str,
        target: Option<Id>,
        args: &[Id],
        reference: &Reference,
    ) -> Result<StepId, String> {
        let (function, overloads, keeps_target) = match reference {
            Reference::Call { name, candidates, keeps_target } => {
                (&**name, candidates.clone(), *keeps_target)
            }
            // A field behind `?.` is read, not called.
            _ => (function, Vec::new(), false),
        };
        let target = target.filter(|_| keeps_target);
        let args: Vec<StepId> =
            target.iter().chain(args).map(|arg| self.plan(*arg)).collect::<Result<_, _>>()?;
        let step = match (function, &args[..]) {
            ("_&&_", [left, right]) => Step::And(*left, *right),
            ("_||_", [left, right]) => Step::Or(*left, *right),
            ("_==_", [left, right]) => Step::Equal { left: *left, right: *right, negated: false },
            ("_!=_", [left, right]) => Step::Equal { left: *left, right: *right, negated: true },
            ("@not_strictly_false", [value]) => Step::NotFalse(*value),
            ("_?_:_", [condition, yes, no]) => {
                let (yes, no) = (self.branch(*yes), self.branch(*no));
                Step::Read(self.attribute(Base::Choice { condition: *condition, yes, no }))
            }
            ("_[_]", [operand, index]) => self.plan_index(*operand, *index, false)?,
            ("_?._" | "_[?_]", [operand, index]) => self.plan_index(*operand, *index, true)?,
            ("or" | "orValue", [optional, other]) if keeps_target => {
                Step::Otherwise { optional: *optional, other: *other, unwrap: function == "orValue" }
            }
            _ => return self.plan_function(function, overloads, args),
        };
        Ok(self.add(step))
    }

    /// A branch of a choice: what it reads, without that being a step of its own.
    fn branch(&mut self, step: StepId) -> AttributeId {
        match self.step(step) {
            Step::Read(attribute) => *attribute,
            _ => self.attribute(Base::Step(step)),
        }
    }

    fn plan_index(&mut self, operand: StepId, index: StepId, optional: bool) -> Result<Step, String> {
        let attribute = self.attribute_of(operand);
        let key = match self.step(index) {
            Step::Constant(value) => match value {
                Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_) => {
                    QualifierKey::Constant(value.clone())
                }
                _ => return Err("invalid qualifier type".to_owned()),
            },
            Step::Read(attribute) => QualifierKey::Attribute(*attribute),
            _ => QualifierKey::Attribute(self.attribute(Base::Step(index))),
        };
        self.qualify(attribute, &Qualifier { key, optional, test: false });
        Ok(Step::Read(attribute))
    }

    fn plan_function(
        &mut self,
        function: &str,
        candidates: Vec<&'static Overload>,
        args: Vec<StepId>,
    ) -> Result<StepId, String> {
        let overload = match &candidates[..] {
            [overload] => Some(overload.id.as_str()),
            _ => None,
        };
        if overload == Some("in_list")
            && let [wanted, list] = args[..]
            && let Some(step) = self.plan_one_of(wanted, list)
        {
            return Ok(self.add(step));
        }
        if CONVERSIONS.contains(&function)
            && let [arg] = args[..]
            && let Some(value) = self.constant(arg)
        {
            let value = convert(&candidates, value.clone()).map_err(|fault| fault.to_string())?;
            return Ok(self.add(Step::Constant(value)));
        }
        let search = match (overload.and_then(Search::of), args.get(1).and_then(|arg| self.constant(*arg))) {
            (Some(search), Some(Value::String(pattern))) => {
                let pattern = Pattern::new(pattern.as_str()).map_err(|error| error.to_string())?;
                Some((search, pattern))
            }
            _ => None,
        };
        let counted = match &candidates[..] {
            [overload] => overload.price.counted,
            several => several.first().map_or(ONE, |overload| overload.price).unresolved,
        };
        let call = Call {
            function: function.into(),
            counted,
            is_sum: function == "_+_",
            is_priced_before: matches!(&candidates[..], [overload] if overload.price.of_pairs),
            grows: self.grown(function, &args),
            binary: args.len() == 2 && search.is_none() && is_binary(function, overload),
            candidates,
            args,
            search,
        };
        Ok(self.add(Step::Call(Box::new(call))))
    }

    /// The accumulator that a call's result will replace. Only macros name accumulators, and each reads its
    /// own once in what it evaluates of a step.
    fn grown(&self, function: &str, args: &[StepId]) -> Option<usize> {
        if !matches!(function, "_+_" | MAP_INSERT) {
            return None;
        }
        let Step::Read(attribute) = self.step(*args.first()?) else { return None };
        let attribute = &self.attributes[attribute.0 as usize];
        match attribute.base {
            Base::Slot(slot) if attribute.qualifiers.is_empty() => {
                let is_accumulator = |(name, known): &&(Box<str>, usize)| {
                    *known == slot && **name == *super::macros::ACCUMULATOR
                };
                self.scope.iter().rev().find(is_accumulator).map(|_| slot)
            }
            _ => None,
        }
    }

    /// A set for a list of constants of types that have a hash in Go; a number stands for all of its value.
    fn plan_one_of(&self, wanted: StepId, list: StepId) -> Option<Step> {
        let Value::List(list) = self.constant(list)? else { return None };
        if list.items.is_empty() {
            return Some(Step::Constant(Value::Bool(false)));
        }
        let mut set = BTreeSet::new();
        for item in &list.items {
            set.insert(Key::from_value(item).filter(|key| *key != Key::Null)?);
            match item {
                Value::Int(value) => {
                    set.insert(Key::Double((*value as f64).to_bits()));
                    set.extend(u64::try_from(*value).ok().map(Key::Uint));
                }
                Value::Uint(value) => {
                    set.insert(Key::Double((*value as f64).to_bits()));
                    set.extend(i64::try_from(*value).ok().map(Key::Int));
                }
                Value::Double(value) => {
                    set.extend(to_int(*value).map(Key::Int));
                    set.extend(to_uint(*value).map(Key::Uint));
                }
                _ => {}
            }
        }
        Some(Step::OneOf(wanted, set))
    }

    fn plan_list(&mut self, items: &[(Id, bool)]) -> Result<Step, String> {
        let mut planned = Vec::with_capacity(items.len());
        for (item, optional) in items {
            planned.push((self.plan(*item)?, *optional));
        }
        let constants: Option<Vec<_>> = planned
            .iter()
            .map(|(item, optional)| self.constant(*item).filter(|_| !optional).cloned())
            .collect();
        Ok(constants.map_or(Step::List(planned), |constants| Step::Constant(Value::list(constants))))
    }

    fn fold_map(&self, planned: Vec<(StepId, StepId, bool)>) -> Step {
        let constants = planned.iter().map(|(key, value, optional)| {
            let key = Key::from_value(self.constant(*key)?)?;
            Some((key, self.constant(*value).filter(|_| !optional)?.clone()))
        });
        match constants.collect::<Option<std::collections::BTreeMap<_, _>>>() {
            Some(constants) => Step::Constant(Value::Map(constants.into())),
            None => Step::Map(planned),
        }
    }

    fn plan_fold(&mut self, fold: &Fold) -> Result<Step, String> {
        let init = self.plan(fold.init)?;
        let range = self.plan(fold.range)?;
        let outer = self.scope.len();
        let accu = self.declare(&fold.accu);
        let var = self.declare(&fold.var);
        let var2 = fold.var2.as_ref().map(|var2| self.declare(var2));
        let condition = self.plan(fold.condition)?;
        let step = self.plan(fold.step)?;
        self.scope.truncate(outer + 1);
        let result = self.plan(fold.result)?;
        self.scope.truncate(outer);
        Ok(Step::Fold(Box::new(Loop { range, var, var2, accu, init, condition, step, result })))
    }

    fn declare(&mut self, name: &str) -> usize {
        let slot = self.slots;
        self.slots += 1;
        self.scope.push((name.into(), slot));
        slot
    }
}

/// Whether upstream has a function of exactly two arguments for a call, rather than one that picks among
/// overloads.
fn is_binary(function: &str, overload: Option<&str>) -> bool {
    function.starts_with(['_', '@']) || overload.is_some_and(|overload| overload != "string_format")
}

/// What a conversion makes of a literal.
pub(super) fn convert(
    candidates: &[&'static Overload],
    value: Value<'static>,
) -> super::fault::Outcome<Value<'static>> {
    let args = [value];
    match candidates.iter().find(|overload| overload.takes(&args)) {
        Some(overload) => (overload.run)(&args),
        None => Err(super::fault::Fault::NoOverload),
    }
}
