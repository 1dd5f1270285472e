// Package nodetypes lists the node types that the programs know.
package nodetypes

import (
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/ai"
	"github.com/reprise-engine/reprise/pkg/nodes/approval"
	"github.com/reprise-engine/reprise/pkg/nodes/core"
	"github.com/reprise-engine/reprise/pkg/nodes/disk"
	"github.com/reprise-engine/reprise/pkg/nodes/evaluation"
	"github.com/reprise-engine/reprise/pkg/nodes/files"
	"github.com/reprise-engine/reprise/pkg/nodes/flow"
	"github.com/reprise-engine/reprise/pkg/nodes/http"
	"github.com/reprise-engine/reprise/pkg/nodes/images"
	"github.com/reprise-engine/reprise/pkg/nodes/imap"
	"github.com/reprise-engine/reprise/pkg/nodes/items"
	"github.com/reprise-engine/reprise/pkg/nodes/mail"
	"github.com/reprise-engine/reprise/pkg/nodes/tables"
	"github.com/reprise-engine/reprise/pkg/nodes/text"
	"github.com/reprise-engine/reprise/pkg/nodes/values"
	"github.com/reprise-engine/reprise/pkg/nodes/web"
)

// Config of the node types; the zero value has their defaults.
type Config struct {
	// MaxResponseBytes bounds the answers that a run of an HTTP Request node gets.
	MaxResponseBytes int64
	// Folders are what the nodes that read and write files of the machine may reach.
	Folders []string
}

// Registry returns a registry with all node types.
func Registry() *node.Registry { return RegistryWith(Config{}) }

// RegistryWith is Registry with settings.
func RegistryWith(c Config) *node.Registry {
	r := &node.Registry{}
	r.Register(core.Types()...)
	r.Register(http.Config{MaxResponseBytes: c.MaxResponseBytes}.Types()...)
	r.Register(ai.Types()...)
	r.Register(flow.Types()...)
	r.Register(approval.Types()...)
	r.Register(mail.Types()...)
	r.Register(imap.Types()...)
	r.Register(text.Types()...)
	r.Register(values.Types()...)
	r.Register(items.Types()...)
	r.Register(files.Types()...)
	r.Register(images.Types()...)
	r.Register(disk.Config{Folders: c.Folders}.Types()...)
	r.Register(web.Types()...)
	r.Register(tables.Types()...)
	r.Register(evaluation.Types()...)
	return r
}
