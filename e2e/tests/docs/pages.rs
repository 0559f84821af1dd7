//! The examples of README and docs: blocks of commands, YAML and JSON, and the commands inside of sentences.

use std::fs;

use anyhow::{Context, Result, ensure};
use e2e::install::root;

/// Programs whose mention in a sentence is a command.
const PROGRAMS: [&str; 6] = ["etch", "kubectl", "helm", "docker", "cargo", "just"];

/// One page, and its examples in their order.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its path from the root of the repository.
    pub(crate) name: String,
    pub(crate) examples: Vec<Example>,
}

/// One example.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

/// What an example is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A command, and what it prints where that is shown.
    Command { text: String, output: Option<String> },
    /// An object for the cluster.
    Yaml(String),
    /// What a command prints, in part.
    Json(String),
}

/// README.md and all pages of docs, by name.
pub(crate) fn all() -> Result<Vec<Page>> {
    let mut names = vec!["README.md".to_owned()];
    for entry in fs::read_dir(root().join("docs"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            names.push(format!("docs/{name}"));
        }
    }
    names[1..].sort();
    names.into_iter().map(|name| page(&name)).collect()
}

fn page(name: &str) -> Result<Page> {
    let text = fs::read_to_string(root().join(name)).with_context(|| name.to_owned())?;
    let mut examples = Vec::new();
    let mut sentence = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            if line.trim().is_empty() {
                mentioned(index, &std::mem::take(&mut sentence), &mut examples);
            } else {
                sentence.push_str(line);
                sentence.push('\n');
            }
            continue;
        };
        mentioned(index, &std::mem::take(&mut sentence), &mut examples);
        let indent = line.len() - line.trim_start().len();
        let mut block = String::new();
        loop {
            let (_, line) = lines.next().with_context(|| format!("{name}: a block without an end"))?;
            if line.trim_start().starts_with("```") {
                break;
            }
            block.push_str(line.get(indent..).unwrap_or_default());
            block.push('\n');
        }
        let at = index + 2;
        match language {
            "console" | "sh" | "bash" => commands(at, &block, &mut examples),
            "yaml" => examples.push(Example { line: at, kind: Kind::Yaml(block) }),
            "json" => examples.push(Example { line: at, kind: Kind::Json(block) }),
            // A picture.
            "" | "text" | "mermaid" => {}
            other => anyhow::bail!("{name}:{at}: a block of {other}, which is not known how to try"),
        }
    }
    mentioned(text.lines().count(), &sentence, &mut examples);
    Ok(Page { name: name.to_owned(), examples })
}

/// The commands of a block. Where some lines begin with a prompt, the others are what is printed.
fn commands(line: usize, block: &str, examples: &mut Vec<Example>) {
    let has_prompts = block.lines().any(|line| line.starts_with("$ "));
    let mut found: Vec<(usize, String, String)> = Vec::new();
    let mut goes_on = false;
    for (index, text) in block.lines().enumerate() {
        let command = if has_prompts { text.strip_prefix("$ ") } else { Some(text) };
        match (command, found.last_mut()) {
            (_, Some((_, command, _))) if goes_on => {
                command.push(' ');
                command.push_str(text.trim().trim_end_matches('\\').trim_end());
            }
            (Some(text), _) if !text.trim().is_empty() => {
                found.push((line + index, text.trim_end_matches('\\').trim_end().to_owned(), String::new()));
            }
            (None, Some((_, _, output))) => {
                output.push_str(text);
                output.push('\n');
            }
            _ => {}
        }
        goes_on = text.ends_with('\\');
    }
    examples.extend(found.into_iter().map(|(line, text, output)| {
        let output = (!output.trim().is_empty()).then(|| format!("{}\n", output.trim_end()));
        Example { line, kind: Kind::Command { text: without_comment(&text).to_owned(), output } }
    }));
}

/// The commands inside of a paragraph: code that begins with a program and has arguments.
fn mentioned(line: usize, sentence: &str, examples: &mut Vec<Example>) {
    // Every other part is code.
    for code in sentence.split('`').skip(1).step_by(2) {
        let text = code.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut words = text.split(' ').skip_while(|word| word.contains('=') && !word.contains('-'));
        let is_command = words.next().is_some_and(|word| PROGRAMS.contains(&word)) && words.next().is_some();
        if is_command {
            examples.push(Example { line, kind: Kind::Command { text, output: None } });
        }
    }
}

fn without_comment(command: &str) -> &str {
    command.split(" # ").next().unwrap_or(command).trim_end()
}

#[test]
fn blocks_come_apart_into_commands() -> Result<()> {
    let mut examples = Vec::new();
    commands(7, "$ etch a \\\n    --b   # why\nTOLD\n\n$ etch c\n", &mut examples);
    let found: Vec<_> = examples
        .iter()
        .map(|example| match &example.kind {
            Kind::Command { text, output } => (example.line, text.as_str(), output.as_deref()),
            _ => (0, "", None),
        })
        .collect();
    ensure!(found == [(7, "etch a --b", Some("TOLD\n")), (11, "etch c", None)], "{found:?}");
    examples.clear();
    mentioned(3, "Say `etch rbac`, `kubectl get\nx -o y`, or `.spec`; `E2E_X=1 cargo ci`.", &mut examples);
    ensure!(examples.len() == 3, "{examples:?}");
    Ok(())
}
