package conformance

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// within is how long a workflow of these tests may take; machines are busy.
const within = 60 * time.Second

// lab is a stack with two coordinators on embedded servers, and what its
// workflows call.
type lab struct {
	*stack.Stack
	*labtest.Lab
}

// startLab starts a lab that ends with the test.
func startLab(t *testing.T, config stack.Config) *lab {
	t.Helper()
	l := &lab{Lab: labtest.Start(t)}
	config.Coordinators, config.CredentialsFile = 2, l.Credentials
	var err error
	l.Stack, err = stack.Start(context.Background(), config)
	require.NoError(t, err)
	t.Cleanup(l.Stop)
	return l
}

// sharedLab is the lab of all tests that need none of their own.
func sharedLab(t *testing.T) *lab {
	t.Helper()
	l, err := shared()
	require.NoError(t, err)
	return l
}

var (
	shared = sync.OnceValues(func() (*lab, error) {
		dir, err := os.MkdirTemp("", "reprise-conformance-")
		if err != nil {
			return nil, err
		}
		l := &lab{}
		stops = append(stops, func() { _ = os.RemoveAll(dir) })
		if l.Lab, err = labtest.Open(dir); err != nil {
			return nil, err
		}
		stops = append(stops, l.Close)
		l.Stack, err = stack.Start(context.Background(), stack.Config{CredentialsFile: l.Credentials, Coordinators: 2})
		if err != nil {
			return nil, err
		}
		stops = append(stops, l.Stop)
		return l, nil
	})
	stops []func()
)

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(stops) - 1; i >= 0; i-- {
		stops[i]()
	}
	redistest.StopShared()
	os.Exit(code)
}

type object = map[string]any

// node is one of a document, with its parameters as JSON.
func node(name, nodeType string, version float64, parameters string) object {
	return object{"name": name, "type": nodeType, "typeVersion": version, "position": []int{0, 0}, "parameters": json.RawMessage(parameters)}
}

func with(n object, field string, value any) object {
	n[field] = value
	return n
}

func trigger() object { return node("Start", "n8n-nodes-base.manualTrigger", 1, `{}`) }

// fetch is a node that gets a page, which no coordinator does itself.
func fetch(name, url string) object {
	return node(name, "n8n-nodes-base.httpRequest", 4.2, `{"url":`+strconv.Quote(url)+`,"options":{}}`)
}

// flow is a document. Its connections are "A -> B", "A/1 -> B" or "T ~ai_tool~> B".
func flow(id string, settings object, nodes []object, connections ...string) []byte {
	all := object{"executionOrder": "v1"}
	for k, v := range settings {
		all[k] = v
	}
	places := map[string]map[string][][]object{}
	for _, c := range connections {
		from, to, _ := strings.Cut(c, "> ")
		space := strings.LastIndexByte(from, ' ')
		name, connType := from[:space], strings.Trim(from[space+1:], "~-")
		if connType == "" {
			connType = "main"
		}
		name, port, _ := strings.Cut(name, "/")
		output, _ := strconv.Atoi(port)
		if places[name] == nil {
			places[name] = map[string][][]object{}
		}
		for len(places[name][connType]) <= output {
			places[name][connType] = append(places[name][connType], []object{})
		}
		places[name][connType][output] = append(places[name][connType][output], object{"node": to, "type": connType, "index": 0})
	}
	data, err := json.Marshal(object{"id": id, "name": "The " + id, "nodes": nodes, "connections": places, "settings": all})
	if err != nil {
		panic(err) // only what JSON knows
	}
	return data
}

// newID is an execution's id that no other test has.
func newID(name string) engine.ExecutionID { return engine.ExecutionID(name + "-" + uuid.NewString()) }

func (l *lab) submit(t *testing.T, s queue.Submission) engine.ExecutionID {
	t.Helper()
	id, err := l.Conn.Submit(t.Context(), &s)
	require.NoError(t, err)
	return id
}

// finished waits for the end of an execution and returns its run in n8n's shape.
func (l *lab) finished(t *testing.T, id engine.ExecutionID) gjson.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	x, err := l.Conn.WaitFinished(ctx, id, true, false)
	require.NoError(t, err, "execution %s", id)
	data, err := json.Marshal(x)
	require.NoError(t, err)
	return gjson.ParseBytes(data)
}

// records are the runs of a node, whose name has no dots.
func records(run gjson.Result, name string) []gjson.Result {
	return run.Get("data.resultData.runData." + name).Array()
}

// becomes waits until an execution has a status.
func (l *lab) becomes(t *testing.T, id engine.ExecutionID, status engine.Status) {
	t.Helper()
	require.Eventually(t, func() bool {
		x, err := l.Conn.Get(t.Context(), id, false)
		return err == nil && x.Status == status
	}, within, 10*time.Millisecond, "execution %s does not become %s", id, status)
}

// refused checks that an error is the API's refusal with a code, whose text has all
// words.
func refused(t *testing.T, err error, code string, words ...string) {
	t.Helper()
	var problem *queue.Problem
	require.ErrorAs(t, err, &problem)
	require.Equal(t, code, problem.Code, problem.Message)
	for _, word := range words {
		require.Contains(t, problem.Message, word)
	}
}
