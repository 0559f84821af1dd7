//go:build kubernetes_1_34

package main

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateObjectMeta checks the metadata of embedded objects; the object's own belongs to the registry's strategy.
func validateObjectMeta(object map[string]any, served *structuralschema.Structural) field.ErrorList {
	return objectmeta.Validate(nil, object, served, false)
}
