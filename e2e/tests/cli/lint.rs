//! `etch lint` over real CRDs, in each of its forms.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process::{etch, etch_with, file, text};

fn findings(arguments: &[&str]) -> Result<Vec<Value>> {
    let arguments: Vec<&str> = ["lint", "-o", "json"].iter().chain(arguments).copied().collect();
    let ended = etch(&arguments)?;
    ensure!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    ended.json()?["findings"].as_array().cloned().context("findings")
}

/// What is found in a file of the corpus, from a severity on, as code, version and path.
fn found(name: &str, severity: &str) -> Result<Vec<String>> {
    let path = file("corpus").join(name);
    let found = findings(&["--severity", severity, text(&path)])?;
    let field = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    Ok(found
        .iter()
        .map(|finding| [field(finding, "code"), field(finding, "version"), field(finding, "path")].join(" "))
        .collect())
}

/// A rule, real CRDs with all that it finds in them, and one in which it finds nothing though what it is
/// about is there.
///
/// Servers refuse what ETCH002, ETCH003, ETCH011 and ETCH017 find: no published CRD was found that shows
/// these, nor ETCH004, ETCH013, ETCH016, ETCH018 or ETCH019. They are planted in the rules' own tests.
struct Shown {
    code: &'static str,
    by: &'static [(&'static str, &'static [&'static str])],
    /// And what is there.
    not_by: (&'static str, &'static str),
}

