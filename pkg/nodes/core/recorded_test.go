package core

import (
	"testing"

	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
)

func TestRecordedRuns(t *testing.T) { nodestest.RunRecordings(t, Types(), nil) }
