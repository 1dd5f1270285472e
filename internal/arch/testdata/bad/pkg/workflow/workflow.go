// Package workflow is bad.
package workflow

import _ "github.com/reprise-engine/reprise/pkg/engine"
