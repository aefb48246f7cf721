package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// fastpacsBinary returns the fastpacs program to run: the one asked for, else
// one built from the source tree we are in, else the one that lies beside this
// program or in PATH.
func fastpacsBinary(ctx context.Context, asked string, progress func(string)) (string, error) {
	if asked != "" {
		path, err := exec.LookPath(asked)
		if err != nil {
			return "", fmt.Errorf("the program given by -fastpacs: %w", err)
		}
		return filepath.Abs(path)
	}
	if root, ok := sourceTree(); ok {
		if _, err := exec.LookPath("go"); err == nil {
			progress("building fastpacs")
			return build(ctx, root)
		}
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "fastpacs")
		if st, err := os.Stat(beside); err == nil && st.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath("fastpacs")
	if err != nil {
		return "", errors.New("no fastpacs program here, nor the source to build it from: name one with -fastpacs")
	}
	return filepath.Abs(path)
}

// sourceTree returns the root of our source if the working directory is in it.
func sourceTree() (root string, ok bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			first, _, _ := strings.Cut(string(b), "\n")
			return dir, strings.TrimSpace(first) == "module fastpacs"
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

func build(ctx context.Context, root string) (string, error) {
	binary := filepath.Join(root, "bin", "fastpacs")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/fastpacs")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building fastpacs: %w\n%s", err, out)
	}
	return binary, nil
}
