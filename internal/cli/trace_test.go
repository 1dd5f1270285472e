package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/sjson"

	"github.com/reprise-engine/reprise/internal/natstest"
	"github.com/reprise-engine/reprise/internal/redistest"
)

// stackTrace is what an Agent with two tools does to the stack: the tools go
// above it, and it is run again when both have answered.
const stackTrace = `▶ Start      stack after pop: []
✓ Start      output as main             stack: [Question]
▶ Question   stack after pop: []
✓ Question   output as main             stack: [AI Agent]
▶ AI Agent   stack after pop: []
▶ Model      stack after pop: []
✓ Model      output as ai_languageModel stack: []
▶ Calculator stack after pop: [Shout, AI Agent(resume: 2 results)]
✓ Calculator output as ai_tool          stack: [Shout, AI Agent(resume: 2 results)]
▶ Shout      stack after pop: [AI Agent(resume: 2 results)]
✓ Shout      output as ai_tool          stack: [AI Agent(resume: 2 results)]
▶ Model      stack after pop: []
✓ Model      output as ai_languageModel stack: []
✓ AI Agent   output as main             stack: []
` + traceEnd

const traceEnd = `
answer: Based on the tools: Calculator returned 42; Shout returned SHOUT HI AND COMPUTE 6 * 7.
runs  : Start=1 Question=1 Model=2 Calculator=1 Shout=1 AI Agent=1
`

// changed is a copy of an example with one value set.
func changed(t *testing.T, name, path, value string) string {
	t.Helper()
	data, err := os.ReadFile(example(name))
	require.NoError(t, err)
	document, err := sjson.Set(string(data), path, value)
	require.NoError(t, err)
	return file(t, document)
}

func TestTrace(t *testing.T) {
	t.Parallel()
	got := reprise(t, "run", "--trace", example("agent-stack-trace.json"))
	assert.Equal(t, stackTrace, got.stdout)
	assert.Empty(t, got.stderr)
	assert.Zero(t, got.code)
}

func TestTraceOrderV0(t *testing.T) {
	t.Parallel()
	got := reprise(t, "run", "--trace", changed(t, "agent-stack-trace.json", "settings.executionOrder", "v0"))
	assert.Equal(t, stackTrace, got.stdout)
	assert.Zero(t, got.code)
}

// TestTraceRealServers is the same on server processes, with several of each service.
func TestTraceRealServers(t *testing.T) {
	t.Parallel()
	nats, redis := natstest.Start(t, natstest.Options{}), redistest.Start(t)
	servers := []string{"--nats", nats.URL, "--redis", redis.URL(), "--coordinators", "2", "--workers", "3"}
	got := reprise(t, append([]string{"run", "--trace", example("agent-stack-trace.json")}, servers...)...)
	assert.Equal(t, stackTrace, got.stdout)
	assert.Zero(t, got.code)
	got = reprise(t, append([]string{"run", "--trace", example("agent-parallel-tools.json")}, servers...)...)
	assert.Contains(t, got.stdout, traceEnd)
	assert.Zero(t, got.code)
}

// TestTraceParallel: both tools start before either has answered, in every order
// of the main flow; answers and records keep the order asked.
func TestTraceParallel(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"v1", "v0"} {
		got := reprise(t, "run", "--trace", changed(t, "agent-parallel-tools.json", "settings.executionOrder", order))
		assert.Zero(t, got.code)
		assert.True(t, strings.HasSuffix(got.stdout, traceEnd), got.stdout)
		var tools []string
		for line := range strings.Lines(got.stdout) {
			for _, tool := range []string{"Calculator", "Shout"} {
				for _, mark := range []string{"▶", "✓"} {
					if strings.HasPrefix(line, mark+" "+tool+" ") {
						tools = append(tools, mark+" "+tool)
					}
				}
			}
		}
		require.Len(t, tools, 4, got.stdout)
		assert.Equal(t, []string{"▶ Calculator", "▶ Shout"}, tools[:2], order)
		assert.ElementsMatch(t, []string{"✓ Calculator", "✓ Shout"}, tools[2:], order)
	}
}
