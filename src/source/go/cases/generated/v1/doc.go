// Package v1 is held against the CRD beside it.
// +kubebuilder:object:generate=true
// +groupName=example.com
package v1
