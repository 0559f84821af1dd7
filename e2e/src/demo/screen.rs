//! Prints the demo, and the result of its claims.

use std::io::{self, Write};

use super::claims::Claim;
use super::layout::{MARGIN, WIDTH, wrapped};
use super::style::Style;

/// The reader's side.
pub struct Screen<W> {
    output: W,
    style: Style,
    chapters: usize,
    claims: Vec<Claim>,
}

impl<W: Write> Screen<W> {
    /// An empty screen.
    pub fn new(output: W, style: Style) -> Self {
        Self { output, style, chapters: 0, claims: Vec::new() }
    }

    /// How text is coloured.
    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// Whether all claims so far hold.
    pub(super) fn all_hold(&self) -> bool {
        self.claims.iter().all(Claim::holds)
    }

    /// Begins a chapter, with its number.
    pub(super) fn chapter(&mut self, title: &str) -> io::Result<()> {
        self.chapters += 1;
        let title = format!("{}  {title}", self.chapters);
        writeln!(self.output, "\n{}\n", self.style.heading(&title))?;
        self.output.flush()
    }

    /// A paragraph, wrapped.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        self.block(&wrapped(text, WIDTH - MARGIN))
    }

    /// Lines without changes, and an empty one.
    pub(super) fn block(&mut self, lines: &[String]) -> io::Result<()> {
        for line in lines {
            self.line(line)?;
        }
        self.blank()
    }

    /// A line as it is.
    pub(super) fn line(&mut self, line: &str) -> io::Result<()> {
        let line = format!("{:MARGIN$}{line}", "");
        writeln!(self.output, "{}", line.trim_end())?;
        self.output.flush()
    }

    /// An empty line.
    pub(super) fn blank(&mut self) -> io::Result<()> {
        writeln!(self.output)
    }

    /// A line at the edge.
    pub fn flush_left(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.output, "{line}")?;
        self.output.flush()
    }

    /// A claim that has been checked.
    pub(super) fn claim(&mut self, claim: Claim) -> io::Result<()> {
        let style = self.style;
        let mark = if claim.holds() { style.good("✓") } else { style.bad("✗") };
        write_marked(&mut self.output, &mark, &claim.text)?;
        for problem in &claim.problems {
            writeln!(self.output, "      {}", style.bad(problem))?;
        }
        self.claims.push(claim);
        self.output.flush()
    }

    /// The last word: whether all claims hold, and those that do not.
    pub(super) fn account(&mut self) -> io::Result<bool> {
        let broken: Vec<&Claim> = self.claims.iter().filter(|claim| !claim.holds()).collect();
        let (all, style) = (self.claims.len(), self.style);
        if broken.is_empty() {
            let line = format!("{all} claims checked, all hold");
            writeln!(self.output, "\n{}", style.good(&line))?;
        } else {
            let line = format!("{all} claims checked, {} of them broken:", broken.len());
            writeln!(self.output, "\n{}", style.bad(&line))?;
            for claim in &broken {
                write_marked(&mut self.output, "✗", &claim.text)?;
            }
        }
        self.output.flush()?;
        Ok(broken.is_empty())
    }
}

/// A paragraph with a mark in its margin.
fn write_marked(output: &mut impl Write, mark: &str, text: &str) -> io::Result<()> {
    for (index, line) in wrapped(text, WIDTH - MARGIN).iter().enumerate() {
        let mark = if index == 0 { mark } else { " " };
        writeln!(output, "  {mark} {line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Claim, Screen, Style};

    fn reported(claims: &[Claim]) -> (bool, String) {
        let mut output = Vec::new();
        let mut screen = Screen::new(&mut output, Style::PLAIN);
        for claim in claims {
            screen.claim(claim.clone()).expect("memory takes it");
        }
        let all_hold = screen.account().expect("memory takes it");
        (all_hold, String::from_utf8(output).expect("text"))
    }

    #[test]
    fn a_broken_claim_is_named_where_it_is_made_and_in_the_end() {
        let broken = Claim::that("water is dry", Some("it is wet".into()));
        let (all_hold, text) = reported(&[Claim::that("ice is cold", None), broken]);
        assert!(!all_hold);
        assert_eq!(
            text,
            "  ✓ ice is cold\n  ✗ water is dry\n      it is wet\n\n\
             2 claims checked, 1 of them broken:\n  ✗ water is dry\n"
        );
    }

    #[test]
    fn claims_that_hold_are_counted() {
        let (all_hold, text) = reported(&[Claim::that("ice is cold", None)]);
        assert!(all_hold);
        assert!(text.ends_with("\n1 claims checked, all hold\n"), "{text}");
    }
}
