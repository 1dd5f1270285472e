package telemetry

import (
	"sync"
	"sync/atomic"
)

// maxValues is how many values of a label that documents choose are told apart.
const maxValues = 64

// otherValue stands for the rest.
const otherValue = "other"

// family keeps what belongs to a combination of labels, to be found without locks or
// allocations: a Prometheus vector needs twice the time of a job's whole observation for that.
type family[K comparable, M any] struct {
	known atomic.Pointer[map[K]M]
	mu    sync.Mutex // of those that add
	make  func(K) M
}

func newFamily[K comparable, M any](make_ func(K) M) *family[K, M] {
	f := &family[K, M]{make: make_}
	f.known.Store(&map[K]M{})
	return f
}

// get finds what belongs to a key, or makes it.
func (f *family[K, M]) get(key K) M {
	if m, ok := (*f.known.Load())[key]; ok {
		return m
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := *f.known.Load()
	if m, ok := old[key]; ok {
		return m
	}
	grown := make(map[K]M, len(old)+1)
	for k, m := range old {
		grown[k] = m
	}
	m := f.make(key)
	grown[key] = m
	f.known.Store(&grown)
	return m
}

// bounded tells the first maxValues texts apart.
type bounded struct{ seen *family[string, string] }

func newBounded() bounded {
	return bounded{newFamily(func(text string) string { return text })}
}

// maxValueBytes is the greatest length of a value from a document.
const maxValueBytes = 100

// value is the label value for a text. Texts that are new at the same moment may exceed
// maxValues by as many.
func (b bounded) value(text string) string {
	known := *b.seen.known.Load()
	if _, ok := known[text]; !ok && (len(known) >= maxValues || len(text) > maxValueBytes) {
		return otherValue
	}
	return b.seen.get(text)
}
