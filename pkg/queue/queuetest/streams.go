package queuetest

import (
	"errors"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/queue"
)

func refusedWhileThere(s suite) {
	a, b := s.Peer(), s.Peer()
	s.publish(a, 1)
	refused := []error{queue.ErrQueued}
	require.Equal(s, refused, b.Publish(s.Context(), job(1)), "while queued")
	w := b.Jobs(2)
	d := s.next(w, 1, 1)
	require.Equal(s, job(1), d.Job())
	require.WithinDuration(s, time.Now(), d.Published(), time.Minute)
	require.Equal(s, refused, a.Publish(s.Context(), job(1)), "while running")
	require.NoError(s, d.Nak(time.Hour))
	require.Equal(s, refused, a.Publish(s.Context(), job(1)), "while it rests")
	require.NoError(s, a.Ack(d.Ack()))
	s.left(0)
	s.publish(a, 1)
	s.next(w, 1, 1)
}

func firstInFirstOut(s suite) {
	p := s.Peer()
	s.publish(p, 3, 1, 2)
	w := s.Peer().Jobs(3)
	for _, n := range []int{3, 1, 2} {
		s.next(w, n, 1)
	}
}

func racingPublishers(s suite) {
	const publishers = 5
	var mu sync.Mutex
	var wg sync.WaitGroup
	won, refused := 0, 0
	for range publishers {
		p := s.Peer()
		wg.Go(func() {
			err := p.Publish(s.Context(), job(1))[0]
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.Is(err, queue.ErrQueued):
				refused++
			default:
				s.Errorf("publish: %v", err)
			}
		})
	}
	wg.Wait()
	require.Equal(s, []int{1, publishers - 1}, []int{won, refused})
	s.left(1)
}

func ackByAnybody(s suite) {
	coordinator, other := s.Peer(), s.Peer()
	s.publish(coordinator, 1, 2)
	w := s.Peer().Jobs(2)
	first, second := s.next(w, 1, 1), s.next(w, 2, 1)
	require.NoError(s, other.Ack(first.Ack()))
	s.left(1)
	require.NoError(s, coordinator.Ack(second.Ack()))
	s.left(0)
	first.Done()
	second.Done()
	s.none(w, s.AckWait()+s.part())
}

func ackAgain(s suite) {
	p := s.Peer()
	w := s.Peer().Jobs(2)
	s.publish(p, 1)
	d := s.next(w, 1, 1)
	require.NoError(s, p.Ack(d.Ack()))
	s.left(0)
	s.publish(p, 1)
	again := s.next(w, 1, 1)
	require.NoError(s, p.Ack(d.Ack()))
	require.NoError(s, d.Nak(0))
	require.NoError(s, d.Term())
	s.none(s.Peer().Jobs(1), s.part())
	require.Equal(s, 1, s.Messages())
	require.NoError(s, p.Ack(again.Ack()))
	s.left(0)
}

func ackOfEarlierDelivery(s suite) {
	p := s.Peer()
	s.publish(p, 1)
	w := s.Peer().Jobs(2)
	first := s.next(w, 1, 1)
	s.next(w, 1, 2)
	require.NoError(s, p.Ack(first.Ack()))
	s.left(0)
	s.none(s.Peer().Jobs(1), s.AckWait()+s.part())
}

func ackAfterNak(s suite) {
	p := s.Peer()
	s.publish(p, 1)
	w := s.Peer().Jobs(1)
	d := s.next(w, 1, 1)
	require.NoError(s, d.Nak(2*s.part()))
	require.NoError(s, p.Ack(d.Ack()))
	d.Done()
	s.left(0)
	s.none(w, s.AckWait())
}

func leaseEnds(s suite) {
	s.publish(s.Peer(), 1)
	w := s.Peer().Jobs(2)
	first := s.next(w, 1, 1)
	s.none(w, s.AckWait()-s.part())
	second := s.next(w, 1, 2)
	require.True(s, first.Published().Equal(second.Published()))
	first.Done()
	s.next(w, 1, 3)
}

func signsOfLife(s suite) {
	s.publish(s.Peer(), 1)
	w := s.Peer().Jobs(2)
	d := s.next(w, 1, 1)
	for range 6 {
		require.NoError(s, d.InProgress())
		s.none(w, s.part())
	}
	s.next(w, 1, 2)
}

// signOfEarlierDelivery: the server does not ask whose delivery it was.
func signOfEarlierDelivery(s suite) {
	s.publish(s.Peer(), 1)
	w := s.Peer().Jobs(3)
	first := s.next(w, 1, 1)
	s.next(w, 1, 2)
	for range 6 {
		require.NoError(s, first.InProgress())
		s.none(w, s.part())
	}
	s.next(w, 1, 3)
}

// signAfterTheEnd: whose time was up keeps nothing, although nobody else had a slot until then.
func signAfterTheEnd(s suite) {
	s.publish(s.Peer(), 1)
	w := s.Peer().Jobs(1)
	d := s.next(w, 1, 1)
	s.none(w, s.AckWait()+s.part())
	require.NoError(s, d.InProgress())
	other := s.Peer().Jobs(1)
	begun := time.Now()
	s.next(other, 1, 2)
	require.Less(s, time.Since(begun), s.AckWait())
}

