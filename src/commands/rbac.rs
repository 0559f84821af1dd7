//! `etch rbac`: the permissions that Etch needs for the objects of CRDs, and for what EmbeddedSchemas name.

mod read;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use etch::cluster::Target;
use etch_answers::rbac::{Asked, Granted, SERVICE_ACCOUNT, granted};
use etch_core::rbac::Account;

use self::read::{Named, from_files, live, read_policy};
use super::one_stdin;
use crate::commands::emit::{emit_object, emit_objects, ended};
use crate::commands::global::Format;
use crate::commands::outcome::Outcome;
use crate::commands::streams::note;

/// Print the roles that Etch needs for CRDs and EmbeddedSchemas
///
/// The rules allow exactly what Etch needs: get, list, watch and patch on the custom resources of CRDs. For
/// EmbeddedSchemas they allow list on the targets, also get and patch with `existing: Persist`, and list and
/// watch of the objects that facts read, in their namespaces. Grant access to references yourself. A label
/// adds the rules to the ClusterRole etch-custom-resources, which the installation binds to Etch. For the
/// CRDs of a cluster, the mode of the policy that governs each one counts: Audit needs no patch, Ignore
/// nothing. For a policy whose objects.namespaces are names without *, the command prints a Role and a
/// RoleBinding in each of these namespaces instead.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch rbac | kubectl apply -f -
  etch rbac crds/ --name etch-ours
  etch rbac provider.yaml --name etch-provider | kubectl apply -f -
  etch rbac --policy certificates
  etch rbac --policy team-a --service-account team-a:etch
  helm template cert-manager | etch rbac -")]
pub(crate) struct Rbac {
    /// Files or folders with CRDs or EmbeddedSchemas, or - for standard input [default: those of the cluster]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Use the CRDs and EmbeddedSchemas of the cluster, as without files
    #[arg(long, conflicts_with = "files")]
    live: bool,
    /// Use only the CRDs that this DefaultsPolicy selects, and no EmbeddedSchema: a file, or the name of a
    /// policy in the cluster, without the CRDs that another one governs
    #[arg(long, value_name = "FILE|NAME")]
    policy: Option<String>,
    /// Omit the permission to write, which reports do not need
    #[arg(long)]
    read_only: bool,
    /// Print a ClusterRole for all namespaces even if the policy names the namespaces
    #[arg(long, requires = "policy")]
    cluster_wide: bool,
    /// The service account in RoleBindings
    #[arg(long, value_name = "NAMESPACE:NAME", default_value = SERVICE_ACCOUNT)]
    service_account: Account,
    /// The name of the roles [default: etch-crds, or a name for the policy or the files, so that no grant
    /// replaces another]
    #[arg(long)]
    name: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Rbac {
    pub(crate) async fn run(self, target: &Target, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        one_stdin(&self.files)?;
        let is_live = self.files.is_empty();
        let mut needed = if is_live { live(target).await? } else { from_files(&self.files)? };
        let mut policy = None;
        if let Some(typed) = &self.policy {
            let Named { name, spec, policies } = read_policy(typed, target).await?;
            policy = Some((name, spec));
            needed.policies = policies;
        }
        let asked = Asked {
            policy,
            read_only: self.read_only,
            cluster_wide: self.cluster_wide,
            account: self.service_account,
            name: self.name,
            is_live,
        };
        let Granted { roles, note: beside, is_clean } = granted(&needed, &asked)?;
        beside.iter().try_for_each(|beside| note(beside))?;
        match &roles[..] {
            [] => {}
            [role] => emit_object(out, self.output, role)?,
            roles => emit_objects(out, self.output, roles)?,
        }
        ended(Vec::new(), is_clean)
    }
}
