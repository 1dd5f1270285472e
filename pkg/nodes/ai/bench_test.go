package ai

import (
	"os"
	"testing"

	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// BenchmarkAgent is one agent execution: model, two tools, model, answer. It
// includes the scripted model and its HTTP server.
func BenchmarkAgent(b *testing.B) {
	script, err := os.ReadFile("testdata/scenarios.json")
	if err != nil {
		b.Fatal(err)
	}
	server := scripted(b, script)
	p := newPlay(b, document(`{"promptType":"define","text":"x"}`, `{"model":"same-tool-twice","responsesApiEnabled":false}`, "", ""), server.URL)
	inputs := nodestest.Items(`{}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.run("Agent", inputs, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkToolbox is what each slice pays for describing its tools.
func BenchmarkToolbox(b *testing.B) {
	p := newPlay(b, document(`{}`, `{}`, "", ""), "http://127.0.0.1:1")
	call := p.call("Agent", workflow.Items{{}}, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := openToolbox(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}
