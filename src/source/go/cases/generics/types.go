package generics

type Box[T any] struct {
	// +kubebuilder:default=3
	Size int `json:"size"` // want ETCH101
	// +kubebuilder:default="any"
	Value T `json:"value"`
	// +kubebuilder:default={"a"}
	List []T `json:"list,omitempty"`
}

// T is no parameter.
type T int

type Pair[K comparable, V any] struct {
	Key K `json:"key"`
	Val V `json:"val"`
}

type Slice[E any] []E

type Uses struct {
	// +kubebuilder:default={size: 4}
	Box Box[string] `json:"box"` // want ETCH104
	// +kubebuilder:default={size: four}
	Misfit *Box[string] `json:"misfit,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={key: 1, val: "x"}
	Pair *Pair[int, string] `json:"pair,omitempty"`
	// +kubebuilder:default={first: 1}
	Field *Pair[int, string] `json:"field,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={a,b}
	Slice Slice[string] `json:"slice,omitempty"`
	// +kubebuilder:default=5
	NoSlice Slice[string] `json:"noSlice,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={size: 1}
	Inline *Inline `json:"inline,omitempty"`
	// +kubebuilder:default="x"
	Plain T `json:"plain,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="any"
	Custom Custom[int] `json:"custom,omitempty"` // want ETCH101
}

type Inline struct {
	Box[int] `json:",inline"`
}

type Custom[T any] struct {
	Value T `json:"value"`
}

func (c Custom[T]) MarshalJSON() ([]byte, error) { return nil, nil }
