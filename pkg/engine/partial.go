package engine

func (t *tx) startPartial(p *Partial) {}

// PlanPartial TODO
func (m *Machine) PlanPartial(destination Destination, runData map[string][]*Record) (*Partial, error) { return nil, nil }
