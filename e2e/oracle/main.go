// The oracle answers conformance vectors with the API server's own code.
//
// Standard input carries one request a line, {"id", "op", "schema", "object", "repeat"}, with "crd" and "old" in place of
// schema and object where the op is about whole CRDs, and standard output one
// answer a line, in the same order: the id and what the vector would "expect". A line that cannot be answered gets
// {"id", "failure"} and the next one is served. It must not decide anything by itself: whatever an answer says comes
// from k8s.io/apiextensions-apiserver.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// request is a vector without its expectation. Repeat asks for that many evaluations: the API server walks Go maps,
// so an answer that stops at the first error may differ from run to run.
type request struct {
	ID     json.RawMessage `json:"id"`
	Op     string          `json:"op"`
	Schema json.RawMessage `json:"schema"`
	Object json.RawMessage `json:"object"`
	CRD    json.RawMessage `json:"crd"`
	Old    json.RawMessage `json:"old"`
	Repeat int             `json:"repeat"`
}

// answer holds what the vector expects, the other answers seen under Repeat, or why there is none.
type answer struct {
	ID           json.RawMessage `json:"id"`
	Expect       *outcome        `json:"expect,omitempty"`
	Alternatives []*outcome      `json:"alternatives,omitempty"`
	Failure      string          `json:"failure,omitempty"`
}

func main() {
	// The libraries log what they meet in schemas; the answer already says it.
	quiet := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(quiet)
	_ = quiet.Set("logtostderr", "false")
	klog.SetOutput(io.Discard)

	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// serve answers line by line until the input ends. Answers are flushed whenever no further request is waiting.
func serve(input io.Reader, output io.Writer) error {
	lines := bufio.NewReaderSize(input, 1<<20)
	answers := bufio.NewWriterSize(output, 1<<20)
	encoder := json.NewEncoder(answers)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if err := encoder.Encode(reply(line)); err != nil {
				return err
			}
		}
		ended := err != nil
		if ended || lines.Buffered() == 0 {
			if err := answers.Flush(); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
	}
}

func reply(line []byte) answer {
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Failure: "not a request: " + err.Error()}
	}
	if len(asked.ID) == 0 {
		asked.ID = json.RawMessage("null")
	}
	result := answer{ID: asked.ID}
	seen := map[string]bool{}
	for range max(asked.Repeat, 1) {
		expect, err := guarded(&asked)
		if err != nil {
			return answer{ID: asked.ID, Failure: err.Error()}
		}
		text, err := json.Marshal(expect)
		if err != nil {
			return answer{ID: asked.ID, Failure: "no JSON form: " + err.Error()}
		}
		switch {
		case seen[string(text)]:
		case result.Expect == nil:
			result.Expect = expect
		default:
			result.Alternatives = append(result.Alternatives, expect)
		}
		seen[string(text)] = true
	}
	return result
}

// guarded turns a panic of the API server's code into a failure of this one line.
func guarded(asked *request) (expect *outcome, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			expect, err = nil, fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return evaluate(asked)
}
