package ctstudy

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/suyashkumar/dicom"
	"github.com/suyashkumar/dicom/pkg/tag"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustNew(t testing.TB, cfg Config) *Study {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string // in the error; empty: valid
	}{
		{Config{Slices: 1, Size: 16}, ""},
		{Config{Slices: 10000, Size: 2048}, ""},
		{Config{Slices: 0, Size: 512}, "Slices is 0: must be 1 to 10000"},
		{Config{Slices: 10001, Size: 512}, "Slices is 10001"},
		{Config{Slices: 1, Size: 14}, "Size is 14"},
		{Config{Slices: 1, Size: 17}, "Size is 17: must be an even number from 16 to 2048"},
		{Config{Slices: 1, Size: 2050}, "Size is 2050"},
	} {
		_, err := New(c.cfg)
		if got := err != nil; got != (c.want != "") || got && !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%+v): error %v, want %q", c.cfg, err, c.want)
		}
	}
}

// TestSameSeedSameBytes holds the bytes of one slice: a change of the generator
// shows here, and with it every recorded figure about sizes.
func TestSameSeedSameBytes(t *testing.T) {
	cfg := Config{Slices: 3, Size: 32, Seed: 7}
	a, err := mustNew(t, cfg).Instance(2)
	if err != nil {
		t.Fatal(err)
	}
	const want = "262d00c63b29ff24"
	if sum := sha256.Sum256(a.File); hex.EncodeToString(sum[:8]) != want {
		t.Errorf("SHA-256 of slice 2 begins with %x, want %s", sum[:8], want)
	}
	cfg.Seed = 8
	b, err := mustNew(t, cfg).Instance(2)
	if err != nil {
		t.Fatal(err)
	}
	if b.SOPInstanceUID == a.SOPInstanceUID || bytes.Equal(pixelBytes(t, a.File), pixelBytes(t, b.File)) {
		t.Error("another seed gave the same UID or pixels")
	}
}

// pixelBytes returns the value of Pixel Data as the library reads it.
func pixelBytes(t *testing.T, file []byte) []byte {
	t.Helper()
	ds, err := dicom.Parse(bytes.NewReader(file), int64(len(file)), nil, dicom.SkipProcessingPixelDataValue())
	if err != nil {
		t.Fatal(err)
	}
	e, err := ds.FindElementByTag(tag.PixelData)
	if err != nil {
		t.Fatal(err)
	}
	return dicom.MustGetPixelDataInfo(e.Value).UnprocessedValueData
}

func TestReadBack(t *testing.T) {
	s := mustNew(t, Config{Slices: 5, Size: 64, Seed: 3})
	seen := map[string]bool{}
	uid := regexp.MustCompile(`^2\.25\.[1-9][0-9]{0,38}$`)
	for inst, err := range s.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[inst.SOPInstanceUID] || !uid.MatchString(inst.SOPInstanceUID) {
			t.Errorf("instance %d: SOP Instance UID %s repeated or malformed", inst.Number, inst.SOPInstanceUID)
		}
		seen[inst.SOPInstanceUID] = true
		ds, err := dicom.Parse(bytes.NewReader(inst.File), int64(len(inst.File)), nil)
		if err != nil {
			t.Fatalf("instance %d: %v", inst.Number, err)
		}
		for tg, want := range map[tag.Tag]string{
			tag.StudyInstanceUID:           s.StudyInstanceUID(),
			tag.SeriesInstanceUID:          s.SeriesInstanceUID(),
			tag.SOPInstanceUID:             inst.SOPInstanceUID,
			tag.MediaStorageSOPInstanceUID: inst.SOPInstanceUID,
			tag.PatientID:                  s.PatientID(),
		} {
			e, err := ds.FindElementByTag(tg)
			if err != nil {
				t.Fatal(err)
			}
			if got := dicom.MustGetStrings(e.Value)[0]; got != want {
				t.Errorf("instance %d: %v is %q, want %q", inst.Number, tg, got, want)
			}
		}
		px, err := ds.FindElementByTag(tag.PixelData)
		if err != nil {
			t.Fatal(err)
		}
		frame, err := dicom.MustGetPixelDataInfo(px.Value).Frames[0].GetNativeFrame()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			what     string
			x, y, hu int
		}{
			{"air", 2, 2, -1000},
			{"lung", 20, 32, -850},
			{"vertebra", 32, 45, 700},
		} {
			v, err := frame.GetPixel(c.x, c.y)
			if err != nil {
				t.Fatal(err)
			}
			if got := int(int16(v[0])); got < c.hu-80 || got > c.hu+80 {
				t.Errorf("instance %d: %s is %d HU, want about %d", inst.Number, c.what, got, c.hu)
			}
		}
	}
	if len(seen) != 5 {
		t.Errorf("%d instances, want 5", len(seen))
	}
}

