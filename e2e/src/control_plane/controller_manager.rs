//! The controller manager with a few of its controllers, as a client of one API server.
//!
//! It has the rights that a cluster gives it and no more: each controller acts as its own service account. It
//! takes part in no leader election, since there is only one.

use std::{path::Path, process::Command};

use anyhow::Result;
use kube::Client;

use super::{component::Component, kubeconfig, pki::Pki};

/// What the controller manager is started with.
pub(super) struct ControllerManager<'a> {
    pub(super) program: &'a Path,
    /// Holds its kubeconfig and its log.
    pub(super) dir: &'a Path,
    pub(super) pki: &'a Pki,
    /// The API server's URL.
    pub(super) server: &'a str,
    /// The names of the controllers that run; no others do.
    pub(super) controllers: &'a [String],
    /// Where it serves its health, on loopback.
    pub(super) port: u16,
}

impl ControllerManager<'_> {
    /// Starts it and waits until it answers; its controllers begin a moment later.
    pub(super) async fn start(&self) -> Result<Component> {
        let Self { dir, pki, server, port, .. } = self;
        let kubeconfig = dir.join("controller-manager.kubeconfig");
        let user = kubeconfig::certificate_user(&pki.controller_manager)?;
        kubeconfig::write(&kubeconfig, server, &pki.ca, &user)?;
        let mut config = kubeconfig::read(&kubeconfig).await?;
        config.default_retry = false;
        config.cluster_url = format!("https://127.0.0.1:{port}").parse()?;
        let client = Client::try_from(config)?;
        let name = "kube-controller-manager".to_owned();
        Component::start(name, dir, &self.command(&kubeconfig), || is_well(client.clone())).await
    }

    fn command(&self, kubeconfig: &Path) -> Command {
        let Self { program, pki, controllers, port, .. } = self;
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(kubeconfig);
        command.arg("--tls-cert-file").arg(&pki.serving.certificate);
        command.arg("--tls-private-key-file").arg(&pki.serving.key);
        command.args([
            "--bind-address=127.0.0.1",
            &format!("--secure-port={port}"),
            &format!("--controllers={}", controllers.join(",")),
            "--leader-elect=false",
            "--use-service-account-credentials=true",
        ]);
        command
    }
}

/// Whether its health check succeeds.
async fn is_well(client: Client) -> bool {
    let Ok(healthz) = http::Request::get("/healthz").body(Vec::new()) else { return false };
    client.request_text(healthz).await.is_ok()
}
