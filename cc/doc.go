// Package cc holds the congestion controllers of fastpacs.
package cc