// TestNoise: a study that compresses well would flatter a compressing link.
func TestNoise(t *testing.T) {
	px := pixels(Config{Slices: 10, Size: 256, Seed: 1}, 5)
	var z bytes.Buffer
	w, err := flate.NewWriter(&z, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(px); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if r := float64(len(px)) / float64(z.Len()); r > 3 {
		t.Errorf("pixels compress %.1f times, want at most 3 (a real CT: 2 to 3)", r)
	}
}

func TestAllEnds(t *testing.T) {
	s := mustNew(t, Config{Slices: 50, Size: 16, Seed: 1})
	n := 0
	for _, err := range s.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 3 {
			break // goleak sees goroutines left behind
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	n = 0
	for inst, err := range s.All(ctx) {
		last = err
		if err == nil {
			if n++; inst.Number != n {
				t.Fatalf("instance %d after %d", inst.Number, n-1)
			}
		}
		cancel()
	}
	if !errors.Is(last, context.Canceled) || n >= 50 {
		t.Errorf("after a cancel: %d instances, last error %v", n, last)
	}
	if _, err := s.Instance(51); err == nil {
		t.Error("Instance(51) of 50: no error")
	}
}

// TestDcmdump has DCMTK read an instance; it warns of what is not standard.
func TestDcmdump(t *testing.T) {
	dcmdump, err := exec.LookPath("dcmdump")
	if err != nil {
		if os.Getenv("REQUIRE_PARTS") == "1" {
			t.Fatal("dcmdump is missing: apt-get install -y --no-install-recommends dcmtk")
		}
		t.Skip("dcmdump is not installed")
	}
	inst, err := mustNew(t, Config{Slices: 2, Size: 512, Seed: 1<<64 - 1}).Instance(1)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "slice.dcm")
	if err := os.WriteFile(file, inst.File, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), dcmdump, "-v", file).CombinedOutput()
	if err != nil {
		t.Fatalf("dcmdump: %v\n%s", err, out)
	}
	for _, bad := range []string{"W:", "E:", "Warning", "Error"} {
		if strings.Contains(string(out), bad) {
			t.Errorf("dcmdump complains (%s):\n%s", bad, out)
		}
	}
	for _, want := range []string{"=CTImageStorage", "=LittleEndianExplicit", "(7fe0,0010) OW"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("dcmdump shows no %q:\n%s", want, out)
		}
	}
}

func BenchmarkInstance(b *testing.B) {
	s := mustNew(b, Config{Slices: 300, Size: 512, Seed: 1})
	b.SetBytes(2 * 512 * 512)
	for i := range b.N {
		if _, err := s.Instance(1 + i%300); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStudy makes whole 300-slice studies on all processors.
func BenchmarkStudy(b *testing.B) {
	s := mustNew(b, Config{Slices: 300, Size: 512, Seed: 1})
	b.SetBytes(300 * 2 * 512 * 512)
	for range b.N {
		for _, err := range s.All(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
