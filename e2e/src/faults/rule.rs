//! What is done to which request.

use std::ops::Range;
use std::time::Duration;

use http::{Method, Uri};

/// What a client wants of the API server, in its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// One object.
    Get,
    /// A page of a collection.
    List,
    /// The changes of a collection.
    Watch,
    /// A new object.
    Create,
    /// A change of an object.
    Patch,
    /// An object as a whole.
    Update,
    /// The end of an object.
    Delete,
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What is wanted.
    pub verb: Verb,
    /// The plural of the resource.
    pub resource: String,
    /// The object; none for a collection.
    pub name: Option<String>,
    /// Such as `status`.
    pub subresource: Option<String>,
    /// Whether the server is asked to change nothing.
    pub is_dry_run: bool,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The connection is closed before the server gets the request.
    Refuse,
    /// The proxy answers in the server's place.
    Answer {
        /// The HTTP status.
        code: u16,
        /// `reason` of the `Status`.
        reason: &'static str,
        /// `Retry-After`, in seconds.
        retry_after: Option<u32>,
    },
    /// It reaches the server later.
    DelayRequest(Duration),
    /// The server does it, and the connection is closed instead of an answer.
    LoseAnswer,
    /// The answer comes later.
    DelayAnswer(Duration),
    /// The answer breaks off in its middle.
    CutAnswer,
    /// The answer is no JSON.
    GarbleAnswer,
    /// The answer comes in pieces of a few bytes.
    SplitAnswer,
    /// A watch ends before its first event.
    CloseWatch,
    /// A watch begins with the event that its resourceVersion is too old.
    GoneInWatch,
    /// A watch begins with the event that the server has failed.
    ErrorInWatch,
    /// A watch begins with a line that is no JSON.
    GarbleWatch,
    /// A watch breaks off in the middle of its first line.
    CutWatch,
    /// Each event of a watch comes twice.
    RepeatEvents,
    /// Each event of a watch comes later.
    DelayEvents(Duration),
    /// A watch breaks off in the place of this event, counted from 0.
    LoseEvent(usize),
    /// It reaches the server when the test has released it: see [`super::Proxy::held`].
    Hold,
    /// The server does it, and the answer comes when the test has released it.
    HoldAnswer,
    /// It never reaches the server, and gets no answer.
    Stall,
    /// The server does it, and the client gets no answer.
    StallAnswer,
    /// The operator is killed before the server gets the request.
    KillBefore,
    /// The operator is killed when the server has done it.
    KillAfter,
}

/// A fault, and the requests that get it.
#[derive(Clone, Debug)]
pub struct Rule {
    /// By which its maker knows it.
    pub id: usize,
    /// These verbs; none: all.
    pub verbs: Vec<Verb>,
    /// This resource.
    pub resource: String,
    /// Objects whose names begin so; none: all, and collections.
    pub name: Option<String>,
    /// Which of the requests that fit, counted from 0.
    pub nth: Range<usize>,
    /// What happens to them.
    pub fault: Fault,
}

impl Fault {
    /// The word for faults that do the same.
    pub fn class(self) -> String {
        let word = match self {
            Self::Refuse => "refused",
            Self::Answer { code, .. } => return code.to_string(),
            Self::DelayRequest(_) => "request late",
            Self::LoseAnswer => "answer lost",
            Self::DelayAnswer(_) => "answer late",
            Self::CutAnswer => "answer cut off",
            Self::GarbleAnswer => "answer garbled",
            Self::SplitAnswer => "in pieces",
            Self::CloseWatch => "watch closed",
            Self::GoneInWatch => "410 in a watch",
            Self::ErrorInWatch => "error in a watch",
            Self::GarbleWatch => "watch garbled",
            Self::CutWatch => "watch cut off",
            Self::RepeatEvents => "events twice",
            Self::DelayEvents(_) => "events late",
            Self::LoseEvent(_) => "event lost",
            Self::Hold | Self::HoldAnswer => "held",
            Self::Stall => "no answer",
            Self::StallAnswer => "done, no answer",
            Self::KillBefore => "kill before",
            Self::KillAfter => "kill after",
        };
        word.to_owned()
    }

