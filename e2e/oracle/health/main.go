// The health checks of config/health, run as Argo CD and Flux run them: Lua without the standard libraries that Argo CD
// leaves out, and CEL in the environment of Flux.
//
// Standard input carries {"lua", "cel": {"inProgress", "failed", "current"}, "objects"}, and standard output one answer
// for each object, {"argo": {"status", "message"}, "flux"}. It must not decide anything by itself.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	lua "github.com/yuin/gopher-lua"
)

type checks struct {
	Lua string `json:"lua"`
	Cel struct {
		InProgress string `json:"inProgress"`
		Failed     string `json:"failed"`
		Current    string `json:"current"`
	} `json:"cel"`
	Objects []map[string]any `json:"objects"`
}

type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type answer struct {
	Argo health `json:"argo"`
	Flux string `json:"flux"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "health:", err)
		os.Exit(1)
	}
}

func run() error {
	var asked checks
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	answers := make([]answer, 0, len(asked.Objects))
	for _, object := range asked.Objects {
		argo, err := byLua(asked.Lua, object)
		if err != nil {
			return fmt.Errorf("lua: %w", err)
		}
		flux, err := byCel(&asked, object)
		if err != nil {
			return fmt.Errorf("cel: %w", err)
		}
		answers = append(answers, answer{Argo: argo, Flux: flux})
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

// byLua opens the libraries that Argo CD opens for scripts of its users.
func byLua(script string, object map[string]any) (health, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage,
		lua.BaseLibName: lua.OpenBase,
		lua.TabLibName:  lua.OpenTable,
	} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(script); err != nil {
		return health{}, err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return health{}, errors.New("the script returns no table")
	}
	text := func(field string) string {
		if value, ok := table.RawGetString(field).(lua.LString); ok {
			return string(value)
		}
		return ""
	}
	return health{Status: text("status"), Message: text("message")}, nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(toLua(state, item))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for name, item := range value {
			table.RawSetString(name, toLua(state, item))
		}
		return table
	default:
		return lua.LNil
	}
}

// byCel evaluates in the order of Flux's RFC 0009; what nothing holds of is in progress.
func byCel(asked *checks, object map[string]any) (string, error) {
	environment, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders(),
	)
	if err != nil {
		return "", err
	}
	for _, check := range []struct{ expression, status string }{
		{asked.Cel.InProgress, "InProgress"},
		{asked.Cel.Failed, "Failed"},
		{asked.Cel.Current, "Current"},
	} {
		parsed, issues := environment.Parse(check.expression)
		if issues != nil && issues.Err() != nil {
			return "", issues.Err()
		}
		program, err := environment.Program(parsed)
		if err != nil {
			return "", err
		}
		value, _, err := program.Eval(object)
		if err != nil {
			return "", fmt.Errorf("%s: %w", check.status, err)
		}
		holds, ok := value.(types.Bool)
		if !ok {
			return "", fmt.Errorf("%s: no boolean", check.status)
		}
		if holds {
			return check.status, nil
		}
	}
	return "InProgress", nil
}
