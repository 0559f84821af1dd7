//! A token in a file that others replace, read as client-go reads it. It must not show what is in the file.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use kube::client::AuthError;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::Instant;

/// How long what was read counts.
///
/// Source: client-go `transport/token_source.go`.
const TTL: Duration = Duration::from_secs(50);

/// The file, and the header made of what it held.
pub(super) struct TokenFile {
    path: PathBuf,
    last: Mutex<Last>,
}

struct Last {
    header: HeaderValue,
    at: Instant,
}

impl TokenFile {
    /// Reads the file. A token that is given beside it counts as long as the file cannot be read.
    ///
    /// # Errors
    /// There is no token that can be sent.
    pub(super) fn open(path: &str, beside: Option<&SecretString>) -> Result<Self, AuthError> {
        let path = PathBuf::from(path);
        let header = match (read(&path), beside) {
            (Err(_), Some(token)) => header(token.expose_secret())?,
            (header, _) => header?,
        };
        Ok(Self { path, last: Mutex::new(Last { header, at: Instant::now() }) })
    }

    /// The header for a request. A file that cannot be read any more leaves the last token.
    pub(super) fn header(&self) -> HeaderValue {
        let mut last = self.last.lock();
        if last.at.elapsed() >= TTL {
            last.at = Instant::now();
            if let Ok(header) = read(&self.path) {
                last.header = header;
            }
        }
        last.header.clone()
    }
}

fn read(path: &PathBuf) -> Result<HeaderValue, AuthError> {
    let unread = |error| AuthError::ReadTokenFile(error, path.clone());
    let text = fs::read_to_string(path).map_err(unread)?;
    match text.trim() {
        "" => Err(unread(io::ErrorKind::UnexpectedEof.into())),
        token => header(token),
    }
}

fn header(token: &str) -> Result<HeaderValue, AuthError> {
    let mut header =
        HeaderValue::try_from(format!("Bearer {token}")).map_err(AuthError::InvalidBearerToken)?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_token_is_read_without_its_line_end_and_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let named = path.to_str().expect("a path in UTF-8");
        let inline = SecretString::from("inline");
        let write = |text| fs::write(&path, text).expect("a file");
        let open = |inline| TokenFile::open(named, inline);

        assert!(matches!(open(None), Err(AuthError::ReadTokenFile(..))), "there is none");
        assert_eq!(open(Some(&inline)).expect("the inline one").header(), "Bearer inline");
        write(" \n");
        assert!(matches!(open(None), Err(AuthError::ReadTokenFile(..))), "it is empty");
        write("first\n");
        let token = open(Some(&inline)).expect("a token");
        assert_eq!(token.header(), "Bearer first");
        assert!(token.header().is_sensitive());
        write("second");
        assert_eq!(token.header(), "Bearer first");
        tokio::time::advance(TTL).await;
        assert_eq!(token.header(), "Bearer second");
        for text in ["", "two\nlines"] {
            write(text);
            tokio::time::advance(TTL).await;
            assert_eq!(token.header(), "Bearer second");
        }
    }
}
