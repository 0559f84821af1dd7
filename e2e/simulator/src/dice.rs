//! What is left to chance: numbers that follow from a seed, or choices that are made one by one.

use crate::random::Random;

/// How often a request, or its answer, is lost: once in so many times.
const LOSES: usize = 12;
/// How often a server answers that lags behind.
const LAGS: usize = 3;

/// What decides where more than one thing may come next.
#[derive(Clone, Debug)]
pub struct Dice(Source);

#[derive(Clone, Debug)]
enum Source {
    /// Numbers that follow only from a seed.
    Seed(Random),
    /// Choices that were made before, and the first of each after them.
    Script(Script),
}

/// Choices, so that every one of them can be tried.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// How many requests or answers may still be lost.
    pub faults: u8,
    /// How many requests may still be answered by a server that lags behind.
    pub behind: u8,
    choices: Vec<usize>,
    /// What was chosen, and of how many.
    made: Vec<(usize, usize)>,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives, and so does its answer.
    Answered,
    /// It arrives, and its answer is lost.
    Unanswered,
    /// It is given up, and arrives later.
    Late,
    /// It is lost.
    Lost,
}

impl Dice {
    /// The numbers of a seed.
    pub fn of(seed: u64) -> Self {
        Self(Source::Seed(Random::of(seed)))
    }

    /// Choices one by one.
    pub fn scripted(script: Script) -> Self {
        Self(Source::Script(script))
    }

    /// The choices, where they are made one by one.
    pub fn script(&mut self) -> Option<&mut Script> {
        match &mut self.0 {
            Source::Seed(_) => None,
            Source::Script(script) => Some(script),
        }
    }

    /// The faults, and the requests to a server that lags behind, that may still be chosen; `None` for those
    /// of a seed.
    pub fn left(&self) -> Option<(u8, u8)> {
        match &self.0 {
            Source::Seed(_) => None,
            Source::Script(script) => Some((script.faults, script.behind)),
        }
    }

    /// A number below `sides`, which is not zero.
    pub fn roll(&mut self, sides: usize) -> usize {
        match &mut self.0 {
            Source::Seed(random) => (random.next_u64() % sides as u64) as usize,
            Source::Script(script) => script.choose(sides),
        }
    }

    /// Something that happens once in so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        match &mut self.0 {
            Source::Seed(_) => self.roll(times) == 0,
            Source::Script(script) => script.choose(2) == 1,
        }
    }

    /// One of several things, each as likely as its weight; and a number below that.
    pub fn pick(&mut self, weights: &[usize]) -> (usize, usize) {
        match &mut self.0 {
            Source::Seed(_) => {
                let mut number = self.roll(weights.iter().sum());
                let mut is_beyond = |weight: &usize| {
                    let is_beyond = number >= *weight;
                    number -= if is_beyond { *weight } else { 0 };
                    is_beyond
                };
                let index = weights.iter().take_while(|weight| is_beyond(weight)).count();
                (index, number)
            }
            Source::Script(script) => {
                let possible: Vec<usize> = (0..weights.len()).filter(|index| weights[*index] > 0).collect();
                (possible[script.choose(possible.len())], 0)
            }
        }
    }

    /// A number that is no choice: it spreads waits.
    pub fn seed(&mut self, below: usize) -> u64 {
        match &mut self.0 {
            Source::Seed(_) => self.roll(below) as u64,
            Source::Script(_) => 0,
        }
    }

    /// Whether a request, or its answer, is lost.
    pub fn loses(&mut self) -> bool {
        match &mut self.0 {
            Source::Seed(_) => self.one_in(LOSES),
            Source::Script(script) => script.spend(|script| &mut script.faults),
        }
    }

    /// Whether a server answers that lags behind, where there is one.
    pub fn lags(&mut self) -> bool {
        match &mut self.0 {
            Source::Seed(_) => self.one_in(LAGS),
            Source::Script(script) => script.spend(|script| &mut script.behind),
        }
    }

    /// What happens to a request that may be lost.
    pub fn fate(&mut self) -> Fate {
        match &mut self.0 {
            Source::Seed(_) => match self.roll(LOSES) {
                0 if self.roll(2) == 0 => Fate::Late,
                0 => Fate::Lost,
                1 => Fate::Unanswered,
                _ => Fate::Answered,
            },
            Source::Script(script) if script.faults == 0 => Fate::Answered,
            Source::Script(script) => {
                let all = [Fate::Answered, Fate::Unanswered, Fate::Late, Fate::Lost];
                let fate = all[script.choose(all.len())];
                script.faults -= u8::from(fate != Fate::Answered);
                fate
            }
        }
    }
}

impl Script {
    /// The first of all choices, with so many faults, and requests to a server that lags behind.
    pub fn new(faults: u8, behind: u8) -> Self {
        Self { faults, behind, ..Self::default() }
    }

    /// Makes these choices next, and the first of each after them.
    pub fn follow(&mut self, choices: Vec<usize>) {
        (self.choices, self.made) = (choices, Vec::new());
    }

    /// The choices that come after those that were made since: none once all were tried.
    pub fn following(&mut self) -> Option<Vec<usize>> {
        let mut made = std::mem::take(&mut self.made);
        while let Some((choice, sides)) = made.pop() {
            if choice + 1 < sides {
                return Some(made.into_iter().map(|(choice, _)| choice).chain([choice + 1]).collect());
            }
        }
        None
    }

    fn choose(&mut self, sides: usize) -> usize {
        let choice = self.choices.get(self.made.len()).copied().unwrap_or_default();
        self.made.push((choice, sides));
        choice
    }

    fn spend(&mut self, of: fn(&mut Self) -> &mut u8) -> bool {
        let is_spent = *of(self) > 0 && self.choose(2) == 1;
        *of(self) -= u8::from(is_spent);
        is_spent
    }
}
