package queue

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

const (
	// pullExpires is how long a pull waits in the server at most, and pullExpiresShared when
	// there are several pools: the slots that an idle one has reserved are shared out again
	// when its pulls expire.
	pullExpires       = 5 * time.Second
	pullExpiresShared = 3 * time.Second
	// pullPace collects the slots that become free one by one under load into one
	// pull; a quarter of all slots is not kept waiting.
	pullPace = time.Millisecond
)

// puller takes messages from durable consumers of a work queue, never more at
// a time than it has free slots.
//
// It speaks the pull protocol itself because the client library's iterators
// count a message as done when it is handed over, and ask for the next: a worker
// would be given work that other workers have slots for. Here a slot is
// taken when a pull asks for a message and is free again at release.
//
// Each consumer has one inbox for its whole life, so a message that comes after
// its pull has expired is not lost. The number in the inbox's last token
// separates the status messages of pulls that were given up from later ones.
//
//	held + sum of outstanding <= slots, unless pulls were given up; then a
//	message too many is handed back at once.
type puller struct {
	c        *Conn
	stream   string
	slots    int
	messages chan *nats.Msg // has room for all slots
	log      *zap.Logger

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	stop   sync.Once

	mu       sync.Mutex
	held     int
	lanes    []*lane
	next     int // lane that is told first of the next free slot
	stopping bool
}

// lane is one consumer of a puller.
type lane struct {
	p      *puller
	config jetstream.ConsumerConfig
	inbox  string
	sub    *nats.Subscription
	kick   chan struct{}
	heard  atomic.Int64 // when the server last said something, in nanoseconds since 1970

	expires time.Duration // of its pulls
	created time.Time     // when the consumer was, by the server's clock; used by run only

	limit int // messages that may be held at once, besides the puller's slots; 0 is as many as those

	// guarded by p.mu
	outstanding int   // messages asked for
	held        int   // messages taken and not released
	generation  int   // of the pulls that count
	hungry      bool  // the consumer had more messages when it gave the last one
	sequence    int64 // the consumer's, of its last message
	lost        error
}

// newPuller starts to pull. limits, by consumer, bound how many messages of one are held at
// once; 0 is as many as there are slots.
func (c *Conn) newPuller(stream string, slots int, consumers []jetstream.ConsumerConfig, limits map[string]int) (*puller, error) {
	p := &puller{c: c, stream: stream, slots: slots, messages: make(chan *nats.Msg, slots), log: c.log}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for _, config := range consumers {
		l := &lane{
			p: p, config: config, limit: limits[config.Durable], inbox: c.nc.NewInbox(), kick: make(chan struct{}, 1),
			expires: pullExpiry(config.AckWait, len(consumers) > 1),
		}
		sub, err := c.nc.Subscribe(l.inbox+".*", l.receive)
		if err != nil {
			p.close()
			return nil, classify(err)
		}
		_ = sub.SetPendingLimits(-1, -1)
		l.sub = sub
		p.lanes = append(p.lanes, l)
	}
	for _, l := range p.lanes {
		p.wg.Go(l.run)
	}
	return p, nil
}

// pullExpiry is how long pulls from a consumer wait in the server. A process that is
// stopped cannot take its pulls back, and what they are given waits for one more lease. So
// they end before its messages are given to others: those have given their last sign of life
// up to a third of a lease before the process stopped.
//
// Pulls this short need no heartbeat: the server's word that one is over comes as soon.
// An idle lane costs two messages in each such time.
func pullExpiry(lease time.Duration, shared bool) time.Duration {
	longest := pullExpires
	if shared {
		longest = pullExpiresShared
	}
	if lease <= 0 { // the server's default, half a minute
		return longest
	}
	return max(min(longest, lease*2/3), 100*time.Millisecond)
}

// take waits for a message. Its slot is taken until release.
func (p *puller) take(ctx context.Context) (*nats.Msg, error) {
	select {
	case m := <-p.messages:
		return m, nil
	default:
	}
	select {
	case m := <-p.messages:
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ctx.Done():
		return nil, ErrClosed
	}
}

// release frees the slot of a message.
func (p *puller) release(m *nats.Msg) {
	p.mu.Lock()
	p.held--
	for _, l := range p.lanes {
		if l.sub == m.Sub {
			l.held--
		}
	}
	first := p.next
	p.next = (p.next + 1) % len(p.lanes)
	p.mu.Unlock()
	for i := range p.lanes {
		p.lanes[(first+i)%len(p.lanes)].wake()
	}
}

