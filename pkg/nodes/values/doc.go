// Package values holds the node types that compute values: Date & Time, Crypto, JWT
// and TOTP, all of which are also an Agent's tools (dateTimeTool, cryptoTool…). Names, versions, parameters and what
// comes out are n8n's.
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
	return fromai.WithTools(node.Supporting([]*node.Type{DateTime(), DateTimeOld(), Crypto(), JWT(), TOTP()}, support), map[string]fromai.Variant{
		base + "dateTime": {Description: "Works with dates and times: formats, rounds, adds, subtracts, compares them", Versions: DateTime().Versions},
		base + "crypto":   {Description: "Computes hashes and signatures, encrypts, decrypts, and makes random texts"},
		base + "jwt":      {Description: "Signs, verifies and decodes JSON web tokens"},
		base + "totp":     {Description: "Gives the one-time password of the moment, and for how many seconds it is valid"},
	})
}
