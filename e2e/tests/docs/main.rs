//! Every example of README and docs, run verbatim and in its order, on a cluster of its own.
//!
//! An example that is new is to be put into `known.rs`, or the test fails. What a page shows as output is
//! what comes.

mod cert_manager;
mod files;
mod known;
mod pages;
mod stage;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use e2e::cluster::{Patch, crd};
use e2e::install::root;
use e2e::process::Ended;
use known::{COMMANDS, JSON, Manner, PLACEHOLDERS};
use pages::{Example, Kind, Page};
use serde_json::{Value, json};
use stage::Stage;

/// The page that ends with taking Etch away.
const LAST: &str = "docs/operations.md";

#[tokio::test(flavor = "multi_thread")]
async fn every_example_does_what_its_page_says() -> Result<()> {
    let mut pages = pages::all()?;
    pages.sort_by_key(|page| page.name == LAST);
    let mut stage = Stage::start().await?;
    let mut wrong = Vec::new();
    for page in &pages {
        if page.name == cert_manager::PAGE {
            let mut own = cert_manager::stage().await.context(cert_manager::PAGE)?;
            wrong.extend(try_all(&mut own, page).await);
            own.stop().await?;
        } else {
            wrong.extend(try_all(&mut stage, page).await);
        }
    }
    stage.stop().await?;
    let found: BTreeSet<&str> = pages.iter().flat_map(|page| &page.examples).filter_map(text).collect();
    let gone: Vec<_> =
        COMMANDS.iter().map(|(command, _)| *command).filter(|known| !found.contains(known)).collect();
    ensure!(wrong.is_empty(), "{} examples are wrong:\n{}", wrong.len(), wrong.join("\n"));
    ensure!(gone.is_empty(), "no page has these any more; take them out of known.rs: {gone:#?}");
    Ok(())
}

/// What is wrong with the examples of a page.
async fn try_all(stage: &mut Stage, page: &Page) -> Vec<String> {
    let mut wrong = Vec::new();
    for example in &page.examples {
        if let Err(error) = tried(stage, page, example).await {
            wrong.push(format!("{}:{}: {error:#}", page.name, example.line));
        }
    }
    wrong
}

fn text(example: &Example) -> Option<&str> {
    match &example.kind {
        Kind::Command { text, .. } => Some(text),
        _ => None,
    }
}

async fn tried(stage: &mut Stage, page: &Page, example: &Example) -> Result<()> {
    match &example.kind {
        Kind::Command { text, output } => {
            command(stage, text, output.as_deref()).await.with_context(|| text.clone())
        }
        Kind::Yaml(text) if text.contains("uses: ") => workflow(text),
        Kind::Yaml(text) if text.starts_with("exceptions:") => {
            stage.file("exceptions.yaml", text)?;
            let ended = stage.run("etch lint --live --exceptions exceptions.yaml").await?;
            ensure!(ended.code != Some(2), "{ended:?}");
            Ok(())
        }
        Kind::Yaml(text) => {
            stage.file("example.yaml", text)?;
            let ended = stage.run("kubectl apply --dry-run=server -f example.yaml").await?;
            ensure!(ended.code == Some(0), "{ended:?}");
            Ok(())
        }
        Kind::Json(shown) => {
            let (_, command) =
                JSON.iter().find(|(name, _)| *name == page.name).context("which command prints it?")?;
            let ended = stage.run(command).await?;
            let printed: Value = serde_json::from_str(&ended.out).with_context(|| format!("{ended:?}"))?;
            let shown: Value = serde_json::from_str(shown).context("it is no JSON")?;
            ensure!(contains(&printed, &shown), "{command} prints {printed:#}");
            Ok(())
        }
    }
}

