package v1

// +kubebuilder:validation:Optional

// Spec is documented, and the marker above that is the package's.
type Spec struct {
	// +kubebuilder:default={}
	Args ArgList `json:"args,omitempty"`
	// +kubebuilder:default={}
	Plain []string `json:"plain,omitempty"`
	// +listType=map
	// +listMapKey=name
	Items []Item `json:"items,omitempty"`
	Level Level  `json:"level"`
}

type ArgList []string

// +kubebuilder:default=abc
type Level string

type Item struct {
	Name string `json:"name"`
}
