// Command controller-gen records what sigs.k8s.io/controller-tools makes of markers: the defaults of every type in Go packages, or the
// value of each marker in a list; and which files go/build takes for a part of their package. It must not judge anything by itself.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

const usage = "usage: controller-gen packages [PACKAGE...] | controller-gen markers FILE | controller-gen constraints"

func main() {
	var err error
	switch {
	case len(os.Args) >= 2 && os.Args[1] == "packages":
		err = recordPackages(os.Args[2:])
	case len(os.Args) == 3 && os.Args[1] == "markers":
		err = recordMarkers(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "constraints":
		err = recordConstraints()
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "controller-gen:", err)
		os.Exit(1)
	}
}

// packageDefaults is one line of the answers: a package and the defaults of its types.
type packageDefaults struct {
	Package string         `json:"package"`
	Module  string         `json:"module"`
	Version string         `json:"version,omitempty"`
	Types   []typeDefaults `json:"types"`
}

// typeDefaults are those of a type with any, or of one that has no schema.
type typeDefaults struct {
	Type     string         `json:"type"`
	Refused  string         `json:"refused,omitempty"`
	Defaults []defaultValue `json:"defaults,omitempty"`
}

type defaultValue struct {
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

func recordPackages(patterns []string) error {
	if len(patterns) == 0 {
		file, err := parser.ParseFile(token.NewFileSet(), "packages.go", nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			patterns = append(patterns, path)
		}
		patterns = append(patterns, "./comments")
	}
	roots, err := loader.LoadRootsWithConfig(&packages.Config{Mode: packages.NeedModule}, patterns...)
	if err != nil {
		return err
	}
	generator := crd.Generator{}
	registry := &markers.Registry{}
	if err := generator.RegisterMarkers(registry); err != nil {
		return err
	}
	reader := &crd.Parser{
		Collector:           &markers.Collector{Registry: registry},
		Checker:             &loader.TypeChecker{NodeFilters: []loader.NodeFilter{generator.CheckFilter()}},
		AllowDangerousTypes: true,
	}
	crd.AddKnownTypes(reader)
	output := bufio.NewWriter(os.Stdout)
	for _, root := range roots {
		reader.NeedPackage(root)
		if problems := problemsOf(root); len(problems) > 0 {
			return fmt.Errorf("%s: %s", root.PkgPath, problems[0].Msg)
		}
		line := packageDefaults{Package: root.PkgPath, Types: []typeDefaults{}}
		if root.Module != nil {
			line.Module, line.Version = root.Module.Path, root.Module.Version
		}
		var names []string
		for ident := range reader.Types {
			if ident.Package == root {
				names = append(names, ident.Name)
			}
		}
		sort.Strings(names)
		for _, name := range names {
			if found := defaultsOf(reader, crd.TypeIdent{Package: root, Name: name}); found.Refused != "" || found.Defaults != nil {
				line.Types = append(line.Types, found)
			}
		}
		if err := write(output, line); err != nil {
			return err
		}
	}
	return output.Flush()
}

func defaultsOf(reader *crd.Parser, ident crd.TypeIdent) (found typeDefaults) {
	found.Type = ident.Name
	// Some types that are no part of an API, such as generic ones, make controller-tools panic.
	defer func() {
		if problem := recover(); problem != nil {
			found = typeDefaults{Type: ident.Name, Refused: "panic"}
		}
	}()
	before := len(problemsOf(ident.Package))
	reader.NeedSchemaFor(ident)
	schema := reader.Schemata[ident]
	collect(&schema, "", &found.Defaults)
	sort.Slice(found.Defaults, func(i, j int) bool { return found.Defaults[i].Path < found.Defaults[j].Path })
	if problems := problemsOf(ident.Package)[before:]; len(problems) > 0 {
		found.Refused = problems[0].Msg
	}
	return found
}

// problemsOf leaves out errors of types: only what schemas need is checked, as by the command controller-gen.
func problemsOf(root *loader.Package) (problems []packages.Error) {
	for _, problem := range root.Errors {
		if problem.Kind != packages.TypeError {
			problems = append(problems, problem)
		}
	}
	return problems
}

// collect walks a schema as far as it is written out: other types are references, with lines of their own.
func collect(schema *apiextensionsv1.JSONSchemaProps, path string, found *[]defaultValue) {
	if schema.Default != nil {
		*found = append(*found, defaultValue{path, json.RawMessage(schema.Default.Raw)})
	}
	for name, property := range schema.Properties {
		collect(&property, path+"."+name, found)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		collect(schema.Items.Schema, path+"[]", found)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		collect(schema.AdditionalProperties.Schema, path+"{}", found)
	}
	for index := range schema.AllOf {
		collect(&schema.AllOf[index], path, found)
	}
}

// markerValue is one line of the answers: a comment on a field, and the default that it gives.
type markerValue struct {
	Marker string `json:"marker"`
	// Answer is "value", "none" for a marker that gives no default, "unknown" for one that is not read or gives something else, or
	// "error".
	Answer string          `json:"answer"`
	Value  json.RawMessage `json:"value,omitempty"`
}

// How many markers are made of those in the list.
const mutations = 4000

func recordMarkers(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	registry := &markers.Registry{}
	if err := crdmarkers.Register(registry); err != nil {
		return err
	}
	output := bufio.NewWriter(os.Stdout)
	for _, line := range append(lines, mutated(lines)...) {
		if err := write(output, read(registry, line)); err != nil {
			return err
		}
	}
	return output.Flush()
}

// mutated changes a few letters behind the equals sign of lines. The same lines give the same result.
func mutated(lines []string) (all []string) {
	const letters = "{}[]:;,=\"'`\\-+_. 0123456789abefnoprtuxBEOPX/é"
	alphabet := []rune(letters)
	random := rand.New(rand.NewPCG(1, 2))
	for len(all) < mutations {
		name, value, found := strings.Cut(lines[random.IntN(len(lines))], "=")
		if !found {
			continue
		}
		changed := []rune(value)
		for range 1 + random.IntN(3) {
			at := random.IntN(len(changed) + 1)
			letter := alphabet[random.IntN(len(alphabet))]
			switch {
			case random.IntN(3) == 0 || at == len(changed):
				changed = slices.Insert(changed, at, letter)
			case random.IntN(2) == 0:
				changed[at] = letter
			default:
				changed = slices.Delete(changed, at, at+1)
			}
		}
		all = append(all, name+"="+string(changed))
	}
	return all
}

func read(registry *markers.Registry, comment string) markerValue {
	answer := markerValue{Marker: comment, Answer: "unknown"}
	marker := strings.TrimSpace(comment)
	definition := registry.Lookup(marker, markers.DescribesField)
	if definition == nil {
		return answer
	}
	if definition.Output != reflect.TypeFor[crdmarkers.Default]() && definition.Output != reflect.TypeFor[crdmarkers.KubernetesDefault]() {
		return answer
	}
	value, err := definition.Parse(marker)
	schema := apiextensionsv1.JSONSchemaProps{}
	if applier, ok := value.(crd.SchemaMarker); ok && err == nil {
		err = applier.ApplyToSchema(&crdmarkers.SchemaContext{}, &schema)
	}
	switch {
	case err != nil:
		answer.Answer = "error"
	case schema.Default == nil:
		answer.Answer = "none"
	default:
		answer.Answer, answer.Value = "value", json.RawMessage(schema.Default.Raw)
	}
	return answer
}

func write(output *bufio.Writer, line any) error {
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(line)
}
