// Package node is bad.
package node

import _ "github.com/reprise-engine/reprise/pkg/queue"
