//go:build !windows && (linux || darwin)
// +build !windows

// Package constraints has files for other systems and programs beside this one.
package constraints

type Spec struct {
	// +kubebuilder:default=1
	N int32 `json:"n"` // want ETCH101
}
