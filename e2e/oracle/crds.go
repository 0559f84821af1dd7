package main

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

// judge says what the API server answers to a CustomResourceDefinition that is created or, with an old one, updated.
func judge(asked *request) (*outcome, error) {
	crd, err := parseCRD(asked.CRD)
	if err != nil {
		return &outcome{Error: err.Error()}, nil
	}
	if asked.Op == "crd-create" {
		crd.Status = apiextensions.CustomResourceDefinitionStatus{}
		crd.Generation, crd.DeletionTimestamp, crd.DeletionGracePeriodSeconds = 1, nil, nil
		store(crd)
		return verdict(validation.ValidateCustomResourceDefinition(context.Background(), crd)), nil
	}
	old, err := parseCRD(asked.Old)
	if err != nil {
		return &outcome{Error: err.Error()}, nil
	}
	// Every client sends one. What else the server owns, the registry takes from the old object: BeforeUpdate of
	// k8s.io/apiserver/pkg/registry/rest.
	crd.ResourceVersion, old.ResourceVersion = "1", "1"
	old.Generation = max(old.Generation, 1)
	crd.Generation = old.Generation
	if len(crd.UID) == 0 {
		crd.UID = old.UID
	}
	if !old.CreationTimestamp.IsZero() {
		crd.CreationTimestamp = old.CreationTimestamp
	}
	if !old.DeletionTimestamp.IsZero() {
		crd.DeletionTimestamp = old.DeletionTimestamp
	}
	if old.DeletionGracePeriodSeconds != nil && crd.DeletionGracePeriodSeconds == nil {
		crd.DeletionGracePeriodSeconds = old.DeletionGracePeriodSeconds
	}
	crd.Status = *old.Status.DeepCopy()
	store(crd)
	return verdict(validation.ValidateCustomResourceDefinitionUpdate(context.Background(), crd, old)), nil
}

// parseCRD reads a CRD as the API server does: decoded, defaulted, converted.
func parseCRD(text json.RawMessage) (*apiextensions.CustomResourceDefinition, error) {
	if len(text) == 0 {
		return nil, fmt.Errorf("no CRD")
	}
	var external apiextensionsv1.CustomResourceDefinition
	if err := utiljson.Unmarshal(text, &external); err != nil {
		return nil, err
	}
	scheme.Default(&external)
	var internal apiextensions.CustomResourceDefinition
	if err := scheme.Convert(&external, &internal, nil); err != nil {
		return nil, err
	}
	return &internal, nil
}

// store notes the storage version as the registry's strategy does.
func store(crd *apiextensions.CustomResourceDefinition) {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			if !apiextensions.IsStoredVersion(crd, version.Name) {
				crd.Status.StoredVersions = append(crd.Status.StoredVersions, version.Name)
			}
			return
		}
	}
}

// verdict is found without duplicates: agreement is that of sets.
func verdict(errs field.ErrorList) *outcome {
	all := found(errs)
	issues := make([]issue, 0, len(*all.Errors))
	for index, each := range *all.Errors {
		if index == 0 || each != (*all.Errors)[index-1] {
			issues = append(issues, each)
		}
	}
	return &outcome{Errors: &issues}
}
