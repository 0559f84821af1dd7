// Package formats has values that the Go type cannot hold.
package formats

import (
	"net"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Small int8

type Byte byte

type Formats struct {
	// +kubebuilder:default=256
	Uint8 uint8 `json:"uint8,omitempty"` // want -1 ETCH107
	// +kubebuilder:default=-1
	Uint32 uint32 `json:"uint32,omitempty"` // want -1 ETCH107
	// +kubebuilder:default=3000000000
	Int32 int32 `json:"int32,omitempty"` // want -1 ETCH107
	// +kubebuilder:default=40000
	Int16 int16 `json:"int16,omitempty"` // want -1 ETCH107
	// +kubebuilder:default=-129
	Small *Small `json:"small,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={a: 256}
	Bytes map[string]byte `json:"bytes,omitempty"` // want -1 ETCH107
	// +default=9223372036854775808
	Int64 int64 `json:"int64,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="soon"
	Duration *metav1.Duration `json:"duration,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={"1m", "1 m"}
	Durations []metav1.Duration `json:"durations,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="1Gx"
	Quantity *resource.Quantity `json:"quantity,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={cpu: "1,5"}
	Quantities map[string]resource.Quantity `json:"quantities,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="yesterday"
	Time *metav1.Time `json:"time,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="2020-01-01"
	GoTime *time.Time `json:"goTime,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="2020-01-01T00:00:00Z"
	MicroTime *metav1.MicroTime `json:"microTime,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="!!"
	Base64 []byte `json:"base64,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="YQ"
	Unpadded []Byte `json:"unpadded,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="10.0.0"
	IP net.IP `json:"ip,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="10.0.0"
	Addr *netip.Addr `json:"addr,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="10.0.0.0"
	Prefix *netip.Prefix `json:"prefix,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="soon"
	Inherited *Inherited `json:"inherited,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={1,2,3}
	Array [2]int32 `json:"array,omitzero"` // want -1 ETCH107
}

type Inherited struct{ metav1.Duration }

type Fine struct {
	// +kubebuilder:default=255
	Uint8 uint8 `json:"uint8,omitempty"`
	// +kubebuilder:default=4294967295
	Uint32 uint32 `json:"uint32,omitempty"`
	// +kubebuilder:default=-2147483648
	Int32 int32 `json:"int32,omitempty"`
	// +default=18446744073709551615
	Uint64 uint64 `json:"uint64,omitempty"`
	// +kubebuilder:default="-1h2.5m3us"
	Duration *metav1.Duration `json:"duration,omitempty"`
	// +kubebuilder:default={"0", "-1.5Gi", ".5m", "1e3", "1E", "2E-3", "5."}
	Quantities []resource.Quantity `json:"quantities,omitempty"`
	// +kubebuilder:default=1
	Number *resource.Quantity `json:"number,omitempty"`
	// +kubebuilder:default="2020-01-01T00:00:00.5+02:00"
	Time *metav1.Time `json:"time,omitempty"`
	// +kubebuilder:default=""
	Base64 []byte `json:"base64,omitempty"`
	// +kubebuilder:default="::1"
	IP net.IP `json:"ip,omitempty"`
	// +kubebuilder:default=""
	Addr *netip.Addr `json:"addr,omitempty"`
	// +kubebuilder:default={1}
	Array [2]int32 `json:"array,omitzero"`
	// +kubebuilder:default={1,2,3}
	Unknown [len(unknown)]int32 `json:"unknown"`
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:default="x"
	Marked resource.Quantity `json:"marked,omitzero"`
}
