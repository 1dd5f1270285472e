package engine

import clock "time"

var start = clock.Now()

// wait names time.Now in a comment, which is fine.
func wait(time struct{ Now int }) int {
	go func() {}()
	select {
	case <-clock.After(clock.Second):
	}
	return time.Now
}