const SHOWN: [Shown; 22] = [
    Shown {
        code: "ETCH001",
        by: &[(
            "single/argoproj-argo-workflows__workflowtasksets.argoproj.io.yaml",
            &["v1alpha1 .spec.tasks{}.dag.tasks[].inline", "v1alpha1 .spec.tasks{}.steps[][]"],
        )],
        not_by: ("pairs/kubernetes-sigs-kueue__clusterqueues.kueue.x-k8s.io__1/new.yaml", "anyOf"),
    },
    Shown {
        code: "ETCH002",
        by: &[],
        not_by: ("pairs/kubernetes-sigs-karpenter__nodepools.karpenter.sh__4/new.yaml", "pattern"),
    },
    Shown {
        code: "ETCH003",
        by: &[],
        not_by: (
            "pairs/kubernetes-sigs-karpenter__nodepools.karpenter.sh__1/new.yaml",
            "consolidationPolicy",
        ),
    },
    Shown {
        code: "ETCH004",
        by: &[],
        not_by: (
            "pairs/envoyproxy-gateway__envoyproxies.config.gateway.envoyproxy.io__1/new.yaml",
            "additionalProperties",
        ),
    },
    Shown {
        code: "ETCH005",
        by: &[(
            "pairs/kubernetes-sigs-kueue__clusterqueues.kueue.x-k8s.io__1/new.yaml",
            &["v1beta1 .spec.fairSharing.weight"],
        )],
        not_by: ("pairs/kubernetes-sigs-karpenter__nodepools.karpenter.sh__2/new.yaml", "default"),
    },
    Shown {
        code: "ETCH006",
        by: &[(
            "pairs/aws-karpenter-provider-aws__ec2nodeclasses.karpenter.k8s.aws__1/new.yaml",
            &["v1beta1 .spec.metadataOptions.httpPutResponseHopLimit"],
        )],
        not_by: (
            "pairs/open-policy-agent-gatekeeper__constrainttemplates.templates.gatekeeper.sh__2/new.yaml",
            "legacySchema: true",
        ),
    },
    Shown {
        code: "ETCH007",
        by: &[(
            "pairs/kubernetes-sigs-karpenter__nodepools.karpenter.sh__2/new.yaml",
            &["v1beta1 .spec.disruption.budgets[].nodes"],
        )],
        not_by: ("pairs/kubernetes-sigs-kueue__clusterqueues.kueue.x-k8s.io__2/new.yaml", "required"),
    },
    Shown {
        code: "ETCH008",
        by: &[(
            "pairs/VictoriaMetrics-operator__vmrules.operator.victoriametrics.com__1/new.yaml",
            &["v1beta1 .spec.groups[].rules[].alert", "v1beta1 .spec.groups[].rules[].record"],
        )],
        not_by: ("pairs/cloudnative-pg__clusters.postgresql.cnpg.io__3/new.yaml", "default: TCP"),
    },
    Shown {
        code: "ETCH009",
        by: &[(
            "pairs/aws-karpenter-provider-aws__ec2nodeclasses.karpenter.k8s.aws__1/new.yaml",
            &["v1beta1 .spec.metadataOptions.httpPutResponseHopLimit"],
        )],
        not_by: ("pairs/kubernetes-sigs-kueue__clusterqueues.kueue.x-k8s.io__2/new.yaml", "name: v1beta2"),
    },
    Shown {
        code: "ETCH010",
        by: &[(
            "single/openshift-api__infrastructures.config.openshift.io.yaml",
            &["v1 .status.platformStatus.gcp.cloudLoadBalancerConfig"],
        )],
        not_by: ("single/vmware-tanzu-velero__backupstoragelocations.velero.io.yaml", "nullable: true"),
    },
    Shown {
        code: "ETCH011",
        by: &[],
        not_by: ("pairs/projectcalico-calico__tiers.crd.projectcalico.org__1/new.yaml", "default: Deny"),
    },
    Shown {
        code: "ETCH012",
        by: &[(
            "single/zalando-postgres-operator__operatorconfigurations.acid.zalan.do.yaml",
            &[
                "v1 .configuration.connection_pooler.connection_pooler_image",
                "v1 .configuration.docker_image",
                "v1 .configuration.logical_backup.logical_backup_docker_image",
            ],
        )],
        not_by: (
            "pairs/stacklok-toolhive__virtualmcpservers.toolhive.stacklok.dev__1/new.yaml",
            "default: \"0.05\"",
        ),
    },
    Shown {
        code: "ETCH013",
        by: &[],
        not_by: ("pairs/kubernetes-sigs-kueue__clusterqueues.kueue.x-k8s.io__2/new.yaml", "rule: "),
    },
    Shown {
        code: "ETCH014",
        // The state may leave its default, `Inactive`.
        by: &[(
            "single/crossplane__managedresourcedefinitions.apiextensions.crossplane.io.yaml",
            &["v1alpha1 .spec.scope"],
        )],
        not_by: ("pairs/crossplane__compositions.apiextensions.crossplane.io__2/new.yaml", "oldSelf"),
    },
    Shown {
        code: "ETCH015",
        // Servers took it before schemas had to be structural.
        by: &[(
            "single/argoproj-argo-workflows__workflowtasksets.argoproj.io.yaml",
            &[
                "spec.validation.openAPIV3Schema.properties[spec].properties[tasks].additionalProperties.properties[dag].properties[tasks].items.properties[inline].type",
                "spec.validation.openAPIV3Schema.properties[spec].properties[tasks].additionalProperties.properties[steps].items.items",
            ],
        )],
        not_by: (
            "pairs/kubernetes-sigs-karpenter__nodepools.karpenter.sh__4/new.yaml",
            "x-kubernetes-validations",
        ),
    },
    Shown {
        code: "ETCH016",
        by: &[],
        not_by: ("pairs/kubernetes-sigs-kueue__clusterqueues.kueue.x-k8s.io__1/new.yaml", "default: "),
    },
    Shown {
        code: "ETCH017",
        by: &[],
        not_by: (
            "pairs/cloudnative-pg__clusters.postgresql.cnpg.io__3/new.yaml",
            "x-kubernetes-list-map-keys",
        ),
    },
    Shown {
        code: "ETCH018",
        by: &[],
        not_by: ("pairs/cloudnative-pg__clusters.postgresql.cnpg.io__3/new.yaml", "items:"),
    },
    Shown {
        code: "ETCH019",
        by: &[],
        not_by: ("single/vmware-tanzu-velero__backupstoragelocations.velero.io.yaml", "nullable: true"),
    },
    Shown {
        code: "ETCH020",
        by: &[(
            "pairs/cloudnative-pg__clusters.postgresql.cnpg.io__3/new.yaml",
            &["v1 .spec.tablespaces[].storage"],
        )],
        not_by: ("pairs/kubernetes-sigs-karpenter__nodepools.karpenter.sh__2/new.yaml", "required"),
    },
    Shown {
        code: "ETCH021",
        // Only a cluster publishes anything.
        by: &[],
        not_by: ("pairs/kubernetes-sigs-karpenter__nodepools.karpenter.sh__2/new.yaml", "default: "),
    },
    Shown {
        code: "ETCH022",
        by: &[
            (
                "single/openshift-api__infrastructures.config.openshift.io.yaml",
                &[
                    "v1 .spec.platformSpec.vsphere.failureDomains[].server",
                    "v1 .status.platformStatus.gcp.cloudLoadBalancerConfig",
                ],
            ),
            (
                "pairs/projectcalico-calico__tiers.crd.projectcalico.org__1/new.yaml",
                &["v1 .spec.defaultAction"],
            ),
        ],
        not_by: ("pairs/cert-manager__certificates.cert-manager.io__1/new.yaml", "enum"),
    },
];

