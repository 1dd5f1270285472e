package workflow

// ValidateUpTo is ValidateStart for an execution that is for one node only: of
// nodes that such an execution does not run (what is behind that node, or on no way
// to it) nothing is reported. exclusive leaves out the node itself.
func ValidateUpTo(w *Workflow, c Catalog, start, destination string, exclusive bool) Problems {
	all := ValidateStart(w, c, start)
	if w.Node(destination) == nil {
		return all
	}
	runs := w.upTo(destination, exclusive)
	var problems Problems
	for _, p := range all {
		if p.Node == "" || runs[p.Node] {
			problems = append(problems, p)
		}
	}
	return problems
}

// upTo are the nodes that lead to one, that node, and what is attached to them.
func (w *Workflow) upTo(destination string, exclusive bool) map[string]bool {
	queue := w.Ancestors(destination)
	if !exclusive {
		queue = append(queue[:len(queue):len(queue)], destination)
	}
	seen := map[string]bool{}
	for _, name := range queue {
		seen[name] = true
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for connType, origins := range w.in[queue[0]] {
			if connType == Main {
				continue
			}
			for _, list := range origins {
				for _, o := range list {
					if !seen[o.Node] {
						seen[o.Node] = true
						queue = append(queue, o.Node)
					}
				}
			}
		}
	}
	return seen
}
