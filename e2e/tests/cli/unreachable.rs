//! A cluster that is not there: the error names the server, and why there is no answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result};
use e2e::logs;
use e2e::operator::binary;
use serde_json::json;

use crate::process::{etch, finish, run, text};

#[test]
fn a_server_that_cannot_be_reached_is_named_with_the_cause() -> Result<()> {
    // No process listens on a port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    let server = format!("http://{address}");
    std::fs::write(&kubeconfig, kubeconfig_of(&server))?;
    let reported = format!("cannot reach the API server {server}: connection refused");
    for arguments in
        [&["audit"][..], &["rbac", "--live"], &["clean"], &["status"], &["explain", "things", "a"]]
    {
        let mut all = vec!["--kubeconfig", text(&kubeconfig)];
        all.extend(arguments);
        let ended = etch(&all)?;
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains(&reported), "{arguments:?}: {}", ended.err);
        assert!(!ended.err.contains("os error") && !ended.err.contains("client error"), "{}", ended.err);
    }
    Ok(())
}

fn kubeconfig_of(server: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Config, current-context: c, \
         clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}], \
         contexts: [{{name: c, context: {{cluster: c, user: c}}}}], users: [{{name: c, user: {{}}}}]}}"
    )
}

/// A server on a free port that answers everything with these bytes, until the test ends.
fn answering(bytes: &'static [u8]) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(bytes);
        }
    });
    Ok(address)
}

#[test]
fn a_url_with_the_wrong_scheme_is_named() -> Result<()> {
    // As Go's server answers a request without TLS, and as any server without TLS answers a handshake.
    let with_tls =
        answering(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")?;
    let without_tls = answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    for (server, named) in [
        (
            format!("http://{with_tls}"),
            "answered 400 (the server expects TLS: in the kubeconfig, begin its URL with https://)"
                .to_owned(),
        ),
        (
            format!("https://{without_tls}"),
            format!("cannot reach the API server https://{without_tls}: it does not answer in TLS"),
        ),
    ] {
        std::fs::write(&kubeconfig, kubeconfig_of(&server))?;
        for arguments in [&["audit"][..], &["persist", "things"], &["explain", "things", "a"]] {
            let ended = etch(&[&["--kubeconfig", text(&kubeconfig)], arguments].concat())?;
            assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.err);
            assert!(ended.err.contains(&named), "{arguments:?}: {}", ended.err);
        }
    }
    Ok(())
}

#[test]
fn a_kubeconfig_that_cannot_be_parsed_is_named() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [good, broken] = ["good", "broken"].map(|name| folder.path().join(name));
    std::fs::write(&good, "apiVersion: v1\nkind: Config\n")?;
    std::fs::write(&broken, "token: [secret\n")?;
    let files = std::env::join_paths([&good, &broken])?;
    for arguments in [&["audit"][..], &["--context", "c", "audit"]] {
        let mut command = Command::new(binary()?);
        command.args(arguments).env("KUBECONFIG", &files);
        let ended = finish(command, b"")?;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let named = format!("cannot use the kubeconfig {}: line ", broken.display());
        assert!(ended.err.contains(&named) && !ended.err.contains("secret"), "{}", ended.err);
    }
    Ok(())
}

#[test]
fn files_of_kubeconfig_that_do_not_exist_are_passed_over() -> Result<()> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let folder = tempfile::tempdir()?;
    let [absent, present] = ["absent", "present"].map(|name| folder.path().join(name));
    std::fs::write(&present, kubeconfig_of(&format!("http://{address}")))?;
    let status = |files: &[&Path], context: &[&str]| -> Result<String> {
        let mut command = Command::new(binary()?);
        command.args(context).arg("status").env("KUBECONFIG", std::env::join_paths(files)?);
        Ok(finish(command, b"")?.err)
    };
    for context in [&[][..], &["--context", "c"]] {
        let reported = status(&[&absent, &present, &absent], context)?;
        assert!(reported.contains("cannot reach the API server"), "{reported}");
        let reported = status(&[&absent], context)?;
        assert!(reported.contains(&format!("cannot read {}: no such file", absent.display())), "{reported}");
    }
    Ok(())
}

#[test]
fn the_proxy_of_the_environment_is_used_but_for_the_servers_that_need_none() -> Result<()> {
    let gone = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, kubeconfig_of("https://api.etch.invalid:6443"))?;
    let reported = |arguments: &[&str], proxy: &str, excluded: &str| -> Result<String> {
        let mut command = Command::new(binary()?);
        command.args(arguments).env("KUBECONFIG", &kubeconfig);
        command.env("HTTPS_PROXY", proxy).env("NO_PROXY", excluded);
        let ended = finish(command, b"")?;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        Ok(ended.err)
    };
    let through = format!("connection refused (through the proxy http://{gone} of HTTPS_PROXY)");
    let etcd = ["audit", "--etcd-endpoints", "https://etcd.etch.invalid"];
    for arguments in [&["status"][..], &etcd] {
        let proxy = format!("http://user:hunter2@{gone}");
        let err = reported(arguments, &proxy, "example.com")?;
        assert!(err.contains(&through) && !err.contains("hunter2"), "{err}");
        let err = reported(arguments, &proxy, "example.com,.etch.invalid")?;
        assert!(err.contains("etch.invalid") && !err.contains("proxy"), "{err}");
        let err = reported(arguments, "ftp://hunter2", "")?;
        assert!(err.contains("HTTPS_PROXY is not the URL of") && !err.contains("hunter2"), "{err}");
    }
    Ok(())
}

#[test]
fn a_credential_plugin_runs_once() -> Result<()> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let folder = tempfile::tempdir()?;
    let [kubeconfig, runs] = ["kubeconfig", "runs"].map(|name| folder.path().join(name));
    for expiry in ["", r#""expirationTimestamp": "2999-01-01T00:00:00Z", "#] {
        std::fs::write(&runs, "")?;
        let version = "client.authentication.k8s.io/v1";
        let credential = format!(
            r#"{{"apiVersion": "{version}", "kind": "ExecCredential", "status": {{{expiry}"token": "t"}}}}"#
        );
        let script = format!("echo run >> '{}'; echo '{credential}'", runs.display());
        let exec = json!({
            "apiVersion": version, "command": "sh", "args": ["-c", script], "interactiveMode": "Never",
        });
        let with_plugin = kubeconfig_of(&format!("http://{address}"))
            .replace("user: {}", &format!("user: {{exec: {exec}}}"));
        std::fs::write(&kubeconfig, with_plugin)?;
        for arguments in [&["status"][..], &["audit"]] {
            let ended = etch(&[&["--kubeconfig", text(&kubeconfig)], arguments].concat())?;
            assert!(ended.err.contains("connection refused"), "{}", ended.err);
        }
        assert_eq!(std::fs::read_to_string(&runs)?, "run\nrun\n");
    }
    Ok(())
}

#[test]
fn an_operator_that_cannot_begin_says_so_in_the_form_that_its_log_has() -> Result<()> {
    let mut command = Command::new(binary()?);
    command.args(["run", "--log-format=json"]);
    let ended = run(command, b"")?;
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    let lines = logs::parse(&ended.err)?;
    let last = lines.last().context("a line")?;
    assert_eq!((&last["level"], &last["fields"]["message"]), (&"ERROR".into(), &"etch failed".into()));
    assert!(last["fields"]["error"].as_str().unwrap_or_default().starts_with("no cluster"), "{last}");
    Ok(())
}
