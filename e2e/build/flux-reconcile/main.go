// Reconciles Kustomizations of Flux as kustomize-controller does, each once, with the controller's own libraries. What they
// declare decides what is applied, what is waited for and what is deleted. The controller itself takes minutes to build.
//
// Usage: flux-reconcile KUSTOMIZATIONS SOURCE REVISION STATUSES, with KUBECONFIG. The folder SOURCE has what each source
// has at REVISION. The file STATUSES keeps what the controller keeps in the status, from one run to the next.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/engine"
	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/kustomize"
	"github.com/fluxcd/pkg/runtime/statusreaders"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
)

// Also the field manager.
const controller = "kustomize-controller"

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file, source, revision, statuses string) error {
	waiting, err := kustomizations(file)
	if err != nil {
		return err
	}
	// The first run finds none.
	known := map[string]*kustomizev1.KustomizationStatus{}
	if text, err := os.ReadFile(statuses); err == nil {
		if err := json.Unmarshal(text, &known); err != nil {
			return err
		}
	}
	// A dependency that names more than this is never ready here, so that the run fails.
	all := map[kustomizev1.DependencyReference]*kustomizev1.Kustomization{}
	for _, one := range waiting {
		all[kustomizev1.DependencyReference{Name: one.Name}] = one
		if status := known[one.Name]; status != nil {
			one.Status = *status
		}
		known[one.Name] = &one.Status
	}
	// Flux promises no order but that of dependencies. The last comes first here: so no test passes by the order in the file.
	slices.Reverse(waiting)
	isReady := func(one *kustomizev1.Kustomization) bool {
		return !slices.ContainsFunc(one.Spec.DependsOn, func(name kustomizev1.DependencyReference) bool {
			return all[name] == nil || !isReadyFor(one, all[name], revision)
		})
	}
	var failures []error
	for next := slices.IndexFunc(waiting, isReady); next >= 0; next = slices.IndexFunc(waiting, isReady) {
		one := waiting[next]
		waiting = slices.Delete(waiting, next, next+1)
		ready := metav1.Condition{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason}
		if err := reconcile(one, source); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", one.Name, err))
			ready.Status, ready.Reason = metav1.ConditionFalse, meta.FailedReason
		} else {
			one.Status.LastAppliedRevision = revision
		}
		apimeta.SetStatusCondition(&one.Status.Conditions, ready)
	}
	for _, one := range waiting {
		failures = append(failures, fmt.Errorf("%s: a dependency is not ready", one.Name))
	}
	text, err := json.Marshal(known)
	if err != nil {
		return err
	}
	return errors.Join(append(failures, os.WriteFile(statuses, text, 0o600))...)
}

// Whether a dependency is ready; for this revision, if both have the same source.
func isReadyFor(one, dependency *kustomizev1.Kustomization, revision string) bool {
	return apimeta.IsStatusConditionTrue(dependency.Status.Conditions, meta.ReadyCondition) &&
		(dependency.Spec.SourceRef != one.Spec.SourceRef || dependency.Status.LastAppliedRevision == revision)
}

func kustomizations(file string) ([]*kustomizev1.Kustomization, error) {
	text, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer text.Close()
	objects, err := ssautil.ReadObjects(text)
	if err != nil {
		return nil, err
	}
	var all []*kustomizev1.Kustomization
	for _, object := range objects {
		one := &kustomizev1.Kustomization{}
		converter := runtime.DefaultUnstructuredConverter
		if err := converter.FromUnstructuredWithValidation(object.Object, one, true); err != nil {
			return nil, err
		}
		// What is not read below must not be declared, or the test would be about something else.
		rest := one.Spec
		rest.SourceRef, rest.Path, rest.DependsOn = kustomizev1.CrossNamespaceSourceReference{}, "", nil
		rest.Interval, rest.Timeout = metav1.Duration{}, nil
		rest.Prune, rest.Wait, rest.Force = false, false, false
		if !reflect.DeepEqual(rest, kustomizev1.KustomizationSpec{}) {
			return nil, fmt.Errorf("%s declares what is not supported here: %+v", one.Name, rest)
		}
		all = append(all, one)
	}
	return all, nil
}

