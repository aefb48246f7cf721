// The smallest honest DICOMweb viewer: it finds a patient's study by QIDO-RS,
// retrieves every instance by WADO-RS, and draws the middle slice with a soft
// tissue window. The functions are called by driver.js through the page.
'use strict';

// How many instances are asked for at the same time, as viewers do.
const PARALLEL = 6;
const WINDOW_CENTER = 40; // Hounsfield units
const WINDOW_WIDTH = 400;

// protocols counts, by ALPN name, how the resources whose URL contains `part`
// came, and forgets them, so that the next call counts the next requests.
function protocols(part) {
  const counts = {};
  for (const entry of performance.getEntriesByType('resource')) {
    if (entry.name.includes(part)) {
      counts[entry.nextHopProtocol] = (counts[entry.nextHopProtocol] || 0) + 1;
    }
  }
  performance.clearResourceTimings();
  return counts;
}

// probe fetches a small resource and tells how it came.
async function probe() {
  performance.clearResourceTimings();
  const response = await fetch('dicom-web/studies?limit=1&nonce=' + Math.random(), {
    headers: { Accept: 'application/dicom+json' },
    cache: 'no-store',
  });
  await response.arrayBuffer();
  return { status: response.status, protocol: Object.keys(protocols('nonce='))[0] };
}

async function sha256(buffer) {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', buffer));
  return [...digest].map((b) => b.toString(16).padStart(2, '0')).join('');
}

// openStudy loads the study of a patient. It returns the SHA-256 of every
// instance by SOP Instance UID, what was drawn, and how each request came.
async function openStudy(patientID) {
  performance.setResourceTimingBufferSize(2000);
  performance.clearResourceTimings();
  const client = new window.DICOMwebClient.api.DICOMwebClient({
    url: new URL('dicom-web', location.href).href,
  });

  const studies = await client.searchForStudies({ queryParams: { PatientID: patientID } });
  if (studies.length !== 1) throw new Error(`${studies.length} studies of patient ${patientID}`);
  const studyInstanceUID = studies[0]['0020000D'].Value[0];
  const metadata = await client.retrieveStudyMetadata({ studyInstanceUID });
  metadata.sort((a, b) => a['00200013'].Value[0] - b['00200013'].Value[0]);

  const files = new Array(metadata.length);
  let next = 0;
  const worker = async () => {
    while (next < metadata.length) {
      const i = next++;
      files[i] = await client.retrieveInstance({
        studyInstanceUID,
        seriesInstanceUID: metadata[i]['0020000E'].Value[0],
        sopInstanceUID: metadata[i]['00080018'].Value[0],
      });
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));

  const digests = {};
  for (let i = 0; i < files.length; i++) {
    digests[metadata[i]['00080018'].Value[0]] = await sha256(files[i]);
  }
  const drawn = draw(files[files.length >> 1]);
  document.getElementById('status').textContent = `${files.length} instances of ${patientID}`;
  return { digests, drawn, protocols: protocols('/dicom-web/') };
}

// draw paints one instance (a DICOM file, 16 bits a pixel, uncompressed) and
// returns its size and how many of its pixels came out black, grey and white.
function draw(file) {
  const bytes = new Uint8Array(file);
  const dataset = window.dicomParser.parseDicom(bytes);
  const rows = dataset.uint16('x00280010');
  const columns = dataset.uint16('x00280011');
  const slope = dataset.floatString('x00281053') ?? 1;
  const intercept = dataset.floatString('x00281052') ?? 0;
  const { dataOffset } = dataset.elements.x7fe00010;
  const signed = dataset.uint16('x00280103') === 1;
  const view = new DataView(bytes.buffer, bytes.byteOffset);

  const canvas = document.getElementById('slice');
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext('2d');
  const image = context.createImageData(columns, rows);
  const drawn = { rows, columns, black: 0, grey: 0, white: 0 };
  for (let i = 0; i < rows * columns; i++) {
    const at = dataOffset + 2 * i;
    const stored = signed ? view.getInt16(at, true) : view.getUint16(at, true);
    const hounsfield = slope * stored + intercept;
    const grey = Math.round(255 * ((hounsfield - WINDOW_CENTER) / WINDOW_WIDTH + 0.5));
    const value = Math.max(0, Math.min(255, grey));
    drawn[value === 0 ? 'black' : value === 255 ? 'white' : 'grey']++;
    image.data.set([value, value, value, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  return drawn;
}
