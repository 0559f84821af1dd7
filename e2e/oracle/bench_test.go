package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
)

// inputs is the environment variable that names a folder of NAME.schema.json and NAME.object.json files.
const inputs = "ORACLE_BENCH_INPUTS"

// batch is how many copies are made at a time while the clock stands still: Default changes what it is given.
const batch = 64

// BenchmarkDefault fills the objects of all inputs: as they are stored, and once more when nothing is missing.
func BenchmarkDefault(b *testing.B) {
	each(b, func(b *testing.B, schema *structuralschema.Structural, stored map[string]any) {
		b.Run("stored", func(b *testing.B) {
			copies := make([]map[string]any, batch)
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += batch {
				b.StopTimer()
				for i := range copies {
					copies[i] = runtime.DeepCopyJSON(stored)
				}
				b.StartTimer()
				for i := range min(batch, b.N-done) {
					defaulting.Default(copies[i], schema)
				}
			}
		})
		b.Run("filled", func(b *testing.B) {
			defaulting.Default(stored, schema)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				defaulting.Default(stored, schema)
			}
		})
	})
}

// BenchmarkDeepCopyJSONValue copies the objects of all inputs as they are when nothing is missing.
func BenchmarkDeepCopyJSONValue(b *testing.B) {
	each(b, func(b *testing.B, schema *structuralschema.Structural, stored map[string]any) {
		defaulting.Default(stored, schema)
		b.Run("filled", func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				runtime.DeepCopyJSONValue(stored)
			}
		})
	})
}

func each(b *testing.B, measure func(*testing.B, *structuralschema.Structural, map[string]any)) {
	folder := os.Getenv(inputs)
	if folder == "" {
		b.Skipf("%s names no folder", inputs)
	}
	schemas, err := filepath.Glob(filepath.Join(folder, "*.schema.json"))
	if err != nil || len(schemas) == 0 {
		b.Fatalf("no schemas in %s: %v", folder, err)
	}
	for _, path := range schemas {
		name := strings.TrimSuffix(filepath.Base(path), ".schema.json")
		b.Run(name, func(b *testing.B) {
			props, err := parseProps(text(b, path))
			if err != nil {
				b.Fatal(err)
			}
			schema, err := structuralschema.NewStructural(props)
			if err != nil {
				b.Fatal(err)
			}
			if err := defaulting.PruneDefaults(schema); err != nil {
				b.Fatal(err)
			}
			object, err := parseObject(text(b, strings.TrimSuffix(path, ".schema.json")+".object.json"))
			if err != nil {
				b.Fatal(err)
			}
			measure(b, schema, object)
		})
	}
}

func text(b *testing.B, path string) json.RawMessage {
	content, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return content
}
