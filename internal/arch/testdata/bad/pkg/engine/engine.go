// Package engine is bad.
package engine

import (
	_ "context"
	_ "crypto/rand"
	_ "log/slog"
	_ "math/rand/v2"
	_ "net/http"
	_ "os"

	_ "go.uber.org/zap"

	_ "github.com/reprise-engine/reprise/pkg/node"
	_ "github.com/reprise-engine/reprise/pkg/workflow"
)
