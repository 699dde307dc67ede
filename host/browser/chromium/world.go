package chromium

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	// callFunction calls one of the fixed functions by name. The result crosses as JSON, written by
	// the isolated world's own serialiser.
	callFunction = `function([name, ...args], ...objects) { return JSON.stringify(sluice[name](...args, ...objects) ?? null) }`
	// awaitFunction does the same for asynchronous functions.
	awaitFunction = `async function([name, ...args]) { return JSON.stringify(await sluice[name](...args) ?? null) }`
	// answerLimit bounds the JSON of an answer.
	answerLimit = 16 << 20
)

// call calls a function of the world and decodes its result into result, which may be nil.
// Arguments are passed as JSON.
func (w *world) call(ctx context.Context, result any, name string, args ...any) error {
	return w.invoke(ctx, callFunction, false, nil, result, name, args)
}

// wait is call for an asynchronous function.
func (w *world) wait(ctx context.Context, result any, name string, args ...any) error {
	return w.invoke(ctx, awaitFunction, true, nil, result, name, args)
}

// callWith calls a function with objects of the world.
func (w *world) callWith(ctx context.Context, objects []runtime.RemoteObjectID, result any, name string) error {
	return w.invoke(ctx, callFunction, false, objects, result, name, nil)
}

func (w *world) invoke(ctx context.Context, function string, wait bool, objects []runtime.RemoteObjectID, result any,
	name string, args []any) error {
	p := runtime.CallFunctionOnParams{FunctionDeclaration: function, ExecutionContextID: w.id, ReturnByValue: new(true),
		Silent: new(true), AwaitPromise: &wait}
	// All arguments are one list, since the library omits empty arguments.
	v, err := json.Marshal(append([]any{name}, args...))
	if err != nil {
		return err
	}
	p.Arguments = append(p.Arguments, &runtime.CallArgument{Value: v})
	for _, o := range objects {
		p.Arguments = append(p.Arguments, &runtime.CallArgument{ObjectID: o})
	}
	got, err := cdp.Call(ctx, w.session, runtime.CallFunctionOn, p)
	if worldGone(err) {
		return fmt.Errorf("%w: %w", errWorld, err)
	}
	if err != nil {
		return err
	}
	if got.ExceptionDetails != nil {
		return fmt.Errorf("%s: %w", name, &chromedp.ExceptionError{ExceptionDetails: got.ExceptionDetails})
	}
	var text string
	if err := json.Unmarshal(got.Result.Value, &text); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > answerLimit {
		return fmt.Errorf("%s: an answer of %d bytes", name, len(text))
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal([]byte(text), result); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// object returns a node of the world as a protocol object, valid until its group is released.
func (w *world) object(ctx context.Context, group string, number int) (runtime.RemoteObjectID, error) {
	v, err := json.Marshal(number)
	if err != nil {
		return "", err
	}
	got, err := cdp.Call(ctx, w.session, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: `function(n) { return sluice.node(n) }`, ExecutionContextID: w.id,
		ObjectGroup: group, Silent: new(true), Arguments: []*runtime.CallArgument{{Value: v}},
	})
	if worldGone(err) {
		return "", fmt.Errorf("%w: %w", errWorld, err)
	}
	if err != nil {
		return "", err
	}
	if got.Result == nil || got.Result.ObjectID == "" {
		return "", errWorld
	}
	return got.Result.ObjectID, nil
}

// group returns the name of a new object group. release frees all objects in it.
func (w *world) group() (group string, release func(context.Context)) {
	group = worldName + strconv.FormatInt(groups.Add(1), 10)
	return group, func(ctx context.Context) {
		_, _ = cdp.Call(ctx, w.session, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: group})
	}
}

var groups atomic.Int64

//go:embed inpage/*.js
var inpageFiles embed.FS

// worldName is the name of the isolated world in each document. It sees the page's document, and
// the page's scripts see nothing of it.
const worldName = "sluice"

// inpageSource is the one script that runs there. It is fixed: no part of a request becomes source
// text, everything is passed as arguments.
var inpageSource = sync.OnceValue(func() string {
	entries, err := inpageFiles.ReadDir("inpage") // in order of their names
	if err != nil {
		panic(err) // embedded in the binary
	}
	var b strings.Builder
	b.WriteString("(() => {\n\"use strict\";\nif (Object.hasOwn(globalThis, \"sluice\")) return;\n")
	for _, e := range entries {
		text, err := inpageFiles.ReadFile("inpage/" + e.Name())
		if err != nil {
			panic(err)
		}
		b.Write(text)
	}
	b.WriteString("})()\n")
	return b.String()
})
