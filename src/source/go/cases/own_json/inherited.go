package own_json

import (
	"encoding"
	"math/big"

	"example.com/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ID may have methods of what is embedded in it, which is not read.
type ID struct{ uuid.UUID }

type Big struct{ big.Int }

type Mixed struct {
	uuid.UUID
	X int32 `json:"x,omitempty"`
}

type Deeper struct {
	*Mixed
	Y int32 `json:"y,omitempty"`
}

type Ambiguous struct {
	Own
	metav1.Duration
}

type ByInterface struct{ encoding.TextMarshaler }

type DefinedID ID

// Sure has none: no such type of Kubernetes writes its JSON itself.
type Sure struct {
	corev1.LocalObjectReference `json:",inline"`
	metav1.ObjectMeta           `json:"metadata,omitempty"`
	X                           int32 `json:"x,omitempty"`
}

type Reads bool

func (r *Reads) UnmarshalJSON([]byte) error { return nil }

type ReadsToo struct{ Reads }

type Inheriting struct {
	// +kubebuilder:default="123e4567-e89b-12d3-a456-426614174000"
	ID ID `json:"id,omitempty"`
	// +kubebuilder:default=5
	Big Big `json:"big,omitempty"`
	// +kubebuilder:default="x"
	Mixed *Mixed `json:"mixed,omitempty"`
	// +kubebuilder:default={z: 1}
	MixedObject Mixed `json:"mixedObject"`
	// +kubebuilder:default="x"
	Deeper *Deeper `json:"deeper,omitempty"`
	// +kubebuilder:default="1m"
	Ambiguous Ambiguous `json:"ambiguous,omitempty"`
	// +kubebuilder:default="x"
	ByInterface ByInterface `json:"byInterface"`
	// +kubebuilder:default="x"
	DefinedID DefinedID `json:"definedID"`
	// +kubebuilder:default="x"
	ReadsToo ReadsToo `json:"readsToo"`
	// +kubebuilder:default="x"
	OfAny struct {
		Any any `json:"any"`
	} `json:"ofAny,omitzero"` // want -3 ETCH107

	// +kubebuilder:default="x"
	Sure *Sure `json:"sure,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={x: y}
	SureInside *Sure `json:"sureInside,omitempty"` // want -1 ETCH107
}
