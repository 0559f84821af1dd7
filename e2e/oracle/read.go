package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// parseProps reads a schema as the API server reads the one in a CustomResourceDefinition.
func parseProps(text json.RawMessage) (*apiextensions.JSONSchemaProps, error) {
	if len(text) == 0 {
		return nil, fmt.Errorf("no schema")
	}
	var external apiextensionsv1.JSONSchemaProps
	if err := utiljson.Unmarshal(text, &external); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil); err != nil {
		return nil, err
	}
	return &internal, nil
}

// parseObject reads an object as from etcd: integers that fit are int64, all other numbers float64.
func parseObject(text json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, fmt.Errorf("no object")
	}
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("the object is unreadable: %w", err)
	}
	if object == nil {
		return nil, fmt.Errorf("the object is null")
	}
	return object, nil
}

// read turns a stored object into the one that clients see, in place: the steps of the decoder that stands between
// etcd and a custom resource's storage, in their order. That decoder is not exported; see unstructuredSchemaCoercer
// and unstructuredDefaulter in k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
func read(object map[string]any, served *structuralschema.Structural) error {
	kind, hasKind, err := unstructured.NestedString(object, "kind")
	if err != nil {
		return err
	}
	apiVersion, hasAPIVersion, err := unstructured.NestedString(object, "apiVersion")
	if err != nil {
		return err
	}
	meta, hasMeta, err := objectmeta.GetObjectMeta(object, true)
	if err != nil {
		return err
	}

	pruning.Prune(object, served, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, served)
	if err := objectmeta.Coerce(nil, object, served, false, true); err != nil {
		return err
	}

	if hasKind {
		object["kind"] = kind
	}
	if hasAPIVersion {
		object["apiVersion"] = apiVersion
	}
	if hasMeta {
		if err := objectmeta.SetObjectMeta(object, meta); err != nil {
			return err
		}
	}
	defaulting.Default(object, served)
	return nil
}
