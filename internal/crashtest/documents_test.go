package crashtest

import documents "github.com/reprise-engine/reprise/internal/cluster"

type object = documents.Object

// The documents of these tests.
var (
	node     = documents.Node
	document = documents.Document
	trigger  = documents.Trigger
	agent    = documents.Agent
)

// step is a node of the main flow whose effect the ledger counts. It is run by
// workers.
func (l *ledger) step(name string) object { return documents.Step(l.URL, name) }

// tool is a tool of an Agent whose effect the ledger counts.
func (l *ledger) tool(name string) object { return documents.Tool(l.URL, name) }

// agentDocument is an Agent with tools that call the ledger.
func (l *ledger) agentDocument(tools []string) []byte {
	return documents.AgentDocument(l.URL, "crash", tools)
}
