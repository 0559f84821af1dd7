//! Which files belong to a package: build constraints, in names and in comments, as the go command decides
//! for Linux on amd64.
//!
//! Source: `go/build` and `go/build/constraint` of Go 1.26.

/// How deep an expression may be nested.
const DEEPEST: usize = 64;
/// The newest minor release of Go that a file may require, some years ahead.
const NEWEST_GO: u32 = 40;

const SYSTEMS: [&str; 18] = [
    "aix",
    "android",
    "darwin",
    "dragonfly",
    "freebsd",
    "hurd",
    "illumos",
    "ios",
    "js",
    "linux",
    "nacl",
    "netbsd",
    "openbsd",
    "plan9",
    "solaris",
    "wasip1",
    "windows",
    "zos",
];

const ARCHITECTURES: [&str; 24] = [
    "386",
    "amd64",
    "amd64p32",
    "arm",
    "armbe",
    "arm64",
    "arm64be",
    "loong64",
    "mips",
    "mipsle",
    "mips64",
    "mips64le",
    "mips64p32",
    "mips64p32le",
    "ppc",
    "ppc64",
    "ppc64le",
    "riscv",
    "riscv64",
    "s390",
    "s390x",
    "sparc",
    "sparc64",
    "wasm",
];

/// Whether a file is part of its package by its name: `a_windows.go` and `a_linux_arm64.go` are not.
pub fn is_built_by_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    // The part before the first underscore does not count: `linux.go` is for all systems.
    let mut parts: Vec<&str> = stem.split('_').skip(1).collect();
    if parts.last() == Some(&"test") {
        parts.pop();
    }
    match parts[..] {
        [.., system, architecture] if SYSTEMS.contains(&system) && ARCHITECTURES.contains(&architecture) => {
            is_set(system) && is_set(architecture)
        }
        [.., last] if SYSTEMS.contains(&last) || ARCHITECTURES.contains(&last) => is_set(last),
        _ => true,
    }
}

/// Whether a file is part of its package by the constraints above its package clause.
pub fn is_built(text: &str) -> bool {
    let header = header(text);
    match header.go_build[..] {
        [] => header.plus_build.iter().all(|line| {
            line.split_whitespace().any(|choice| {
                choice.split(',').all(|term| match term.strip_prefix('!') {
                    Some(tag) => is_tag(tag) && !is_set(tag),
                    None => is_tag(term) && is_set(term),
                })
            })
        }),
        [expression] => evaluate(expression).unwrap_or(false),
        // The go command refuses more than one.
        _ => false,
    }
}

/// The constraints of a file.
#[derive(Default)]
struct Header<'a> {
    /// What is behind `//go:build`.
    go_build: Vec<&'a str>,
    /// What is behind `// +build`, the older form, which counts above a blank line only.
    plus_build: Vec<&'a str>,
}

fn header(text: &str) -> Header<'_> {
    let mut header = Header::default();
    let mut waiting = Vec::new();
    let (mut has_ended, mut is_inside) = (false, false);
    for line in text.trim_start_matches('\u{feff}').lines().map(str::trim) {
        if line.is_empty() && !has_ended {
            header.plus_build.append(&mut waiting);
            continue;
        }
        has_ended |= !line.starts_with("//");
        if !is_inside {
            header.go_build.extend(argument(line, "//go:build"));
            let comment = line.strip_prefix("//").map(str::trim_start);
            waiting.extend(comment.filter(|_| !has_ended).and_then(|comment| argument(comment, "+build")));
        }
        let mut rest = line;
        loop {
            if is_inside {
                let Some((_, behind)) = rest.split_once("*/") else { break };
                is_inside = false;
                rest = behind.trim();
            } else if rest.is_empty() || rest.starts_with("//") {
                break;
            } else if let Some(behind) = rest.strip_prefix("/*") {
                is_inside = true;
                rest = behind;
            } else {
                return header;
            }
        }
    }
    header
}

/// What is behind a word, if a line begins with that and nothing clings to it.
fn argument<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let behind = line.strip_prefix(word)?;
    (behind.is_empty() || behind.starts_with(char::is_whitespace)).then(|| behind.trim())
}

