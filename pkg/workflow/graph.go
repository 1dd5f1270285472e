package workflow

// Node returns the node of that name, or nil.
func (w *Workflow) Node(name string) *Node { return w.byName[name] }

// V1 reports whether the workflow runs in the v1 order (depth first, top left
// first). An absent order is v0.
func (w *Workflow) V1() bool { return w.Settings.ExecutionOrder == "v1" }

// Targets returns what is connected to the outputs of a node, by output index,
// in file order. Outputs without connection are nil.
func (w *Workflow) Targets(name, connType string) [][]Target { return w.out[name][connType] }

// Origins returns what feeds the inputs of a node, by input index, in file
// order. Its length is the highest connected input plus one.
func (w *Workflow) Origins(name, connType string) [][]Origin { return w.in[name][connType] }

// SubNodes returns the enabled nodes attached to name by that connection type, in
// the order of inputs and then of the file.
func (w *Workflow) SubNodes(name, connType string) []*Node {
	var found []*Node
	for _, origins := range w.in[name][connType] {
		for _, o := range origins {
			if n := w.byName[o.Node]; n != nil && !n.Disabled {
				found = append(found, n)
			}
		}
	}
	return found
}

// Ancestors returns the names of all nodes from which name can be reached over
// main connections, nearest first, each once.
func (w *Workflow) Ancestors(name string) []string {
	var order []string
	seen := map[string]bool{}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		for _, origins := range w.in[queue[0]][Main] {
			for _, o := range origins {
				if !seen[o.Node] {
					seen[o.Node] = true
					order = append(order, o.Node)
					queue = append(queue, o.Node)
				}
			}
		}
	}
	return order
}
