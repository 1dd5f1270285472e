package ai

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// TestConformance holds the Agent to the numbered list of what it must do, a file
// of testdata/conformance a number. The first line says what: "# N 099: …" where it is
// as in n8n, "# I 106 [7.22]: …" where it is better on purpose, with the number of n8n's
// quirk; "# note: …" says why we differ. The verbs are those of sceneCommand; run with
// -rewrite to write what happens into the files, and read the diff.
func TestConformance(t *testing.T) {
	paths, err := filepath.Glob("testdata/conformance/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := &script{}
			datadriven.RunTest(t, path, s.command)
		})
	}
}

// script is one conformance file as it is played.
type script struct{ scene *scene }

var decisionWords = regexp.MustCompile(`^(.+?) (approve|deny)\b ?(.*)$`)

// command plays one verb of a file and returns what happened.
func (f *script) command(t *testing.T, d *datadriven.TestData) string {
	if d.Cmd == "workflow" {
		// workflow: a workflow in the words of sketch; models and memories begin anew.
		f.scene = newScene(t, d.Input)
		return ""
	}
	s := f.scene
	s.t = t
	s.log.Reset()
	words := strings.Split(d.Input, "\n")
	switch d.Cmd {
	case "model":
		// model NAME [prompt=TEXT]: the script of the model of that agent, see modelScripts.
		var prompt string
		d.MaybeScanArgs(t, "prompt", &prompt)
		s.models.play(argument(d), prompt, d.Input)
	case "run":
		// run: a new execution; the input has an item a line. Prints the requests to models with what
		// they answered, the runs of tools, the questions, and how it ended (as do the verbs below).
		// With until=NODE it stops before that node runs.
		s.until = ""
		d.MaybeScanArgs(t, "until", &s.until)
		s.start(words...)
	case "continue":
		// continue: goes on where until stopped.
		s.until = ""
		s.work()
	case "decide":
		// decide: "Gate approve" or "Gate#1 deny because …", a line each.
		for _, line := range words {
			m := decisionWords.FindStringSubmatch(line)
			require.NotNil(t, m, line)
			s.decide(m[1], m[2] == "approve", m[3])
		}
	case "decide-token":
		// decide-token TOKEN: approves by the token of a question, open or not.
		s.decideToken(string(s.state.Meta.ID)+argument(d), true, "")
	case "expire":
		// expire GATE: its deadline passes.
		s.expire(argument(d))
	case "cancel":
		s.cancel()
	case "restart":
		// restart: all that is in memory is lost, the stored form is read.
		s.restart()
	case "records":
		// records [NODE, …]: the run data of nodes, one a line of the input; all without.
		if d.Input == "" {
			words = nil
		}
		return s.records(words...)
	case "offered":
		// offered AGENT: the tools that its model was last offered.
		return s.models.offered(argument(d))
	case "memory":
		// memory SESSION: what is stored of a conversation.
		return s.remembered(argument(d))
	case "stack":
		// stack: the jobs in flight, the stack, top first, and what is parked.
		return s.stack()
	case "observation", "verdict":
		// observation: a tool's record (JSON, a line each) as the model reads it.
		// verdict: a gate's record as the Agent reads it.
		for _, line := range words {
			var r engine.Record
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			if d.Cmd == "observation" {
				s.logf("%s\n", observation(&r))
			} else if v := verdictOf(&r); v.feedback != "" {
				s.logf("%s %q\n", v.outcome, v.feedback)
			} else {
				s.logf("%s\n", v.outcome)
			}
		}
	default:
		t.Fatalf("%s: unknown verb %s", d.Pos, d.Cmd)
	}
	return s.log.String()
}

func argument(d *datadriven.TestData) string {
	if len(d.CmdArgs) == 0 {
		return ""
	}
	return d.CmdArgs[0].Key
}
