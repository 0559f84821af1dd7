package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Gadget's CRD is one of controller-gen.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default=a
	Read string `json:"read,omitempty"`
	// +k8s:default="a"
	Declarative string `json:"declarative,omitempty"` // want ETCH110
	// +default=ref(Constant)
	Reference string `json:"reference,omitempty"` // want ETCH110
	OfType    Kind   `json:"ofType,omitempty"`    // want ETCH110
	// +kubebuilder:default=a
	// +k8s:default="a"
	Both string `json:"both,omitempty"`
}