func reconcile(one *kustomizev1.Kustomization, source string) error {
	objects, err := build(one, source)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	// client-go's own limit would take most of the time.
	config.QPS = -1
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	// For kstatus itself a Job is ready when it has started.
	readers := []engine.StatusReader{statusreaders.NewCustomJobStatusReader(cluster.RESTMapper())}
	poller := polling.NewStatusPoller(cluster, cluster.RESTMapper(), polling.Options{CustomStatusReaders: readers})
	owner := ssa.Owner{Field: controller, Group: kustomizev1.GroupVersion.Group}
	manager := ssa.NewResourceManager(cluster, poller, owner)
	manager.SetOwnerLabels(objects, one.Name, one.Namespace)
	if err := normalize.UnstructuredList(objects); err != nil {
		return err
	}
	options := ssa.DefaultApplyOptions()
	options.Force = one.Spec.Force
	applied, err := manager.ApplyAllStaged(context.Background(), objects, options)
	if err != nil {
		return err
	}
	before := one.Status.Inventory
	one.Status.Inventory = &kustomizev1.ResourceInventory{}
	for _, entry := range applied.Entries {
		reference := kustomizev1.ResourceRef{ID: entry.ObjMetadata.String(), Version: entry.GroupVersion}
		one.Status.Inventory.Entries = append(one.Status.Inventory.Entries, reference)
	}
	if one.Spec.Prune && before != nil {
		if err := prune(manager, one, before.Entries); err != nil {
			return err
		}
	}
	if !one.Spec.Wait {
		return nil
	}
	// The controller polls every five seconds; the rest is as it waits.
	wait := ssa.WaitOptions{Interval: time.Second / 5, Timeout: one.GetTimeout(), FailFast: true}
	return manager.WaitForSet(applied.ToObjMetadataSet(), wait)
}

// Builds the folder in a copy of the source, since Flux writes a kustomization.yaml there.
func build(one *kustomizev1.Kustomization, source string) ([]*unstructured.Unstructured, error) {
	root, err := os.MkdirTemp("", "kustomization-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	if err := os.CopyFS(root, os.DirFS(source)); err != nil {
		return nil, err
	}
	declared, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(root, one.Spec.Path)
	generator := kustomize.NewGenerator(root, unstructured.Unstructured{Object: declared})
	if _, err := generator.WriteFile(folder); err != nil {
		return nil, err
	}
	built, err := kustomize.SecureBuild(root, folder, true)
	if err != nil {
		return nil, err
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, err
	}
	return ssautil.ReadObjects(bytes.NewReader(text))
}

// Deletes what was applied before and is not any more.
func prune(manager *ssa.ResourceManager, one *kustomizev1.Kustomization, before []kustomizev1.ResourceRef) error {
	var gone []*unstructured.Unstructured
	for _, entry := range before {
		isEntry := func(now kustomizev1.ResourceRef) bool { return now.ID == entry.ID }
		if slices.ContainsFunc(one.Status.Inventory.Entries, isEntry) {
			continue
		}
		named, err := object.ParseObjMetadata(entry.ID)
		if err != nil {
			return err
		}
		stale := &unstructured.Unstructured{}
		stale.SetGroupVersionKind(named.GroupKind.WithVersion(entry.Version))
		stale.SetNamespace(named.Namespace)
		stale.SetName(named.Name)
		gone = append(gone, stale)
	}
	options := ssa.DefaultDeleteOptions()
	options.Inclusions = manager.GetOwnerLabels(one.Name, one.Namespace)
	_, err := manager.DeleteAll(context.Background(), gone, options)
	return err
}
