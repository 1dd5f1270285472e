// Package state is bad.
package state

import _ "github.com/reprise-engine/reprise/internal/worker"
