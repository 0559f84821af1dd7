package main

import (
	"context"
	"fmt"
	"sort"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// outcome is the "expect" of a vector. Exactly one member is set; Errors is an empty list when all is well.
type outcome struct {
	Object any      `json:"object,omitempty"`
	Errors *[]issue `json:"errors,omitempty"`
	Error  string   `json:"error,omitempty"`
}

// issue is a field.Error without its value.
type issue struct {
	Type   field.ErrorType `json:"type"`
	Field  string          `json:"field"`
	Detail string          `json:"detail"`
}

var root = field.NewPath("openAPIV3Schema")

// evaluate answers one request. An error means that there is no such question, a refused schema is an outcome.
func evaluate(asked *request) (*outcome, error) {
	if asked.Op == "crd-create" || asked.Op == "crd-update" {
		return judge(asked)
	}
	props, err := parseProps(asked.Schema)
	if err != nil {
		return &outcome{Error: err.Error()}, nil
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return &outcome{Error: err.Error()}, nil
	}
	switch asked.Op {
	case "structural":
		return found(structuralschema.ValidateStructural(root, structural)), nil
	case "defaults":
		errs, err := defaulting.ValidateDefaults(context.Background(), root, structural, true, true)
		if err != nil {
			return &outcome{Error: err.Error()}, nil
		}
		return found(errs), nil
	case "read", "validate":
		object, err := parseObject(asked.Object)
		if err != nil {
			return nil, err
		}
		served := structural.DeepCopy()
		if err := defaulting.PruneDefaults(served); err != nil {
			return &outcome{Error: err.Error()}, nil
		}
		if err := read(object, served); err != nil {
			return &outcome{Error: err.Error()}, nil
		}
		if asked.Op == "read" {
			return &outcome{Object: object}, nil
		}
		validator, _, err := validation.NewSchemaValidator(props)
		if err != nil {
			return &outcome{Error: err.Error()}, nil
		}
		return found(validate(object, validator, served)), nil
	default:
		return nil, fmt.Errorf("unknown op %q", asked.Op)
	}
}

// validate says what creation of the object would be refused for, as far as its schema decides that: the checks and
// their order are those of the custom resource strategy.
func validate(object map[string]any, validator validation.SchemaValidator, served *structuralschema.Structural) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, validator)
	errs = append(errs, validateObjectMeta(object, served)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, served, object)...)
	if len(errs) > 0 {
		return errs
	}
	if rules := cel.NewValidator(served, true, celconfig.PerCallLimit); rules != nil {
		broken, _ := rules.Validate(context.Background(), nil, served, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return errs
}

func found(errs field.ErrorList) *outcome {
	issues := make([]issue, 0, len(errs))
	for _, err := range errs {
		issues = append(issues, issue{Type: err.Type, Field: err.Field, Detail: err.Detail})
	}
	sort.Slice(issues, func(i, j int) bool {
		a, b := issues[i], issues[j]
		if a.Field != b.Field {
			return a.Field < b.Field
		}
		if a.Type != b.Type {
			return a.Type < b.Type
		}
		return a.Detail < b.Detail
	})
	return &outcome{Errors: &issues}
}