#[test]
fn each_rule_is_shown_by_a_real_crd_and_not_by_another() -> Result<()> {
    for (index, Shown { code, by, not_by: (clean, ingredient) }) in SHOWN.iter().enumerate() {
        ensure!(*code == format!("ETCH{:03}", index + 1));
        let of_rule = |name: &str| {
            let found = found(name, "info")?;
            let own = found.iter().filter_map(|text| text.strip_prefix(*code));
            anyhow::Ok(own.map(|place| place.trim_start().to_owned()).collect::<Vec<_>>())
        };
        for (name, expected) in *by {
            let found = of_rule(name)?;
            ensure!(found == *expected, "{code} {name}: {found:#?}");
        }
        let found = of_rule(clean)?;
        ensure!(found.is_empty(), "{code} {clean}: {found:#?}");
        let text = fs::read_to_string(file("corpus").join(clean))?;
        ensure!(text.contains(ingredient), "{clean} lacks {ingredient}");
    }
    Ok(())
}

/// Every finding in these files was looked at. What is not listed must not be found.
#[test]
fn real_crds_show_the_rules() -> Result<()> {
    let cases: [(&str, &str, &[&str]); 7] = [
        (
            "kubernetes-sigs-kueue__workloads.kueue.x-k8s.io__2/new.yaml",
            "warning",
            &[
                // Of 300 kB.
                "ETCH403  metadata.annotations",
                "ETCH008 v1beta1 .spec.podSets[].name",
                "ETCH014 v1beta1 .spec.priorityClassSource",
                "ETCH008 v1beta1 .status.admission.podSetAssignments[].name",
            ],
        ),
        (
            "aws-karpenter-provider-aws__ec2nodeclasses.karpenter.k8s.aws__1/new.yaml",
            "warning",
            &[
                "ETCH006 v1beta1 .spec.metadataOptions.httpPutResponseHopLimit",
                "ETCH009 v1beta1 .spec.metadataOptions.httpPutResponseHopLimit",
            ],
        ),
        ("cert-manager__certificates.cert-manager.io__1/new.yaml", "info", &[]),
        ("cert-manager__certificates.cert-manager.io__2/new.yaml", "info", &[]),
        ("cert-manager__certificates.cert-manager.io__1/old.yaml", "info", &[]),
        (
            "VictoriaMetrics-operator__vmrules.operator.victoriametrics.com__1/new.yaml",
            "info",
            &[
                "ETCH008 v1beta1 .spec.groups[].rules[].alert",
                "ETCH008 v1beta1 .spec.groups[].rules[].record",
            ],
        ),
        ("VictoriaMetrics-operator__vmrules.operator.victoriametrics.com__1/old.yaml", "info", &[]),
    ];
    for (name, severity, expected) in cases {
        let found = found(&format!("pairs/{name}"), severity)?;
        ensure!(found == expected, "{name}: {found:#?}");
    }
    Ok(())
}

/// A server took every CRD of the corpus.
#[test]
fn published_crds_have_no_errors() -> Result<()> {
    let found = findings(&["--severity", "error", text(&file("corpus/pairs"))])?;
    ensure!(found.is_empty(), "{found:#?}");
    let all = findings(&[text(&file("corpus/pairs"))])?;
    let codes: std::collections::BTreeSet<_> =
        all.iter().filter_map(|finding| finding["code"].as_str()).collect();
    let seen =
        ["ETCH005", "ETCH006", "ETCH007", "ETCH008", "ETCH009", "ETCH014", "ETCH020", "ETCH022", "ETCH403"];
    ensure!(codes.iter().copied().eq(seen), "{codes:?}");
    Ok(())
}

