// Package kep1929 has the Go examples of KEP-1929 by their sections.
package kep1929

// Marker format

type Foo struct {
	// +default=32
	Integer int // want ETCH101

	// +default="bar"
	String string // want ETCH101

	// +default=["popcorn", "chips"]
	StringList []string

	// +default=[{"port": 80, "name": "http"}]
	Ports []Port `json:"ports"`
}

type Port struct {
	Name string `json:"name"`
	Port int    `json:"port"`
}

// Non-pointer structs

type NonPointerRoot struct {
	Entry SubLevel
}

type SubLevel struct {
	// +default="default-name"
	Name string `json:"name,omitempty"`
	// +default=0
	Number int
}

type ForbiddenRoot struct {
	// Defaults on non-pointer structs are FORBIDDEN:
	// +default={"name": "entry", "number": 12}
	Entry ForbiddenSubLevel // want ETCH104
}

type ForbiddenSubLevel struct {
	Name   string `json:"name,omitempty"`
	Number int    `json:"number"`
}

// Struct pointers

type PointerRoot struct {
	// This is now a pointer, we can provide a default:
	// +default={"name": "pointer-name"}
	Entry *SubLevel
}

// Non-pointer scalar fields

type Object struct {
	// This field is omit-empty, and hence Golang unmarshalling drops a zero-value.
	// +default="default-name"
	Name string `json:"name,omitempty"`

	// Non-pointer scalar fields without omitempty require zero-value default.
	// +default=0
	Defaulted int
}

type Invalid struct {
	// This field is NOT omit-empty, and CRD and built-in defaulting would differ,
	// even when going through Golang types on the client
	// +default="default-name"
	Name string `json:"name"` // want ETCH101
}

// Lists

type ListObject struct {
	List []Item
}

// +default="apple"
type Item string

// Lists without default

type PlainListObject struct {
	List []PlainItem
}

type PlainItem string

// String Maps

type MapObject struct {
	Mapping map[string]LabelValue
}

// +default="banana"
type LabelValue string

// String maps without default

type PlainMapObject struct {
	Mapping map[string]PlainLabelValue
}

type PlainLabelValue string
