package state

import _ "github.com/reprise-engine/reprise/pkg/queue"
