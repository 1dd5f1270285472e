// Package examples holds workflows that really run. Those that the programs
// need themselves are embedded.
package examples

import _ "embed"

// Demo is the workflow of "reprise demo": an Agent with three tools, one of which,
// once a person approves, charges a card at the URL that the trigger's item gives as "ledger".
//
//go:embed demo.json
var Demo []byte
