// Package numerals has values that look like numbers, as controller-gen reads them: what it does not read as one may be a text.
package numerals

type Numerals struct {
	// +kubebuilder:default=0x1F
	Hexadecimal int32 `json:"hexadecimal,omitempty"` // want -1 ETCH106
	// +kubebuilder:default=0o17
	Octal int32 `json:"octal,omitempty"` // want -1 ETCH106
	// +kubebuilder:default=0b1
	Binary int32 `json:"binary,omitempty"` // want -1 ETCH106
	// +kubebuilder:default=1_000
	Separated int32 `json:"separated,omitempty"` // want -1 ETCH106
	// +kubebuilder:default=9223372036854775808
	TooLarge int64 `json:"tooLarge,omitempty"` // want -1 ETCH106
	// +kubebuilder:default= -1
	Space int32 `json:"space,omitempty"` // want -1 ETCH106
	// +kubebuilder:default={1,two}
	Mixed []string `json:"mixed,omitempty"` // want -1 ETCH106
	// +kubebuilder:default={ a , b }
	Dropped []string `json:"dropped,omitempty"` // want -1 ETCH106
	// +kubebuilder:default=089
	NoOctal int32 `json:"noOctal,omitempty"` // want -1 ETCH107
	// +kubebuilder:default=0644
	Digits string `json:"digits,omitempty"` // want -1 ETCH107
	// +default=0644
	NoJSON int32 `json:"noJSON,omitempty"` // want -1 ETCH106

	// What follows is as it should be.

	// +kubebuilder:default=0644
	Mode int32 `json:"mode,omitempty"`
	// +kubebuilder:default=-5
	Negative int32 `json:"negative,omitempty"`
	// +kubebuilder:default=1e3
	Exponent int32 `json:"exponent,omitempty"`
	// +kubebuilder:default=089
	Text string `json:"text,omitempty"`
	// +kubebuilder:default=9223372036854775807
	Largest int64 `json:"largest,omitempty"`

	// +kubebuilder:default=one
	// +kubebuilder:default=two
	Twice string `json:"twice,omitempty"` // want -2 ETCH108
	// +kubebuilder:default="one"
	// +kubebuilder:default=2
	LastFits int32 `json:"lastFits,omitempty"` // want -2 ETCH108
	// +kubebuilder:default=1
	// +kubebuilder:default="two"
	LastMisfits int32 `json:"lastMisfits,omitempty"` // want -1 ETCH107 -1 ETCH108
	// +default=1
	// +default=1
	Same int32 `json:"same,omitempty"`
}
