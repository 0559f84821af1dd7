package references

import (
	"example.com/cases/references/shared"
	"example.com/other"
)

type Kind string

type References struct {
	// +default=ref(Known)
	Known string `json:"known"` // want ETCH101
	// +default=ref(Chained)
	Chained string `json:"chained"` // want ETCH101
	// +default=ref(Typed)
	Typed Kind `json:"typed"` // want ETCH101
	// +default=ref(B)
	Second string `json:"second"` // want ETCH101
	// +default=ref(Number)
	Number int `json:"number"` // want ETCH101
	// +default=ref(Elsewhere)
	Elsewhere int `json:"elsewhere"` // want ETCH101
	// +default=ref(example.com/cases/references/shared.Answer)
	Path int `json:"path"` // want ETCH101
	// +default=ref(Number)
	Misfit string `json:"misfit,omitempty"` // want -1 ETCH107
	// +default=ref(Missing)
	Missing string `json:"missing"` // want -1 ETCH106
	// +default=ref(a-b)
	NoName string `json:"noName"` // want -1 ETCH106
	Shared shared.Level `json:"shared"` // want ETCH101

	// +default=ref(Zero)
	Zero int `json:"zero"`
	// +default=ref(Computed)
	Computed string `json:"computed"` // want ETCH101
	// +default=ref(example.com/other.Constant)
	Other string `json:"other"`
	Type  other.Type `json:"type"`
}
