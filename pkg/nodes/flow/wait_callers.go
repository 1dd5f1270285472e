package flow

import (
	"context"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
)

const basicAuth = "httpBasicAuth"

// callerTypes are the credentials that callers are checked against, by the kind of authentication.
var callerTypes = map[string]string{"basicAuth": basicAuth, "headerAuth": "httpHeaderAuth", "jwtAuth": "jwtAuth"}

// readCallers reads who may end a wait; nil is whoever has its link.
func readCallers(ctx context.Context, call *node.Call) (*engine.Callers, error) {
	authentication, err := call.String(ctx, 0, "incomingAuthentication", "none")
	if err != nil || authentication == "" || authentication == "none" {
		return nil, err
	}
	kind, ok := callerTypes[authentication]
	if !ok {
		return nil, node.OperationError(-1, fmt.Sprintf("The authentication %q is unknown", authentication),
			"The parameter incomingAuthentication must be none, basicAuth, headerAuth or jwtAuth.")
	}
	ref, ok := call.Node.Credentials[kind]
	if !ok {
		return nil, node.OperationError(-1, "There is no credential to check callers against",
			"Choose one of the type "+kind+" in the node, and put it into the coordinators' REPRISE_WEBHOOK_CREDENTIALS_FILE.")
	}
	return &engine.Callers{Type: kind, Credential: ref}, nil
}
