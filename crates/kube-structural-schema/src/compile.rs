//! A schema made ready for filling objects by the thousand.

use serde_json::Value;

use crate::defaults::{self, Below, Digest, Node, Standing, pruned};
use crate::json::Json;
use crate::path::{Path, Step, Trail};
use crate::prune::{Field, Pruner};
use crate::schema::Schema;

/// The defaults of one version of a CRD, and the way to them.
#[derive(Debug)]
pub struct Compiled {
    root: Node,
    digest: Digest,
    servable: bool,
}

/// One default of a schema.
#[derive(Debug)]
pub struct DefaultSite<'a> {
    /// Where it stands: `.spec.foo[].bar`.
    pub path: Path,
    node: &'a Node,
}

impl DefaultSite<'_> {
    /// What is filled in there: the default with the defaults below it.
    pub fn value(&self) -> Json {
        let mut value = self.node.default.clone().unwrap_or_default();
        defaults::fill(&mut value, self.node);
        value
    }

    /// The value, if it has no more than `room` values, which becomes what is left of it. Defaults of lists
    /// multiply those below them: a small schema may give a value that no memory holds.
    pub fn value_within(&self, room: &mut usize) -> Option<Json> {
        let default = self.node.default.as_ref()?;
        defaults::fits(default, Some(self.node), room).then(|| self.value())
    }

    /// Whether the field may be null: then the default does not replace a null.
    pub fn is_nullable(&self) -> bool {
        self.node.nullable
    }

    /// The default as it stands in the schema, pruned.
    pub fn default(&self) -> Option<&Json> {
        self.node.default.as_ref()
    }

    /// Reports the topmost places inside the default that the defaults below it fill.
    pub fn gaps(&self, report: &mut impl FnMut(&Trail<'_>)) {
        if let Some(default) = &self.node.default {
            defaults::gaps(default, self.node, &Trail::ROOT, &mut |at, _| report(at));
        }
    }
}

impl Compiled {
    /// Reduces a schema to its defaults, pruned as the server prunes them before it serves the schema.
    pub fn new(schema: &Schema) -> Self {
        Self::of(schema, None)
    }

    /// The defaults as they show in objects that are pruned by `other` after they are filled: those that are
    /// stored at another version.
    pub fn shown_by(schema: &Schema, other: &Schema) -> Self {
        Self::of(schema, Some(Pruner::root(other)))
    }

    fn of(schema: &Schema, shown: Option<Pruner<'_>>) -> Self {
        let mut root = node(schema, &Standing::Root, shown).unwrap_or_default();
        // The server fills what is below the object, never the object itself, and an object has no items.
        root.default = None;
        root.nullable = false;
        root.items = None;
        let digest = Digest::of(&root);
        Self { root, digest, servable: is_servable(schema) }
    }

    /// Whether a server can prune the defaults of the schema. Where it cannot, it answers every request with
    /// an error.
    pub fn is_servable(&self) -> bool {
        self.servable
    }

    /// Whether filling can change any object.
    pub fn has_defaults(&self) -> bool {
        !self.root.is_leaf()
    }

    /// Whether filling can change this field of an object, or anything below it.
    pub fn has_default_within(&self, field: &str) -> bool {
        self.root.properties.iter().any(|(name, node)| **name == *field && !node.is_idle())
    }

    /// Two schemas with the same digest fill every object alike.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Where filling starts.
    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    /// Fills the defaults into an object.
    pub fn fill(&self, object: &mut Value) {
        defaults::fill(object, &self.root);
    }

