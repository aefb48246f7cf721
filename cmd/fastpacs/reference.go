package main

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"strings"
)

// allVariables yields the variables of every section in order.
func allVariables() iter.Seq[variable] {
	return func(yield func(variable) bool) {
		for _, s := range sections() {
			for _, v := range s.variables {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// find returns the first variable for which ok is true.
func find(ok func(variable) bool) (variable, bool) {
	for v := range allVariables() {
		if ok(v) {
			return v, true
		}
	}
	return variable{}, false
}

// limits returns the ends of the range that v may be in, if it has one.
func (v variable) limits() (lowest, highest string, ok bool) {
	words := strings.Fields(v.allowed)
	if len(words) != 3 || words[1] != "to" {
		return "", "", false
	}
	return words[0], words[2], true
}

// rule is what follows "must be".
func (v variable) rule() string {
	if _, _, ok := v.limits(); ok {
		return "from " + v.allowed
	}
	return v.allowed
}

// printVariables writes the reference of the variables for a terminal.
func printVariables(w io.Writer) {
	defaults := texts(defaults())
	for _, s := range sections() {
		fmt.Fprintf(w, "\n%s\n", s.heading)
		for _, v := range s.variables {
			fmt.Fprintf(w, "\n  %s\n", v.name)
			about := fmt.Sprintf("%s Must be %s. Default: %s.", v.help, v.rule(), cmp.Or(defaults[v.name], "none"))
			for line := range wrap(about, 72) {
				fmt.Fprintf(w, "      %s\n", line)
			}
		}
	}
}

// wrap yields the lines of text, broken between words, of at most width bytes
// unless a word is longer.
func wrap(text string, width int) iter.Seq[string] {
	return func(yield func(string) bool) {
		line := ""
		for word := range strings.FieldsSeq(text) {
			switch {
			case line == "":
				line = word
			case len(line)+1+len(word) > width:
				if !yield(line) {
					return
				}
				line = word
			default:
				line += " " + word
			}
		}
		if line != "" {
			yield(line)
		}
	}
}
