// A copy of the types of another version.

package constraints

type Copied struct {
	// +kubebuilder:default=1
	N int32 `json:"n"` // want ETCH101
}