    /// Reports the topmost places that [`Self::fill`] would fill, each with the default that stands there.
    pub fn gaps(&self, object: &Value, report: &mut impl FnMut(&Trail<'_>, &Value)) {
        defaults::gaps(object, &self.root, &Trail::ROOT, report);
    }

    /// Reports the topmost places whose value is the one that [`Self::fill`] gives.
    pub fn filled(&self, object: &Value, report: &mut impl FnMut(&Trail<'_>, &Value)) {
        defaults::filled(object, &self.root, &Trail::ROOT, &mut |at, value| {
            report(at, value);
            Below::Skip
        });
    }

    /// Reports the places of [`Self::filled`] and those inside of them, `levels` deep, each with how many
    /// such places it is in. Parents come before what is in them.
    ///
    /// A default may be a whole object in which other defaults apply: of what a reader sees there, etcd may
    /// hold all, nothing, or the outer part alone.
    pub fn filled_within(
        &self,
        object: &Value,
        levels: usize,
        report: &mut impl FnMut(&Trail<'_>, &Value, usize),
    ) {
        let mut around: Vec<Path> = Vec::new();
        defaults::filled(object, &self.root, &Trail::ROOT, &mut |at, value| {
            let path = at.to_path();
            while around.last().is_some_and(|last| !last.contains(&path)) {
                around.pop();
            }
            report(at, value, around.len());
            if around.len() == levels {
                return Below::Skip;
            }
            around.push(path);
            Below::Search
        });
    }

    /// Reports all places of an object at which a default applies: where it is present, and where it is
    /// absent and its parent is there.
    pub fn places(&self, object: &Value, report: &mut impl FnMut(&Trail<'_>)) {
        defaults::places(object, &self.root, &Trail::ROOT, report);
    }

    /// All defaults, in the order of their paths.
    ///
    /// The paths of a chain of nested defaults grow with the square of its depth: of a schema from an unknown
    /// author, take what is needed through [`Self::each_default`] or [`Self::first_defaults`].
    pub fn defaults(&self) -> Vec<DefaultSite<'_>> {
        let mut sites = Vec::new();
        self.root
            .each_default(&Trail::ROOT, &mut |at, node| sites.push(DefaultSite { path: at.to_path(), node }));
        sites
    }

    /// The first defaults in the order of their paths, at most `limit` of them, and how many more there are.
    ///
    /// Paths that together would be very long count as more.
    pub fn first_defaults(&self, limit: usize) -> (Vec<DefaultSite<'_>>, usize) {
        const STEPS: usize = 32;
        let (mut sites, mut more, mut steps) = (Vec::new(), 0, 0);
        self.root.each_default(&Trail::ROOT, &mut |at, node| {
            if sites.len() < limit && steps < limit * STEPS {
                let path = at.to_path();
                steps += path.steps().len();
                sites.push(DefaultSite { path, node });
            } else {
                more += 1;
            }
        });
        (sites, more)
    }

    /// The default at a place of the schema; `None` if there is none that is ever filled in.
    pub fn default_at(&self, place: Path) -> Option<DefaultSite<'_>> {
        let node = place.steps().iter().try_fold(&self.root, |node, step| match step {
            Step::Field(name) => node.property(name),
            Step::Items | Step::Index(_) => node.items.as_deref(),
            Step::Values | Step::Key(_) => node.values.as_deref(),
        })?;
        node.default.is_some().then_some(DefaultSite { path: place, node })
    }

    /// Visits all defaults, in the order of their paths, each as it stands in the schema.
    pub fn each_default(&self, visit: &mut impl FnMut(&Trail<'_>, &Value)) {
        self.root.each_default(&Trail::ROOT, &mut |at, node| {
            if let Some(default) = &node.default {
                visit(at, default);
            }
        });
    }
}

/// Whether the server would change a default before it serves the schema. Where it cannot even try, there is
/// none.
pub fn has_unpruned_defaults(schema: &Schema) -> bool {
    is_servable(schema) && any_unpruned(schema, &Standing::Root)
}

fn any_unpruned(schema: &Schema, standing: &Standing<'_>) -> bool {
    let served = pruned(schema, standing);
    let changed = match (&schema.default, &served) {
        (Some(default), Some(served)) => **default != **served,
        (default, served) => default.is_some() != served.is_some(),
    };
    changed
        || schema.items.as_deref().is_some_and(|items| any_unpruned(items, &standing.items(schema)))
        || schema.additional_schema().is_some_and(|values| any_unpruned(values, &standing.values(schema)))
        || schema
            .properties
            .iter()
            .any(|(name, property)| any_unpruned(property, &standing.property(schema, name)))
}

/// The node of a schema, as far as pruning leaves its defaults to be `shown`; `None` if there is nothing to
/// fill.
fn node(schema: &Schema, standing: &Standing<'_>, shown: Option<Pruner<'_>>) -> Option<Node> {
    let mut node = Node { default: pruned(schema, standing), ..Node::default() };
    if let (Some(default), Some(shown)) = (&mut node.default, shown) {
        shown.prune(default, &Trail::ROOT, &mut |_| {});
    }
    node.nullable = schema.nullable && node.default.is_some();
    let shown_item = shown.and_then(Pruner::item);
    let item = |item| self::node(item, &standing.items(schema), shown_item);
    node.items = schema.items.as_deref().and_then(item).and_then(inner);
    let values = schema.additional_schema().map(|values| (values, standing.values(schema)));
    if let Some((values, standing)) = &values {
        node.values = field_node(values, standing, shown.map(Pruner::undeclared)).and_then(inner);
    }
    let all = node.values.is_some();
    let or_idle = |node: Option<Node>| node.or_else(|| all.then(Node::default));
    let mut properties = Vec::new();
    for (name, property) in schema.properties.iter() {
        let node =
            field_node(property, &standing.property(schema, name), shown.map(|shown| shown.field(name)));
        properties.extend(or_idle(node).map(|node| (name.into(), node)));
    }
    // Keys of a map may be properties of the other schema. There, too, a default replaces nulls only.
    if let (Some((values, standing)), Some(shown)) = (&values, shown) {
        let others = shown.schema().map(|other| other.properties.iter()).into_iter().flatten();
        for (name, _) in others.filter(|(name, _)| !schema.properties.contains(name)) {
            let mut node = or_idle(field_node(values, standing, Some(shown.field(name))));
            node.iter_mut().for_each(|node| node.default = None);
            properties.extend(node.map(|node| (name.into(), node)));
        }
        properties.sort_by(|(a, _): &(Box<str>, Node), (b, _)| a.cmp(b));
    }
    node.properties = properties.into();
    (!node.is_idle()).then_some(node)
}

/// The node of a field, of which pruning leaves so much.
fn field_node(schema: &Schema, standing: &Standing<'_>, shown: Option<Field<'_>>) -> Option<Node> {
    match shown {
        None | Some(Field::Kept) => node(schema, standing, None),
        Some(Field::Pruned(inside)) => node(schema, standing, Some(inside)),
        Some(Field::Removed) => None,
    }
}

/// The node of items or a map's values: where null is a value, their default is never needed.
fn inner(mut node: Node) -> Option<Box<Node>> {
    if node.nullable {
        node.default = None;
        node.nullable = false;
    }
    (!node.is_idle()).then(|| Box::new(node))
}

/// Upstream prunes a default inside an object of its place, and an object is not what the root's items are
/// in.
fn is_servable(root: &Schema) -> bool {
    root.default.as_ref().is_none_or(|default| default.is_object())
        && root.items.as_ref().is_none_or(|items| !has_default(items))
}

/// Whether there is a default here or below.
pub fn has_default(schema: &Schema) -> bool {
    schema.default.is_some()
        || schema.items.as_deref().is_some_and(has_default)
        || schema.additional_schema().is_some_and(has_default)
        || schema.properties.iter().any(|(_, property)| has_default(property))
}

#[cfg(test)]
mod tests;
