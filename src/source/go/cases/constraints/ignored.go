//go:build ignore

package main

type Spec struct {
	// +kubebuilder:default="one"
	N int32 `json:"n"`
}
