// Package queue is bad.
package queue

import _ "github.com/reprise-engine/reprise/pkg/state"
