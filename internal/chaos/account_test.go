package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// shapes of a workload, by name.
func shapes() map[string]*shape {
	all := map[string]*shape{}
	for _, s := range newWorkload("run", "http://ledger", "").shapes {
		all[s.name] = s
	}
	return all
}

// finished is an order that ended well a second after it began, with all its effects in
// the ledger.
func finished(l *ledger, id string, s *shape) *order {
	for _, tool := range s.effects {
		l.keys[effect{id, tool}] = []string{id + "/" + tool}
	}
	return &order{id: engine.ExecutionID(id), shape: s, accepted: true, ended: time.Unix(1, 0)}
}

func emptyLedger() *ledger {
	return &ledger{keys: map[effect][]string{}, refused: map[effect]bool{}, allowed: func(effect) bool { return true }}
}

// Each row breaks the promise, or does not, in one way.
func TestAccount(t *testing.T) {
	charge := effect{"a", toolCharge}
	mail := effect{"a", toolMail}
	for name, test := range map[string]struct {
		shape string
		spoil func(l *ledger, o *order, r *Report)
		held  bool
		count func(r *Report) int // 1 in this row, 0 when nothing is spoiled
	}{
		"all well": {held: true, spoil: func(*ledger, *order, *Report) {}, count: func(r *Report) int { return r.Executions.Right }},
		"repeated under its key": {
			held:  true,
			spoil: func(l *ledger, _ *order, _ *Report) { l.keys[mail] = append(l.keys[mail], l.keys[mail][0]) },
			count: func(r *Report) int { return r.Effects.RepeatedSameKey },
		},
		"repeated under another key": {
			spoil: func(l *ledger, _ *order, _ *Report) { l.keys[mail] = append(l.keys[mail], "new") },
			count: func(r *Report) int { return r.Effects.OtherKey },
		},
		"without a key": {
			spoil: func(l *ledger, _ *order, _ *Report) { l.keys[mail] = []string{""} },
			count: func(r *Report) int { return r.Effects.OtherKey },
		},
		"under the key of another effect": {
			spoil: func(l *ledger, _ *order, _ *Report) { l.keys[mail] = l.keys[charge] },
			count: func(r *Report) int { return r.Effects.OtherKey },
		},
		"repeated though not to be": {
			shape: "once",
			spoil: func(l *ledger, _ *order, _ *Report) { l.keys[mail] = append(l.keys[mail], l.keys[mail][0]) },
			count: func(r *Report) int { return r.Effects.RepeatedOnce },
		},
		"unknown outcome, it happened": {
			shape: "once", held: true,
			spoil: func(_ *ledger, o *order, _ *Report) { o.lost = lost{unknown: true, effects: []string{toolMail}} },
			count: func(r *Report) int { return r.Executions.OutcomeUnknown },
		},
		"unknown outcome, it did not happen": {
			shape: "once", held: true,
			spoil: func(l *ledger, o *order, _ *Report) {
				o.lost = lost{unknown: true, effects: []string{toolMail}}
				delete(l.keys, mail)
			},
			count: func(r *Report) int { return r.Executions.OutcomeUnknown },
		},
		"given up after the delivery limit": {
			held: true,
			spoil: func(l *ledger, o *order, _ *Report) {
				o.lost = lost{limit: true, effects: []string{toolMail}}
				delete(l.keys, mail)
			},
			count: func(r *Report) int { return r.Executions.GivenUp },
		},
		"missing": {
			spoil: func(l *ledger, _ *order, _ *Report) { delete(l.keys, mail) },
			count: func(r *Report) int { return r.Effects.Missing },
		},
		"nobody had asked": {
			spoil: func(l *ledger, _ *order, _ *Report) { l.keys[effect{"b", toolMail}] = []string{"k"} },
			count: func(r *Report) int { return r.Effects.Unknown },
		},
		"before the approval": {
			shape: "approval",
			spoil: func(l *ledger, _ *order, _ *Report) { l.forbidden = []effect{charge} },
			count: func(r *Report) int { return r.Effects.Unapproved },
		},
		"wrong answer": {
			spoil: func(_ *ledger, o *order, _ *Report) { o.wrong = "said nonsense" },
			count: func(r *Report) int { return r.Executions.Wrong },
		},
		"stuck": {
			spoil: func(_ *ledger, o *order, _ *Report) { o.ended = time.Time{} },
			count: func(r *Report) int { return r.Executions.Stuck },
		},
		"a job is left": {
			spoil: func(_ *ledger, _ *order, r *Report) { r.Left.Jobs = 1 },
			count: func(r *Report) int { return r.Left.Jobs },
		},
		"a process ended by itself": {
			spoil: func(_ *ledger, _ *order, r *Report) { r.Ended = []string{"worker 1, 1 times"} },
			count: func(r *Report) int { return len(r.Ended) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.shape == "" {
				test.shape = "plain"
			}
			l, r := emptyLedger(), &Report{}
			o := finished(l, "a", shapes()[test.shape])
			test.spoil(l, o, r)
			r.account([]*order{o}, l, nil)
			require.Equal(t, 1, test.count(r), "%+v", r)
			require.Equal(t, test.held, r.Held, "%+v", r)
			x := r.Executions
			require.Equal(t, x.Submitted, x.Right+x.OutcomeUnknown+x.GivenUp+x.Wrong+x.Stuck)
			if name != "a job is left" {
				require.Equal(t, test.held, len(r.Problems) == 0, "what is wrong is said: %q", r.Problems)
			}
			var text strings.Builder
			r.Print(&text)
			require.Equal(t, !test.held && len(r.Ended) == 0, strings.Contains(text.String(), "BROKEN"), text.String())
		})
	}
}

