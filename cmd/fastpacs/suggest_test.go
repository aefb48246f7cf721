package main

import "testing"

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"LISTEN", "LISTEN", 0},
		{"LISTN", "LISTEN", 1},
		{"LISTNE", "LISTEN", 1},
		{"UPSTREAM", "UPSTREEM", 1},
		{"kitten", "sitting", 3},
	} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"FASTPACS_LISTEN", "FASTPACS_UPSTREAM", "FASTPACS_CC"}
	for name, want := range map[string]string{
		"FASTPACS_LISTN":                 ": did you mean FASTPACS_LISTEN?",
		"FASTPACS_UPSTREEM":              ": did you mean FASTPACS_UPSTREAM?",
		"FASTPACS_CONGESTION_CONTROLLER": "",
	} {
		if got := suggest(name, known); got != want {
			t.Errorf("suggest(%q) = %q, want %q", name, got, want)
		}
	}
}
