// Package expression is bad.
package expression

import _ "github.com/reprise-engine/reprise/pkg/engine"
