package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const Constant = "c"

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WidgetSpec `json:"spec"`
}

type WidgetSpec struct {
	Inline `json:",inline"`

	// +kubebuilder:default=a
	Same string `json:"same,omitempty"`
	// +kubebuilder:default=a
	Lacking string `json:"lacking,omitempty"` // want ETCH109
	// +kubebuilder:default=a
	Different string `json:"different,omitempty"` // want ETCH111
	Unmarked  string `json:"unmarked,omitempty"`  // want ETCH110
	// +default=ref(Constant)
	Reference string `json:"reference,omitempty"` // want ETCH109
	// +k8s:default="a"
	Declarative string `json:"declarative,omitempty"` // want ETCH109
	// +k8s:default="a"
	OtherGenerator string `json:"otherGenerator,omitempty"`
	OfType         Kind   `json:"ofType,omitempty"` // want ETCH109
	OfMode         Mode   `json:"ofMode,omitempty"` // want ETCH109
	// +kubebuilder:default={}
	EmptyList []string `json:"emptyList,omitempty"`
	// +kubebuilder:default=a
	NotThere string `json:"notThere,omitempty"`
	// +kubebuilder:default=a
	OnlyInV2 string `json:"onlyInV2,omitempty"` // want ETCH109

	List []Item          `json:"list,omitempty"`
	Map  map[string]Item `json:"map,omitempty"`
	Ref  *metav1.Time    `json:"ref,omitempty"` // want ETCH110
	Own  *Own            `json:"own,omitempty"`
}

type Inline struct {
	// +kubebuilder:default=1
	Inlined *int `json:"inlined,omitempty"` // want ETCH111
}

type Item struct {
	// +kubebuilder:default=a
	Deep string `json:"deep,omitempty"` // want ETCH109
}

type Own struct {
	// +kubebuilder:default=a
	Read string `json:"read,omitempty"` // want ETCH109
}

// UnmarshalJSON changes nothing in what controller-gen makes of the type.
func (o *Own) UnmarshalJSON(data []byte) error { return nil }

// +default="a"
type Kind string

// controller-gen reads its own marker on fields alone.
//
// +kubebuilder:default=a
type Mode string // want -1 ETCH112