func TestProblemsAreBounded(t *testing.T) {
	l, r := emptyLedger(), &Report{}
	var orders []*order
	for i := range 3 * maxProblems {
		o := finished(l, fmt.Sprint(i), shapes()["plain"])
		o.wrong = "said nonsense"
		orders = append(orders, o)
	}
	r.account(orders, l, nil)
	require.Len(t, r.Problems, maxProblems+1)
	require.Equal(t, fmt.Sprintf("and %d more", 2*maxProblems), r.Problems[maxProblems])
}

// execution is what the API tells of an order that ended well.
func execution(id string, s *shape) (*order, map[string][]engine.Record) {
	o := &order{id: engine.ExecutionID(id), shape: s}
	runs := map[string][]engine.Record{}
	for _, name := range s.nodes {
		runs[name] = []engine.Record{{Status: engine.StatusSuccess}}
	}
	said(runs, answer(id, nil))
	return o, runs
}

func said(runs map[string][]engine.Record, text string) {
	data, _ := json.Marshal(map[string]any{"main": [][]map[string]any{{{"json": map[string]string{"output": text}}}}})
	if err := json.Unmarshal(data, &runs[agentName][0].Data); err != nil {
		panic(err) // the shape of run data
	}
}

func TestJudge(t *testing.T) {
	lostMail := &engine.NodeError{Message: "The outcome is unknown", Reason: engine.ReasonWorkerLost}
	fail := func(runs map[string][]engine.Record, name string, e *engine.NodeError) {
		runs[name][0].Status, runs[name][0].Error = engine.StatusError, e
		said(runs, answer("a", map[string]string{name: e.Message}))
	}
	for name, test := range map[string]struct {
		shape   string
		workers int // that were lost
		spoil   func(x *queue.Execution, runs map[string][]engine.Record)
		wrong   string
		lost    lost
	}{
		"right": {spoil: func(*queue.Execution, map[string][]engine.Record) {}},
		"failed": {
			spoil: func(x *queue.Execution, _ map[string][]engine.Record) {
				x.Status, x.Error = engine.StatusError, &engine.NodeError{Node: "Wait", Message: "boom"}
			},
			wrong: `ended with status error in node "Wait": boom`,
		},
		"another's result": {
			spoil: func(_ *queue.Execution, runs map[string][]engine.Record) { said(runs, answer("b", nil)) },
			wrong: "the answer is",
		},
		"a tool ran twice": {
			spoil: func(_ *queue.Execution, runs map[string][]engine.Record) {
				runs[toolMail] = append(runs[toolMail], runs[toolMail][0])
			},
			wrong: `node "Mail" has 2 runs`,
		},
		"a tool failed": {
			spoil: func(_ *queue.Execution, runs map[string][]engine.Record) {
				fail(runs, toolStock, &engine.NodeError{Message: "no"})
			},
			wrong: `node "Stock" ended with status error: no`,
		},
		"given up, as it must be": {
			shape: "once", workers: 1,
			spoil: func(_ *queue.Execution, runs map[string][]engine.Record) { fail(runs, toolMail, lostMail) },
			lost:  lost{unknown: true, effects: []string{toolMail}},
		},
		"given up though no worker was lost": {
			shape: "once",
			spoil: func(_ *queue.Execution, runs map[string][]engine.Record) { fail(runs, toolMail, lostMail) },
			wrong: `node "Mail" ended with status error`,
		},
		"given up though it is to be repeated": {
			workers: 2,
			spoil:   func(_ *queue.Execution, runs map[string][]engine.Record) { fail(runs, toolMail, lostMail) },
			wrong:   `node "Mail" ended with status error`,
		},
		"given up after the delivery limit": {
			workers: 3,
			spoil:   func(_ *queue.Execution, runs map[string][]engine.Record) { fail(runs, toolMail, lostMail) },
			lost:    lost{limit: true, effects: []string{toolMail}},
		},
		"given up, but the Agent was not told": {
			workers: 3,
			spoil: func(_ *queue.Execution, runs map[string][]engine.Record) {
				fail(runs, toolMail, lostMail)
				said(runs, answer("a", nil))
			},
			wrong: "the answer is", lost: lost{limit: true, effects: []string{toolMail}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.shape == "" {
				test.shape = "plain"
			}
			o, runs := execution("a", shapes()[test.shape])
			x := &queue.Execution{Status: engine.StatusSuccess}
			test.spoil(x, runs)
			var err error
			x.Data, err = json.Marshal(map[string]any{"resultData": map[string]any{"runData": runs}})
			require.NoError(t, err)
			gone, err := o.judge(x, test.workers)
			if test.wrong == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.wrong)
			}
			require.Equal(t, test.lost, gone)
		})
	}
}

