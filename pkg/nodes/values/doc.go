// Package values holds the node types that compute values: Date & Time, Crypto, JWT
// and TOTP; the first two are also an Agent's tools (dateTimeTool, cryptoTool). Names, versions, parameters and what comes out are n8n's.
//
// Each makes one item of one item. The clock is the call's; random values come from
// the operating system. Keys and passphrases stay in the worker: they are in no item
// and in no error.
package values

import (
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/fromai"
)

const base = "n8n-nodes-base."

// Types lists all node types of the package.
func Types() []*node.Type {
	return node.Supporting([]*node.Type{
		DateTime(), DateTimeOld(), Crypto(), JWT(), TOTP(),
		fromai.Tool(DateTime(), "Works with dates and times: formats, rounds, adds, subtracts, compares them"),
		fromai.Tool(Crypto(), "Computes hashes and signatures, encrypts, decrypts, and makes random texts"),
	}, support)
}
