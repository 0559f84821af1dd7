// Package unset has types that are no structs, and that Go writes in another way than their kind shows.
package unset

import (
	"encoding/json"
	"net"
	"strconv"

	. "k8s.io/apimachinery/pkg/util/intstr"
)

const Length = 2

type Unset struct {
	// +kubebuilder:default=5
	Number json.Number `json:"number"` // want ETCH101
	// +kubebuilder:default=5
	NumberOmitted json.Number `json:"numberOmitted,omitempty"`
	// +kubebuilder:default=5
	Dot IntOrString `json:"dot"` // want ETCH101
	// +kubebuilder:default=1.5
	DotMisfit *IntOrString `json:"dotMisfit"` // want -1 ETCH107
	// +kubebuilder:default="10.0.0.1"
	IP net.IP `json:"ip"` // want ETCH101
	// +kubebuilder:default="10.0.0.1"
	IPOmitted net.IP `json:"ipOmitted,omitempty"`
	// +kubebuilder:default="10.0.0.1"
	EmbedsIP struct{ net.IP } `json:"embedsIP,omitempty"` // want ETCH101

	// +kubebuilder:default={1,2}
	Array [2]int32 `json:"array,omitempty"` // want ETCH101
	// +kubebuilder:default={1,2}
	Constant [Length]int32 `json:"constant"` // want ETCH101
	// +kubebuilder:default={"a"}
	Texts [1]string `json:"texts"` // want ETCH101
	// +kubebuilder:default={{"a"}}
	Deep [1][1]string `json:"deep"` // want ETCH101
	// +kubebuilder:default={0,0}
	ZeroArray [2]int32 `json:"zeroArray"`
	// +kubebuilder:default={1,2}
	ArrayOmitted [2]int32 `json:"arrayOmitted,omitzero"`
	// +kubebuilder:default={1,2}
	ArrayPointer *[2]int32 `json:"arrayPointer,omitempty"`
	// +kubebuilder:default={1,2}
	Slice []int32 `json:"slice"`

	// +kubebuilder:default="debug"
	Level Level `json:"level"` // want ETCH101
	// +kubebuilder:default="debug"
	LevelOmitted Level `json:"levelOmitted,omitempty"`
	// +kubebuilder:default="info"
	LevelSame Level `json:"levelSame"`
	// +kubebuilder:default="debug"
	LevelArray [2]Level `json:"levelArray,omitempty"` // want -1 ETCH107
	// +kubebuilder:default=5
	Text Text `json:"text"` // want ETCH101
	// +kubebuilder:default="Auto"
	Named Named `json:"named"`
	// +kubebuilder:default="Auto"
	Table Table `json:"table"`
	// +kubebuilder:default="Auto"
	ByConstant ByConstant `json:"byConstant"`
	// +kubebuilder:default="x"
	List List `json:"list"` // want ETCH101
	// +kubebuilder:default="x"
	ListOmitted List `json:"listOmitted,omitempty"`
	// +kubebuilder:default=5
	MayBeNull MayBeNull `json:"mayBeNull"`

	// +kubebuilder:default=true
	Reads Reads `json:"reads"` // want ETCH101
	// +kubebuilder:default=true
	ReadsOmitted Reads `json:"readsOmitted,omitempty"`
	// +kubebuilder:default=false
	ReadsFalse Reads `json:"readsFalse"`
	// It may read this as false.
	// +kubebuilder:default="off"
	ReadsText Reads `json:"readsText"`
}

type Level int32

func (l Level) MarshalText() ([]byte, error) { return []byte("info"), nil }

type Text int32

func (t *Text) MarshalJSON() ([]byte, error) { return []byte(strconv.Itoa(int(*t) + 1)), nil }

type Named int

func (n Named) String() string { return "Auto" }

func (n Named) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

type Table int

var names = []string{"Auto", "Manual"}

func (t Table) MarshalText() ([]byte, error) { return []byte(names[t]), nil }

type ByConstant string

const auto = "Auto"

func (b ByConstant) MarshalText() ([]byte, error) {
	if b == "" {
		return []byte(auto), nil
	}
	return []byte(b), nil
}

type List []string

func (l List) MarshalText() ([]byte, error) { return []byte("list"), nil }

type MayBeNull int32

func (m MayBeNull) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

func (m MayBeNull) MarshalText() ([]byte, error) { return []byte("text"), nil }

type Reads bool

func (r *Reads) UnmarshalJSON([]byte) error { return nil }
