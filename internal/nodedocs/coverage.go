package nodedocs

// Coverage is what part of the public workflows a set of types covers. Of workflows the counts
// give bounds only: they say how often each type is used, not which are used together.
type Coverage struct {
	// Nodes of the types and versions, of all nodes.
	Nodes, AllNodes int
	// Percent of the workflows whose nodes are all of these types, at least and at most; Pinned,
	// when nodes of services, databases and models have pinned data.
	Least, Most             float64
	PinnedLeast, PinnedMost float64
}

// coverage needs to know whether a type is there, and whether in a version.
func coverage(types []counted, has func(name string) bool, hasVersion func(name string, version float64) bool) (Coverage, error) {
	c := Coverage{AllNodes: nodes, Most: allCore, PinnedMost: 100}
	for i := range types {
		t := &types[i]
		if !has(t.name) {
			// Nobody's workflow that has this type is covered.
			without := 100 - percent(t.workflows)
			if t.core() {
				c.PinnedMost = min(c.PinnedMost, without)
			}
			continue
		}
		for version, count := range t.versions {
			if hasVersion(t.name, version) {
				c.Nodes += count
			}
		}
		switch {
		case t.external():
			c.Most = 100
		case t.generic():
			c.Most = max(c.Most, allGeneric)
		}
	}
	for i := range types {
		if t := &types[i]; !has(t.name) {
			c.Most = min(c.Most, 100-percent(t.workflows))
		}
	}
	all, err := readShares("all")
	if err != nil {
		return c, err
	}
	core, err := readShares("core")
	if err != nil {
		return c, err
	}
	c.Least = least(types, all, has, func(t *counted) int { return t.order })
	c.PinnedLeast = least(types, core, has, func(t *counted) int { return t.coreOrder })
	return c, nil
}

// least is a lower bound: the workflows that have no types but the first so many of an order, less
// those that have one among these that is missing.
func least(types []counted, shares map[int]float64, has func(string) bool, place func(*counted) int) float64 {
	// Types of one place are variants of each other; the greatest stands for them.
	lost := map[int]float64{}
	for i := range types {
		if t := &types[i]; place(t) > 0 && !has(t.name) {
			lost[place(t)] += percent(t.workflows)
		}
	}
	best, missing := 0.0, 0.0
	for k := 1; k <= len(shares); k++ {
		missing += lost[k]
		best = max(best, shares[k]-missing)
	}
	return best
}

func percent(n int) float64 { return 100 * float64(n) / workflows }
