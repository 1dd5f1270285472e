package ai

import (
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/fromai"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Types returns the node types of the package.
func Types() []*node.Type {
	return fromai.WithTools(node.Supporting([]*node.Type{
		Agent(),
		subNode("lmChatOpenAi", 1, 1.1, 1.2, 1.3),
		subNode("memoryBufferWindow", 1, 1.1, 1.2, 1.3, 1.4),
		parserType(),
		Calculator(), CodeTool(), ThinkTool(),
	}, supported), map[string]fromai.Variant{
		family + "agent": {Description: "AI Agent that can call other tools", Versions: []float64{2.2, 3}},
	})
}

func parserType() *node.Type {
	t := subNode("outputParserStructured", 1, 1.1, 1.2, 1.3)
	t.Accepts = []string{workflow.LanguageModel}
	return t
}
