//! How each example is tried; an example that is not here fails the test, and so does one that no page has.

/// How a command is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Manner {
    /// It is run, and ends with one of these.
    Ends(&'static [i32]),
    /// It is not run, for this reason.
    Left(&'static str),
}

use Manner::{Ends, Left};

/// It did what it was asked to.
const WELL: Manner = Ends(&[0]);
/// It looked, and may have found something.
const LOOKED: Manner = Ends(&[0, 1]);
const SERVED_ELSEWHERE: &str = "no replica serves admission here; e2e/tests/admission_server does";
const ROLLED_BACK: &str = "no operator has stored defaults here; e2e/tests/revert.rs rolls a CRD back";
const NO_NODE: Manner = Left("no node runs pods here");
const DOCKER: Manner = Left("there is no docker, nor a registry");

/// The commands of all pages, verbatim.
pub(crate) const COMMANDS: &[(&str, Manner)] = &[
    // README
    ("export IMAGE=registry.example.com/etch:dev", WELL),
    ("docker build --tag \"$IMAGE\" .", DOCKER),
    ("docker push \"$IMAGE\"", DOCKER),
    ("cargo install --locked --path .", Left("it builds Etch once more")),
    ("ln -s ~/.cargo/bin/etch ~/.cargo/bin/kubectl-etch", Left("it needs what cargo would have installed")),
    ("kubectl apply -f config/crd/crds.yaml", WELL),
    ("kubectl wait --for=condition=Established -f config/crd/crds.yaml", WELL),
    ("kubectl apply -f yaml/install.yaml", WELL),
    ("kubectl -n etch-system set image deployment/etch etch=\"$IMAGE\"", WELL),
    ("etch rbac | kubectl apply -f -", WELL),
    ("kubectl apply -f config/samples/grant.yaml", WELL),
    ("kubectl apply -f config/cluster-wide/role.yaml", WELL),
    (
        "kubectl get crd -o \
         custom-columns='CRD:.metadata.name,PERSISTED:.status.conditions[?(@.type==\"DefaultsPersisted\")].reason'",
        WELL,
    ),
    ("kubectl get defaultsreports", WELL),
    ("kubectl get defaultsreports -o wide", WELL),
    ("kubectl get defaultsreport widgets.example.com -o jsonpath='{.status.storedVersions}'", WELL),
    ("kubectl wait --for=condition=DefaultsPersisted crd/NAME", WELL),
    ("etch plan -f new.yaml --live", LOOKED),
    ("etch status", LOOKED),
    ("etch impact -f new.yaml --live", LOOKED),
    ("etch audit", LOOKED),
    ("etch audit CRD", Left("no conversion fails here; e2e/tests/cli has one that does")),
    ("etch audit --stored-versions", LOOKED),
    ("etch impact -o html", Left("e2e/tests/cli/impact_html.rs has its objects")),
    ("etch audit --stored-versions certificates.cert-manager.io --objects --etcd-snapshot backup.db", LOOKED),
    ("etch explain certificates my-cert", LOOKED),
    ("etch persist --dry-run", LOOKED),
    ("etch revert certificates", Left(ROLLED_BACK)),
    ("etch revert --yes", Left(ROLLED_BACK)),
    ("etch resume widgets", Left("no canary waits here; e2e/tests/canary.rs resumes one")),
    ("etch resume CRD", Left("no canary waits here; e2e/tests/canary.rs resumes one")),
    ("etch lint config/crd/", WELL),
    ("etch fill --crd crds.yaml object.yaml", WELL),
    // first hour
    ("kubectl apply -k config/audit-only", WELL),
    ("kubectl -n etch-system rollout status deployment/etch", NO_NODE),
    ("etch rbac --live --read-only | kubectl apply -f -", WELL),
    ("etch persist crontabs.stable.example.com --dry-run", LOOKED),
    ("kubectl apply -f config/samples/policy-first-group.yaml", WELL),
    ("etch rbac --policy first-group | kubectl apply -f -", WELL),
    ("kubectl wait --for=condition=DefaultsPersisted crd/crontabs.stable.example.com --timeout=90s", WELL),
    ("kubectl describe crd crontabs.stable.example.com", WELL),
    ("kubectl apply -f new.yaml", WELL),
    ("kubectl patch defaultspolicy default --type=merge -p '{\"spec\":{\"mode\":\"Persist\"}}'", WELL),
    // releasing
    (
        "cosign verify-blob --bundle SHA256SUMS.sigstore.json --certificate-identity-regexp \
         'https://github.com/acme/etch/' --certificate-oidc-issuer \
         https://token.actions.githubusercontent.com SHA256SUMS",
        Left("the workflow of a hosting service signs"),
    ),
    ("sha256sum --check --ignore-missing SHA256SUMS", Left("e2e/tests/release.rs checks the sums")),
    // upgrades
    ("etch plan -f new.yaml --old old.yaml", LOOKED),
    ("etch plan -f config/crd/ --old git:main -o markdown", Left("e2e/tests/cli/plan.rs has a repository")),
    ("helm template cert-manager | etch impact -f - --live", LOOKED),
    ("etch impact -f new.yaml --old old.yaml --objects backup/", LOOKED),
    ("etch impact -f new.yaml --old old.yaml --objects backup/ --policy policies.yaml", LOOKED),
    ("etch audit --policy policies.yaml", LOOKED),
    ("etch audit certificates.cert-manager.io --objects --etcd-snapshot backup.db", LOOKED),
    ("etch explain TYPE/NAME", LOOKED),
    ("etch persist certificates.cert-manager.io --max-writes-per-second 20", LOOKED),
    ("etch persist certificates.cert-manager.io --every-object", LOOKED),
    ("etch persist --every-object", Left("a part of a command; e2e/tests/stored_versions.rs runs the whole")),
    ("etch persist CRD --every-object", Left("e2e/tests/stored_versions.rs runs it")),
    ("etch revert certificates.cert-manager.io --to old.yaml", Left(ROLLED_BACK)),
    ("etch revert certificates.cert-manager.io --yes", Left(ROLLED_BACK)),
    ("kubectl get --raw /openapi/v3/apis/apps/v1", WELL),
    // published-defaults
    ("kubectl get --raw /openapi/v3/apis/apps/v1 > apps-v1.json", WELL),
    ("etch explain --openapi apps-v1.json deployment.spec.template", WELL),
    ("etch lint --openapi apps-v1.json", LOOKED),
    ("etch explain --live svc.spec.ports", WELL),
    ("etch lint --openapi --live", LOOKED),
    ("etch fill --live --show-defaults deployment.yaml", WELL),
    ("etch impact --openapi e2e/openapi/releases/v1.37.json", LOOKED),
    ("etch fill --openapi apps-v1.json --show-defaults deployment.yaml", WELL),
    (
        "etch impact --openapi e2e/openapi/releases/v1.36.json --openapi e2e/openapi/releases/v1.37.json",
        Ends(&[1]),
    ),
    // lint
    ("etch lint yaml/machine-api/ crds/", LOOKED),
    ("etch lint --live", LOOKED),
    ("etch lint --old old.yaml new.yaml", LOOKED),
    ("etch lint --old old.yaml new.yaml --kubernetes 1.36", LOOKED),
    ("etch lint --go ./api/... config/crd/", WELL),
    (
        "helm template CHART | etch lint -",
        Left(
            "it is `helm template` as docs/upgrades.md has it, and `etch lint -` as the tests of the command \
             line have it",
        ),
    ),
    ("etch lint --explain ETCH005", WELL),
    ("etch lint --explain CODE", WELL),
    // monitoring
    ("kubectl apply -k config/monitoring", WELL),
    ("docker build --build-arg FEATURES=otlp --tag \"$IMAGE\" .", DOCKER),
    (
        "kubectl -n etch-system set env deployment/etch OTEL_EXPORTER_OTLP_ENDPOINT=http://10.96.0.42:4318",
        WELL,
    ),
    // admission
    ("kubectl apply -k config/admission", Left("it needs cert-manager")),
    ("kubectl apply -k config/admission-service-ca", Left("it needs OpenShift's service-ca operator")),
    ("kubectl apply -k config/admission-self-managed", WELL),
    (
        "kubectl -n etch-system patch secret etch-admission-certificates --type=merge --patch \
         '{\"data\":{\"ca.key\":null}}'",
        Left(SERVED_ELSEWHERE),
    ),
    ("etch rbac provider.yaml | kubectl apply -f -", Left("there is no such file")),
    ("kubectl explain embeddedschema.spec", WELL),
    ("kubectl get embeddedschemas", Left(SERVED_ELSEWHERE)),
    (
        "kubectl annotate embeddedschema example-provider etch-operator.io/recheck=\"$(date)\" --overwrite",
        Left(SERVED_ELSEWHERE),
    ),
    (
        "kubectl patch embeddedschema example-provider --type=merge --patch \
         '{\"spec\":{\"existing\":\"Persist\"}}'",
        Left(SERVED_ELSEWHERE),
    ),
    ("kubectl apply -f provider.yaml", Left("the page shows what is in it, and that is applied")),
    ("kubectl wait --for=condition=Serving embeddedschema/example-provider", Left(SERVED_ELSEWHERE)),
    (
        "kubectl patch defaultspolicy default --type=merge --patch '{\"spec\":{\"guard\":\"Deny\"}}'",
        Left(SERVED_ELSEWHERE),
    ),
    (
        "kubectl patch embeddedschema example-provider --type=merge --patch \
         '{\"spec\":{\"enforcement\":\"Deny\"}}'",
        Left(SERVED_ELSEWHERE),
    ),
    (
        "etch admit --schema yaml/machine-api/aws.yaml --facts facts.json --secrets aws-cloud-credentials -o \
         json machine.yaml",
        WELL,
    ),
    // operations
    (
        "helm install etch config/chart --namespace etch-system --create-namespace --set \
         image.repository=registry.example.com/etch,image.tag=dev",
        WELL,
    ),
    (
        "helm install etch config/chart --namespace etch-system --create-namespace --set \
         image.repository=registry.example.com/etch,image.tag=dev,admission.enabled=true",
        WELL,
    ),
    ("kubectl label namespace etch-system pod-security.kubernetes.io/enforce=restricted", WELL),
    ("etch rbac --live | kubectl apply -f -", WELL),
    ("etch rbac crds/ | kubectl apply -f -", WELL),
    ("etch rbac --policy certificates | kubectl apply -f -", WELL),
    (
        "etch rbac --policy team-a --service-account team-a:etch | kubectl apply -f -",
        Left("there is no such namespace; e2e/tests/tenant.rs applies what is printed"),
    ),
    ("kubectl annotate widget NAME etch-operator.io/ignore=true", WELL),
    ("kubectl apply -f config/samples/pause.yaml", WELL),
    (
        "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration etch --ignore-not-found",
        WELL,
    ),
    ("kubectl delete -f config/samples/pause.yaml", WELL),
    ("kubectl patch defaultspolicy NAME --type=merge -p '{\"spec\":{\"paused\":true}}'", WELL),
    ("kubectl get defaultspolicies", WELL),
    ("kubectl get defaultspolicy NAME -o yaml --show-managed-fields", WELL),
    ("etch rbac --policy NAME --service-account etch-system:etch | kubectl apply -f -", WELL),
    ("kubectl delete clusterrole,role,rolebinding", Left("a mention, without what is deleted")),
    ("etch persist widgets.example.com --dry-run", LOOKED),
    ("etch persist widgets.example.com", LOOKED),
    ("kubectl -n etch-system scale deployment etch --replicas=0", WELL),
    ("kubectl explain defaultspolicy.spec", WELL),
    ("etch run --help", WELL),
    ("kubectl -n etch-system set env deployment/etch ETCH_PACE=fast", WELL),
    ("kubectl diff -k config/default", LOOKED),
    ("kubectl apply -k config/default", WELL),
    (
        "helm upgrade etch config/chart --namespace etch-system --values your-values.yaml",
        Left("it follows `helm install`, on a cluster of its own"),
    ),
    ("kubectl patch widget NAME --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/field\"}]'", WELL),
    (
        "kubectl patch widget NAME --type=json -p \
         '[{\"op\":\"replace\",\"path\":\"/metadata/managedFields/0/apiVersion\",\"value\":\"example.com/v1\"}]'",
        WELL,
    ),
    ("kubectl -n etch-system delete deployment etch", WELL),
    ("etch clean", WELL),
    (
        "kubectl -n etch-system wait --for=delete pod --selector=app.kubernetes.io/name=etch --timeout=60s",
        WELL,
    ),
    ("kubectl delete defaultspolicies --all", WELL),
    ("kubectl delete -f yaml/install.yaml --ignore-not-found", WELL),
    (
        "helm uninstall etch --namespace etch-system",
        Left("it follows `helm install`, on a cluster of its own"),
    ),
    ("kubectl delete -f config/crd/crds.yaml", Left("it follows `helm uninstall`, on a cluster of its own")),
    ("kubectl delete namespace etch-system", Left("it follows `helm uninstall`, on a cluster of its own")),
    ("etch lint --old", Left("a mention, without what it would be run with")),
    ("etch impact --fail-on", Left("a mention, without what it would be run with")),
    ("kubectl delete clusterroles --selector=etch-operator.io/aggregate-to-etch=true", WELL),
    ("kubectl delete roles,rolebindings --all-namespaces --selector=app.kubernetes.io/name=etch", WELL),
    ("kubectl delete clusterroles,clusterrolebindings etch-admission --ignore-not-found", WELL),
    ("kubectl apply -k config/status-guard", WELL),
    ("kubectl delete -k config/status-guard --ignore-not-found", WELL),
    // cert-manager
    ("etch plan -f certificates-1.7.yaml --live", LOOKED),
    ("kubectl apply -f config/samples/policy-trim.yaml", WELL),
    ("kubectl get crd certificates.cert-manager.io -o jsonpath='{.status.storedVersions}'", WELL),
    ("kubectl apply --server-side -f certificates-1.7.yaml", WELL),
    ("kubectl apply --server-side -f old.yaml", WELL),
    ("kubectl apply --server-side -f certificates-1.18.yaml", WELL),
    ("etch plan -f certificates-1.19.0.yaml --live", LOOKED),
    ("kubectl apply --server-side -f certificates-1.19.0.yaml", WELL),
    ("kubectl wait --for=condition=DefaultsPersisted crd/certificates.cert-manager.io", WELL),
    ("etch plan -f certificates-1.19.1.yaml --live", LOOKED),
    ("kubectl apply --server-side -f certificates-1.19.1.yaml", WELL),
    ("kubectl get certificate web -o jsonpath='{.spec.issuerRef}'", WELL),
    // runbook
    ("kubectl -n etch-system describe certificate etch-admission", Left("it needs cert-manager")),
    ("kubectl get mutatingwebhookconfiguration etch -o yaml --show-managed-fields", Left(SERVED_ELSEWHERE)),
    ("kubectl get crd NAME -o jsonpath='{.status.conditions[?(@.type==\"DefaultsPersisted\")]}'", WELL),
    ("kubectl get defaultsreport NAME -o yaml", WELL),
    ("etch audit CRD --objects --limit 0", LOOKED),
    ("etch audit CRD --objects --etcd-endpoints …", LOOKED),
    ("etch audit --objects", LOOKED),
    ("kubectl annotate TYPE NAME etch-operator.io/ignore-", WELL),
    ("kubectl -n etch-system get pods", WELL),
    ("kubectl -n etch-system get endpointslices", WELL),
    ("kubectl get --raw /api/v1/namespaces/etch-system/pods/POD:8080/proxy/readyz", NO_NODE),
    ("kubectl -n etch-system logs -l app.kubernetes.io/name=etch --tail=-1", NO_NODE),
    (
        "kubectl -n etch-system logs -l app.kubernetes.io/name=etch --tail=-1 | jq -c 'select(.spans[]?.crd \
         == \"widgets.example.com\") | .fields'",
        NO_NODE,
    ),
    ("etch run --leader-elect=false", Left("it does not end; every scenario runs `etch run`")),
];

/// Placeholders for something of the reader's own, and their values here.
pub(crate) const PLACEHOLDERS: &[(&str, &str)] = &[
    ("crd/NAME", "crd/certificates.cert-manager.io"),
    ("crd NAME", "crd certificates.cert-manager.io"),
    ("defaultsreport NAME", "defaultsreport certificates.cert-manager.io"),
    ("widget NAME", "widget my-widget"),
    ("defaultspolicy NAME", "defaultspolicy default"),
    ("--policy NAME", "--policy default"),
    ("TYPE/NAME", "certificates/my-cert"),
    ("TYPE NAME", "certificates my-cert"),
    ("audit CRD", "audit certificates.cert-manager.io"),
    ("--etcd-endpoints …", "--etcd-endpoints $ETCD"),
    ("--explain CODE", "--explain ETCH012"),
];

/// What prints the JSON that a page shows in part.
pub(crate) const JSON: &[(&str, &str)] = &[
    ("docs/lint.md", "etch lint -o json crds.yaml"),
    (
        "docs/published-defaults.md",
        "etch impact -o json --openapi e2e/openapi/releases/v1.36.json --openapi \
         e2e/openapi/releases/v1.37.json",
    ),
    ("docs/upgrades.md", "etch impact -o json -f new.yaml --old old.yaml --objects backup/"),
];
