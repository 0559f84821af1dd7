package scalars

import "k8s.io/apimachinery/pkg/api/resource"

// +default="a"
type Defaulted string

type Renamed = Defaulted

// +default="b"
type Own string

func (o Own) MarshalJSON() ([]byte, error) { return nil, nil }

// controller-gen reads its own marker on fields alone.
//
// +kubebuilder:default=b
type Plain string // want -1 ETCH112

type Thing struct {
	// +kubebuilder:default=1
	Number int32 `json:"number"` // want ETCH101
	// +kubebuilder:default:=true
	Flag bool `json:"flag"` // want ETCH101
	// +k8s:default=1.5
	Ratio float64 `json:"ratio"` // want ETCH101
	// +kubebuilder:default=TCP

	// Text after a blank line, as controller-gen reads it.
	Text string `json:"text"` // want ETCH101

	OfType  Defaulted `json:"ofType"`  // want ETCH101
	Alias   Renamed   `json:"alias"`   // want ETCH101
	Pointer *string   `json:"pointer"` // +default="no marker, for it is behind something" // want ETCH112

	// +default="x"
	One, Two string // want ETCH101 ETCH101

	Inner struct {
		// +default="x"
		Deep string `json:"deep"` // want ETCH101
	} `json:"inner"`

	// What follows is as it should be.

	OfPlain Plain `json:"ofPlain"`

	// +default=0
	Zero int `json:"zero"`
	// +default=""
	Empty string `json:"empty"`
	// +default=false
	Off bool `json:"off"`
	// +default="x"
	Omitted string `json:"omitted,omitempty"`
	// +default="x"
	OmittedZero string `json:"omittedZero,omitzero"`
	// +default="x"
	ByPointer *string `json:"byPointer"`
	// +default=["x"]
	List []string `json:"list"`
	// +default="0"
	Quantity resource.Quantity `json:"quantity"`
	Custom   Own               `json:"custom"` // want ETCH101
	// +default="x"
	Skipped string `json:"-"`
	// +default="x"
	Dash string `json:"-,"` // want ETCH101
	// +default="x"
	unexported string
	Plain      string `json:"plain"`
	// +default=3

	// This comment stands between, and one before it is too far away.

	// Only two comments count.
	TooFar int `json:"tooFar"` // want -5 ETCH112
	/* +default=3 */
	Block int `json:"block"`
}
