// +build tools

package constraints

type Tools struct {
	// +kubebuilder:default="one"
	N int32 `json:"n"`
}