pub(crate) const CRD: &str = "\
kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  names: {kind: CronTab, plural: crontabs}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [replicas]
            properties:
              replicas: {type: integer, default: one}
              image: {type: string, default: \"nginx:1.29\"}
";

#[test]
fn every_form_says_the_same() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a crd.yaml");
    fs::write(&path, CRD)?;
    let shown = |output: &str| etch(&["lint", "-o", output, text(&path)]);
    let table = shown("table")?;
    ensure!(table.code == Some(1), "{table:?}");
    ensure!(
        table.out.contains("1 CRD: 2 errors, 1 warning; 1 info not shown (--severity info)"),
        "{table:?}"
    );
    let json = shown("json")?.json()?;
    let codes: Vec<_> =
        json["findings"].as_array().into_iter().flatten().map(|finding| &finding["code"]).collect();
    ensure!(codes == ["ETCH012", "ETCH002", "ETCH007", "ETCH015"], "{codes:?}");
    let expected = serde_json::json!({
        "code": "ETCH012", "rule": "version-or-image-default", "severity": "warning",
        "crd": "crontabs.stable.example.com", "version": "v1", "path": ".spec.image",
        "message": "the default is an image with a tag; to have stored values follow it, add to onChange: \
                    - {path: '.spec.image', action: Follow}", "file": text(&path), "document": 1,
    });
    ensure!(json["findings"][0] == expected, "{json:#}");
    let yaml: Value = serde_yaml_ng::from_str(&shown("yaml")?.out)?;
    ensure!(yaml == json, "{yaml}");
    let sarif = shown("sarif")?.json()?;
    let result = &sarif["runs"][0]["results"][1];
    ensure!(
        sarif["version"] == "2.1.0" && result["ruleId"] == "ETCH002" && result["level"] == "error",
        "{result}"
    );
    let uri =
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap_or_default();
    ensure!(uri.ends_with("/a%20crd.yaml"), "{uri}");
    let line = &result["locations"][0]["physicalLocation"]["region"]["startLine"];
    ensure!(*line == 20, "{line}");
    let github = shown("github")?.out;
    ensure!(github.lines().count() == 4 && github.starts_with("::warning file="), "{github}");
    ensure!(github.contains("a crd.yaml,line=21,title=ETCH012 "), "{github}");
    Ok(())
}

#[test]
fn what_the_server_refuses_has_its_words_and_its_line() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (old, new) = (folder.path().join("old.yaml"), folder.path().join("new.yaml"));
    fs::write(&old, CRD.replace("default: one", "default: 1"))?;
    let changed = CRD.replace("default: one", "default: 1").replace("scope: Namespaced", "scope: namespaced");
    fs::write(&new, changed.replace("name: v1", "name: v2"))?;
    let path = folder.path().join("one.yaml");
    fs::write(&path, CRD)?;
    let json = etch(&["lint", "-o", "json", "--kubernetes", "1.37", text(&path)])?.json()?;
    let refused = &json["findings"][3];
    ensure!(
        refused["path"] == "spec.validation.openAPIV3Schema.properties[spec].properties[replicas].default"
            && refused["type"] == "FieldValueTypeInvalid"
            && refused["detail"] == " in body must be of type integer: \"string\"",
        "{refused}"
    );
    let found = |arguments: &[&str]| -> Result<Vec<String>> {
        let all = findings(arguments)?;
        let refused = all.iter().filter(|finding| finding["code"] == "ETCH015");
        Ok(refused.map(|finding| finding["path"].as_str().unwrap_or_default().to_owned()).collect())
    };
    ensure!(found(&[text(&new)])? == ["spec.scope"], "{:?}", found(&[text(&new)])?);
    let update = found(&["--old", text(&old), text(&new)])?;
    ensure!(update == ["spec.scope", "spec.scope", "status.storedVersions[0]"], "{update:?}");
    let github = etch(&["lint", "-o", "github", "--old", text(&old), text(&new)])?;
    ensure!(
        github.code == Some(1) && github.out.contains("new.yaml,line=7,title=ETCH015 refused::"),
        "{github:?}"
    );
    let unknown = etch(&["lint", "--kubernetes", "1.20", text(&new)])?;
    ensure!(
        unknown.code == Some(2)
            && unknown.err.contains("the supported releases of Kubernetes are 1.34, 1.35, 1.36, 1.37"),
        "{unknown:?}"
    );
    Ok(())
}

/// A CRD that no supported API server takes is one all the same, before the upgrade and after it.
#[test]
fn a_crd_of_another_api_version_is_a_failure() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let write = |name: &str, text: &str| -> Result<String> {
        fs::write(folder.path().join(name), text)?;
        Ok(folder.path().join(name).display().to_string())
    };
    let good = CRD.replace("default: one", "default: 1");
    let new = write("new.yaml", &good)?;
    const CURRENT: &str = "apiVersion: apiextensions.k8s.io/v1\n";
    for (name, version, says) in [
        ("none.yaml", "", "is a CustomResourceDefinition without apiVersion; write apiextensions.k8s.io/v1"),
        (
            "typo.yaml",
            "apiVersion: apiextension.k8s.io/v1\n",
            "of apiextension.k8s.io/v1; write apiextensions.k8s.io/v1",
        ),
        (
            "beta.yaml",
            "apiVersion: apiextensions.k8s.io/v1beta1\n",
            "v1beta1; convert it to apiextensions.k8s.io/v1",
        ),
    ] {
        ensure!(good.contains(CURRENT));
        let wrong = write(name, &good.replace(CURRENT, version))?;
        for line in [
            &["lint", wrong.as_str()][..],
            &["lint", &new, &wrong],
            &["lint", "--old", &wrong, &new],
            &["impact", "--old", &new, "-f", &wrong],
            &["impact", "--old", &wrong, "-f", &new],
        ] {
            let ended = etch(line)?;
            ensure!(ended.code == Some(2) && ended.err.contains(says), "{line:?}: {ended:?}");
        }
    }
    let malformed = write("malformed.yaml", &good.replace("{type: integer", "{type: 5"))?;
    let ended = etch(&["lint", "--old", &malformed, &new])?;
    let says = "--old: ";
    ensure!(
        ended.code == Some(2) && ended.err.contains(says) && ended.err.contains("malformed.yaml"),
        "{ended:?}"
    );
    ensure!(ended.out.is_empty(), "{ended:?}");
    Ok(())
}