func nakAtOnce(s suite) {
	p := s.Peer()
	w := s.Peer().Jobs(1)
	s.publish(p, 1)
	d := s.next(w, 1, 1)
	s.publish(p, 2)
	begun := time.Now()
	require.NoError(s, d.Nak(0))
	s.left(2)
	s.none(w, s.part())
	d.Done()
	s.next(w, 1, 2)
	require.Less(s, time.Since(begun), s.AckWait())
}

func nakWithDelay(s suite) {
	s.publish(s.Peer(), 1)
	w := s.Peer().Jobs(2)
	d := s.next(w, 1, 1)
	begun := time.Now()
	require.NoError(s, d.Nak(2*s.AckWait()))
	s.next(w, 1, 2)
	require.GreaterOrEqual(s, time.Since(begun), 2*s.AckWait()-s.part())
}

func nakOfEarlierDelivery(s suite) {
	s.publish(s.Peer(), 1)
	w := s.Peer().Jobs(3)
	first := s.next(w, 1, 1)
	s.next(w, 1, 2)
	begun := time.Now()
	require.NoError(s, first.Nak(0))
	s.next(w, 1, 3)
	require.Less(s, time.Since(begun), s.AckWait()-s.part())
}

func nakAgain(s suite) {
	s.publish(s.Peer(), 1)
	w := s.Peer().Jobs(2)
	d := s.next(w, 1, 1)
	require.NoError(s, d.Nak(time.Hour))
	s.none(w, s.part())
	begun := time.Now()
	require.NoError(s, d.Nak(0))
	s.next(w, 1, 2)
	require.Less(s, time.Since(begun), s.AckWait())
}

// signAfterNak: whoever gave a job back and then gives a sign of life has it once more.
func signAfterNak(s suite) {
	s.publish(s.Peer(), 1)
	w := s.Peer().Jobs(2)
	d := s.next(w, 1, 1)
	require.NoError(s, d.Nak(s.part()))
	require.NoError(s, d.InProgress())
	s.none(w, 2*s.part())
	s.next(w, 1, 2)
}

func termRemoves(s suite) {
	p := s.Peer()
	s.publish(p, 1)
	w := s.Peer().Jobs(2)
	require.NoError(s, s.next(w, 1, 1).Term())
	s.left(0)
	s.none(w, s.AckWait()+s.part())
	s.publish(p, 1)
	s.next(w, 1, 1)
}

func withdraw(s suite) {
	p := s.Peer()
	w := s.Peer().Jobs(3)
	s.publish(p, 1)
	d := s.next(w, 1, 1)
	require.NoError(s, p.Withdraw(s.Context(), "", job(1).ID, "never-was_1"))
	s.left(0)
	require.NoError(s, d.InProgress())
	require.NoError(s, d.Nak(0))
	s.none(w, s.AckWait()+s.part())
	s.publish(p, 1)
	s.next(w, 1, 1)
	require.NoError(s, p.Withdraw(s.Context(), queue.DefaultPool, job(1).ID))
	s.left(0)
}

func slots(s suite) {
	p := s.Peer()
	s.publish(p, 1, 2, 3, 4)
	w := s.Peer().Jobs(2)
	first, second := s.next(w, 1, 1), s.next(w, 2, 1)
	require.NoError(s, p.Ack(first.Ack()))
	s.none(w, s.part()) // a slot is free when its job is done with, not when it was acknowledged
	require.NoError(s, second.InProgress())
	first.Done()
	first.Done()
	s.next(w, 3, 1)
	s.none(w, s.part())
}

func slotsShared(s suite) {
	p := s.Peer()
	busy, idle := s.Peer().Jobs(1), s.Peer().Jobs(1)
	s.publish(p, 1)
	s.next(busy, 1, 1)
	s.publish(p, 2)
	s.next(idle, 2, 1)
}

func streamLost(s suite) {
	p := s.Peer()
	w := s.Peer().Jobs(3)
	s.publish(p, 1, 2)
	d := s.next(w, 1, 1)
	s.next(w, 2, 1)
	s.Lose()
	s.publish(p, 1)
	require.NoError(s, d.InProgress())
	s.next(w, 1, 1)
	require.Equal(s, 1, s.Messages())
}

// ackFromBefore: messages are numbered from 1 in a new stream. An ack of one that was lost
// with the old stream takes another one out, which is then published again by its coordinator.
func ackFromBefore(s suite) {
	p := s.Peer()
	w := s.Peer().Jobs(3)
	s.publish(p, 1)
	before := s.next(w, 1, 1)
	s.Lose()
	s.publish(p, 2)
	s.next(w, 2, 1)
	require.NoError(s, p.Ack(before.Ack()))
	s.left(0)
	s.publish(p, 2)
	s.next(w, 2, 1)
}
