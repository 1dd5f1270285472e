package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
)

// maxDocumentBytes bounds a workflow that is read from a file or fetched.
const maxDocumentBytes = 4 << 20

// documents reads the workflows that a node runs, each file and address once.
type documents struct {
	call *node.Call
	read map[string]json.RawMessage
}

// find returns the workflow for an item, without its input: the id of a stored one,
// or a document. allowed are the sources that the node type has.
func (d *documents) find(ctx context.Context, item int, allowed ...string) (engine.ChildRun, error) {
	var run engine.ChildRun
	source, err := d.call.String(ctx, item, "source", "database")
	if err != nil {
		return run, err
	}
	known := false
	for _, s := range allowed {
		known = known || s == source
	}
	switch {
	case !known:
		return run, node.OperationError(item, fmt.Sprintf("The workflow source %q is unknown", source),
			"The parameter source must be one of "+strings.Join(allowed, ", ")+".")
	case source == "database":
		run.WorkflowID, err = workflowID(ctx, d.call, item)
		return run, err
	case source == "parameter":
		var text string
		if text, err = d.call.String(ctx, item, "workflowJson", ""); err == nil {
			run.Workflow, err = document(item, []byte(text), "The provided workflow")
		}
		return run, err
	}
	path, read := "workflowPath", readFile
	if source == "url" {
		path, read = "workflowUrl", d.fetch
	}
	where, err := d.call.String(ctx, item, path, "")
	if err != nil {
		return run, err
	}
	if where == "" {
		return run, node.OperationError(item, "No workflow is chosen", "Set the parameter "+path+".")
	}
	if run.Workflow = d.read[source+" "+where]; run.Workflow != nil {
		return run, nil
	}
	data, err := read(ctx, where)
	switch {
	case ctx.Err() != nil:
		return run, ctx.Err()
	case err != nil:
		return run, node.OperationError(item, fmt.Sprintf("The workflow %q could not be loaded", where), err.Error())
	case len(data) > maxDocumentBytes:
		return run, node.OperationError(item, fmt.Sprintf("The workflow %q is larger than %d MiB", where, maxDocumentBytes>>20), "")
	}
	run.Workflow, err = document(item, data, fmt.Sprintf("The workflow %q", where))
	if err == nil {
		if d.read == nil {
			d.read = map[string]json.RawMessage{}
		}
		d.read[source+" "+where] = run.Workflow
	}
	return run, err
}

// workflowID reads the id of a stored workflow: a text, or since version 1.1 of
// Execute Sub-workflow a resource locator. Either may be found in any version.
func workflowID(ctx context.Context, call *node.Call, item int) (string, error) {
	path := "workflowId"
	if gjson.ParseBytes(call.Raw(path)).IsObject() {
		path += ".value"
	}
	value, err := call.Param(ctx, item, path)
	if err != nil {
		return "", err
	}
	found := gjson.ParseBytes(value)
	if found.IsObject() { // an expression that gives a locator
		found = found.Get("value")
	}
	id := strings.TrimSpace(found.String())
	if id == "" || found.Type == gjson.Null {
		return "", node.OperationError(item, "No workflow is chosen", "Choose the workflow to run in the parameter workflowId.")
	}
	return id, nil
}

// document checks that data is a workflow. Whether it can be run is found out when
// it is started.
func document(item int, data []byte, what string) (json.RawMessage, error) {
	var syntax error
	if !json.Valid(data) {
		syntax = json.Unmarshal(data, new(any))
		return nil, node.OperationError(item, fmt.Sprintf("%s is not valid JSON: %q", what, syntax), "")
	}
	if !gjson.GetBytes(data, "nodes").IsArray() {
		return nil, node.OperationError(item, what+" has no nodes", "A workflow is a JSON object with nodes and connections.")
	}
	return data, nil
}

func readFile(_ context.Context, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe or device might never end
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxDocumentBytes+1))
	return data, errors.Join(err, file.Close())
}

func (d *documents) fetch(ctx context.Context, url string) ([]byte, error) {
	if d.call.HTTP == nil {
		return nil, errors.New("this process makes no HTTP requests")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := d.call.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxDocumentBytes+1))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", response.Status)
	}
	return data, nil
}
