// Command crdify records what sigs.k8s.io/crdify finds between the CRDs of each upgrade in a folder: one line of JSON for each
// pair, with one entry for each check that fails. It must not judge anything by itself.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/yaml"
)

// entry is one failed check: where it was found, and its first line.
type entry struct {
	// Among is "crd", "same" or "served".
	Among   string `json:"among"`
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`
	Check   string `json:"check"`
	Text    string `json:"text"`
}

type pair struct {
	Pair    string  `json:"pair"`
	Entries []entry `json:"entries"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crdify PAIRS")
		os.Exit(2)
	}
	if err := record(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "crdify:", err)
		os.Exit(1)
	}
}

func record(folder string) error {
	// Descriptions differ everywhere and refuse nothing.
	cfg := &config.Config{Validations: []config.ValidationConfig{{Name: "description", Enforcement: config.EnforcementPolicyNone}}}
	run, err := runner.New(cfg, runner.DefaultRegistry())
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	output := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	for _, found := range entries {
		before, err := read(filepath.Join(folder, found.Name(), "old.yaml"))
		if err != nil {
			return err
		}
		after, err := read(filepath.Join(folder, found.Name(), "new.yaml"))
		if err != nil {
			return err
		}
		if err := encoder.Encode(pair{found.Name(), flat(run.Run(before, after))}); err != nil {
			return err
		}
	}
	return output.Flush()
}

func read(path string) (*apiextensionsv1.CustomResourceDefinition, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, yaml.Unmarshal(text, crd)
}

func flat(results *runner.Results) []entry {
	all := []entry{}
	add := func(among, version, path string, result validations.ComparisonResult) {
		for _, text := range result.Errors {
			// The values under the first line are a dump that differs from run to run.
			line, _, _ := strings.Cut(text, "\n")
			all = append(all, entry{among, version, path, result.Name, strings.TrimRight(line, " :")})
		}
	}
	for _, result := range results.CRDValidation {
		add("crd", "", "", result)
	}
	versions := func(among string, of map[string]map[string][]validations.ComparisonResult) {
		for version, properties := range of {
			for path, found := range properties {
				for _, result := range found {
					add(among, version, path, result)
				}
			}
		}
	}
	versions("same", results.SameVersionValidation)
	versions("served", results.ServedVersionValidation)
	sort.Slice(all, func(i, j int) bool { return fmt.Sprint(all[i]) < fmt.Sprint(all[j]) })
	return all
}
