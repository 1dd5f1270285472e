package bench

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/redis/go-redis/v9"
)

// Environment is where a report was made. Figures of two reports can be compared when
// these are alike.
type Environment struct {
	Redis        string `json:"redis"` // "redis-server", "miniredis" or "given"
	RedisVersion string `json:"redis_version,omitempty"`
	NATSVersion  string `json:"nats_version,omitempty"`
	GoVersion    string `json:"go_version"`
	Platform     string `json:"platform,omitempty"`
	Revision     string `json:"revision,omitempty"` // of the source, "+" when it was changed
	CPUs         int    `json:"cpus"`
	// How much one thread could hash just before and just after, in MB/s: less on a machine
	// that does other things as well.
	SpeedBefore float64 `json:"machine_mb_per_second_before,omitempty"`
	SpeedAfter  float64 `json:"machine_mb_per_second_after,omitempty"`
}

func (e *Environment) environment() *Environment { return e }

// begin notes what is known before anything is measured.
func (e *Environment) begin() {
	e.GoVersion, e.CPUs, e.Platform = runtime.Version(), runtime.NumCPU(), runtime.GOOS+"/"+runtime.GOARCH
	e.Revision = revision()
	e.SpeedBefore = machineSpeed()
}

// end notes how the machine does after the measurement.
func (e *Environment) end() { e.SpeedAfter = machineSpeed() }

// servers notes the versions of what runs beside.
func (e *Environment) servers(ctx context.Context, rdb redis.UniversalClient, kind string, embeddedNATS bool) {
	e.Redis = "given"
	if kind != "" {
		e.Redis = kind
	}
	if embeddedNATS {
		e.NATSVersion = server.VERSION
	}
	if rdb == nil {
		return
	}
	e.RedisVersion, _ = infoValue(rdb.Info(ctx, "server").Val(), "redis_version")
}

// describe notes what a bench in this process stands on.
func (e *Environment) describe(ctx context.Context, b *bench) {
	kind := ""
	if b.stack != nil {
		kind = b.stack.RedisKind
	}
	e.servers(ctx, b.redis, kind, b.stack != nil && b.config.NATSURL == "")
	e.GoVersion, e.CPUs = runtime.Version(), runtime.NumCPU()
}

// infoValue finds a line of the answer to INFO.
func infoValue(info, name string) (string, bool) {
	for line := range strings.SplitSeq(info, "\n") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return text, true
		}
	}
	return "", false
}

// revision of the source that this program was built from, "" when it is not known.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	id, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			id = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	if id == "" {
		return ""
	}
	return id + changed
}

// speedTime is how long the machine's speed is looked at.
const speedTime = 200 * time.Millisecond

// machineSpeed is what one thread hashes, in MB/s.
func machineSpeed() float64 {
	block := make([]byte, 64<<10)
	hashed, started := 0, time.Now()
	for time.Since(started) < speedTime {
		sum := sha256.Sum256(block)
		block[0] = sum[0]
		hashed += len(block)
	}
	return round(float64(hashed)/(1<<20)/time.Since(started).Seconds(), 0)
}

// print writes the last lines of a report.
func (e *Environment) print(out io.Writer) {
	fmt.Fprintf(out, "\n  %s. Compare ratios, not rates: other load on the machine changes both alike.\n", e)
}

// String is one line for people.
func (e *Environment) String() string {
	parts := []string{e.GoVersion}
	if e.RedisVersion != "" {
		parts = append(parts, "Redis "+e.RedisVersion)
	}
	if e.NATSVersion != "" {
		parts = append(parts, "NATS "+e.NATSVersion)
	}
	return strings.Join(append(parts, fmt.Sprintf("%d CPUs", e.CPUs)), ", ")
}
