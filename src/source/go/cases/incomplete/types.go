// Package incomplete has defaults of structs that lack required fields.
package incomplete

type Spec struct {
	// +kubebuilder:default={}
	Empty Status `json:"empty"` // want -1 ETCH107
	// +kubebuilder:default={state: "New"}
	Other *Status `json:"other,omitempty"` // want -1 ETCH107
	// +default={"km": 1, "wheels": [{}]}
	Item *Status `json:"item,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={a: {}}
	Value map[string]Wheel `json:"value,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={}
	Embedded *Embedding `json:"embedded,omitempty"` // want -1 ETCH107

	// What follows is as it should be.

	// +kubebuilder:default={km: 1}
	Complete *Status `json:"complete,omitempty"`
	// +kubebuilder:default={}
	Optional *Optional `json:"optional,omitempty"`
	// Controller-gen makes no schema of it.
	// +kubebuilder:default={}
	Generic *Box[int] `json:"generic,omitempty"`
	// No generator of CRDs reads it.
	// +k8s:default={}
	Declarative *Status `json:"declarative,omitempty"`
}

type Status struct {
	// +kubebuilder:default=0
	Km     int     `json:"km"`
	State  string  `json:"state,omitempty"`
	Wheels []Wheel `json:"wheels,omitempty"`
}

type Wheel struct {
	Size int `json:"size"`
}

type Embedding struct {
	Wheel `json:",inline"`
}

type Box[T any] struct {
	Value T `json:"value"`
}

type Optional struct {
	// +optional
	Size int `json:"size"` // want ETCH113
	// +kubebuilder:validation:Optional
	Color string `json:"color"` // want ETCH113
	Name  string `json:"name,omitempty"`
}
