// Package comments has markers at every place where comments can be.
// +kubebuilder:object:generate=true
package comments

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:default="of the package"

// Comments is a type.
// +kubebuilder:default="of the type"
type Comments struct { // +kubebuilder:default="behind the brace"
	// +kubebuilder:default=above
	Above string `json:"above,omitempty"`
	//+kubebuilder:default=close
	Close string `json:"close,omitempty"`
	//	+kubebuilder:default=tab
	Tab string `json:"tab,omitempty"`
	// +kubebuilder:default=apart

	Apart string `json:"apart,omitempty"`
	// +kubebuilder:default=before

	// Text between.
	Before string `json:"before,omitempty"`
	// +kubebuilder:default=far

	// Text between.

	// More text.
	Far string `json:"far,omitempty"`
	// +kubebuilder:default=before

	// +kubebuilder:default=doc
	Both string `json:"both,omitempty"`
	// +kubebuilder:default=first
	// +kubebuilder:default=last
	Twice string `json:"twice,omitempty"`
	// +default="first"
	// +default="last"
	TwiceJSON string `json:"twiceJSON,omitempty"`
	// +kubebuilder:default=strong
	// +default="weak"
	Kinds string `json:"kinds,omitempty"`
	// +default="value"
	// +default=ref(Constant)
	Reference string `json:"reference,omitempty"`
	Behind    string `json:"behind,omitempty"` // +kubebuilder:default=behind
	Next      string `json:"next,omitempty"`
	/* +kubebuilder:default=block */
	Block string `json:"block,omitempty"`
	/*
	// +kubebuilder:default=block
	*/
	Inside string `json:"inside,omitempty"`
	// +kubebuilder:default=several
	One string `json:"one,omitempty"`; Two string `json:"two,omitempty"`
	// Text.
	//
	// +kubebuilder:default=paragraph
	//
	// More text.
	Paragraph string `json:"paragraph,omitempty"`
	// +optional
	// text +kubebuilder:default=text
	Text string `json:"text,omitempty"`
	// +kubebuilder:default="1s"
	Duration metav1.Duration `json:"duration,omitempty"`
	// +kubebuilder:default={}
	List Names `json:"list,omitempty"`
	// +kubebuilder:default={}
	Pointer *Names `json:"pointer,omitempty"`
	// +kubebuilder:default={}
	Array [2]string `json:"array,omitempty"`
	// +kubebuilder:default={}
	Map map[string]string `json:"map,omitempty"`
	// +kubebuilder:default={}
	Object Object `json:"object,omitempty"`
	// +kubebuilder:default=a
	Bytes []byte `json:"bytes,omitempty"`
	// +kubebuilder:default=skipped
	Skipped string `json:"-"`
	// +kubebuilder:default=last

	// The end of the struct.
}

// Names is a list by another name.
type Names []string

type (
	// Object stands in a group.
	Object struct {
		// +kubebuilder:default:=inner
		Inner string `json:"inner,omitempty"`
		// +kubebuilder:default:value=argument
		Argument string `json:"argument,omitempty"`
	}
	// Other stands in a group.
	// +kubebuilder:default=type
	Other struct {
		// +default=1
		Number int32 `json:"number,omitempty"`
		// +default=null
		Null *int32 `json:"null,omitempty"`
	}
)

// Constant is what a marker refers to.
const Constant = "constant"
