//! What test runners print: their closing lines, and what failed tests printed.

/// Tests, as the closing lines of their runners count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tests {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

/// What all runners printed so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) tests: Tests,
    /// What failed tests printed.
    pub(crate) failures: Vec<String>,
    inside: bool,
}

impl Report {
    /// Takes the next line of a runner's output: the output of failed tests is between `failures:` and their
    /// names.
    pub(crate) fn read(&mut self, line: &str) {
        match line {
            "failures:" => self.inside = !self.inside,
            line if line.starts_with("test result: ") => self.inside = false,
            line if self.inside => self.failures.push(line.to_owned()),
            _ => {}
        }
        if let Some(Tests { passed, failed }) = closing_line(line) {
            self.tests.passed += passed;
            self.tests.failed += failed;
        }
    }
}

/// The numbers of a closing line, such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn closing_line(line: &str) -> Option<Tests> {
    let numbers = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |what: &str| {
        numbers.split("; ").find_map(|part| part.strip_suffix(what)?.strip_suffix(' ')?.parse().ok())
    };
    Some(Tests { passed: count("passed")?, failed: count("failed")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_test_runners_are_counted_and_nothing_else() {
        let line =
            "test result: ok. 81 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 2.13s";
        assert_eq!(closing_line(line), Some(Tests { passed: 81, failed: 0 }));
        let line = "test result: FAILED. 3 passed; 12 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(closing_line(line), Some(Tests { passed: 3, failed: 12 }));
        assert_eq!(closing_line("test answers::x ... ok"), None);
        assert_eq!(closing_line("81 passed, 0 failed"), None);
    }

    #[test]
    fn what_failed_tests_printed_is_kept_and_their_names_are_not() {
        let output = "test a ... ok\ntest b ... FAILED\n\nfailures:\n---- b ----\nnot stored\nfailures:\n    \
            b\n\ntest result: FAILED. 1";
        let mut report = Report::default();
        output
            .lines()
            .chain(["test c ... ok", "failures:", "---- d ----", "test result: FAILED. 0", "later"])
            .for_each(|line| report.read(line));
        assert_eq!(report.failures, ["---- b ----", "not stored", "---- d ----"]);
    }
}
