//! Comments with markers, and what they belong to: as controller-gen and gengo have it, to the next declaration or field.
//! It must not know any marker.

use std::sync::Arc;

use tree_sitter::Node;

use crate::domain::go::{Marker, Spot};

/// The comments since the last declaration or field.
#[derive(Default)]
pub(super) struct Comments {
    groups: Vec<Group>,
    /// The row in which the last thing that is no comment ended.
    last_row: Option<usize>,
}

/// Comments on rows that follow one another.
struct Group {
    last_row: usize,
    markers: Vec<Marker>,
}

impl Comments {
    /// Takes a comment in. One behind something on the same row says something about that.
    pub(super) fn comment(&mut self, node: Node<'_>, text: &str, file: &Arc<str>) {
        let (start, end) = (node.start_position().row, node.end_position().row);
        if self.last_row == Some(start) {
            return;
        }
        let marker = text.strip_prefix("//").map(str::trim).and_then(|text| text.strip_prefix('+'));
        let marker = marker.map(|text| marker_of(text, Spot { file: file.clone(), line: start + 1 }));
        match self.groups.last_mut() {
            Some(group) if group.last_row + 1 == start => {
                group.last_row = end;
                group.markers.extend(marker);
            }
            _ => self.groups.push(Group { last_row: end, markers: marker.into_iter().collect() }),
        }
    }

    /// What stands in between, such as a brace.
    pub(super) fn other(&mut self, node: Node<'_>) {
        self.last_row = Some(node.end_position().row);
    }

    /// The markers of a declaration or field: those of the comment right above it and of the one before that. What is
    /// left over belongs to
    /// nothing, or to the package.
    pub(super) fn take(&mut self, node: Node<'_>, left_over: &mut Vec<Marker>) -> Vec<Marker> {
        let row = node.start_position().row;
        self.last_row = Some(node.end_position().row);
        let mut groups = std::mem::take(&mut self.groups);
        let doc = groups.pop_if(|group| group.last_row + 1 == row);
        let closest = groups.pop();
        left_over.extend(groups.into_iter().flat_map(|group| group.markers));
        closest.into_iter().chain(doc).flat_map(|group| group.markers).collect()
    }

    /// All markers that are left.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Marker> {
        std::mem::take(&mut self.groups).into_iter().flat_map(|group| group.markers)
    }
}

fn marker_of(text: &str, at: Spot) -> Marker {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let name = name.trim_end();
    Marker { name: name.strip_suffix(':').unwrap_or(name).to_owned(), value, at }
}
