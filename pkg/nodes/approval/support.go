package approval

import "github.com/reprise-engine/reprise/pkg/node"

// supported declares what is said of types that are reprise's own.
var supported = map[string]node.Support{
	TypeGate:     {Options: []string{}, Note: "reprise's own: asks a person before a tool of an Agent runs"},
	TypeApproval: {Options: []string{}, Note: "reprise's own: asks a person, and goes on by yes or no"},
}
