package main

import (
	"bufio"
	"go/build"
	"io"
	"math/rand/v2"
	"os"
	"strings"
)

// file is one line of the answers: a file, and whether it is a part of its package on Linux and amd64.
type file struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Built bool   `json:"built"`
}

// How many headers are made of the lines below.
const headers = 2000

var parts = []string{"a", "linux", "windows", "amd64", "arm64", "unix", "js", "wasm", "x"}

var headerLines = []string{
	"", "", "", "// Text.", "/* Text. */", "/* Text.", "*/", "/* a */ // b",
	"//go:build linux", "//go:build !linux", "//go:build ignore", "//go:build !ignore", "//go:build linux && amd64",
	"//go:build windows || (unix && !arm64)", "//go:build !(windows || darwin)", "//go:build go1.18", "//go:build !go1.18",
	"//go:build cgo", "//go:build gc && !gccgo", "//go:build", "//go:build linux &&", "//go:build !!linux", "//go:build linux, amd64",
	"//go:build(linux)", "//go:build\tlinux", " //go:build ignore", "// go:build ignore", "//go:buildx", "//go:build linux // text",
	"// +build linux", "// +build ignore", "//+build !linux", "// +build linux,amd64 windows", "// +build !ignore,!windows",
	"// +build", "//  +build ignore", "// +buildx ignore", "// +build linux windows", "// text +build ignore", "// +build !!linux",
	"package b", "import \"fmt\"",
}

func recordConstraints() error {
	var files []file
	for _, first := range parts {
		files = append(files, file{Name: first + ".go"})
		for _, second := range parts {
			files = append(files, file{Name: first + "_" + second + ".go"})
			for _, third := range parts {
				files = append(files, file{Name: first + "_" + second + "_" + third + ".go"})
			}
		}
	}
	for index := range files {
		files[index].Text = "package a\n"
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range headers {
		var text strings.Builder
		for range 1 + random.IntN(5) {
			text.WriteString(headerLines[random.IntN(len(headerLines))] + "\n")
		}
		files = append(files, file{Name: "a.go", Text: text.String() + "package a\n"})
	}
	output := bufio.NewWriter(os.Stdout)
	for _, one := range files {
		context := build.Context{GOOS: "linux", GOARCH: "amd64", Compiler: "gc", CgoEnabled: true, ReleaseTags: build.Default.ReleaseTags}
		context.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(one.Text)), nil }
		// An error is no match: the go command builds nothing then.
		one.Built, _ = context.MatchFile(".", one.Name)
		if err := write(output, one); err != nil {
			return err
		}
	}
	return output.Flush()
}