/// A workflow uses our action as it is: where it is, and with inputs that it has. The action itself is run by
/// its own tests.
fn workflow(text: &str) -> Result<()> {
    let workflow: Value = serde_yaml_ng::from_str(text).context("it is no YAML")?;
    let steps =
        workflow["jobs"].as_object().into_iter().flatten().filter_map(|(_, job)| job["steps"].as_array());
    let mut ours = 0;
    for step in steps.flatten() {
        let uses = step["uses"].as_str().unwrap_or_default();
        let Some((_, path)) = uses.split_once("/etch/") else { continue };
        let (folder, _) = path.split_once('@').context("a version")?;
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder).join("action.yaml");
        let action: Value =
            serde_yaml_ng::from_str(&fs::read_to_string(&file).context(file.display().to_string())?)?;
        for input in step["with"].as_object().into_iter().flatten().map(|(input, _)| input) {
            ensure!(action["inputs"][input].is_object(), "{uses} has no input {input}");
        }
        ours += 1;
    }
    ensure!(ours == 1, "{ours} steps use an action of ours");
    Ok(())
}

async fn command(stage: &mut Stage, text: &str, output: Option<&str>) -> Result<()> {
    let known = COMMANDS.iter().find(|(command, _)| *command == text);
    let Some((_, manner)) = known else {
        return if is_of_the_workshop(text) { exists(text) } else { mentioned(stage, text).await };
    };
    match manner {
        Manner::Left(why) => {
            ensure!(!why.is_empty(), "why is it not run?");
            Ok(())
        }
        Manner::Ends(codes) => {
            let filled =
                PLACEHOLDERS.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
            if text.starts_with("helm install") {
                return with_helm(&filled).await;
            }
            before(stage, text).await.context("what must be so before")?;
            let ended = stage.run(&filled).await?;
            ensure!(ended.code.is_some_and(|code| codes.contains(&code)), "{ended:?}");
            match output {
                Some(output) => same(output, &ended),
                None => Ok(()),
            }
        }
    }
}

/// Whether a command is for those who build Etch.
fn is_of_the_workshop(text: &str) -> bool {
    text.split(' ').find(|word| !word.contains('=')).is_some_and(|word| ["cargo", "just"].contains(&word))
}

/// A command that is only named has to exist; any other is to be in the list.
async fn mentioned(stage: &mut Stage, text: &str) -> Result<()> {
    let is_named =
        text.split(' ').count() == 2 && ["etch ", "kubectl "].iter().any(|own| text.starts_with(own));
    ensure!(is_named, "it is not in known.rs");
    let ended = stage.run(&format!("{text} --help")).await?;
    ensure!(ended.code == Some(0), "{ended:?}");
    Ok(())
}

/// What a reader has done or waited for before a command.
async fn before(stage: &mut Stage, command: &str) -> Result<()> {
    let certificates = "certificates.cert-manager.io";
    let waits = "kubectl wait --for=condition=DefaultsPersisted";
    if [format!("{waits} crd/NAME"), format!("{waits} crd/{certificates}")].contains(&command.to_owned()) {
        stage.persisted(certificates).await?;
    }
    if command == cert_manager::TRIMMED {
        cert_manager::trimmed(stage).await?;
    }
    if command.contains("defaultsreport NAME") {
        stage.reported(certificates).await?;
    }
    if command.contains("backup.db") {
        stage.back_up("backup.db").await?;
    }
    if command.contains("--policy certificates") {
        let policy = json!({
            "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy", "metadata": {
                "name": "certificates",
            },
            "spec": { "selector": { "groups": ["cert-manager.io"] } },
        });
        let path = "/apis/etch-operator.io/v1alpha1/defaultspolicies/certificates";
        stage.cluster.patch(path, Patch::Apply, "user", &policy).await?.ok()?;
    }
    if command == "kubectl apply -k config/monitoring" {
        let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        for kind in ["ServiceMonitor", "PrometheusRule"] {
            stage
                .cluster
                .apply_crd(&crd("monitoring.coreos.com", kind, &[("v1", true, any.clone())]))
                .await?;
        }
    }
    Ok(())
}

/// Helm installs into a cluster of its own, and is taken away there: it takes over nothing that kubectl has
/// applied.
async fn with_helm(command: &str) -> Result<()> {
    let mut stage = Stage::bare().await?;
    let others = ["kubectl label", "helm uninstall", "kubectl delete -f config/crd/crds.yaml"];
    let others =
        others.map(|begin| COMMANDS.iter().map(|(command, _)| *command).find(|all| all.starts_with(begin)));
    for command in [Some(command)].into_iter().chain(others) {
        let command = command.context("a command")?;
        let ended = stage.run(command).await?;
        ensure!(ended.code == Some(0), "{command}: {ended:?}");
    }
    stage.stop().await
}

