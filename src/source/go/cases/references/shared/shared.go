package shared

const Answer = 0x2a

// +default="high"
type Level string

// NotAsked is in a package that is only imported.
type NotAsked struct {
	// +default="x"
	Name string `json:"name"`
}
