package queue

import (
	"fmt"
	"strings"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// The subjects, streams and consumers. docs/protocol.md describes them for
// authors of clients and workers in other languages; change both together.
const (
	// StreamJobs holds the jobs that are queued or running. Work-queue retention;
	// at most one message per subject, further ones are refused.
	StreamJobs = "REPRISE_JOBS"
	// StreamSubmit holds durable submissions until a coordinator has taken them.
	StreamSubmit = "REPRISE_SUBMIT"
	// StreamDead keeps what was given up, for people.
	StreamDead = "REPRISE_DEAD"
	// StreamFiles keeps the files of executions, in pieces, until their execution is kept no longer.
	StreamFiles = "REPRISE_FILES"
	// BucketBlobs is the object store of payloads that do not fit into a message.
	BucketBlobs = "reprise-blobs"

	// reprise.job.<pool>.<job id>
	subjectJob = "reprise.job."
	// reprise.result.<coordinator>: a request to the coordinator that dispatched the
	// job; reprise.result (queue group): to any.
	subjectResult = "reprise.result"
	// A request to all coordinators at once: when the one of the group that was asked
	// keeps silent, as one does that is paused.
	subjectResults = "reprise.results"
	// A request to any coordinator: may a job that was delivered before be run?
	subjectRedelivery = "reprise.redelivery"
	// A request to any coordinator: the messages of a conversation.
	subjectMemory = "reprise.memory"
	// To all workers: jobs that no longer count.
	subjectControl = "reprise.control"
	// reprise.live.<execution>: what an execution just did.
	subjectLive = "reprise.live."
	// Durable submissions, stored in StreamSubmit.
	subjectSubmission = "reprise.submission"
	// reprise.dead.<execution>, stored in StreamDead.
	subjectDead = "reprise.dead."
	// reprise.file.<execution>.<file>: the pieces of a file, stored in StreamFiles.
	subjectFile = "reprise.file."
	// reprise.<endpoint>: requests to the micro service ServiceName.
	subjectAPI = "reprise."

	// ServiceName of the NATS micro service.
	ServiceName = "reprise"
	// queueGroup of all coordinators.
	queueGroup = "coordinators"
	// consumerSubmit is the durable consumer of StreamSubmit.
	consumerSubmit = "coordinators"
)

// Headers of messages whose payload is in BucketBlobs: the body is empty then.
const (
	// HeaderBlob is the payload's SHA-256 in hex, which is the object's name.
	HeaderBlob = "Reprise-Blob"
	// HeaderBlobSize is its length in bytes.
	HeaderBlobSize = "Reprise-Blob-Size"
)

// Headers of the pieces of a file.
const (
	// HeaderFilePiece numbers the pieces of a file, from 0.
	HeaderFilePiece = "Reprise-File-Piece"
	// HeaderFileEnd is on the last piece: the file's SHA-256 in hex.
	HeaderFileEnd = "Reprise-File-End"
)

// DefaultPool is the pool of jobs that name none.
const DefaultPool = "default"

func poolName(pool string) string {
	if pool == "" {
		return DefaultPool
	}
	return pool
}

// consumerJobs is the durable consumer of a pool in StreamJobs.
func consumerJobs(pool string) string { return "pool-" + pool }

// jobSubject is where a job is published. Both parts become subject tokens and
// are checked.
func jobSubject(pool string, id engine.JobID) (string, error) {
	pool = poolName(pool)
	if err := ValidToken("pool", pool); err != nil {
		return "", err
	}
	if err := ValidToken("job id", string(id)); err != nil {
		return "", err
	}
	return subjectJob + pool + "." + string(id), nil
}

// maxToken bounds ids and names in subjects; a job id is an execution id (128) and
// a number.
const maxToken = 160

// ValidToken reports whether a name may be part of a subject: 1 to 160 letters,
// digits, "-" or "_". what says in the error what the name is of.
func ValidToken(what, token string) error {
	if token == "" || len(token) > maxToken {
		return fmt.Errorf("%s %.40q: it must have 1 to %d characters", what, token, maxToken)
	}
	for _, r := range token {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return fmt.Errorf("%s %q: only letters, digits, - and _ are allowed", what, token)
		}
	}
	return nil
}

const ackPrefix = "$JS.ACK."

// validAck reports whether a subject acknowledges a message of StreamJobs.
// It came in a message: without this check whoever sends results could have a
// coordinator publish anywhere.
func validAck(subject string) bool {
	meta, ok := parseAck(subject)
	return ok && meta.stream == StreamJobs
}

// AckPool is the pool whose job a Result.Ack acknowledges; false when it acknowledges none.
func AckPool(ack string) (pool string, ok bool) {
	subject, _, _ := strings.Cut(ack, " ")
	meta, ok := parseAck(subject)
	if !ok || meta.stream != StreamJobs {
		return "", false
	}
	return strings.CutPrefix(meta.consumer, consumerJobs(""))
}

// ackMeta is what the reply subject of a JetStream message tells about it.
type ackMeta struct {
	stream     string
	consumer   string
	deliveries int
	sequence   int64 // of the consumer: it counts every delivery to anyone
	published  int64 // nanoseconds since 1970
	pending    int   // messages still to be delivered to the consumer
}

// parseAck reads an ack subject in either form of the server,
// $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
// or the same with <domain>.<account> before the stream and a random token at
// the end.
func parseAck(subject string) (ackMeta, bool) {
	if !strings.HasPrefix(subject, ackPrefix) || strings.ContainsAny(subject, " \t\r\n*>") {
		return ackMeta{}, false
	}
	var tokens [12]string
	n := 0
	for rest, more := subject, true; more; n++ {
		if n == len(tokens) {
			return ackMeta{}, false
		}
		tokens[n], rest, more = strings.Cut(rest, ".")
	}
	fields := tokens[2:n]
	switch {
	case n >= 11:
		fields = tokens[4:n]
	case n != 9:
		return ackMeta{}, false
	}
	meta := ackMeta{stream: fields[0], consumer: fields[1]}
	delivered, ok1 := number(fields[2])
	sequence, ok2 := number(fields[4])
	published, ok3 := number(fields[5])
	pending, ok4 := number(fields[6])
	meta.deliveries, meta.sequence, meta.published, meta.pending = int(delivered), sequence, published, int(pending)
	return meta, ok1 && ok2 && ok3 && ok4
}

func number(digits string) (n int64, ok bool) {
	for _, d := range []byte(digits) {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = 10*n + int64(d-'0')
	}
	return n, digits != ""
}
