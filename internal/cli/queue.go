package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/pkg/queue"
)

func queueCommand() *cobra.Command {
	var s servers
	var asOutput string
	cmd := &cobra.Command{
		Use: "queue", Short: "Show what waits, runs and is idle, by pool and worker.", Args: cobra.NoArgs,
		Long: `Show the jobs that wait for workers, are published and run, by pool, every worker that was heard
of lately, and the number of executions by status. OLDEST is the age of the oldest job that waits or
was handed to workers, and is not answered. A pool is stuck when more of its jobs are older than
30 s than run, although a worker of it has been idle for as long, or it has no worker. Executions are
stuck that run and make no progress for REPRISE_STUCK_AFTER.

Figures of others than the coordinator that answers are up to 2 s old. Machines read
--output json.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				answer, err := conn.Queue(ctx, true)
				if err != nil {
					return err
				}
				if o == outputJSON {
					return printJSON(cmd.OutOrStdout(), answer)
				}
				printQueue(cmd.OutOrStdout(), styleFor(cmd.OutOrStdout()), answer)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

// silentAfter is from when on a worker is shown as not heard of; its slots are not counted then.
const silentAfter = queue.AnnounceEvery + queue.AnnounceEvery/2

func printQueue(out io.Writer, style style, a *queue.QueueAnswer) {
	fmt.Fprintln(out, style.dim(fmt.Sprintf("%-16s  %7s  %7s  %9s  %7s  %8s  %7s  %5s  %5s", "POOL", "WAITING", "LIMITED", "PUBLISHED", "RUNNING", "OLDEST", "WORKERS", "IDLE", "SLOTS")))
	for _, p := range a.Pools {
		age, note := "", ""
		if p.OldestMillis > 0 {
			age = (time.Duration(p.OldestMillis) * time.Millisecond).Round(100 * time.Millisecond).String()
		}
		if p.Stuck {
			note = "  " + style.red("stuck")
		}
		fmt.Fprintf(out, "%-16s  %7d  %7d  %9d  %7d  %8s  %7d  %5d  %5d%s\n", p.Pool, p.Waiting, p.Limited, p.Published, p.Running, age, p.Workers, p.Idle, p.Slots, note)
	}
	if len(a.Workers) > 0 {
		fmt.Fprintln(out, "\n"+style.dim(fmt.Sprintf("%-32s  %5s  %5s  %-10s  %s", "WORKER", "BUSY", "SLOTS", "IDLE", "POOLS")))
	}
	for _, w := range a.Workers {
		busy, idle := 0, ""
		for _, n := range w.Busy {
			busy += n
		}
		switch {
		case a.At-w.Seen > silentAfter.Milliseconds():
			idle = "silent"
		case w.Draining:
			idle = "draining"
		case w.IdleSince > 0:
			idle = time.Duration(max(0, a.At-w.IdleSince) * int64(time.Millisecond)).Round(time.Second).String()
		}
		var pools []string
		for _, pool := range slices.Sorted(maps.Keys(w.Pools)) {
			if n := w.Pools[pool]; n != w.Slots {
				pool = fmt.Sprintf("%s:%d", pool, n)
			}
			pools = append(pools, pool)
		}
		fmt.Fprintf(out, "%-32s  %5d  %5d  %-10s  %s\n", w.Name, busy, w.Slots, idle, strings.Join(pools, ","))
	}
	if len(a.Pools)+len(a.Workers) > 0 {
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "coordinators: %d", a.Coordinators)
	for _, status := range slices.Sorted(maps.Keys(a.Executions)) {
		if n := a.Executions[status]; n > 0 {
			fmt.Fprintf(out, "   %s: %d", status, n)
		}
	}
	fmt.Fprintln(out)
	if a.StuckExecutions > 0 {
		fmt.Fprintf(out, "%s %d executions make no progress:", style.red("stuck:"), a.StuckExecutions)
		for _, id := range a.Stuck {
			fmt.Fprintf(out, " %s", id)
		}
		if len(a.Stuck) < a.StuckExecutions {
			fmt.Fprint(out, " …")
		}
		fmt.Fprintln(out, "; look at them with \"reprise executions show ID\"")
	}
}
