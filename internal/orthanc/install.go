package orthanc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// InstallCommand is what an administrator runs to install Orthanc by hand.
const InstallCommand = "sudo apt-get install -y --no-install-recommends orthanc orthanc-dicomweb"

var packages = []string{"orthanc", "orthanc-dicomweb"}

// Install returns the installed Orthanc, installing it first where that is
// possible: as root on Debian and Ubuntu, with apt-get, in a few minutes at
// most. It reports what it does with progress, one line a call. Where it is not
// possible the error says which command to run.
//
// The packages bring a system service, which Install neither starts nor leaves
// enabled.
func Install(ctx context.Context, progress func(line string)) (Installation, error) {
	in, missing := Find()
	if missing == nil {
		return in, nil
	}
	release, err := os.ReadFile("/etc/os-release")
	if err != nil || !isDebian(string(release)) {
		return Installation{}, missing
	}
	if os.Geteuid() != 0 {
		return Installation{}, fmt.Errorf("%w (not done by itself: not root)", missing)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()

	allow, err := forbidServiceStart(ctx, policyHelper)
	if err != nil {
		return Installation{}, fmt.Errorf("orthanc: %w; run: %s", err, InstallCommand)
	}
	defer allow()

	progress("Orthanc is not installed: installing " + strings.Join(packages, " and ") + " with apt-get")
	if err := apt(ctx, progress, append([]string{"install", "-y", "--no-install-recommends"}, packages...)...); err != nil {
		// Package lists may be absent (fresh container) or old.
		progress("that failed: updating the package lists")
		if err := apt(ctx, progress, "update"); err != nil {
			return Installation{}, err
		}
		if err := apt(ctx, progress, append([]string{"install", "-y", "--no-install-recommends"}, packages...)...); err != nil {
			return Installation{}, err
		}
	}
	if err := run(ctx, func(string) {}, "update-rc.d", "orthanc", "disable"); err != nil {
		progress("could not disable the orthanc service that came along: " + err.Error())
	} else {
		progress("the orthanc service that came along is disabled (enable it with: update-rc.d orthanc enable)")
	}
	return Find()
}

// isDebian reports whether an os-release file (os-release(5)) is of Debian, of
// Ubuntu or of a system made from them.
func isDebian(release string) bool {
	for line := range strings.Lines(release) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key != "ID" && key != "ID_LIKE" {
			continue
		}
		for id := range strings.FieldsSeq(strings.Trim(value, `"'`)) {
			if id == "debian" || id == "ubuntu" {
				return true
			}
		}
	}
	return false
}

// policyHelper is the file that Debian's maintainer scripts ask whether they
// may start a service (invoke-rc.d(8), deb-systemd-invoke(1p)).
const policyHelper = "/usr/sbin/policy-rc.d"

// policyDenies is the helper's exit status for "action forbidden by policy".
const policyDenies = 101

// forbidServiceStart keeps package scripts from starting orthanc until the
// returned function is called. A policy that is there already is left alone; it
// must deny the start by itself.
func forbidServiceStart(ctx context.Context, helper string) (allow func(), err error) {
	const policy = "#!/bin/sh\ncase \"$1\" in orthanc*) exit 101;; esac\nexit 0\n"
	f, err := os.OpenFile(helper, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	switch {
	case errors.Is(err, os.ErrExist):
		err := exec.CommandContext(ctx, helper, "orthanc", "start").Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == policyDenies {
			return func() {}, nil
		}
		return nil, fmt.Errorf("not installing: the policy %s lets packages start their services", helper)
	case err != nil:
		return nil, fmt.Errorf("forbidding the start of the packaged service: %w", err)
	}
	_, err = f.WriteString(policy)
	if err := errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("forbidding the start of the packaged service: %w", err), os.Remove(helper))
	}
	return func() { _ = os.Remove(helper) }, nil
}

func apt(ctx context.Context, progress func(string), args ...string) error {
	return run(ctx, progress, "apt-get", append([]string{"-o", "DPkg::Lock::Timeout=120"}, args...)...)
}

// run runs a command, handing its output to progress line by line; its error
// ends with the last lines of output.
func run(ctx context.Context, progress func(string), name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	// Interrupted, not killed: dpkg must not be left half-way.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	var tail []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		sc := bufio.NewScanner(r)
		for sc.Scan() {
			line := strings.TrimSpace(sc.Text())
			if line == "" {
				continue
			}
			progress("  " + line)
			tail = append(tail, line)
			if len(tail) > 5 {
				tail = tail[1:]
			}
		}
		_, _ = io.Copy(io.Discard, r) // a line too long for the scanner
	}()
	err := cmd.Run()
	_ = w.Close()
	<-done
	if err != nil {
		return fmt.Errorf("orthanc: %s: %w: %s", strings.Join(cmd.Args, " "), err, strings.Join(tail, " | "))
	}
	return nil
}