/// Whether a tag is set. The go command builds with none of a user's own tags, such as `ignore`.
fn is_set(tag: &str) -> bool {
    matches!(tag, "linux" | "amd64" | "amd64.v1" | "unix" | "gc" | "cgo")
        || tag
            .strip_prefix("go1.")
            .and_then(|minor| minor.parse::<u32>().ok())
            .is_some_and(|minor| minor <= NEWEST_GO)
}

fn is_tag(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_part_of_tag)
}

fn is_part_of_tag(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '.')
}

/// The value of an expression; `None` if it is malformed.
fn evaluate(text: &str) -> Option<bool> {
    let mut expression = Expression { rest: text };
    let value = expression.any(DEEPEST)?;
    expression.rest.trim_start().is_empty().then_some(value)
}

struct Expression<'a> {
    rest: &'a str,
}

impl Expression<'_> {
    fn take(&mut self, sign: &str) -> bool {
        let behind = self.rest.trim_start().strip_prefix(sign);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    fn any(&mut self, depth: usize) -> Option<bool> {
        let mut value = self.all(depth)?;
        while self.take("||") {
            value |= self.all(depth)?;
        }
        Some(value)
    }

    fn all(&mut self, depth: usize) -> Option<bool> {
        let mut value = self.term(depth)?;
        while self.take("&&") {
            value &= self.term(depth)?;
        }
        Some(value)
    }

    fn term(&mut self, depth: usize) -> Option<bool> {
        let depth = depth.checked_sub(1)?;
        if self.take("!") {
            // The go command takes no double negation.
            let is_double = self.rest.trim_start().starts_with('!');
            return self.term(depth).filter(|_| !is_double).map(|value| !value);
        }
        if self.take("(") {
            let value = self.any(depth)?;
            return self.take(")").then_some(value);
        }
        let rest = self.rest.trim_start();
        let (tag, behind) = rest.split_at(rest.find(|letter| !is_part_of_tag(letter)).unwrap_or(rest.len()));
        self.rest = behind;
        is_tag(tag).then(|| is_set(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_choose_systems_and_architectures() {
        for name in [
            "types.go",
            "linux.go",
            "windows.go",
            "a_linux.go",
            "a_linux_amd64.go",
            "a_amd64.go",
            "a_b.go",
            "amd64_a.go",
        ] {
            assert!(is_built_by_name(name), "{name}");
        }
        for name in [
            "a_windows.go",
            "a_arm64.go",
            "a_linux_arm64.go",
            "a_windows_amd64.go",
            "_windows.go",
            "a_windows.b.go",
        ] {
            assert!(!is_built_by_name(name), "{name}");
        }
    }

    #[test]
    fn expressions_are_read_as_the_go_command_reads_them() {
        for text in [
            "package a\n",
            "//go:build linux\n\npackage a\n",
            "// text\n\n//go:build !windows && (linux || darwin)\npackage a\n",
            "/* text */ /* more\n*/\n//go:build unix\npackage a\n",
            "//go:build go1.18\npackage a\n",
            "//go:build amd64.v1 && !amd64.v2\npackage a\n",
            "//go:build !ignore_autogenerated\npackage a\n",
            // Too late: these are comments like others.
            "package a\n\n//go:build ignore\n",
            "// +build ignore\npackage a\n",
            "//go:buildignore\npackage a\n",
            "/*\n//go:build ignore\n*/\npackage a\n",
            "// +build linux,!windows darwin\n// +build amd64\n\npackage a\n",
            // The newer form decides.
            "//go:build linux\n// +build windows\n\npackage a\n",
        ] {
            assert!(is_built(text), "{text}");
        }
        for text in [
            "//go:build ignore\n\npackage a\n",
            "//go:build ignore\npackage a\n",
            "//go:build windows || !linux\npackage a\n",
            "//go:build !(linux)\npackage a\n",
            "//go:build\npackage a\n",
            "//go:build linux &&\npackage a\n",
            "//go:build (linux\npackage a\n",
            "//go:build linux windows\npackage a\n",
            "//go:build !!linux\npackage a\n",
            "//go:build linux\n//go:build linux\npackage a\n",
            "// +build ignore\n\npackage a\n",
            "//+build windows darwin\n\npackage a\n",
            "// +build linux\n// +build !amd64\n\npackage a\n",
            "\u{feff}// +build tools\n\npackage a\n",
        ] {
            assert!(!is_built(text), "{text}");
        }
        assert!(!is_built(&format!("//go:build {}linux\n", "!".repeat(100_000))));
    }
}
