// Package v2 takes the type of another version over.
// +groupName=example.com
package v2

import v1 "example.com/cases/generated/v1"

// +kubebuilder:object:root=true
type Widget v1.Widget
