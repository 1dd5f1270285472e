package engine

import (
	"maps"
	"slices"
)

// CustomData are the keys and values that the runs noted about the execution
// ($execution.customData); of several for one key that of the run which began last. It is nil when
// there are none.
func (s *State) CustomData() map[string]string {
	var noted []*Record
	for _, runs := range s.Run {
		for _, r := range runs {
			if r != nil && r.Metadata != nil && len(r.Metadata.CustomData) > 0 {
				noted = append(noted, r)
			}
		}
	}
	if noted == nil {
		return nil
	}
	slices.SortFunc(noted, func(a, b *Record) int { return a.ExecutionIndex - b.ExecutionIndex })
	data := map[string]string{}
	for _, r := range noted {
		maps.Copy(data, r.Metadata.CustomData)
	}
	return data
}
