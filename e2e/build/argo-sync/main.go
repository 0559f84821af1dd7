// Syncs a folder of manifests to a cluster as the application controller of Argo CD does: with its engine, whose
// state goes from one reconciliation to the next, and with what it read anew each time. The engine's own agent
// reads once a sync, so that it never sees a hook complete.
//
// Usage: argo-sync FOLDER, with KUBECONFIG; it ends with the sync, and prints its phase and message.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2/textlogger"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
)

const (
	namespace = "default"
	// What marks the objects of an Application, hooks included.
	tracking    = "argocd.argoproj.io/tracking-id"
	application = "crontabs"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	target, err := manifests(folder)
	if err != nil {
		return err
	}
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr)))
	live := cache.NewClusterCache(config, cache.SetLogr(log), cache.SetPopulateResourceInfoHandler(
		func(object *unstructured.Unstructured, _ bool) (any, bool) {
			isTracked := object.GetAnnotations()[tracking] == application
			return isTracked, isTracked
		}))
	if err := live.EnsureSynced(); err != nil {
		return err
	}
	defer live.Invalidate()
	changed := make(chan struct{}, 1)
	live.OnResourceUpdated(func(_, _ *cache.Resource, _ map[kube.ResourceKey]*cache.Resource) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	phase, message, results := common.OperationRunning, "", []common.ResourceSyncResult(nil)
	started := metav1.Now()
	for {
		state := sync.WithInitialState(phase, message, results, started)
		if phase, message, results, err = reconcile(config, live, target, log, state); err != nil {
			return err
		}
		if phase.Completed() {
			break
		}
		select {
		case <-changed:
		case <-time.After(time.Second):
		}
	}
	for _, result := range results {
		fmt.Printf("%s %s %s: %s\n", result.SyncPhase, result.ResourceKey, result.HookPhase, result.Message)
	}
	if !phase.Successful() {
		return errors.New(string(phase) + ": " + message)
	}
	fmt.Println(phase)
	return nil
}

// One reconciliation of the operation in a state; returns the next state.
func reconcile(
	config *rest.Config, live cache.ClusterCache, target []*unstructured.Unstructured, log logr.Logger, state sync.SyncOpt,
) (common.OperationPhase, string, []common.ResourceSyncResult, error) {
	objects, err := live.GetManagedLiveObjs(target, func(resource *cache.Resource) bool {
		isTracked, _ := resource.Info.(bool)
		return isTracked
	})
	if err != nil {
		return "", "", nil, err
	}
	compared := sync.Reconcile(target, objects, namespace, live)
	kubectl := &kube.KubectlCmd{Log: log, Tracer: tracing.NopTracer{}}
	operation, cleanup, err := sync.NewSyncContext(
		"revision", compared, config, config, kubectl, namespace, state, sync.WithLogr(log))
	if err != nil {
		return "", "", nil, err
	}
	defer cleanup()
	operation.Sync()
	phase, message, results := operation.GetState()
	return phase, message, results, nil
}

// The objects in the files of a folder, each with the mark of the Application.
func manifests(folder string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := kube.SplitYAML(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, objects...)
	}
	for _, object := range all {
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[tracking] = application
		object.SetAnnotations(annotations)
	}
	return all, nil
}
