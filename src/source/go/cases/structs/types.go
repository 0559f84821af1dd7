package structs

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
type Root struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	// +kubebuilder:default={conditions: {{type: Ready}}}
	Status Status `json:"status,omitempty"`
}

type Spec struct {
	Common `json:",inline"`

	Optional  Inner            `json:"optional,omitempty"` // want ETCH102 ETCH103
	Required  Inner            `json:"required"`           // want ETCH103
	Outer     Outer            `json:"outer"`              // want ETCH103
	Plain     Plain            `json:"plain,omitempty"`    // want ETCH102
	Pointer   *Inner           `json:"pointer,omitempty"`
	OmitZero  Inner            `json:"omitZero,omitzero"`
	Both      Inner            `json:"both,omitempty,omitzero"`
	Elsewhere metav1.Condition `json:"elsewhere,omitempty"` // want ETCH102
	Custom    Custom           `json:"custom,omitempty"`
	List      []Inner          `json:"list,omitempty"`
	Map       map[string]Inner `json:"map,omitempty"`

	Incomplete Incomplete `json:"incomplete"`
	Complete   Complete   `json:"complete"`
	Defaulted  Defaulted  `json:"defaulted"`
	OneOf      OneOf      `json:"oneOf"`
	// +kubebuilder:validation:MinProperties=1
	Some Inner `json:"some"`

	// +kubebuilder:default={}
	Empty Inner `json:"empty"`
	// +kubebuilder:default={name: "y"}
	Other Inner `json:"other"` // want ETCH104
	// +kubebuilder:default={name: "y"}
	OtherPointer *Inner `json:"otherPointer"`
}

type Common struct {
	Inlined Inner `json:"inlined"` // want ETCH103
}

type Outer struct {
	Inner `json:",inline"`
}

type Inner struct {
	// +kubebuilder:default=x
	Name string `json:"name,omitempty"`
}

// Incomplete cannot be {}.
type Incomplete struct {
	// +kubebuilder:default=x
	Name  string   `json:"name,omitempty"`
	Asked Required `json:"asked"`
}

type Required struct {
	Key string `json:"key"`
}

// Complete is refused as a default of {}: inner is required, and its fields do not count.
type Complete struct {
	// +kubebuilder:default=x
	Name string `json:"name,omitempty"`
	// +optional
	Key   string `json:"key"`   // want ETCH113
	Inner Inner  `json:"inner"` // want ETCH103
}

// Defaulted is refused as a default of {}: a required field's default does not count.
type Defaulted struct {
	// +kubebuilder:default=1
	// +required
	Replicas int32  `json:"replicas"` // want ETCH101
	Other    string `json:"other,omitempty"`
}

// OneOf is refused as a default of {}: it asks for one of two fields.
// +kubebuilder:validation:ExactlyOneOf=url;ref
type OneOf struct {
	Inner `json:",inline"`
	URL   *string `json:"url,omitempty"`
	Ref   *string `json:"ref,omitempty"`
}

// Template has metadata as objects have.
type Template struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec `json:"spec,omitempty"`
}

type Plain struct {
	Name string `json:"name,omitempty"`
	// +kubebuilder:default=0
	Zero int     `json:"zero"`
	Next *Plain  `json:"next,omitempty"`
	All  []Plain `json:"all,omitempty"`
}

type Custom struct {
	// +kubebuilder:default=x
	Name string `json:"name,omitempty"`
}

func (c *Custom) UnmarshalJSON([]byte) error { return nil }

type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A type that leads back to itself.
type Circle Round
type Round Circle

type Round2 struct {
	Circle Circle `json:"circle,omitempty"`
	Round2 `json:",inline"`
}
