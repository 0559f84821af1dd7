//! Standard output and standard error of a command: a broken pipe, as with `head`, changes neither what the
//! command does nor its exit status.

use std::io::{self, Stderr, StdoutLock, Write};

use etch_answers::plain;

/// A stream that ignores broken pipes.
pub(crate) struct Lenient<W>(W);

/// Standard output.
pub(crate) fn stdout() -> Lenient<StdoutLock<'static>> {
    Lenient(io::stdout().lock())
}

/// Standard error.
pub(crate) fn stderr() -> Lenient<Stderr> {
    Lenient(io::stderr())
}

/// Tells the user something beside the answer, on standard error. Control characters of the text show
/// nothing.
///
/// # Errors
/// Standard error cannot be written to.
pub(crate) fn note(text: &str) -> io::Result<()> {
    writeln!(stderr(), "note: {}", plain(text))
}

impl<W: Write> Write for Lenient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(self.0.flush(), ())
    }
}

fn unless_closed<T>(result: io::Result<T>, otherwise: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(otherwise),
        result => result,
    }
}
