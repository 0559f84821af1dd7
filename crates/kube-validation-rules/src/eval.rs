//! Evaluation of a plan over the values of a rule, within the budget of one expression.
//!
//! Source: cel-go `interpreter/{interpretable,attributes}.go`.

use std::mem;
use std::sync::Arc;

use super::check::Global;
use super::compare;
use super::cost::{self, Meter};
use super::dispatch::run;
use super::fault::{Fault, Outcome};
use super::library::{EQUAL, insert, insert_all};
use super::plan::{AttributeId, Base, Call, Loop, Plan, Qualifier, QualifierKey, Step, StepId};
use super::price::COMPARISON;
use super::select::{missing, part};
use super::value::{Key, Value};

/// The values of a rule's variables.
#[derive(Clone, Debug)]
pub(super) struct Inputs<'v> {
    /// `self`
    pub(super) current: Outcome<Value<'v>>,
    /// `oldSelf`, where the rule has one.
    pub(super) old: Option<Outcome<Value<'v>>>,
    /// Those that are declared for an expression outside a schema; none for one that is absent here.
    pub(super) named: Vec<Option<Outcome<Value<'v>>>>,
}

/// Evaluates a plan, and returns what that cost.
pub(super) fn evaluate<'v>(plan: &Plan, inputs: &Inputs<'v>) -> (Outcome<Value<'v>>, u64) {
    let slots = (0..plan.slots).map(|_| Slot::Empty).collect();
    let mut evaluation = Evaluation { plan, inputs, slots, meter: Meter::default() };
    let result = evaluation.step(plan.root);
    (result, evaluation.meter.spent)
}

struct Evaluation<'p, 'v> {
    plan: &'p Plan,
    inputs: &'p Inputs<'v>,
    slots: Vec<Slot<'v>>,
    meter: Meter,
}

/// A part and the key to it.
type Selected<'v> = (Option<Value<'v>>, Option<Value<'v>>);

/// The variable of a loop.
enum Slot<'v> {
    Empty,
    /// An accumulator that no step has read yet: it begins with what this step gives.
    Pending(StepId),
    Full(Outcome<Value<'v>>),
}

