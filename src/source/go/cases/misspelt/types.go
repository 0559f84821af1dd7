package misspelt

type Spec struct {
	// +kubebuilder:defaul=1
	Letter int32 `json:"letter,omitempty"` // want -1 ETCH112
	// +kubebuilder:default:1
	Colon int32 `json:"colon,omitempty"` // want -1 ETCH112
	// +kubebuilder:default = spaced
	Spaced string `json:"spaced,omitempty"` // want -1 ETCH112
	// + kubebuilder:default=a
	Apart string `json:"apart,omitempty"` // want -1 ETCH112
	// +kubebuilder:Default=a
	Capital string `json:"capital,omitempty"` // want -1 ETCH112
	// +kubebuilder:validation:Default=a
	Validation string `json:"validation,omitempty"` // want -1 ETCH112
	//+defalt="a"
	Plain string `json:"plain,omitempty"` // want -1 ETCH112
	// text +kubebuilder:default=inline
	Inside string `json:"inside,omitempty"` // want -1 ETCH112
	// kubebuilder:default=a
	NoPlus string `json:"noPlus,omitempty"` // want -1 ETCH112
	Behind string `json:"behind,omitempty"` // +kubebuilder:default=behind // want ETCH112

	/* +kubebuilder:default=a */
	Block string `json:"block,omitempty"` // want -1 ETCH112
	// +kubebuilder:default=far

	// Text.

	// Text.
	Far string `json:"far,omitempty"` // want -5 ETCH112

	// +default
	NoValue string `json:"noValue,omitempty"` // want -1 ETCH106

	// What follows is as it should be.

	//+kubebuilder:default=a
	Close string `json:"close,omitempty"`
	//  +kubebuilder:default:=a
	Walrus string `json:"walrus,omitempty"`
	// +kubebuilder:default:value=a
	Argument string `json:"argument,omitempty"`
	// The default=1 is set elsewhere, and +kubebuilder:default=1 would be wrong here.
	Prose string `json:"prose,omitempty"` // the default is a
	// +kubebuilder:validation:Enum=default
	Other string `json:"other,omitempty"`
}
