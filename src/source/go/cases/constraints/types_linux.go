package constraints

type Linux struct {
	// +kubebuilder:default="one"
	N int32 `json:"n,omitempty"` // want -1 ETCH107
}
