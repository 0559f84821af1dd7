//! One Go file: its imports, types, constants and markers.
//! Functions are skipped.

mod comments;
mod constants;
mod kinds;
mod methods;
mod source;
mod tag;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tree_sitter::{Node, Parser};

use self::comments::Comments;
use self::source::Source;
use super::{Declaration, Field, Marker, Package, Spot, Type, is_built, unquote};

/// The name of a package that the go command passes over.
const DOCUMENTATION: &str = "documentation";

/// Reads Go files, without a Go toolchain and whatever else is in them.
pub struct GoParser(Parser);

/// Why a text cannot be read as Go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct NotGo {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: String,
}

impl GoParser {
    /// A parser for any number of files.
    ///
    /// # Errors
    /// The grammar of Go does not fit the parser.
    pub fn new() -> Result<Self, NotGo> {
        let mut parser = Parser::new();
        let set = parser.set_language(&tree_sitter_go::LANGUAGE.into());
        set.map_err(|error| NotGo { line: 0, problem: error.to_string() })?;
        Ok(Self(parser))
    }

    /// Adds what a file declares to its package, and the import paths that its types name to `uses`. False
    /// where the go command does not build the file.
    ///
    /// # Errors
    /// A declaration cannot be read as Go; the others are still added.
    pub fn read(
        &mut self,
        bytes: Vec<u8>,
        file: Arc<str>,
        package: &mut Package,
        uses: &mut BTreeSet<String>,
    ) -> Result<bool, NotGo> {
        let text = text(bytes)?;
        let is_built = is_built(&text);
        if is_built {
            read(&mut self.0, &text, file, package, uses)?;
        }
        Ok(is_built)
    }
}

