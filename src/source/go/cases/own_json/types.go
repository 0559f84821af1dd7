// Package own_json has structs that are no objects in JSON: omitempty never omits them, and findings about structs do not apply.
package own_json

import (
	"encoding/json"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type Sent struct {
	// +kubebuilder:default="100ms"
	Period metav1.Duration `json:"period,omitempty"` // want ETCH101
	// +kubebuilder:default="100ms"
	Required metav1.Duration `json:"required"` // want ETCH101
	// +kubebuilder:default="1Gi"
	Size resource.Quantity `json:"size,omitempty"` // want ETCH101
	// +kubebuilder:default="25%"
	Surge intstr.IntOrString `json:"surge,omitempty"` // want ETCH101
	// +kubebuilder:default="0%"
	Percent intstr.IntOrString `json:"percent,omitempty"` // want ETCH101
	// +kubebuilder:default="2020-01-01T00:00:00Z"
	GoTime time.Time `json:"goTime,omitempty"` // want ETCH101
	// +kubebuilder:default="10.0.0.0/8"
	Prefix netip.Prefix `json:"prefix,omitempty"` // want ETCH101
	// +kubebuilder:default="1m"
	Inherited Inherited `json:"inherited,omitempty"` // want ETCH101
	// +kubebuilder:default="1m"
	Alias Alias `json:"alias,omitempty"` // want ETCH101
	// +kubebuilder:default="5m"
	Own Own `json:"own,omitempty"` // want ETCH101
	// +kubebuilder:default="5m"
	Text OwnText `json:"text,omitempty"` // want ETCH101
	// +kubebuilder:default="5m"
	InheritedOwn struct{ Own } `json:"inheritedOwn,omitempty"` // want ETCH101
	// +kubebuilder:default="5m"
	Never Never `json:"never,omitempty"` // want ETCH101
	// +kubebuilder:default=5
	GoDuration time.Duration `json:"goDuration"` // want ETCH101
	// +kubebuilder:default=TCP
	Protocol corev1.Protocol `json:"protocol"` // want ETCH101

	// +kubebuilder:default={}
	Empty metav1.Duration `json:"empty,omitzero"` // want -1 ETCH107
	// +kubebuilder:default=5
	Number metav1.Duration `json:"number,omitzero"` // want -1 ETCH107
	// +kubebuilder:default={}
	EmptyQuantity *resource.Quantity `json:"emptyQuantity,omitempty"` // want -1 ETCH107
	// +kubebuilder:default=1.5
	Fraction *intstr.IntOrString `json:"fraction,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={}
	EmptyInherited *Inherited `json:"emptyInherited,omitempty"` // want -1 ETCH107
}

// Inherited has the methods of what is embedded in it.
type Inherited struct {
	metav1.Duration `json:",inline"`
}

type Alias = metav1.Duration

// Fine has what is as it should be.
type Fine struct {
	// Null is replaced by the default.
	// +kubebuilder:default="2020-01-01T00:00:00Z"
	Since metav1.Time `json:"since,omitempty"`
	// +kubebuilder:default="2020-01-01T00:00:00.000000Z"
	Micro metav1.MicroTime `json:"micro"`
	// +kubebuilder:default="0m"
	Zero metav1.Duration `json:"zero,omitempty"`
	// +kubebuilder:default=0
	ZeroPort intstr.IntOrString `json:"zeroPort"`
	// +kubebuilder:default="1m"
	Pointer *metav1.Duration `json:"pointer,omitempty"`
	// +kubebuilder:default="1m"
	OmitZero metav1.Duration `json:"omitZero,omitzero"`
	// +kubebuilder:default=80
	Port *intstr.IntOrString `json:"port,omitempty"`
	// +kubebuilder:default={a: 1}
	Any apiextensionsv1.JSON `json:"any,omitempty"`
	// A nil slice is null.
	// +kubebuilder:default="YQ=="
	Bytes []byte `json:"bytes"`
	// +kubebuilder:default="YQ=="
	ArrayOfBytes [1]byte `json:"arrayOfBytes"` // want ETCH101 -1 ETCH107

	// +kubebuilder:default="5m"
	OwnNull OwnNull `json:"ownNull,omitempty"`
	// +kubebuilder:default="5m"
	OfPointer OwnPointer `json:"ofPointer,omitempty"`
	// +kubebuilder:default="5m"
	OwnPointer *Own `json:"ownPointer,omitempty"`
	// +kubebuilder:default="5m"
	OwnOmitted Own `json:"ownOmitted,omitzero"`
	// +kubebuilder:default="5m"
	Scalar Scalar `json:"scalar,omitempty"`

	// No methods are left: what is written is not known here.
	// +kubebuilder:default="1m"
	Defined Defined `json:"defined"`
	// +kubebuilder:validation:Type=string
	// +kubebuilder:default="1m"
	Marked Plain `json:"marked,omitempty"`
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:default="1m"
	Schemaless Plain `json:"schemaless,omitempty"`
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:default=80
	IntOrString string `json:"intOrString,omitempty"`
	// +kubebuilder:validation:Type=object
	Object Plain `json:"object,omitempty"` // want ETCH102
	NoStruct metav1.Duration `json:"noStruct,omitempty"`
	NoObject Inherited `json:"noObject,omitempty"`
}

type Defined metav1.Duration

// Own writes a text.
// +kubebuilder:validation:Type=string
type Own struct {
	time.Duration
}

func (d *Own) MarshalJSON() ([]byte, error) { return []byte(`"` + d.String() + `"`), nil }

type OwnText struct {
	value string
}

func (t OwnText) MarshalText() ([]byte, error) { return []byte(t.value), nil }

// OwnNull may write null.
type OwnNull struct {
	value *string
}

func (n OwnNull) MarshalJSON() ([]byte, error) {
	if n.value == nil {
		return []byte("null"), nil
	}
	return []byte(`"` + *n.value + `"`), nil
}

// OwnPointer may write null, for the encoder writes it for a nil pointer.
type OwnPointer struct {
	value *string
}

func (p OwnPointer) MarshalJSON() ([]byte, error) { return json.Marshal(p.value) }

// Never writes a text in any case.
type Never struct {
	value *time.Duration
}

func (n Never) MarshalJSON() ([]byte, error) {
	if n.value != nil {
		return json.Marshal(n.value.String())
	}
	return json.Marshal("Never")
}

// Scalar is omitted by omitempty as strings are.
type Scalar string

func (s Scalar) MarshalJSON() ([]byte, error) { return []byte(`"` + string(s) + `"`), nil }

type Plain struct {
	Text string `json:"text,omitempty"`
}
