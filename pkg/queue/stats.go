package queue

import "sync/atomic"

type counters struct {
	published, refused, publishErrors     atomic.Uint64
	pulls, deliveries, redeliveries, naks atomic.Uint64
	resultsSent, resultsTaken             atomic.Uint64
	jobBytes, resultBytes                 atomic.Uint64
	acks, blobsPut, blobsGot              atomic.Uint64
	reconnects                            atomic.Uint64
}

// Stats are counts since Connect.
type Stats struct {
	// Published jobs, those Refused because they were queued or running, and
	// those that failed.
	Published     uint64 `json:"published"`
	Refused       uint64 `json:"refused"`
	PublishErrors uint64 `json:"publishErrors"`
	// Pulls are requests for jobs, Deliveries jobs given to this worker,
	// Redeliveries those that were given to a worker before, Naks those handed back
	// because there was no free slot.
	Pulls        uint64 `json:"pulls"`
	Deliveries   uint64 `json:"deliveries"`
	Redeliveries uint64 `json:"redeliveries"`
	Naks         uint64 `json:"naks"`
	ResultsSent  uint64 `json:"resultsSent"`
	ResultsTaken uint64 `json:"resultsTaken"`
	// JobBytes and ResultBytes are the payloads of the jobs published and of the
	// results sent, wherever they went: into a message or the object store.
	JobBytes    uint64 `json:"jobBytes"`
	ResultBytes uint64 `json:"resultBytes"`
	Acks        uint64 `json:"acks"`
	BlobsPut    uint64 `json:"blobsPut"`
	BlobsGot    uint64 `json:"blobsGot"`
	Reconnects  uint64 `json:"reconnects"`
	// Messages and bytes of this connection in both directions, of any kind.
	InMsgs   uint64 `json:"inMsgs"`
	OutMsgs  uint64 `json:"outMsgs"`
	InBytes  uint64 `json:"inBytes"`
	OutBytes uint64 `json:"outBytes"`
}

// Stats returns the counts so far.
func (c *Conn) Stats() Stats {
	n := c.nc.Stats()
	s := &c.stats
	return Stats{
		Published: s.published.Load(), Refused: s.refused.Load(), PublishErrors: s.publishErrors.Load(),
		Pulls: s.pulls.Load(), Deliveries: s.deliveries.Load(), Redeliveries: s.redeliveries.Load(), Naks: s.naks.Load(),
		ResultsSent: s.resultsSent.Load(), ResultsTaken: s.resultsTaken.Load(), Acks: s.acks.Load(),
		BlobsPut: s.blobsPut.Load(), BlobsGot: s.blobsGot.Load(), Reconnects: s.reconnects.Load(),
		InMsgs: n.InMsgs, OutMsgs: n.OutMsgs, InBytes: n.InBytes, OutBytes: n.OutBytes,
	}
}
