package constraints

type Arm struct {
	// +kubebuilder:default="one"
	N int32 `json:"n"`
}