impl<'v> Evaluation<'_, 'v> {
    fn step(&mut self, id: StepId) -> Outcome<Value<'v>> {
        let plan = self.plan;
        match plan.step(id) {
            Step::Constant(value) => Ok(value.clone()),
            Step::Read(attribute) => {
                let value = self.read(*attribute);
                // A choice costs what its branches do.
                let cost = if plan.attribute(*attribute).is_choice() { 0 } else { cost::READ };
                self.meter.charge_for(cost, value)
            }
            Step::Present(attribute) => {
                let present = self.read(*attribute)?;
                // `has()` takes back what reading costs; of a choice, that is what was never charged.
                if plan.attribute(*attribute).is_choice() {
                    self.meter.spent = self.meter.spent.saturating_sub(cost::READ);
                }
                match present {
                    Value::Optional(value) => Ok(Value::Bool(value.is_some())),
                    value => Ok(value),
                }
            }
            Step::And(left, right) => self.logic(*left, *right, false),
            Step::Or(left, right) => self.logic(*left, *right, true),
            Step::Equal { left, right, negated } => self.equal(*left, *right, *negated),
            Step::NotFalse(value) => {
                let value = self.step(*value);
                match self.meter.charge_for(1, value) {
                    Err(fault) if fault.is_final() => Err(fault),
                    Ok(Value::Bool(value)) => Ok(Value::Bool(value)),
                    _ => Ok(Value::Bool(true)),
                }
            }
            Step::Otherwise { optional, other, unwrap } => match self.step(*optional)? {
                Value::Optional(Some(value)) if *unwrap => value.unwrapped(),
                present @ Value::Optional(Some(_)) => Ok(present),
                Value::Optional(None) => self.step(*other),
                _ => Err(Fault::NoOverload),
            },
            Step::Call(call) => self.call(call),
            Step::OneOf(wanted, set) => {
                let wanted = self.step(*wanted)?;
                Ok(Value::Bool(Key::from_value(&wanted).is_some_and(|key| set.contains(&key))))
            }
            Step::List(items) => {
                let list = self.list(items);
                self.meter.charge_for(cost::NEW_LIST, list)
            }
            Step::Map(entries) => {
                let map = self.map(entries);
                self.meter.charge_for(cost::NEW_MAP, map)
            }
            Step::Fold(fold) => self.fold(fold),
        }
    }

    /// `&&` and `||`: a side that decides wins over an error on the other.
    fn logic(&mut self, left: StepId, right: StepId, decisive: bool) -> Outcome<Value<'v>> {
        let mut fault = None;
        for side in [left, right] {
            match self.step(side) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => fault = fault.or(Some(Fault::NoOverload)),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        fault.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn equal(&mut self, left: StepId, right: StepId, negated: bool) -> Outcome<Value<'v>> {
        let (args, fault) = self.args(&[left, right], true)?;
        let result = fault.map_or(Ok(Value::Null), Err);
        let price = if negated { COMPARISON } else { EQUAL };
        self.meter.charge((price.counted)(&args, &result)?)?;
        result?;
        let [left, right] = &args[..] else { return Err(Fault::NoOverload) };
        let equal = compare::equal(left, right);
        // What cannot be compared is different, but not equal or unequal.
        if negated { Ok(Value::Bool(equal != Ok(true))) } else { equal.map(Value::Bool) }
    }

    /// The values of arguments, with `null` for the ones that have none, and the first of their errors.
    /// Unless all are wanted, the first error ends it, and there are fewer values than arguments if others
    /// would have followed.
    fn args(&mut self, args: &[StepId], all: bool) -> Outcome<(Vec<Value<'v>>, Option<Fault>)> {
        let mut values = Vec::with_capacity(args.len());
        let mut fault = None;
        for arg in args {
            match self.step(*arg) {
                Ok(value) => values.push(value),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => {
                    values.push(Value::Null);
                    fault = fault.or(Some(error));
                    if !all {
                        break;
                    }
                }
            }
        }
        Ok((values, fault))
    }

    fn call(&mut self, call: &Call) -> Outcome<Value<'v>> {
        if let Some(accu) = call.grows {
            return self.grow(call, accu);
        }
        let (args, fault) = self.args(&call.args, call.binary)?;
        let result = match fault {
            Some(fault) => Err(fault),
            None => {
                if call.is_priced_before {
                    self.afford((call.counted)(&args, &Ok(Value::Null))?)?;
                }
                run(call, &args)
            }
        };
        if let (Ok(sum), true) = (&result, call.is_sum) {
            self.meter.hold(sum)?;
        }
        if args.len() < call.args.len() {
            return result;
        }
        let cost = (call.counted)(&args, &result)?;
        self.meter.charge_for(cost, result)
    }

    /// Ends an expression that cannot pay so much. The price itself is paid after the call.
    fn afford(&mut self, cost: u64) -> Outcome<()> {
        if self.meter.affords(cost) { Ok(()) } else { self.meter.charge(cost) }
    }

    /// A call whose first argument is an accumulator. Taken out of its slot it has no other user, and need
    /// not be copied.
    fn grow(&mut self, call: &Call, accu: usize) -> Outcome<Value<'v>> {
        self.fill(accu)?;
        self.meter.charge(cost::READ)?;
        if let (Slot::Full(Err(fault)), false) = (&self.slots[accu], call.binary) {
            return Err(fault.clone());
        }
        let (more, fault) = match call.args.get(1..) {
            Some(rest) => self.args(rest, call.binary)?,
            None => (Vec::new(), None),
        };
        let grown = match mem::replace(&mut self.slots[accu], Slot::Empty) {
            Slot::Full(grown) => grown,
            _ => Err(Fault::NoOverload),
        };
        let result = match (grown, fault, &more[..]) {
            (Err(fault), ..) | (Ok(_), Some(fault), _) => Err(fault),
            (Ok(Value::List(mut list)), None, [Value::List(more)]) if is_plain(&list) => {
                Arc::make_mut(&mut list).items.extend(more.items.iter().cloned());
                Ok(Value::List(list))
            }
            (Ok(Value::Map(mut map)), None, [key, value]) => {
                insert(Arc::make_mut(&mut map), key, value.clone()).map(|()| Value::Map(map))
            }
            (Ok(Value::Map(mut map)), None, [more]) => {
                insert_all(Arc::make_mut(&mut map), more).map(|()| Value::Map(map))
            }
            (Ok(first), None, more) => {
                let args: Vec<Value<'v>> = [first].into_iter().chain(more.iter().cloned()).collect();
                let result = run(call, &args);
                let cost = (call.counted)(&args, &result)?;
                return self.meter.charge_for(cost, result);
            }
        };
        if more.len() + 1 == call.args.len() {
            self.meter.charge(1)?;
        }
        result
    }

    fn list(&mut self, items: &[(StepId, bool)]) -> Outcome<Value<'v>> {
        let mut values = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.step(*item)?, optional) {
                (value, false) => values.push(value),
                (Value::Optional(value), true) => {
                    values.extend(value.map(|value| value.unwrapped()).transpose()?);
                }
                _ => {
                    return Err(Fault::new(
                        "cannot initialize optional list element from non-optional value",
                    ));
                }
            }
        }
        Ok(Value::list(values))
    }

    fn map(&mut self, entries: &[(StepId, StepId, bool)]) -> Outcome<Value<'v>> {
        let mut map = std::collections::BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.step(*key)?;
            let key = Key::from_value(&key).ok_or(Fault::new("unsupported key type"))?;
            match (self.step(*value)?, optional) {
                (value, false) => {
                    map.insert(key, value);
                }
                (Value::Optional(Some(value)), true) => {
                    map.insert(key, value.unwrapped()?);
                }
                (Value::Optional(None), true) => {
                    map.remove(&key);
                }
                _ => return Err(Fault::new("cannot initialize optional entry from non-optional value")),
            }
        }
        Ok(Value::Map(Arc::new(map)))
    }

    fn fold(&mut self, fold: &Loop) -> Outcome<Value<'v>> {
        self.slots[fold.accu] = Slot::Pending(fold.init);
        let range = self.step(fold.range)?;
        match (&range, fold.var2) {
            (Value::Map(map), None) => self.each(fold, map.keys().map(|key| (Ok(key.to_value()), None)))?,
            (Value::Object(object), None) => self.each(fold, object.entries().map(|key| (Ok(key), None)))?,
            (Value::List(_) | Value::Array(_), None) => {
                self.each(fold, compare::items(&range)?.map(|item| (item, None)))?;
            }
            (Value::Map(map), Some(_)) => {
                let entries = map.iter().map(|(key, value)| (Ok(key.to_value()), Some(Ok(value.clone()))));
                self.each(fold, entries)?;
            }
            (Value::Object(object), Some(_)) => {
                let entries = object.entries().map(|key| {
                    let value = object.find(&key).and_then(|value| value.ok_or(Fault::new("no such key")));
                    (Ok(key), Some(value))
                });
                self.each(fold, entries)?;
            }
            (Value::List(_) | Value::Array(_), Some(_)) => {
                let items = (0..).map(|index| Ok(Value::Int(index))).zip(compare::items(&range)?.map(Some));
                self.each(fold, items)?;
            }
            (other, None) => {
                let words = format!("got '{}', expected iterable type", other.go_type());
                return Err(Fault::new(words));
            }
            (other, Some(_)) => {
                let words = format!("unsupported comprehension range type: {}", other.go_type());
                return Err(Fault::new(words));
            }
        }
        self.step(fold.result)
    }

    fn each(
        &mut self,
        fold: &Loop,
        entries: impl Iterator<Item = (Outcome<Value<'v>>, Option<Outcome<Value<'v>>>)>,
    ) -> Outcome<()> {
        for (first, second) in entries {
            self.slots[fold.var] = Slot::Full(first);
            if let (Some(var2), Some(second)) = (fold.var2, second) {
                self.slots[var2] = Slot::Full(second);
            }
            match self.step(fold.condition) {
                Ok(Value::Bool(false)) => break,
                Err(fault) if fault.is_final() => return Err(fault),
                _ => {}
            }
            self.slots[fold.accu] = self.full(fold.step)?;
        }
        Ok(())
    }

    /// Gives an accumulator its first value, if it has none yet.
    fn fill(&mut self, slot: usize) -> Outcome<()> {
        if let Slot::Pending(init) = self.slots[slot] {
            self.slots[slot] = self.full(init)?;
        }
        Ok(())
    }

    /// A slot for the value of a step, which may be an error.
    fn full(&mut self, step: StepId) -> Outcome<Slot<'v>> {
        match self.step(step) {
            Err(fault) if fault.is_final() => Err(fault),
            value => Ok(Slot::Full(value)),
        }
    }

    /// What an attribute stands for.
    fn read(&mut self, id: AttributeId) -> Outcome<Value<'v>> {
        let plan = self.plan;
        let attribute = plan.attribute(id);
        let value = match &attribute.base {
            Base::Global(Global::Current) => self.inputs.current.clone()?,
            Base::Global(Global::Old) => match &self.inputs.old {
                Some(old) => old.clone()?,
                None => return Err(Fault::new("no such attribute(s): oldSelf")),
            },
            Base::Global(Global::Named(place)) => match self.inputs.named.get(*place) {
                Some(Some(value)) => value.clone()?,
                _ => return Err(Fault::new("no such attribute(s)")),
            },
            Base::Slot(slot) => {
                self.fill(*slot)?;
                match &self.slots[*slot] {
                    Slot::Full(value) => value.clone()?,
                    _ => return Err(Fault::new("no such attribute(s)")),
                }
            }
            Base::Step(step) => self.step(*step)?,
            Base::Choice { condition, yes, no } => {
                return match self.step(*condition)? {
                    Value::Bool(true) => self.read(*yes),
                    Value::Bool(false) => self.read(*no),
                    _ => Err(Fault::NoOverload),
                };
            }
        };
        self.qualify(value, &attribute.qualifiers)
    }

    fn qualify(&mut self, mut value: Value<'v>, qualifiers: &[Qualifier]) -> Outcome<Value<'v>> {
        let mut optional = false;
        if let Value::Optional(inner) = &value {
            match inner {
                None => return Ok(value),
                Some(inner) if qualifiers.is_empty() => value = (**inner).clone(),
                Some(inner) => value = inner.unwrapped()?,
            }
            optional = true;
        }
        for qualifier in qualifiers {
            optional = optional || qualifier.optional;
            if optional {
                match self.select(&value, qualifier)?.0 {
                    Some(present) => value = present,
                    None => return Ok(Value::Optional(None)),
                }
                self.meter.charge(cost::READ)?;
                continue;
            }
            let selected = self.select(&value, qualifier);
            value = match self.meter.charge_for(cost::READ, selected)? {
                (found, _) if qualifier.test => Value::Bool(found.is_some()),
                (Some(found), _) => found,
                (None, key) => return Err(missing(&value, &qualifier.key, key)),
            };
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    /// The part of a value that a qualifier names, if it is there, and the key where the expression does not
    /// state it.
    fn select(&mut self, value: &Value<'v>, qualifier: &Qualifier) -> Outcome<Selected<'v>> {
        match &qualifier.key {
            QualifierKey::Constant(key) => Ok((part(value, key)?, None)),
            QualifierKey::Attribute(attribute) => {
                let key = self.read(*attribute)?;
                Ok((part(value, &key)?, Some(key)))
            }
        }
    }
}

fn is_plain(list: &super::value::List<'_>) -> bool {
    list.kind == super::view::ListKind::Atomic
}
