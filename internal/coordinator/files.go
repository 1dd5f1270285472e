package coordinator

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// Files are the files of executions, which workers keep apart from the run data.
type Files interface {
	// Owners lists the executions that have files; upTo names the files that were there.
	Owners(ctx context.Context) (owners []engine.ExecutionID, upTo uint64, err error)
	// RemoveOf removes the files that an execution had when upTo was told.
	RemoveOf(ctx context.Context, execution engine.ExecutionID, upTo uint64) error
}

// fileSweepInterval is how often the files of executions that are kept no longer are removed, by
// one of the coordinators.
const fileSweepInterval = time.Minute

// sweepFilesLoop removes files whose execution has expired or was deleted. It compares what is there
// with what is kept, instead of removing files along with executions: these expire by themselves,
// and a coordinator that dies between the two would leave files for good.
func (c *Coordinator) sweepFilesLoop() {
	interval := min(fileSweepInterval, max(c.config.Store.Retention()/2, 50*time.Millisecond))
	c.every(interval, func() {
		if c.config.Gates != nil {
			mine, err := c.config.Gates.Turn(c.ctx, "files", interval.Milliseconds()*8/10)
			if err != nil || !mine {
				return // Redis is away, which others say
			}
		}
		if removed, err := c.sweepFiles(c.ctx); err != nil {
			c.log.Warn("files of expired executions were not removed", zap.Error(err))
		} else if removed > 0 {
			c.log.Debug("files of expired executions were removed", zap.Int("executions", removed))
		}
	})
}

// sweepFiles returns of how many executions it removed the files.
func (c *Coordinator) sweepFiles(ctx context.Context) (int, error) {
	owners, upTo, err := c.config.Files.Owners(ctx)
	if err != nil || len(owners) == 0 {
		return 0, err
	}
	// Whoever has files was stored before its first job: what is not kept now is gone.
	kept, err := c.config.Kept(ctx, owners)
	if err != nil {
		return 0, err
	}
	removed := 0
	for i, id := range owners {
		if kept[i] {
			continue
		}
		if err := c.config.Files.RemoveOf(ctx, id, upTo); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
