//! Comments with markers, and what they belong to: as controller-gen and gengo have it, to the next
//! declaration or field.

use std::sync::Arc;

use tree_sitter::Node;

use crate::go_types::{Marker, Place, Remark, Spot};

/// The comments since the last declaration or field.
#[derive(Default)]
pub(super) struct Comments {
    groups: Vec<Group>,
    /// The row in which the last thing that is not a comment ended.
    last_row: Option<usize>,
}

/// Comments on rows that follow one another.
struct Group {
    last_row: usize,
    about: About,
}

/// The content of the comments on a declaration or field.
#[derive(Default)]
pub(super) struct About {
    pub(super) markers: Vec<Marker>,
    /// Other comments that mention a default.
    pub(super) remarks: Vec<Remark>,
}

impl Comments {
    /// Takes a comment in. One behind something on the same row is about that, and is returned if it mentions
    /// a default.
    pub(super) fn comment(&mut self, node: Node<'_>, text: &str, file: &Arc<str>) -> Option<Remark> {
        let (start, end) = (node.start_position().row, node.end_position().row);
        let line = text.strip_prefix("//").map(str::trim);
        let at = Spot { file: file.clone(), line: start + 1 };
        let is_behind = self.last_row == Some(start);
        let block = text.strip_prefix("/*").and_then(|text| text.strip_suffix("*/")).map(str::trim);
        let place = match line {
            _ if is_behind => Place::Behind,
            Some(_) => Place::Above,
            None => Place::Block,
        };
        let remark = line.or(block).filter(|text| text.contains("default"));
        let remark = remark.map(|text| Remark { text: text.to_owned(), at: at.clone(), place });
        if is_behind {
            return remark;
        }
        if self.groups.last().is_none_or(|group| group.last_row + 1 != start) {
            self.groups.push(Group { last_row: end, about: About::default() });
        }
        let group = self.groups.last_mut()?;
        group.last_row = end;
        match line.and_then(|line| line.strip_prefix('+')) {
            Some(line) => group.about.markers.push(marker_of(line, at)),
            None => group.about.remarks.extend(remark),
        }
        None
    }

    /// What stands in between, such as a brace.
    pub(super) fn other(&mut self, node: Node<'_>) {
        self.last_row = Some(node.end_position().row);
    }

    /// The content of the comments on a declaration or field: the comment right above it and the one before
    /// that. What is left over belongs to nothing, or to the package.
    pub(super) fn take(&mut self, node: Node<'_>, left_over: &mut Vec<Marker>) -> About {
        self.take_except(node, left_over, |_| false)
    }

    /// The same on a type: above its documentation, markers of a package are the package's, as controller-gen
    /// has it.
    pub(super) fn take_of_type(&mut self, node: Node<'_>, left_over: &mut Vec<Marker>) -> About {
        self.take_except(node, left_over, |marker| OF_PACKAGE.contains(&marker.name.as_str()))
    }

    fn take_except(
        &mut self,
        node: Node<'_>,
        left_over: &mut Vec<Marker>,
        is_of_package: fn(&Marker) -> bool,
    ) -> About {
        let row = node.start_position().row;
        self.last_row = Some(node.end_position().row);
        let mut groups = std::mem::take(&mut self.groups);
        let doc = groups.pop_if(|group| group.last_row + 1 == row);
        let closest = groups.pop();
        let mut about = About::default();
        for marker in groups.into_iter().flat_map(|group| group.about.markers) {
            about.remarks.extend(far(&marker));
            left_over.push(marker);
        }
        if let Some(group) = closest {
            let (of_package, own) = group.about.markers.into_iter().partition::<Vec<_>, _>(is_of_package);
            left_over.extend(of_package);
            about.markers.extend(own);
            about.remarks.extend(group.about.remarks);
        }
        if let Some(group) = doc {
            about.markers.extend(group.about.markers);
            about.remarks.extend(group.about.remarks);
        }
        about
    }

    /// All markers that are left.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Marker> {
        std::mem::take(&mut self.groups).into_iter().flat_map(|group| group.about.markers)
    }
}

/// What controller-gen reads on packages, and not on types.
///
/// Source: controller-tools `pkg/crd/markers/package.go` and `pkg/markers/collect.go`.
const OF_PACKAGE: [&str; 5] = [
    "groupName",
    "kubebuilder:skip",
    "kubebuilder:validation:Optional",
    "kubebuilder:validation:Required",
    "versionName",
];

/// A marker of a default that is too far above what it should be about.
fn far(marker: &Marker) -> Option<Remark> {
    let Marker { name, value, at } = marker;
    let text = value.as_ref().map_or_else(|| format!("+{name}"), |value| format!("+{name}={value}"));
    name.contains("default").then(|| Remark { text, at: at.clone(), place: Place::Far })
}

fn marker_of(text: &str, at: Spot) -> Marker {
    match text.split_once('=') {
        Some((name, value)) => Marker { name: name.to_owned(), value: Some(value.to_owned()), at },
        None => Marker { name: text.to_owned(), value: None, at },
    }
}
