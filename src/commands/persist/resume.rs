//! The command line that resumes an interrupted pass.
//! It has every option that was given.

use clap::ValueEnum;

use etch::cluster::MAX_IN_FLIGHT;
use etch_core::shell::quoted;

use super::{HiddenFieldsArg, OwnershipArg, Persist};
use crate::commands::global::{Global, Output};
use crate::commands::program::program;
use crate::commands::values::PaceArg;

impl Persist {
    /// The command line for these CRDs, of the first of them behind an object, ready for a shell.
    pub(super) fn resume(&self, global: &Global, crds: &[String], after: Option<&str>) -> String {
        let mut words = vec!["persist".to_owned()];
        words.extend(crds.iter().cloned());
        words.extend(after.map(|after| format!("--after={after}")));
        words.extend(self.words());
        words.extend(global.words());
        let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        format!("{} {}", program(), words.join(" "))
    }

    /// Its own options except those that set where to continue.
    fn words(&self) -> Vec<String> {
        let Self {
            crds: _,
            after: _,
            ignore_not_found,
            dry_run,
            yes,
            every_object,
            ownership,
            hidden_fields,
            allow,
            max_in_flight,
            max_writes_per_second,
            pace,
            limit,
            output,
        } = self;
        let mut words = Vec::new();
        words.extend(ignore_not_found.then(|| "--ignore-not-found".to_owned()));
        words.extend(dry_run.then(|| "--dry-run".to_owned()));
        words.extend(yes.then(|| "--yes".to_owned()));
        words.extend(every_object.then(|| "--every-object".to_owned()));
        let defaults = (OwnershipArg::default(), HiddenFieldsArg::default(), MAX_IN_FLIGHT);
        words.extend((*ownership != defaults.0).then(|| format!("--ownership={}", name(ownership))));
        words.extend(
            (*hidden_fields != defaults.1).then(|| format!("--hidden-fields={}", name(hidden_fields))),
        );
        words.extend(allow.iter().map(|left| format!("--allow={}", name(left))));
        words.extend((*max_in_flight != defaults.2).then(|| format!("--max-in-flight={max_in_flight}")));
        words.extend(max_writes_per_second.map(|limit| format!("--max-writes-per-second={limit}")));
        words.extend((*pace != PaceArg::default()).then(|| format!("--pace={}", name(pace))));
        words.extend(limit.word());
        words.extend((*output != Output::Table).then(|| format!("--output={}", name(output))));
        words
    }
}

fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::{Cli, Command};

    fn read(words: &[&str]) -> (Global, Persist) {
        let cli = Cli::try_parse_from(words).expect("arguments");
        match cli.command {
            Command::Persist(persist) => (cli.global, persist),
            other => panic!("{other:?}"),
        }
    }

    /// A line as a shell reads it: words with single quotes.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut is_quoted, mut chars) =
            (Vec::new(), String::new(), false, line.chars());
        while let Some(next) = chars.next() {
            match next {
                '\'' => is_quoted = !is_quoted,
                '\\' if !is_quoted => word.extend(chars.next()),
                ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
                other => word.push(other),
            }
        }
        words.push(word);
        words
    }

    #[test]
    fn it_goes_on_with_every_option() {
        let all = [
            "etch",
            "persist",
            "things",
            "others",
            "--after",
            "web/a",
            "--ignore-not-found",
            "--yes",
            "--ownership",
            "own",
            "--hidden-fields",
            "drop",
            "--allow",
            "Ignored,terminating",
            "--max-in-flight",
            "3",
            "--max-writes-per-second",
            "20",
            "--pace",
            "fast",
            "--limit",
            "5",
            "-o",
            "json",
            "--context",
            "it's mine",
            "--kubeconfig",
            "/home/some one/config",
            "-n",
            "web",
            "--color",
            "never",
            "--log-format",
            "json",
        ];
        for more in [&[][..], &["--dry-run"], &["--every-object"]] {
            let (global, persist) = read(&[&all[..], more].concat());
            let line = persist.resume(&global, &["others".to_owned()], Some("web/b"));
            let again = words(&line);
            let again: Vec<_> = again.iter().map(String::as_str).collect();
            let (again_global, again_persist) = read(&again);
            let expected =
                Persist { crds: vec!["others".to_owned()], after: Some("web/b".to_owned()), ..persist };
            assert_eq!(format!("{again_persist:?}"), format!("{expected:?}"), "{line}");
            assert_eq!(format!("{again_global:?}"), format!("{global:?}"), "{line}");
        }
        let (global, persist) = read(&["etch", "persist", "-A"]);
        let line = persist.resume(&global, &["things".to_owned()], None);
        assert!(
            line.contains(" things ") && line.contains("--all-namespaces") && !line.contains("--after"),
            "{line}"
        );
        // An option that is new is to be given here, too.
        let command = Cli::command();
        let command = command.find_subcommand("persist").expect("the command");
        let options = command.get_arguments().filter_map(|option| option.get_long());
        let apart = ["help", "version", "dry-run", "every-object", "all-namespaces"];
        for option in options.filter(|option| !apart.contains(option)) {
            let is_given = all.iter().any(|word| *word == format!("--{option}"));
            let is_short = ["output", "namespace"].contains(&option);
            assert!(is_given || is_short, "--{option} is not tried");
        }
    }
}