    /// Whether it is about the events of a watch, and nothing where there are none.
    pub fn needs_events(self) -> bool {
        matches!(self, Self::RepeatEvents | Self::DelayEvents(_) | Self::LoseEvent(_))
    }
}

impl Rule {
    /// Whether a request is of its kind; [`Self::nth`] sets which of them get the fault.
    pub fn fits(&self, target: &Target) -> bool {
        let named = self
            .name
            .as_ref()
            .is_none_or(|prefix| target.name.as_ref().is_some_and(|name| name.starts_with(prefix.as_str())));
        named
            && self.resource == target.resource
            && (self.verbs.is_empty() || self.verbs.contains(&target.verb))
    }
}

impl Verb {
    /// Whether it changes anything.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Patch | Self::Update | Self::Delete)
    }
}

impl Target {
    /// Reads a request to a resource; none for others, such as `/openapi/v3`.
    pub fn of(method: &Method, uri: &Uri) -> Option<Self> {
        let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
        match parts.next()? {
            "api" => drop(parts.next()?),
            "apis" => drop((parts.next()?, parts.next()?)),
            _ => return None,
        }
        let mut rest: Vec<&str> = parts.collect();
        if rest.len() > 2 && rest[0] == "namespaces" {
            rest.drain(..2);
        }
        let resource = (*rest.first()?).to_owned();
        let name = rest.get(1).map(|name| (*name).to_owned());
        let subresource = rest.get(2).map(|sub| (*sub).to_owned());
        let asks = |what: &str| uri.query().unwrap_or_default().split('&').any(|pair| pair.starts_with(what));
        let (is_watch, is_dry_run) = (asks("watch="), asks("dryRun="));
        let verb = match (method.as_str(), is_watch, &name) {
            ("GET", true, _) => Verb::Watch,
            ("GET", false, Some(_)) => Verb::Get,
            ("GET", false, None) => Verb::List,
            ("POST", ..) => Verb::Create,
            ("PATCH", ..) => Verb::Patch,
            ("PUT", ..) => Verb::Update,
            ("DELETE", ..) => Verb::Delete,
            _ => return None,
        };
        Some(Self { verb, resource, name, subresource, is_dry_run })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_the_api_server_reads_them() {
        let read = |method: Method, path: &str| {
            let target = Target::of(&method, &path.parse().expect("a path"));
            target.map(|it| (it.verb, it.resource, it.name, it.subresource))
        };
        let some = |text: &str| Some(text.to_owned());
        let widgets = || "widgets".to_owned();
        let base = "/apis/example.com/v1/namespaces/ns/widgets";
        assert_eq!(read(Method::GET, &format!("{base}?limit=5")), Some((Verb::List, widgets(), None, None)));
        assert_eq!(
            read(Method::GET, &format!("{base}?watch=true")),
            Some((Verb::Watch, widgets(), None, None))
        );
        assert_eq!(read(Method::GET, &format!("{base}/a")), Some((Verb::Get, widgets(), some("a"), None)));
        assert_eq!(
            read(Method::PATCH, &format!("{base}/a/status")),
            Some((Verb::Patch, widgets(), some("a"), some("status")))
        );
        let all = "/apis/example.com/v1/widgets";
        assert_eq!(read(Method::GET, all), Some((Verb::List, widgets(), None, None)));
        let namespaces = || "namespaces".to_owned();
        assert_eq!(
            read(Method::GET, "/api/v1/namespaces/ns"),
            Some((Verb::Get, namespaces(), some("ns"), None))
        );
        assert_eq!(read(Method::GET, "/openapi/v3"), None);
    }
}
