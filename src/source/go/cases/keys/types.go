package keys

import corev1 "k8s.io/api/core/v1"

type Lists struct {
	// +listType=map
	// +listMapKey=name
	Fine []Item `json:"fine"`
	// +listType=map
	// +listMapKey=name
	// +listMapKey=protocol
	Two []*Item `json:"two"`
	// +listType=map
	// +listMapKey=optional
	Optional []Item `json:"optional"` // want ETCH105
	// +listType=map
	// +listMapKey=marked
	Marked []Item `json:"marked"` // want ETCH105
	// +listType=map
	// +listMapKey=none
	None []Item `json:"none"` // want ETCH105
	// +listType=map
	Keyless []Item `json:"keyless"` // want ETCH105
	// +k8s:listType=map
	// +k8s:listMapKey=optional
	Declarative []Item `json:"declarative"` // want ETCH105
	// +listType=map
	// +listMapKey=inlined
	Inlined []Item `json:"inlined"` // want ETCH105
	// +listType=map
	// +listMapKey=required
	Required []Item `json:"required"`
	// +listType=map
	// +listMapKey=anything
	Elsewhere []corev1.Container `json:"elsewhere"`
	// +listType=map
	// +listMapKey=anything
	Unsure []Embedding `json:"unsure"`
	// +listMapKey=name
	Untyped []Item `json:"untyped"` // want ETCH105
	// +listType=map
	// +listMapKey=name
	Texts []string `json:"texts"` // want ETCH105
	// +listType=map
	// +listMapKey=inner
	Nested []Nesting `json:"nested"` // want ETCH105
	// +listType=atomic
	Atomic []Item `json:"atomic"`
	OfType Typed  `json:"ofType"` // want ETCH105
}

// +listType=map
// +listMapKey=optional
type Typed []Item

type Item struct {
	Common `json:",inline"`

	Name     string `json:"name"`
	Optional string `json:"optional,omitempty"`
	// +optional
	Marked string `json:"marked"`
	// +required
	Required string `json:"required,omitempty"`
	// +optional
	// +default="TCP"
	Protocol string `json:"protocol,omitempty"`
}

type Nesting struct {
	Inner Common `json:"inner"`
}

type Common struct {
	Inlined string `json:"inlined,omitempty"`
}

type Embedding struct {
	corev1.Container `json:",inline"`
}
