package runner

import (
	"maps"
	"sync"

	"github.com/reprise-engine/reprise/pkg/node"
)

// customData is what the scripts of one run noted about the execution.
type customData struct {
	mu    sync.Mutex
	noted map[string]string
}

func (d *customData) add(data map[string]string) {
	if len(data) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.noted == nil {
		d.noted = map[string]string{}
	}
	maps.Copy(d.noted, data)
}

// over is what was known before with what was noted since.
func (d *customData) over(before map[string]string) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.noted) == 0 {
		return before
	}
	all := make(map[string]string, len(before)+len(d.noted))
	maps.Copy(all, before)
	maps.Copy(all, d.noted)
	return all
}

// addTo puts it into the run's result, besides what node code put there itself.
func (d *customData) addTo(result *node.Result) {
	if noted := d.over(result.CustomData); len(noted) > 0 {
		result.CustomData = noted
	}
}