// The ledger counts requests, refuses some at first, and notices what nobody allowed.
func TestLedger(t *testing.T) {
	l, err := startLedger(func(e effect) bool { return e.order != "asks" })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.stop()) })
	call := func(order, tool, key string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.url+"/"+tool, nil)
		require.NoError(t, err)
		r.Header.Set(orderHeader, order)
		r.Header.Set("Idempotency-Key", key)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	require.Equal(t, http.StatusOK, call("a", toolCharge, "1"))
	require.Equal(t, http.StatusOK, call("a", toolCharge, "1"))
	require.Equal(t, http.StatusOK, call("asks", toolCharge, "2"))
	refused := ""
	for i := 0; refused == ""; i++ {
		if id := fmt.Sprint(i); refuses(effect{id, toolStock}) {
			refused = id
		}
	}
	require.Equal(t, http.StatusServiceUnavailable, call(refused, toolStock, "3"))
	require.Equal(t, http.StatusOK, call(refused, toolStock, "3"))
	sum, problems := l.audit(map[effect]duty{
		{"a", toolCharge}: {must: true}, {"asks", toolCharge}: {must: true}, {refused, toolStock}: {must: true},
	})
	require.Equal(t, Effects{Expected: 3, Seen: 3, RepeatedSameKey: 1, Unapproved: 1, Refused: 1}, sum)
	require.Len(t, problems, 1)
}
