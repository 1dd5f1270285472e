// Package nodetypes lists the node types that the programs know.
package nodetypes

import (
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/ai"
	"github.com/reprise-engine/reprise/pkg/nodes/approval"
	"github.com/reprise-engine/reprise/pkg/nodes/core"
	"github.com/reprise-engine/reprise/pkg/nodes/flow"
	"github.com/reprise-engine/reprise/pkg/nodes/http"
	"github.com/reprise-engine/reprise/pkg/nodes/mail"
)

// Registry returns a registry with all node types.
func Registry() *node.Registry {
	r := &node.Registry{}
	r.Register(core.Types()...)
	r.Register(http.Types()...)
	r.Register(ai.Types()...)
	r.Register(flow.Types()...)
	r.Register(approval.Types()...)
	r.Register(mail.Types()...)
	return r
}
