package crashtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// A coordinator is killed when it has stored that an execution failed and has not
// started its error workflow yet, or has but has not noted that, and so is the one that
// tries it next: it is started once.
func TestCoordinatorKilledAroundAnErrorWorkflow(t *testing.T) {
	for _, point := range []string{"before-start-error-workflow", "after-start-error-workflow"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c := startClusterOf(t, 1)
			c.startDoomed(point)
			c.ledger.breaks("Fails")
			c.put(document("alarm", nil, []object{node("Trigger", "n8n-nodes-base.errorTrigger", 1, object{}), c.ledger.step("Alarm")}, "Trigger -> Alarm"))
			ids := newIDs(1)
			c.begin(ids, queue.Submission{Workflow: document("failing", object{"errorWorkflow": "alarm"},
				[]object{trigger(), c.ledger.step("Fails")}, "Start -> Fails")})
			back := c.succeed(point)
			require.Equal(t, engine.StatusError, c.finished(ids[0]).Status)
			alarm := ids[0] + "-error"
			x := c.finished(alarm)
			require.Equal(t, engine.StatusSuccess, x.Status, "%s", x.Data)
			require.Less(t, time.UnixMilli(x.StoppedAt).Sub(back), healed)
			report := gjson.Parse(x.output(t, "Trigger"))
			require.Equal(t, ids[0], report.Get("execution.id").Str)
			require.Equal(t, "Fails", report.Get("execution.lastNodeExecuted").Str)
			c.nothingLeft() // whatever could start another one has been done
			require.Len(t, c.list("alarm"), 1)
			require.Equal(t, map[string]int{alarm: 1}, c.ledger.executionsOf("Alarm"))
			c.ledger.check(t, ids, []string{"Fails"}, never)
		})
	}
}
