package engine

import "testing"

func TestReadOrigin(t *testing.T) {
	m := Meta{ID: "x", Mode: "cli", Parent: &Parent{Execution: "above", Token: "above_1"}, RetryOf: "before"}
	stored, err := (&State{Meta: m}).Tables()
	if err != nil {
		t.Fatal(err)
	}
	value := stored[TableMeta][OriginField]
	got, err := ReadOrigin(value)
	if want := (Origin{Mode: "cli", Parent: "above", RetryOf: "before"}); err != nil || got != want {
		t.Errorf("read %+v and %v from %s, want %+v", got, err, value, want)
	}
	if got, err := ReadOrigin(nil); err != nil || got != (Origin{}) {
		t.Errorf("read %+v and %v from nothing", got, err)
	}
	if _, err := ReadOrigin([]byte("{")); err == nil {
		t.Error("no error for what is cut off")
	}
}
