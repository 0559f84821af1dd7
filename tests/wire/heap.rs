//! The operator's process takes one heap for all threads, unless its environment sets another number. A real
//! process, so a real clock: what must happen is waited for.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

const GUARD: Duration = Duration::from_secs(60);
const HEAPS: &str = "MALLOC_ARENA_MAX";

/// What stands in the environment of an operator that has begun to talk to its API server.
async fn heaps_of(set: Option<&str>) -> Vec<String> {
    let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let dir = tempfile::tempdir().expect("a folder");
    let kubeconfig = dir.path().join("kubeconfig");
    let address = server.local_addr().expect("an address");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, \
         clusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}], \
         users: [{{name: u, user: {{}}}}], contexts: [{{name: c, context: {{cluster: c, user: u}}}}]}}"
    );
    fs::write(&kubeconfig, text).expect("a file");
    let mut etch = Command::new(env!("CARGO_BIN_EXE_etch"));
    etch.args(["run", "--listen=127.0.0.1:0"]).env_remove(HEAPS).env("KUBECONFIG", &kubeconfig);
    etch.envs(set.map(|heaps| (HEAPS, heaps)));
    etch.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let etch = etch.spawn().expect("etch starts");
    drop(timeout(GUARD, server.accept()).await.expect("in time").expect("a connection"));
    let environment = fs::read(format!("/proc/{}/environ", etch.id().expect("it runs"))).expect("Linux");
    let variables = String::from_utf8_lossy(&environment);
    variables.split('\0').filter(|variable| variable.starts_with(HEAPS)).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_operator_shares_one_heap() {
    let expected: &[&str] = if cfg!(target_env = "gnu") { &["MALLOC_ARENA_MAX=1"] } else { &[] };
    assert_eq!(heaps_of(None).await, expected);
    assert_eq!(heaps_of(Some("3")).await, ["MALLOC_ARENA_MAX=3"]);
}
