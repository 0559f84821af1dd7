// Package constants has defaults that are constant expressions.
package constants

import (
	"example.com/other"
	"time"
	"unsafe"
)

type Kind string

const (
	One = 1 << iota
	Two
	_
	Eight
)

const (
	Sum            = 1 + 1
	Text           = "a" + `b` + "c"
	Quotient       = 10 / 4.0
	Whole          = 10 / 4
	Exact          = 0.1 + 0.2 == 0.3
	Letter         = 'a'
	Length         = len("abc")
	Letters        = len("é" + Text)
	FromRune       = string(rune(65))
	Converted      = Kind("x")
	Longest        = 1<<64 - 1
	Wide           = 1 << 100 >> 98
	Mixed          = (One + 3) * -0xFF % 7
	Complement     = ^5 &^ 2
	Second         = 5 * time.Duration(2)
	Float  float64 = 1
	Flag           = !false && Sum == 2
	Cut            = int32(10) / 4

	Third      = Float / 3
	Foreign    = other.Kind("x")
	ForeignNum = other.Number(65)
	Size       = unsafe.Sizeof("abc")
	Least      = min(3, 2)
	ByName     = 5 * time.Second
	Zero       = 1 / 0
)

// Misfit shows by its type that the value is known.
type Misfit struct {
	// +default=ref(Sum)
	Sum string `json:"sum,omitempty"` // want -1 ETCH107
	// +default=ref(Text)
	Text int32 `json:"text,omitempty"` // want -1 ETCH107
	// +default=ref(Quotient)
	Quotient int32 `json:"quotient,omitempty"` // want -1 ETCH107
	// +default=ref(Letter)
	Letter string `json:"letter,omitempty"` // want -1 ETCH107
	// +default=ref(Length)
	Length string `json:"length,omitempty"` // want -1 ETCH107
	// +default=ref(FromRune)
	FromRune int32 `json:"fromRune,omitempty"` // want -1 ETCH107
	// +default=ref(Converted)
	Converted int32 `json:"converted,omitempty"` // want -1 ETCH107
	// +default=ref(Longest)
	Longest int64 `json:"longest,omitempty"` // want -1 ETCH107
	// +default=ref(Foreign)
	Foreign int32 `json:"foreign,omitempty"` // want -1 ETCH107
	// +default=ref(Flag)
	Flag string `json:"flag,omitempty"` // want -1 ETCH107
	// +default=ref(Cut)
	Cut string `json:"cut,omitempty"` // want -1 ETCH107
}

// Same has the value in both markers.
type Same struct {
	// +default=ref(Sum)
	// +k8s:default=2
	Sum int32 `json:"sum,omitempty"`
	// +default=ref(Text)
	// +k8s:default="abc"
	Text string `json:"text,omitempty"`
	// +default=ref(Quotient)
	// +k8s:default=2.5
	Quotient float64 `json:"quotient,omitempty"`
	// +default=ref(Whole)
	// +k8s:default=2
	Whole int32 `json:"whole,omitempty"`
	// +default=ref(Cut)
	// +k8s:default=2
	Cut int32 `json:"cut,omitempty"`
	// +default=ref(Exact)
	// +k8s:default=true
	Exact bool `json:"exact,omitempty"`
	// +default=ref(Length)
	// +k8s:default=3
	Length int32 `json:"length,omitempty"`
	// +default=ref(Letters)
	// +k8s:default=5
	Letters int32 `json:"letters,omitempty"`
	// +default=ref(FromRune)
	// +k8s:default="A"
	FromRune string `json:"fromRune,omitempty"`
	// +default=ref(Two)
	// +k8s:default=2
	Two int32 `json:"two,omitempty"`
	// +default=ref(Eight)
	// +k8s:default=8
	Eight int32 `json:"eight,omitempty"`
	// +default=ref(Longest)
	// +k8s:default=18446744073709551615
	Longest uint64 `json:"longest,omitempty"`
	// +default=ref(Wide)
	// +k8s:default=4
	Wide int32 `json:"wide,omitempty"`
	// +default=ref(Mixed)
	// +k8s:default=-5
	Mixed int32 `json:"mixed,omitempty"`
	// +default=ref(Complement)
	// +k8s:default=-8
	Complement int32 `json:"complement,omitempty"`
	// +default=ref(Second)
	// +k8s:default=10
	Second int64 `json:"second,omitempty"`
}

// Unknown is not computed, so nothing is found whatever the type.
type Unknown struct {
	// +default=ref(Third)
	Third string `json:"third,omitempty"`
	// +default=ref(ForeignNum)
	ForeignNum string `json:"foreignNum,omitempty"`
	// +default=ref(Size)
	Size int32 `json:"size,omitempty"`
	// +default=ref(Least)
	Least string `json:"least,omitempty"`
	// +default=ref(ByName)
	ByName string `json:"byName,omitempty"`
	// +default=ref(Zero)
	Zero string `json:"zero,omitempty"`
}
