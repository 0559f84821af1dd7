package generics

import (
	"example.com/cases/generics/shared"
	"example.com/other"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	// +kubebuilder:default={key: "x", val: "x"}
	BadKey *Pair[int, string] `json:"badKey,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={key: 1, val: 1}
	BadValue *Pair[int, string] `json:"badValue,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={key: 1, val: 1}
	OfAlias *Named `json:"ofAlias,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={key: 1, val: 1}
	OfDefined *Defined `json:"ofDefined,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={{key: 1, val: "x"}, {key: 1, val: 1}}
	OfList []Pair[int, string] `json:"ofList,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={a: {key: 1, val: 1}}
	OfMap map[string]Pair[int, string] `json:"ofMap,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={key: 1, val: {key: "x", val: {1}}}
	Nested *Pair[int, Pair[string, []string]] `json:"nested,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={key: 1, val: {key: "x", val: {"a"}}}
	FineNested *Pair[int, Pair[string, []string]] `json:"fineNested,omitempty"`
	// +kubebuilder:default={key: "x", val: 1}
	Swapped *Swapped[int, string] `json:"swapped,omitempty"`
	// +kubebuilder:default={key: 1, val: "x"}
	BadSwapped *Swapped[int, string] `json:"badSwapped,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={key: 1, val: "x", more: "x"}
	Embeds *Embeds[string] `json:"embeds,omitempty"`
	// +kubebuilder:default={key: 1, val: "x", more: 1}
	BadEmbeds *Embeds[string] `json:"badEmbeds,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={key: 1, val: 1}
	BadEmbedded *Embeds[string] `json:"badEmbedded,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={key: {}, val: {}}
	Elsewhere *Pair[other.Type, any] `json:"elsewhere,omitempty"`
	// +kubebuilder:default={key: "1m", val: "soon"}
	Durations *Pair[metav1.Duration, metav1.Duration] `json:"durations,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="YQ=="
	Bytes Slice[byte] `json:"bytes,omitempty"`
	// +kubebuilder:default={1}
	BadSlice Slice[string] `json:"badSlice,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={a: {1}}
	Shared shared.Lists[string] `json:"shared,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={a: {x}}
	FineShared shared.Lists[string] `json:"fineShared,omitempty"`
	// +kubebuilder:default={next: {next: {next: {value: x}}}}
	Chain *Chain[int] `json:"chain,omitempty"` // want -1 ETCH107
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

type Named = Pair[int, string]

type Defined Pair[int, string]

type Swapped[A, B any] Pair[B, A]

type Embeds[T any] struct {
	Pair[int, T] `json:",inline"`
	More         T `json:"more,omitempty"`
}

type Chain[T any] struct {
	Next  *Chain[T] `json:"next,omitempty"`
	Value T         `json:"value,omitempty"`
}

type Inline struct {
	Box[int] `json:",inline"`
}

type Custom[T any] struct {
	Value T `json:"value"`
}

func (c Custom[T]) MarshalJSON() ([]byte, error) { return nil, nil }
