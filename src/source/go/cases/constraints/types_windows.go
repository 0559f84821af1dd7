package constraints

type Windows struct {
	// +kubebuilder:default="one"
	N int32 `json:"n"`
}
