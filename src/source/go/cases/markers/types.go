package markers

type Markers struct {
	// +default=text
	NoJSON string `json:"noJSON,omitempty"` // want -1 ETCH106
	// +default=
	Empty string `json:"empty,omitempty"` // want -1 ETCH106
	// +default
	Bare string `json:"bare,omitempty"` // want -1 ETCH106
	// +default=null
	Null *string `json:"null,omitempty"` // want -1 ETCH106
	// +kubebuilder:default={a: 1
	Open map[string]int `json:"open,omitempty"` // want -1 ETCH106
	// +kubebuilder:default=["a", "b"]
	Brackets []string `json:"brackets,omitempty"` // want -1 ETCH106
	// +default={"a": 1}, and more
	More map[string]int `json:"more,omitempty"` // want -1 ETCH106

	// +kubebuilder:default=[]
	EmptyBrackets []string `json:"emptyBrackets,omitempty"` // want -1 ETCH107
	// +default="1"
	Quoted int `json:"quoted,omitempty"` // want -1 ETCH107
	// +default=1.5
	Fraction *int `json:"fraction,omitempty"` // want -1 ETCH107
	// +kubebuilder:default=1
	Number string `json:"number,omitempty"` // want -1 ETCH107
	// +kubebuilder:default="true"
	Flag bool `json:"flag,omitempty"` // want -1 ETCH107
	// +default=[{"nme": "x"}]
	Unknown []Item `json:"unknown,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={}
	NamedList Names `json:"namedList,omitempty"` // want -1 ETCH107
	// +kubebuilder:default={}
	NamedArray Three `json:"namedArray,omitempty"` // want -1 ETCH107
	// +default={"a": {"name": 1}}
	Deep map[string]Item `json:"deep,omitempty"` // want -1 ETCH107

	// +default="a"
	// +kubebuilder:default=b
	Two string `json:"two,omitempty"` // want -2 ETCH108

	// What follows is as it should be.

	// +kubebuilder:default={}
	EmptyList []string `json:"emptyList,omitempty"`
	// +kubebuilder:default={"a","b"}
	List []string `json:"list,omitempty"`
	// +kubebuilder:default=a;b
	OldList []string `json:"oldList,omitempty"`
	// +kubebuilder:default={{name: x}}
	Items []Item `json:"items,omitempty"`
	// +default="a"
	// +kubebuilder:default=a
	// +k8s:default="a"
	Same string `json:"same,omitempty"`
	// +default=1.0
	Whole *int `json:"whole,omitempty"`
	// +kubebuilder:default="10.0.0.0/8"
	Bytes []byte `json:"bytes,omitempty"` // want -1 ETCH107
	// +default=[]
	EmptyNamed Names `json:"emptyNamed,omitempty"`
	// +default={"any": ["thing"]}
	Any any `json:"any,omitempty"`
	// +default={"name": null}
	NullInside *Item `json:"nullInside,omitempty"`
}

type Names []string

type Three [3]string

type Item struct {
	Name string `json:"name,omitempty"`
}

// +default=1
type Text string // want -1 ETCH107
