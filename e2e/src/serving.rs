//! Where an operator serves admission reviews for API servers on the same machine: its address, and its
//! certificate in a folder.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use rcgen::{CertifiedKey, generate_simple_self_signed};

use crate::cluster::documents;
use crate::install::root;
use crate::ports::free_port;
use crate::scene::{Scene, apply};

/// An address that no other process has, and a certificate for it.
pub struct Serving {
    /// The folder with the certificate, as a Secret is mounted.
    pub certificates: PathBuf,
    /// Where the operator listens.
    pub address: SocketAddr,
}

impl Serving {
    /// Grants the operator what `config/admission` does, and makes a certificate in a folder beside its log.
    ///
    /// # Errors
    /// A file cannot be written, or the API server refuses a role.
    pub async fn prepare(scene: &Scene) -> Result<Self> {
        for file in ["role.yaml", "role-binding.yaml"] {
            for object in documents(&root().join("config/admission").join(file))? {
                apply(&scene.cluster, &object).await?;
            }
        }
        let certificates = scene.log_path().with_file_name("certificates");
        fs::create_dir_all(&certificates)?;
        let serving = Self { certificates, address: SocketAddr::from(([127, 0, 0, 1], free_port()?)) };
        serving.certify()?;
        Ok(serving)
    }

    /// Writes a new certificate, which is its own authority.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn certify(&self) -> Result<()> {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec![self.address.ip().to_string()])?;
        let write = |name: &str, text: String| fs::write(self.certificates.join(name), text);
        write("tls.key", signing_key.serialize_pem())?;
        write("tls.crt", cert.pem())?;
        write("ca.crt", cert.pem())?;
        Ok(())
    }

    /// Where API servers reach the operator.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The flags with which the operator serves here.
    pub fn flags(&self) -> [String; 2] {
        [format!("--admission-listen={}", self.address), format!("--admission-url={}", self.url())]
    }

    /// The flag for the certificates in the folder.
    pub fn mounted(&self) -> String {
        format!("--admission-certificates={}", self.certificates.display())
    }
}