// close takes no more messages. Those that are under way, or were not taken
// yet, are handed back.
func (p *puller) close() {
	p.stop.Do(func() {
		p.mu.Lock()
		p.stopping = true
		p.mu.Unlock()
		p.cancel()
		p.wg.Wait()
		for _, l := range p.lanes {
			p.c.drain(l.sub)
		}
		for {
			select {
			case m := <-p.messages:
				_ = p.c.nc.Publish(m.Reply, signalNak)
			default:
				return
			}
		}
	})
}

// free counts the slots that are neither taken nor asked for. p.mu is held.
func (p *puller) free() int {
	n := p.slots - p.held
	for _, l := range p.lanes {
		n -= l.outstanding
	}
	return n
}

// grant decides how many messages a lane asks for now, and books them.
func (p *puller) grant(l *lane) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.free()
	if len(p.lanes) > 1 {
		n = p.share(l, n)
	}
	if l.limit > 0 {
		n = min(n, l.limit-l.held-l.outstanding)
	}
	if n <= 0 {
		return 0
	}
	if l.outstanding == 0 {
		l.heard.Store(time.Now().UnixNano()) // from now on there is something to be heard of
	}
	l.outstanding += n
	return n
}

// share divides free slots among several pools: each keeps one pull waiting,
// pools with a backlog get the rest. p.mu is held.
func (p *puller) share(l *lane, free int) int {
	othersHungry := false
	for _, other := range p.lanes {
		if other == l {
			continue
		}
		if other.outstanding == 0 && (other.limit == 0 || other.held < other.limit) {
			free--
		}
		othersHungry = othersHungry || other.hungry
	}
	if l.hungry {
		return free
	}
	part := max(1, p.slots/len(p.lanes))
	if othersHungry {
		part = 1
	}
	return min(free, part-l.outstanding)
}

func (l *lane) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// run keeps the lane's consumer existing and pulls from it.
func (l *lane) run() {
	failing := false
	for wait := 50 * time.Millisecond; l.p.ctx.Err() == nil; {
		reconnected := l.p.c.reconnects()
		if err := l.establish(); err != nil {
			if l.p.ctx.Err() != nil {
				return
			}
			if !failing {
				l.p.log.Warn("consumer is not available yet, trying on", zap.String("stream", l.p.stream),
					zap.String("consumer", l.config.Durable), zap.Error(classify(err)))
				failing = true
			}
			select {
			case <-time.After(wait):
			case <-reconnected:
			case <-l.p.ctx.Done():
				return
			}
			wait = min(2*wait, 2*time.Second)
			continue
		}
		if failing {
			l.p.log.Info("consumer is available", zap.String("stream", l.p.stream), zap.String("consumer", l.config.Durable))
		}
		failing, wait = false, 50*time.Millisecond
		started := time.Now()
		err := l.pulls()
		if l.p.ctx.Err() != nil {
			return
		}
		l.p.log.Debug("consumer lost", zap.String("stream", l.p.stream), zap.String("consumer", l.config.Durable), zap.Error(err))
		if time.Since(started) < 100*time.Millisecond {
			// A server that ends each pull at once must not be asked in a tight loop.
			select {
			case <-time.After(100 * time.Millisecond):
			case <-l.p.ctx.Done():
				return
			}
		}
	}
}

// establish creates the consumer, or brings it up to date, and starts a new
// generation of pulls.
func (l *lane) establish() error {
	ctx, cancel := context.WithTimeout(l.p.ctx, 5*time.Second)
	defer cancel()
	consumer, err := l.p.c.js.CreateOrUpdateConsumer(ctx, l.p.stream, l.config)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if restored, restoreErr := l.p.c.restoreStreams(ctx); restored && restoreErr == nil {
			consumer, err = l.p.c.js.CreateOrUpdateConsumer(ctx, l.p.stream, l.config)
		}
	}
	if err != nil {
		return err
	}
	if created := consumer.CachedInfo().Created; !created.Equal(l.created) {
		if l.p.stream == StreamJobs {
			l.p.c.forgotten(created, !l.created.IsZero())
		}
		l.created = created
		l.p.mu.Lock()
		l.sequence = 0
		l.p.mu.Unlock()
	}
	l.reset()
	return nil
}

// reset gives up the pulls that wait, if any still do.
func (l *lane) reset() {
	l.heard.Store(time.Now().UnixNano())
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	l.outstanding, l.lost, l.hungry = 0, nil, false
	l.generation++
}