#[test]
fn severities_and_exceptions_decide_the_exit_status() -> Result<()> {
    let lint = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["lint", "-"].iter().chain(arguments).copied().collect();
        etch_with(&arguments, CRD.as_bytes())
    };
    let allowed = ["--allow", "ETCH002", "--allow", "version-or-image-default", "--allow", "refused"];
    ensure!(lint(&allowed)?.code == Some(0));
    ensure!(lint(&["--allow", "etch002"])?.code == Some(1));
    let errors = lint(&["--severity", "error"])?;
    ensure!(errors.code == Some(1) && !errors.out.contains("ETCH012"), "{errors:?}");
    let infos = lint(&["--severity", "info"])?;
    ensure!(infos.out.contains("ETCH007"), "{infos:?}");
    let wrong = lint(&["--allow", "ETCH999"])?;
    ensure!(wrong.code == Some(2) && wrong.err.contains("no rule is called ETCH999"), "{wrong:?}");
    Ok(())
}

#[test]
fn rules_explain_themselves() -> Result<()> {
    let explained = etch(&["lint", "--explain", "nullable-default"])?;
    ensure!(explained.code == Some(0) && explained.out.starts_with("ETCH010 nullable-default (warning): "));
    let all = etch(&["lint", "--explain", "all"])?.out;
    ensure!(all.lines().count() == 79, "{all}");
    let documented = fs::read_to_string(file("../docs/lint.md"))?;
    for line in all.lines().skip(1) {
        let cells: Vec<&str> = line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        ensure!(documented.contains(&format!("| {} |", cells.join(" | "))), "docs/lint.md lacks {cells:?}");
    }
    ensure!(etch(&["lint", "--explain", "ETCH000"])?.code == Some(2));
    Ok(())
}

/// The shipped EmbeddedSchemas have nothing that a rule finds, and a mistake in one is found at its line.
#[test]
fn embedded_schemas_are_checked_against_the_crds_of_their_targets() -> Result<()> {
    let root = e2e::install::root();
    let schemas = root.join("yaml/machine-api");
    let crds = ["machines", "machinesets"].map(|name| root.join(format!("e2e/admission/crds/{name}.yaml")));
    let [machines, sets] = [text(&crds[0]), text(&crds[1])];
    let clean = etch(&["lint", "-o", "json", text(&schemas), machines, sets])?;
    ensure!(clean.code == Some(0), "{clean:?}");
    let mut found = clean.json()?["findings"].as_array().context("findings")?.clone();
    // The CRDs keep unknown fields where the extensions are.
    found.retain(|finding| finding["code"] != "ETCH022");
    // Rules that compare each label of a Machine with each other one.
    ensure!(!found.is_empty() && found.iter().all(|finding| finding["code"] == "ETCH208"), "{found:#?}");

    let folder = tempfile::tempdir()?;
    let broken = folder.path().join("aws.yaml");
    let shipped = fs::read_to_string(schemas.join("aws.yaml"))?;
    let planted = shipped.replacen(".spec.providerSpec.value", ".spec.providerSpecs.value", 1);
    ensure!(planted != shipped);
    fs::write(&broken, &planted)?;
    let found = findings(&["--severity", "warning", text(&broken), machines, sets])?;
    ensure!(found.len() == 1, "{found:#?}");
    assert_eq!((&found[0]["code"], &found[0]["path"]), (&"ETCH203".into(), &"spec.targets[0].path".into()));
    assert_eq!(found[0]["crd"], "EmbeddedSchema machine-api-aws");
    let sarif =
        etch(&["lint", "--severity", "warning", "-o", "sarif", text(&broken), machines, sets])?.json()?;
    let line =
        sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64();
    let line = usize::try_from(line.context("a line")?)?;
    let at = planted.lines().nth(line - 1).context("a line of the file")?;
    ensure!(at.contains("providerSpecs"), "{at}");
    Ok(())
}
