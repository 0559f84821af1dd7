// Package builtin has no marker of controller-gen: kube-openapi writes default: {} by itself.
package builtin

type Spec struct {
	Required Inner `json:"required"`
}

type Inner struct {
	// +default="x"
	Name string `json:"name,omitempty"`
}
