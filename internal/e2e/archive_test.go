package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"testing"
	"time"

	"fastpacs/internal/ctstudy"
	"fastpacs/internal/dicomweb"
	"fastpacs/internal/orthanc"
)

// liveArchive is the Orthanc that all tests share; each has its own patient.
type liveArchive struct {
	*orthanc.Server
}

// archiveStarted tells TestMain that there may be one to stop.
var archiveStarted bool

func startArchive() (*liveArchive, error) {
	in, err := orthanc.Find()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := orthanc.Start(ctx, orthanc.Config{Installation: in})
	if err != nil {
		return nil, err
	}
	archiveStarted = true
	return &liveArchive{s}, nil
}

func (a *liveArchive) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return a.Stop(ctx)
}

// theArchive returns the shared Orthanc.
func theArchive(tb testing.TB) *liveArchive {
	tb.Helper()
	if _, err := orthanc.Find(); err != nil {
		missing(tb, "Orthanc with its DICOMweb plugin", orthanc.InstallCommand)
	}
	a, err := archive()
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// service returns a DICOMweb client of the service at base, by c.
func service(tb testing.TB, base string, c *http.Client) *dicomweb.Client {
	tb.Helper()
	s, err := dicomweb.New(base+orthanc.DICOMwebPath, c)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// study is a synthetic study with all its files.
type study struct {
	*ctstudy.Study
	files map[string][]byte // by SOP Instance UID
	uids  []string          // SOP Instance UIDs, in order
}

func newStudy(tb testing.TB, slices int, seed uint64) study {
	tb.Helper()
	s, err := ctstudy.New(ctstudy.Config{Slices: slices, Size: 512, Seed: seed})
	if err != nil {
		tb.Fatal(err)
	}
	made := study{Study: s, files: make(map[string][]byte)}
	for inst, err := range s.All(tb.Context()) {
		if err != nil {
			tb.Fatal(err)
		}
		made.files[inst.SOPInstanceUID] = inst.File
		made.uids = append(made.uids, inst.SOPInstanceUID)
	}
	return made
}

// ref names one instance.
func (s study) ref(uid string) dicomweb.Ref {
	return dicomweb.Ref{Study: s.StudyInstanceUID(), Series: s.SeriesInstanceUID(), Instance: uid}
}

// path is the WADO-RS path of one instance.
func (s study) path(uid string) string {
	return fmt.Sprintf("%s/studies/%s/series/%s/instances/%s",
		orthanc.DICOMwebPath, s.StudyInstanceUID(), s.SeriesInstanceUID(), uid)
}

// readers yields the files of those instances.
func (s study) readers(uids ...string) iter.Seq2[io.Reader, error] {
	return func(yield func(io.Reader, error) bool) {
		for _, uid := range uids {
			if !yield(bytes.NewReader(s.files[uid]), nil) {
				return
			}
		}
	}
}

// store sends instances by STOW-RS and holds the server to have all of them.
func (s study) store(ctx context.Context, c *dicomweb.Client, uids ...string) (dicomweb.StoreResult, error) {
	result, err := c.Store(ctx, s.readers(uids...))
	if err != nil {
		return result, err
	}
	stored := make(map[string]bool)
	for _, i := range result.Stored {
		stored[i.SOPInstanceUID] = true
	}
	for _, uid := range uids {
		if !stored[uid] {
			return result, fmt.Errorf("instance %s was not stored: %+v", uid, result.Failed)
		}
	}
	return result, nil
}

// verify retrieves a study, series or instance and holds every byte against the
// originals; want is how many instances there are.
func (s study) verify(ctx context.Context, c *dicomweb.Client, ref dicomweb.Ref, want int) error {
	left := make(map[string]string, len(s.files)) // content -> UID
	for uid, file := range s.files {
		left[string(file)] = uid
	}
	got := 0
	for part, err := range c.Retrieve(ctx, ref) {
		if err != nil {
			return err
		}
		file, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		if _, ok := left[string(file)]; !ok {
			return fmt.Errorf("instance %d of the answer, %d bytes, is none that was stored, or came twice", got+1, len(file))
		}
		delete(left, string(file))
		got++
	}
	if got != want {
		return fmt.Errorf("retrieved %d instances of %d", got, want)
	}
	return nil
}