/// The text of a file, which is UTF-8 always; Go passes over one byte order mark.
fn text(bytes: Vec<u8>) -> Result<String, NotGo> {
    let text = String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
        .ok_or(NotGo { line: 1, problem: "is not Go: it is not UTF-8".to_owned() })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn read(
    parser: &mut Parser,
    text: &str,
    file: Arc<str>,
    package: &mut Package,
    uses: &mut BTreeSet<String>,
) -> Result<(), NotGo> {
    let none = || NotGo { line: 1, problem: "it cannot be parsed".to_owned() };
    parser.reset();
    let tree = parser.parse(text, None).ok_or_else(none)?;
    let own = package.path.clone();
    let mut source = Source {
        bytes: text.as_bytes(),
        file: &file,
        own: &own,
        imports: BTreeMap::new(),
        parameters: Vec::new(),
        iota: 0,
    };
    let mut reader = Declarations { package, uses, comments: Comments::default(), wrong: None };
    let root = tree.root_node();
    let mut cursor = root.walk();
    if !root.is_error() && !root.named_children(&mut cursor).any(|node| node.kind() == "package_clause") {
        return Err(NotGo { line: 1, problem: "is not Go: expected 'package'".to_owned() });
    }
    if root.is_error() {
        reader.wrong = Some(1);
    }
    let mut cursor = root.walk();
    for node in root.children(&mut cursor) {
        if node.is_error() || node.is_missing() {
            reader.wrong.get_or_insert(node.start_position().row + 1);
        }
        match node.kind() {
            "comment" => drop(reader.comments.comment(node, source.text(node), &file)),
            "package_clause" => {
                let name = node.named_child(0).map(|name| source.text(name)).unwrap_or_default();
                // A test of the package from outside; its file may have another ending.
                if name.ends_with("_test") || name == DOCUMENTATION {
                    return Ok(());
                }
                name.clone_into(&mut reader.package.name);
                reader.free(node);
            }
            "import_declaration" => {
                imports(&mut source, node, reader.package, reader.uses);
                reader.free(node);
            }
            "type_declaration" => reader.types(&source, node),
            "const_declaration" => {
                reader.free(node);
                let kind = |source: &Source<'_>, node: Node<'_>| kinds::kind(source, node, 0, &mut |_| {});
                constants::read(&source, node, reader.package, &kind);
            }
            "method_declaration" => {
                reader.free(node);
                methods::read(&source, node, reader.package);
            }
            _ => reader.free(node),
        }
    }
    let left = reader.comments.drain();
    reader.package.markers.extend(left);
    let is_own = |marker: &Marker| marker.name.starts_with("kubebuilder:");
    reader.package.is_kubebuilder |= reader.package.markers.iter().any(is_own);
    match reader.wrong {
        Some(line) => Err(NotGo { line, problem: "is not Go".to_owned() }),
        None => Ok(()),
    }
}

struct Declarations<'p, 'u> {
    package: &'p mut Package,
    uses: &'u mut BTreeSet<String>,
    comments: Comments,
    /// The first line that cannot be read.
    wrong: Option<usize>,
}

impl Declarations<'_, '_> {
    /// Something whose markers belong to the package.
    fn free(&mut self, node: Node<'_>) {
        let about = self.comments.take(node, &mut self.package.markers);
        self.package.markers.extend(about.markers);
    }

    fn types(&mut self, source: &Source<'_>, node: Node<'_>) {
        if node.has_error() {
            self.wrong.get_or_insert(node.start_position().row + 1);
        }
        let markers = self.comments.take_of_type(node, &mut self.package.markers).markers;
        let mut cursor = node.walk();
        let specs: Vec<_> = node.children(&mut cursor).collect();
        let is_group = specs.iter().any(|child| child.kind() == "(");
        // In a group each type has comments of its own.
        let (mut inner, mut left_over, mut above) = (Comments::default(), Vec::new(), markers);
        for child in specs {
            match child.kind() {
                "comment" => drop(inner.comment(child, source.text(child), source.file)),
                "type_spec" | "type_alias" => {
                    let own = inner.take(child, &mut left_over).markers;
                    let markers = if is_group { own } else { std::mem::take(&mut above) };
                    self.declare(source, child, markers);
                }
                _ => inner.other(child),
            }
        }
    }

    fn declare(&mut self, source: &Source<'_>, spec: Node<'_>, markers: Vec<Marker>) {
        let part = |name| spec.child_by_field_name(name);
        let (Some(name), Some(written)) = (part("name"), part("type")) else { return };
        let uses = &mut *self.uses;
        let mut note = |package: &str| {
            uses.insert(package.to_owned());
        };
        let kind = match part("type_parameters") {
            Some(list) => {
                let generic = Source { parameters: parameters(source, list), ..source.clone() };
                kinds::kind(&generic, written, 0, &mut note)
            }
            None => kinds::kind(source, written, 0, &mut note),
        };
        let is_alias = spec.kind() == "type_alias";
        self.package.is_kubebuilder |= markers
            .iter()
            .chain(fields_of(&kind).iter().flat_map(|field| &field.markers))
            .any(|marker| marker.name.starts_with("kubebuilder:"));
        let at = Spot { file: source.file.clone(), line: name.start_position().row + 1 };
        let name = source.text(name).to_owned();
        // A second declaration is an error of Go's, which its compiler reports.
        self.package.types.entry(name.clone()).or_insert(Declaration { name, at, markers, kind, is_alias });
    }
}

/// The names of the parameters of a generic type.
fn parameters(source: &Source<'_>, list: Node<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut cursor = list.walk();
    for declared in list.named_children(&mut cursor) {
        let mut cursor = declared.walk();
        let found = declared.children_by_field_name("name", &mut cursor);
        names.extend(found.map(|name| source.text(name).to_owned()));
    }
    names
}

fn fields_of(kind: &Type) -> &[Field] {
    match kind {
        Type::Struct(fields) => fields,
        _ => &[],
    }
}

/// The qualifiers that an import declaration brings.
fn imports(source: &mut Source<'_>, node: Node<'_>, package: &mut Package, uses: &mut BTreeSet<String>) {
    let mut cursor = node.walk();
    let mut specs: Vec<_> = node.named_children(&mut cursor).collect();
    if let [list] = specs[..]
        && list.kind() == "import_spec_list"
    {
        let mut cursor = list.walk();
        specs = list.named_children(&mut cursor).collect();
    }
    for spec in specs.into_iter().filter(|spec| spec.kind() == "import_spec") {
        let path = spec.child_by_field_name("path").and_then(|path| unquote(source.text(path)));
        let Some(path) = path else { continue };
        let name = spec.child_by_field_name("name").map(|name| source.text(name).to_owned());
        if name.as_deref() == Some(".") {
            uses.insert(path.clone());
            package.dots.insert(path);
            continue;
        }
        source.imports.insert(name.unwrap_or_else(|| qualifier(&path).to_owned()), path);
    }
}

/// The name that a package most likely has: the last part of its path, or the one before a major version.
fn qualifier(path: &str) -> &str {
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or_default();
    let is_major = last.strip_prefix('v').is_some_and(|number| {
        number.parse::<u32>().is_ok_and(|number| number > 1)
            && number.bytes().all(|digit| digit.is_ascii_digit())
    });
    // `k8s.io/api/autoscaling/v2` is a package called v2; `example.com/go-yaml/v3` is not. Types of
    // Kubernetes are in the former kind.
    let is_api = path.contains("/api") || path.contains("apis/");
    match parts.next() {
        Some(before) if is_major && !is_api => before,
        _ => last,
    }
}
