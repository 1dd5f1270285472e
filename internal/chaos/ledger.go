package chaos

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"path"
	"sync"
	"time"
)

// orderHeader names the order of an effect.
const orderHeader = "X-Order"

const (
	// slowAnswer and usualAnswer are how long the ledger takes after an effect, so that a
	// worker can be killed when it has happened and is not known of.
	slowAnswer  = time.Second
	usualAnswer = 100 * time.Millisecond
	// refuseOneIn is how often the stock is out of order at first.
	refuseOneIn = 4
)

// effect is what one tool does in one order.
type effect struct{ order, tool string }

// ledger is the outside world: it counts the effects of tools.
type ledger struct {
	url string
	// allowed says whether an effect may happen: whether it needs no approval or has it.
	allowed func(effect) bool

	mu        sync.Mutex
	keys      map[effect][]string // of every request that had its effect
	refused   map[effect]bool     // was told to try again
	forbidden []effect            // happened without an approval

	server *http.Server
	served chan error
}

func startLedger(allowed func(effect) bool) (*ledger, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the ledger: %w", err)
	}
	l := &ledger{
		url: "http://" + listener.Addr().String(), allowed: allowed,
		keys: map[effect][]string{}, refused: map[effect]bool{}, served: make(chan error, 1),
	}
	l.server = &http.Server{Handler: l, ReadHeaderTimeout: 5 * time.Second}
	go func() { l.served <- l.server.Serve(listener) }()
	return l, nil
}

// ServeHTTP implements http.Handler.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := effect{order: r.Header.Get(orderHeader), tool: path.Base(r.URL.Path)}
	if !l.enter(e, r.Header.Get("Idempotency-Key")) {
		http.Error(w, `{"message":"out of order, try again"}`, http.StatusServiceUnavailable)
		return
	}
	takes := usualAnswer
	if e.tool == toolMail {
		takes = slowAnswer
	}
	pause(r.Context(), takes)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprint(w, receipt(e.tool, e.order))
}

// enter counts an effect, or refuses it.
func (l *ledger) enter(e effect, key string) bool {
	allowed := l.allowed(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.refused[e] && refuses(e) {
		l.refused[e] = true
		return false
	}
	if !allowed {
		l.forbidden = append(l.forbidden, e)
	}
	l.keys[e] = append(l.keys[e], key)
	return true
}

// refuses says whether an effect is refused at first: the same for the same order.
func refuses(e effect) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(e.order))
	return e.tool == toolStock && h.Sum32()%refuseOneIn == 0
}

// stop ends the server.
func (l *ledger) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*slowAnswer)
	defer cancel()
	err := l.server.Shutdown(ctx)
	if err != nil {
		err = l.server.Close()
	}
	if serving := <-l.served; !errors.Is(serving, http.ErrServerClosed) {
		err = errors.Join(err, serving)
	}
	return err
}

// Effects is what became of the effects of tools.
type Effects struct {
	// Expected effects, of all executions that were submitted, without those that were
	// given up, and how many of them were seen.
	Expected int `json:"expected"`
	Seen     int `json:"seen"`
	// RepeatedSameKey were seen more than once, each time under the same key.
	RepeatedSameKey int `json:"repeated_same_key"`
	// OtherKey were seen again under another key, without one, or under the key of
	// another effect. Must be 0.
	OtherKey int `json:"repeated_other_key"`
	// Missing were not seen. Must be 0.
	Missing int `json:"missing"`
	// Unknown were not expected from any execution. Must be 0.
	Unknown int `json:"unknown"`
	// Unapproved happened before the person had said yes. Must be 0.
	Unapproved int `json:"unapproved"`
	// RepeatedOnce were seen more than once though they are not to be repeated, under
	// whatever key. Must be 0.
	RepeatedOnce int `json:"repeated_not_to_be"`
	// Refused is how many were refused at first, to be tried again.
	Refused int `json:"refused"`
}

// duty is what is expected of an effect.
type duty struct {
	must bool // it must be there; else it may
	once bool // it must not be repeated under the same key either
}

// audit compares what was seen with what had to be. problems says what is wrong, in words.
func (l *ledger) audit(duties map[effect]duty) (sum Effects, problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum = Effects{Refused: len(l.refused), Unapproved: len(l.forbidden)}
	for _, e := range l.forbidden {
		problems = append(problems, fmt.Sprintf("%s of %s happened before it was approved", e.tool, e.order))
	}
	owner := map[string]effect{}
	for e, keys := range l.keys {
		d, known := duties[e]
		switch {
		case d.must:
			sum.Seen++
		case !known:
			sum.Unknown++
			problems = append(problems, fmt.Sprintf("%s of %s happened, which nobody had asked for", e.tool, e.order))
		}
		other := false
		for _, key := range keys {
			first, known := owner[key]
			other = other || key == "" || key != keys[0] || known && first != e
			owner[key] = e
		}
		switch {
		case other:
			sum.OtherKey++
			problems = append(problems, fmt.Sprintf("%s of %s happened under the keys %q", e.tool, e.order, keys))
		case len(keys) > 1 && d.once:
			sum.RepeatedOnce++
			problems = append(problems, fmt.Sprintf("%s of %s was repeated, which it must not be", e.tool, e.order))
		case len(keys) > 1:
			sum.RepeatedSameKey++
		}
	}
	for e, d := range duties {
		if !d.must {
			continue
		}
		sum.Expected++
		if len(l.keys[e]) == 0 {
			sum.Missing++
			problems = append(problems, fmt.Sprintf("%s of %s never happened", e.tool, e.order))
		}
	}
	return sum, problems
}
