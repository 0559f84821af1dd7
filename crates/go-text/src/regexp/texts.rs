//! Sets of texts, as patterns and lengths describe them, and what they have in common.

use std::collections::HashSet;

use regex_automata::Anchored;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_syntax::hir::{Class, Hir, Look, Repetition};

use super::error::SyntaxError;
use super::{parser, unicode};

/// Memory that the automaton of one set may take, in bytes.
const SIZE_LIMIT: usize = 4 << 20;
/// How many states of all automata together are looked at.
const MOST_STATES: usize = 50_000;

/// A set of texts.
#[derive(Clone, Debug)]
pub struct Texts(Hir);

impl Texts {
    /// Those of which some part matches a pattern.
    ///
    /// # Errors
    /// Where `regexp.Compile` returns one.
    pub fn matching(pattern: &str) -> Result<Self, SyntaxError> {
        parser::parse(pattern).map(Self)
    }

    /// These.
    pub fn one_of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let one = |text: &str| Hir::literal(text.as_bytes());
        let any = Hir::alternation(texts.into_iter().map(one).collect());
        Self(Hir::concat(vec![Hir::look(Look::Start), any, Hir::look(Look::End)]))
    }

    /// Those of so many characters.
    pub fn of_length(least: u32, most: Option<u32>) -> Self {
        let any = Hir::class(Class::Unicode(unicode::everything()));
        let all = Hir::repetition(Repetition { min: least, max: most, greedy: true, sub: Box::new(any) });
        Self(Hir::concat(vec![Hir::look(Look::Start), all, Hir::look(Look::End)]))
    }

    /// Whether a text is in all of some sets, and in none of others; `None` if that takes too long to find
    /// out.
    pub fn any(within: &[Self], outside: &[Self]) -> Option<bool> {
        // An automaton reads bytes, and not all of these are texts.
        let every = [Self::of_length(0, None)];
        let within = within.iter().chain(&every).map(|set| (set, true));
        let sets = within.chain(outside.iter().map(|set| (set, false)));
        let automata: Option<Vec<_>> =
            sets.map(|(set, is_in)| set.automaton().map(|automaton| (automaton, is_in))).collect();
        any(&automata?)
    }

    fn automaton(&self) -> Option<dense::DFA<Vec<u32>>> {
        // The automaton begins anywhere, also within a character, where no word does.
        if self.0.properties().look_set().contains_word() {
            return None;
        }
        let config = thompson::Config::new().nfa_size_limit(Some(SIZE_LIMIT));
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(&self.0).ok()?;
        let config = dense::Config::new()
            .start_kind(StartKind::Unanchored)
            .accelerate(false)
            .dfa_size_limit(Some(SIZE_LIMIT))
            .determinize_size_limit(Some(SIZE_LIMIT));
        dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()
    }
}

/// Where the automata are; `None` for one that has found a match, whatever follows.
type States = Vec<Option<StateID>>;

/// Whether some bytes lead all automata to what is asked of them: a match, or none.
fn any(automata: &[(dense::DFA<Vec<u32>>, bool)]) -> Option<bool> {
    let config = start::Config::new().anchored(Anchored::No);
    let start: Option<States> =
        automata.iter().map(|(automaton, _)| automaton.start_state(&config).ok().map(Some)).collect();
    let bytes = representatives(automata);
    let step = |states: &States, next: &dyn Fn(&dense::DFA<Vec<u32>>, StateID) -> StateID| -> States {
        let both = states.iter().zip(automata);
        both.map(|(state, (automaton, _))| {
            state.map(|state| next(automaton, state)).filter(|next| !automaton.is_match_state(*next))
        })
        .collect()
    };
    let is_lost = |states: &States| {
        states.iter().zip(automata).any(|(state, (automaton, is_in))| match state {
            Some(state) => *is_in && automaton.is_dead_state(*state),
            None => !is_in,
        })
    };
    let (mut seen, mut open) = (HashSet::new(), vec![start?]);
    while let Some(states) = open.pop() {
        let at_end = step(&states, &|automaton, state| automaton.next_eoi_state(state));
        if at_end.iter().zip(automata).all(|(state, (_, is_in))| state.is_none() == *is_in) {
            return Some(true);
        }
        for byte in &bytes {
            let next = step(&states, &|automaton, state| automaton.next_state(state, *byte));
            if !is_lost(&next) && !seen.contains(&next) {
                if seen.len() == MOST_STATES {
                    return None;
                }
                seen.insert(next.clone());
                open.push(next);
            }
        }
    }
    Some(false)
}

/// One byte of each class that all automata treat alike.
fn representatives(automata: &[(dense::DFA<Vec<u32>>, bool)]) -> Vec<u8> {
    let mut seen = HashSet::new();
    let classes = |byte: u8| -> Vec<u8> {
        automata.iter().map(|(automaton, _)| automaton.byte_classes().get(byte)).collect()
    };
    (0..=u8::MAX).filter(|byte| seen.insert(classes(*byte))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pattern: &str) -> Texts {
        Texts::matching(pattern).expect("a pattern")
    }

    #[test]
    fn a_set_is_within_another() {
        for (small, large) in [
            ("^[a-z]+$", "^[a-z0-9]+$"),
            ("^a$", "^(a|b)$"),
            ("^(a|b)$", "^[ab]$"),
            ("abc", "b"),
            ("^abc", "^a"),
            ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "^[a-z0-9-]+$"),
            ("^(?i)no$", "^[nNoO]{2}$"),
            ("^é$", r"^\pL$"),
            ("x", "(?s)^.*$"),
            (r"^\d+$", r"^\w+$"),
            ("^a{3}$", "^a{2,4}$"),
        ] {
            let within =
                |inner: &str, outer: &str| Texts::any(&[texts(inner)], &[texts(outer)]).map(|any| !any);
            assert_eq!(within(small, large), Some(true), "{small} {large}");
            let is_same = within(large, small);
            assert_eq!(is_same, Some(large == "^[ab]$"), "{large} {small}");
        }
    }

    #[test]
    fn lengths_are_in_characters() {
        let long = |pattern: &str, least, most| {
            Texts::any(&[texts(pattern)], &[Texts::of_length(least, most)]).map(|any| !any)
        };
        assert_eq!(long("^[äö]{2,9}$", 2, Some(9)), Some(true));
        assert_eq!(long("^[äö]{2,9}$", 2, Some(8)), Some(false));
        assert_eq!(long("^[äö]{2,9}$", 3, None), Some(false));
        assert_eq!(long("x", 1, None), Some(true));
        assert_eq!(long("^a", 0, Some(9)), Some(false));
    }

    #[test]
    fn sets_without_a_common_text_are_found() {
        assert_eq!(Texts::any(&[texts("^a"), texts("^b")], &[]), Some(false));
        assert_eq!(Texts::any(&[texts("a"), texts("b")], &[]), Some(true));
        assert_eq!(
            Texts::any(&[texts("^a+$"), Texts::of_length(2, Some(3))], &[texts("^aaa?$")]),
            Some(false)
        );
    }

    #[test]
    fn what_takes_too_long_stays_open() {
        assert_eq!(Texts::any(&[texts("(a|b)*a(a|b){500}c")], &[]), None);
        assert_eq!(Texts::any(&[texts("^aéa$")], &[texts(r"\B")]), None);
    }
}
