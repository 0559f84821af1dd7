//! The walk over all nodes of a schema, as the CRD states it.
//! Keywords, lists and CEL rules each have a module.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`,
//! `ValidateCustomResourceDefinitionOpenAPISchema`.

use super::budget::Budget;
use super::options::Options;
use super::props::Props;
use super::report::Report;
use super::scope::Step;
use super::standing::Standing;
use super::{keywords, lists, rules};
use crate::field::Field;

/// What is found on the way. What is wrong with rules is shown after all else.
pub(super) struct Walk<'o, 'd> {
    pub(super) options: &'o Options<'d>,
    pub(super) schema: Report,
    pub(super) rules: Report,
    pub(super) budget: Budget,
}

impl Walk<'_, '_> {
    /// Checks a node and all below it.
    pub(super) fn node(
        &mut self,
        schema: &Props<'_>,
        is_root: bool,
        standing: &Standing<'_>,
        at: &mut Field,
    ) {
        let before = self.schema.0.len();
        keywords::check(schema, standing, self.options.require_valid_types, at, &mut self.schema);
        self.below(schema, is_root, standing, at);
        lists::check(schema, self.options, at, &mut self.schema);
        rules::check_texts(schema, at, &mut self.schema);
        let sound = self.schema.0.len() == before;
        if sound && let Some(scope) = standing.scope {
            let found = (&mut self.rules, &mut self.budget);
            rules::check(schema, self.options, scope, standing, at, found);
        }
    }

    fn below(&mut self, schema: &Props<'_>, is_root: bool, standing: &Standing<'_>, at: &mut Field) {
        if let Some(values) = schema.values() {
            let mut standing = standing.clone();
            if standing.in_metadata {
                standing.no_defaults = Some("inside additionalProperties applying to object metadata".into());
            }
            let mark = at.child("additionalProperties");
            self.child(schema, values, Step::Element, &standing, at);
            at.back(mark);
        }
        let correlates = schema.map_type.is_none_or(|kind| matches!(kind, "granular" | "atomic"));
        let properties = at.child("properties");
        for (name, property) in &*schema.properties {
            let mut standing = standing.clone();
            if !correlates {
                standing.forbid_old_self(at, properties.start());
            }
            if (is_root || schema.embedded_resource) && matches!(*name, "metadata" | "kind" | "apiVersion") {
                standing.in_metadata = true;
                if is_root {
                    standing.no_defaults = Some(format!("in top-level {name}").into());
                }
            }
            let mark = at.key(name);
            self.child(schema, property, Step::Property(name), &standing, at);
            at.back(mark);
        }
        at.back(properties);
        self.clauses(schema, standing, at);
        self.items(schema, standing, at);
        let without_rules = Standing { scope: None, ..standing.clone() };
        let dependencies = at.child("dependencies");
        for (name, dependency) in &*schema.dependencies {
            let Some(dependency) = &dependency.schema else { continue };
            let mark = at.key(name);
            self.node(dependency, false, &without_rules, at);
            at.back(mark);
        }
        at.back(dependencies);
    }

    /// A node whose values rules can see.
    fn child(
        &mut self,
        parent: &Props<'_>,
        child: &Props<'_>,
        step: Step<'_>,
        standing: &Standing<'_>,
        at: &mut Field,
    ) {
        let scope = standing.scope.and_then(|scope| scope.child(parent, child, step));
        self.node(child, false, &Standing { scope: scope.as_ref(), ..standing.clone() }, at);
    }

    fn clauses(&mut self, schema: &Props<'_>, standing: &Standing<'_>, at: &mut Field) {
        let standing = Standing { scope: None, ..standing.clone() };
        if let Some(clause) = &schema.not {
            let mark = at.child("not");
            self.node(clause, false, &standing, at);
            at.back(mark);
        }
        for (name, clauses) in
            [("allOf", &schema.all_of), ("oneOf", &schema.one_of), ("anyOf", &schema.any_of)]
        {
            let list = at.child(name);
            for (index, clause) in clauses.iter().enumerate() {
                let mark = at.index(index);
                self.node(clause, false, &standing, at);
                at.back(mark);
            }
            at.back(list);
        }
        let definitions = at.child("definitions");
        for (name, definition) in &*schema.definitions {
            let mark = at.key(name);
            self.node(definition, false, &standing, at);
            at.back(mark);
        }
        at.back(definitions);
    }

    fn items(&mut self, schema: &Props<'_>, standing: &Standing<'_>, at: &mut Field) {
        let Some(items) = &schema.items else { return };
        let mut standing = standing.clone();
        let mark = at.child("items");
        if schema.list_type != Some("map") {
            standing.forbid_old_self(at, mark.start());
        }
        if let Some(item) = &items.schema {
            self.child(schema, item, Step::Element, &standing, at);
        }
        // A schema with several has no rules that could be looked at.
        let standing = Standing { scope: None, ..standing };
        for (index, item) in items.schemas.iter().enumerate() {
            let mark = at.index(index);
            self.node(item, false, &standing, at);
            at.back(mark);
        }
        at.back(mark);
    }
}
