//! What is wrong with a kubeconfig or with credentials, in Etch's own words: the texts of the libraries that
//! read them quote what they found, which may be a token, a key, or a password in a URL. It must not show
//! more of a file than a place in it.

use std::error::Error;
use std::io;
use std::path::Path;

use kube::client::AuthError;
use kube::config::{KubeconfigError, LoadDataError};

/// The error for a token that cannot be sent.
pub(super) const INVALID_TOKEN: &str = "the token has characters that no HTTP header holds";

/// What is wrong with a kubeconfig. Names of contexts and clusters are shown, since its user has typed them.
pub(super) fn of_kubeconfig(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::CurrentContextNotSet => "it sets no current-context".to_owned(),
        KubeconfigError::KindMismatch => "its documents have different kinds".to_owned(),
        KubeconfigError::ApiVersionMismatch => "its documents have different API versions".to_owned(),
        KubeconfigError::LoadContext(context) => format!("there is no context {context:?}"),
        KubeconfigError::LoadClusterOfContext(cluster) => format!("there is no cluster {cluster:?}"),
        KubeconfigError::FindPath => "there is no kubeconfig file".to_owned(),
        KubeconfigError::ReadConfig(error, path) => {
            format!("cannot read {}: {}", path.display(), of_io(error))
        }
        KubeconfigError::Parse(error) => match error.location() {
            Some(place) if place.line() > 0 => {
                format!("line {}, column {}: it is not a kubeconfig in YAML", place.line(), place.column())
            }
            _ => "it is not a kubeconfig in YAML".to_owned(),
        },
        KubeconfigError::MissingClusterUrl => "the cluster has no server".to_owned(),
        KubeconfigError::ParseClusterUrl(_) => "the cluster's server is not a URL".to_owned(),
        KubeconfigError::LoadCertificateAuthority(error) => of_data("certificate-authority", error),
        KubeconfigError::LoadClientCertificate(error) => of_data("client-certificate", error),
        KubeconfigError::LoadClientKey(error) => of_data("client-key", error),
        KubeconfigError::ParseCertificates(_) => "the certificate authority is not in PEM".to_owned(),
        // The variants of features that are not built.
        #[allow(unreachable_patterns)]
        _ => "it cannot be used".to_owned(),
    }
}

/// What is wrong with credentials or certificates when a client is made of them.
pub(super) fn of_client(error: &kube::Error) -> String {
    match error {
        kube::Error::RustlsTls(_) => {
            "the client certificate, its key or the certificate authority is not what TLS needs; check that \
             each is in PEM and that certificate and key belong together"
                .to_owned()
        }
        kube::Error::InferKubeconfig(error) => of_kubeconfig(error),
        error => {
            authentication(error).unwrap_or("the kubeconfig or the service account cannot be used").to_owned()
        }
    }
}

/// Why the client could not be authenticated, if the error comes from that.
pub(super) fn authentication(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut link = Some(error);
    let error = loop {
        let error = link?;
        if let Some(found) = error.downcast_ref::<AuthError>() {
            break found;
        }
        link = error.source();
    };
    Some(match error {
        AuthError::InvalidBasicAuth(_) => "the username or password has characters that no HTTP header holds",
        AuthError::InvalidBearerToken(_) => INVALID_TOKEN,
        AuthError::ReadTokenFile(error, _) if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the token file is empty"
        }
        AuthError::ReadTokenFile(..) => "the token file cannot be read",
        AuthError::MissingCommand => "the exec plugin has no command",
        AuthError::AuthExecStart(_) => "the exec plugin cannot be started",
        AuthError::AuthExecRun { .. } => "the exec plugin failed; run its command to see why",
        AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed => {
            "the exec plugin did not print an ExecCredential with a status"
        }
        AuthError::MalformedTokenExpirationDate(_) => "the exec plugin printed a time that is none",
        AuthError::UnrefreshableTokenResponse => "the exec plugin printed no token that can be renewed",
        AuthError::AuthExec(_) => "the auth provider did not give a token",
        AuthError::ExecMissingClusterInfo => "the exec plugin needs the cluster (provideClusterInfo)",
        _ => "the credentials cannot be used",
    })
}

fn of_data(field: &str, error: &LoadDataError) -> String {
    match error {
        LoadDataError::DecodeBase64(_) => format!("{field}-data is not base64"),
        // A user who pastes a key where a path belongs must not see it in the message.
        LoadDataError::ReadFile(error, path) if Path::new(path).exists() => {
            format!("{field}: cannot read {}: {}", path.display(), of_io(error))
        }
        LoadDataError::ReadFile(error, _) => format!("{field}: cannot read this file: {}", of_io(error)),
        LoadDataError::NoBase64DataOrFile => format!("{field} and {field}-data are missing"),
    }
}

fn of_io(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).to_lowercase()
}
