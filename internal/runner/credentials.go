package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-engine/reprise/internal/credentials"
	"github.com/reprise-engine/reprise/internal/redact"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// noting resolves credentials for a run: it evaluates the expressions in them, gets the tokens of OAuth2,
// and notes what is secret.
func (r *Runner) noting(secrets *redact.Set, scope expression.Scope, n *workflow.Node) func(context.Context, string, workflow.CredentialRef) (map[string]any, error) {
	scope.Node = n
	return func(ctx context.Context, credentialType string, ref workflow.CredentialRef) (map[string]any, error) {
		data, err := r.config.Credentials(ctx, credentialType, ref)
		secrets.Add(credentials.Secrets(credentialType, data)...)
		if err != nil {
			return nil, err
		}
		if data, err = r.evaluated(ctx, &scope, ref, data); err != nil {
			return nil, err
		}
		secrets.Add(credentials.Secrets(credentialType, data)...)
		resolved, err := r.tokens.Resolve(ctx, r.config.HTTP, credentialType, data, node.RefusedToken(ctx))
		if err != nil {
			return nil, err
		}
		secrets.Add(credentials.Secrets(credentialType, resolved)...)
		return resolved, nil
	}
}

// evaluated is a credential's data with the expressions in its fields evaluated on the first input item.
// What an expression says, and why it fails, may hold a secret, so an error names its field only.
func (r *Runner) evaluated(ctx context.Context, scope *expression.Scope, ref workflow.CredentialRef, data map[string]any) (map[string]any, error) {
	var changed map[string]any
	for _, field := range slices.Sorted(maps.Keys(data)) {
		text, ok := data[field].(string)
		if !ok || !strings.HasPrefix(text, "=") || !strings.Contains(text, "{{") {
			continue // "=" may begin a password
		}
		raw, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		value, err := r.config.Evaluator.Resolve(ctx, scope, 0, raw)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var decoded any
		if err != nil || value != nil && json.Unmarshal(value, &decoded) != nil {
			return nil, &engine.NodeError{
				Name:        "NodeOperationError",
				Message:     fmt.Sprintf("The expression in field %q of credential %q cannot be evaluated", field, ref.Name),
				Description: "Expressions in credentials see the node's first input item ($json), $now, $execution and $workflow",
			}
		}
		if changed == nil {
			changed = maps.Clone(data)
		}
		changed[field] = decoded
	}
	if changed == nil {
		return data, nil
	}
	return changed, nil
}