// pulls asks for messages whenever slots are free, until the consumer is lost.
func (l *lane) pulls() error {
	check := time.NewTicker(l.expires / 2)
	defer check.Stop()
	pace := time.NewTimer(0)
	defer pace.Stop()
	var last time.Time
	var paced <-chan time.Time
	for {
		reconnected := l.p.c.reconnects()
		if err := l.lostError(); err != nil {
			return err
		}
		if wait := pullPace - time.Since(last); wait > 0 && l.small() {
			pace.Reset(wait)
			paced = pace.C
		} else if n := l.p.grant(l); n > 0 {
			if err := l.pull(n); err != nil {
				return err
			}
			last = time.Now()
		}
		select {
		case <-l.kick:
		case <-paced:
			paced = nil
		case <-check.C:
			if l.silent() {
				return errors.New("no word from the server about a pull that is over")
			}
		case <-reconnected:
			// The pulls of the old connection are gone.
			return errors.New("reconnected")
		case <-l.p.ctx.Done():
			return l.p.ctx.Err()
		}
	}
}

// small reports whether few slots are free, so that a pull may wait for more.
func (l *lane) small() bool {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	n := l.p.free()
	return n > 0 && n < l.p.slots/4
}

func (l *lane) lostError() error {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return l.lost
}

// silence is how much later than due the server's word may come.
const silence = 2 * time.Second

// silent reports whether the server has pulls of ours and says nothing.
func (l *lane) silent() bool {
	l.p.mu.Lock()
	waiting := l.outstanding > 0
	l.p.mu.Unlock()
	if !waiting {
		l.heard.Store(time.Now().UnixNano())
		return false
	}
	return l.p.c.nc.IsConnected() && time.Since(time.Unix(0, l.heard.Load())) > l.expires+silence
}

func (l *lane) pull(n int) error {
	l.p.mu.Lock()
	reply := l.inbox + "." + strconv.Itoa(l.generation)
	l.p.mu.Unlock()
	request := make([]byte, 0, 96)
	request = append(request, `{"batch":`...)
	request = strconv.AppendInt(request, int64(n), 10)
	request = append(request, `,"expires":`...)
	request = strconv.AppendInt(request, l.expires.Nanoseconds(), 10)
	request = append(request, '}')
	l.p.c.stats.pulls.Add(1)
	return classify(l.p.c.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+l.p.stream+"."+l.config.Durable, reply, request))
}

// receive takes what comes on the inbox: messages of the stream, and the
// server's words about pulls.
func (l *lane) receive(m *nats.Msg) {
	l.heard.Store(time.Now().UnixNano())
	if len(m.Data) == 0 && m.Header != nil {
		if status := m.Header.Get("Status"); status != "" {
			l.status(m, status)
			return
		}
	}
	meta, ok := parseAck(m.Reply)
	if !ok {
		return
	}
	p := l.p
	p.mu.Lock()
	if l.outstanding > 0 {
		l.outstanding--
	}
	l.hungry = meta.pending > 0
	// A consumer counts up. That another worker made a new one under this name is not told to a
	// worker that had all its slots taken and so waited for nothing: the count tells it.
	recreated := meta.sequence <= l.sequence
	l.sequence = meta.sequence
	if recreated {
		l.lost = errors.New("another consumer of the same name")
		l.wake()
	}
	excess := p.stopping || p.held >= p.slots || l.limit > 0 && l.held >= l.limit
	if !excess {
		p.held++
		l.held++
	}
	p.mu.Unlock()
	if recreated && p.stream == StreamJobs {
		p.c.forgotten(time.Now(), true)
	}
	if excess {
		p.c.stats.naks.Add(1)
		_ = p.c.nc.Publish(m.Reply, signalNak)
		return
	}
	p.messages <- m
}

// status handles a message about the pulls of one generation.
func (l *lane) status(m *nats.Msg, status string) {
	if status == "100" {
		return
	}
	description := m.Header.Get("Description")
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if token := strings.TrimPrefix(m.Subject, l.inbox+"."); token != strconv.Itoa(l.generation) {
		return
	}
	switch {
	case status == "408", status == "404", strings.Contains(description, "Batch Completed"):
		// The header says how many of its messages the expired pull did not get.
		pending, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
		if err != nil {
			pending = l.outstanding
		}
		l.outstanding = max(0, l.outstanding-pending)
		l.hungry = false
	default:
		// 503 (no such consumer), 409 (consumer deleted, leader changed, server shuts
		// down, too many pulls wait): find or create the consumer and ask anew.
		l.outstanding = 0
		l.lost = errors.New(strings.TrimSpace(status + " " + description))
	}
	l.wake()
}
