package coordinator

import (
	"time"

	"go.uber.org/zap"
)

// watchInterval is how often executions that stand still are named, by one of the
// coordinators; maxNamed is how many.
const (
	watchInterval = time.Minute
	maxNamed      = 10
)

// watch names the running executions that nothing has happened to for long. It mends nothing: the
// sweeper has published their jobs again all the while, so that a person has to look at what they do.
func (c *Coordinator) watch() {
	interval := min(watchInterval, c.config.StuckAfter)
	c.every(interval, func() {
		mine, err := c.config.Gates.Turn(c.ctx, "watch", interval.Milliseconds()*8/10)
		if err != nil || !mine {
			return // Redis is away, which others say
		}
		stuck, err := c.config.Gates.Stuck(c.ctx, c.now()-c.config.StuckAfter.Milliseconds())
		if err != nil {
			c.log.Warn("executions without progress cannot be read", zap.Error(err))
			return
		}
		if len(stuck) == 0 {
			return
		}
		var ids []string
		for _, s := range stuck[:min(len(stuck), maxNamed)] {
			ids = append(ids, string(s.Execution))
		}
		c.log.Warn("executions make no progress: look at what runs with `reprise executions show ID`",
			zap.Int("stuck_executions", len(stuck)), zap.Strings("execution_ids", ids),
			zap.Duration("longest", time.Duration(c.now()-stuck[0].Moved)*time.Millisecond), zap.Duration("stuck_after", c.config.StuckAfter))
	})
}
