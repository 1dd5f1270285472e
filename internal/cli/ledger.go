package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// ledger is the outside world of the demo: a payment service that, as real ones
// do, knows a request that comes again by its Idempotency-Key. The first answer
// is held back until open is called.
type ledger struct {
	url    string
	server *http.Server
	served chan error

	asked chan charge // every request as it arrives
	gate  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	charges map[string]charge // by key
	calls   int
}

// charge is one charge and how often it was asked for.
type charge struct {
	Key    string  `json:"-"`
	ID     string  `json:"charge"`
	Amount float64 `json:"amount"`
	Asked  int     `json:"-"`
}

func startLedger() (*ledger, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the payment service: %w", err)
	}
	l := &ledger{
		url: "http://" + listener.Addr().String() + "/charge", served: make(chan error, 1),
		asked: make(chan charge, 16), gate: make(chan struct{}), charges: map[string]charge{},
	}
	l.server = &http.Server{Handler: http.HandlerFunc(l.serve), ReadHeaderTimeout: 5 * time.Second}
	go func() { l.served <- l.server.Serve(listener) }()
	return l, nil
}

func (l *ledger) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Amount json.Number `json:"amount"`
	}
	key := r.Header.Get("Idempotency-Key")
	if r.Method != http.MethodPost || key == "" || json.NewDecoder(r.Body).Decode(&body) != nil {
		http.Error(w, "POST an amount with an Idempotency-Key", http.StatusBadRequest)
		return
	}
	amount, err := body.Amount.Float64()
	if err != nil {
		http.Error(w, "the amount is no number", http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	c, known := l.charges[key]
	if !known {
		c = charge{Key: key, ID: fmt.Sprintf("ch_%d", len(l.charges)+1), Amount: amount}
	}
	c.Asked++
	l.charges[key] = c
	l.calls++
	first := l.calls == 1
	l.mu.Unlock()
	select {
	case l.asked <- c:
	default: // more than the demo looks at
	}
	if first {
		select {
		case <-l.gate:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(c)
}

// all returns the charges made, by key.
func (l *ledger) all() map[string]charge {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]charge, len(l.charges))
	for key, c := range l.charges {
		out[key] = c
	}
	return out
}

// stop ends the server. A second call is harmless.
func (l *ledger) stop() error {
	var err error
	l.once.Do(func() {
		close(l.gate)
		err = l.server.Close()
		if serving := <-l.served; !errors.Is(serving, http.ErrServerClosed) {
			err = errors.Join(err, serving)
		}
	})
	return err
}
