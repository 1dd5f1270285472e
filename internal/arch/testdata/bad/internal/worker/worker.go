// Package worker is bad.
package worker

import _ "github.com/reprise-engine/reprise/pkg/state"
