package references

import "example.com/cases/references/shared"

const (
	Known         = "a"
	Chained       = Known
	Typed   Kind  = Kind("b")
	Zero    int   = 0
	Number        = -3
	Computed      = "a" + "b"
	Elsewhere     = shared.Answer
)

const A, B = "a", "b"