/// A line of the justfile is a comment, the head of a recipe, or a line of its body: just reads nothing of
/// one with another line.
#[test]
fn every_line_of_the_justfile_can_be_read() -> Result<()> {
    let justfile = fs::read_to_string(root().join("justfile"))?;
    let is_head = |line: &str| {
        let name = line.split([' ', ':']).next().unwrap_or_default();
        line.contains(':')
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    };
    let can_be_read = |line: &str| line.is_empty() || line.starts_with(['#', ' ']) || is_head(line);
    let wrong: Vec<&str> = justfile.lines().filter(|line| !can_be_read(line)).collect();
    ensure!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// Whether an alias of cargo, a test or a recipe of just has the name in a command; the command takes too
/// long to be run here.
fn exists(command: &str) -> Result<()> {
    let words: Vec<&str> = command.split(' ').skip_while(|word| word.contains('=')).collect();
    let after = |flag: &str| words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1));
    let is_there = match words.as_slice() {
        ["cargo", "test", ..] => {
            let package = match after("-p").copied() {
                None | Some("etch") => root().to_owned(),
                Some("e2e") => root().join("e2e"),
                Some(name) => root().join("crates").join(name),
            };
            let has = |test: &&str| {
                let tests = package.join("tests");
                tests.join(format!("{test}.rs")).is_file() || tests.join(test).join("main.rs").is_file()
            };
            package.join("Cargo.toml").is_file() && after("--test").is_none_or(has)
        }
        ["cargo" | "just", name, ..] => {
            let alias = format!("{name} = ");
            let aliases = fs::read_to_string(root().join(".cargo/config.toml"))?;
            let recipes = fs::read_to_string(root().join("justfile"))?;
            let is_recipe = |line: &str| {
                line.contains(':') && line.split([' ', ':']).next().is_some_and(|word| word == *name)
            };
            aliases.lines().any(|line| line.starts_with(&alias)) || recipes.lines().any(is_recipe)
        }
        _ => false,
    };
    ensure!(is_there, "there is no such test, alias or recipe");
    Ok(())
}

/// Whether what is printed has everything that is shown; lists may be longer.
fn contains(printed: &Value, shown: &Value) -> bool {
    match (printed, shown) {
        (Value::Object(printed), Value::Object(shown)) => {
            shown.iter().all(|(key, shown)| printed.get(key).is_some_and(|printed| contains(printed, shown)))
        }
        (Value::Array(printed), Value::Array(shown)) => {
            shown.iter().all(|shown| printed.iter().any(|printed| contains(printed, shown)))
        }
        (printed, shown) => printed == shown,
    }
}

/// Whether the output is what a page shows: line by line, with any blanks between words, and ages as they
/// are.
fn same(shown: &str, ended: &Ended) -> Result<()> {
    let words = |text: &str| -> Vec<String> {
        let lines =
            text.lines().map(|line| line.split_whitespace().map(timeless).collect::<Vec<_>>().join(" "));
        lines.filter(|line| !line.is_empty()).collect()
    };
    let (shown, came) = (words(shown), words(&ended.out));
    // Lines may be left out where the page shows `...` or `…`.
    let mut rest = came.iter();
    for line in &shown {
        if line == "..." || line == "…" {
            continue;
        }
        if !rest.any(|other| other == line) {
            bail!("it does not print {line:?}, but\n{}", came.join("\n"));
        }
    }
    if !shown.iter().any(|line| line == "..." || line == "…") {
        ensure!(shown.len() == came.len(), "it prints more:\n{}\n{}", came.join("\n"), ended.err);
    }
    Ok(())
}

/// A word, with any age or time in place of the one that it is.
fn timeless(word: &str) -> String {
    let unit = word.trim_end_matches(['s', 'm', 'h', 'd']);
    let is_age =
        unit.len() < word.len() && !unit.is_empty() && unit.chars().all(|char| char.is_ascii_digit());
    let is_time = word.len() >= 20 && word.as_bytes()[4] == b'-' && word.ends_with('Z') && word.contains('T');
    if is_age || is_time { "TIME".to_owned() } else { word.to_owned() }
}
