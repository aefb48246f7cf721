// Package arch holds no code, only the test that keeps the layout: which
// package may import which. docs/development.md explains the table; a package
// without a row fails the test until it gets one.
package arch
