'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const summary = data.summary;
const byId = (id) => document.getElementById(id);

// An element with classes, attributes and children (texts or elements).
function make(tag, classes, attributes, ...children) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// The same in SVG.
function draw(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
const label = (x, y, text, attributes) =>
  draw('text', Object.assign({ x, y, 'font-size': 11, class: 'ink' }, attributes), text);
const tip = (text) => draw('title', {}, text);

const count = (n) => n.toLocaleString('en');
const bytes = (n) => (n >= 1024 && n % 1024 === 0 ? n / 1024 + ' KiB' : count(n) + ' B');

function head() {
  document.title = summary.kernel + ' - tilewright explain';
  byId('kernel').textContent = summary.kernel;
  byId('subtitle').textContent = 'compiled for ' + summary.target;
  for (const text of summary.failures) {
    byId('messages').append(make('p', 'message failure', {}, text));
  }
  for (const text of summary.warnings) {
    byId('messages').append(make('p', 'message', {}, text));
  }
  const figure = (value, what, bad) =>
    byId('figures').append(
      make('div', 'figure' + (bad ? ' bad' : ''), {}, make('b', '', {}, value), make('span', '', {}, what)));
  const r = summary.resources;
  const known = (value) => (value === null ? 'unknown' : count(value));
  if (data.pipeline.threads) {
    figure(count(data.pipeline.threads), 'threads a CTA');
    figure(known(r.registers), 'registers a thread at the start');
    figure(known(r.stack_bytes), 'bytes of stack', r.stack_bytes > 0);
    figure(known(r.spill_bytes), 'bytes of spills', r.spill_bytes > 0);
    figure(known(r.shared_bytes), 'bytes of shared memory');
  }
  figure(summary.front_end_milliseconds.toFixed(1) + ' ms', 'from the trace to the source');
  if (summary.build_milliseconds > 0) {
    figure(summary.from_cache ? 'cached' : summary.build_milliseconds.toFixed(0) + ' ms', 'assembler');
  }
}

function navigation() {
  for (const section of document.querySelectorAll('main section')) {
    if (section.classList.contains('hidden')) continue;
    byId('sections').append(make('a', '', { href: '#' + section.id }, section.dataset.title));
  }
}

const hide = (id) => byId(id).classList.add('hidden');

function table(element, titles, rows) {
  element.append(make('tr', '', {}, ...titles.map((title) => make('th', '', {}, title))));
  for (const cells of rows) element.append(make('tr', '', {}, ...cells));
}
const cell = (text) => make('td', '', {}, text);
const name = (text) => make('td', 'name', {}, text);
const number = (text) => make('td', 'number', {}, text);

function counts(element, values) {
  const entries = Object.entries(values).sort((a, b) => b[1] - a[1]);
  const most = Math.max(1, ...entries.map((entry) => entry[1]));
  table(element, ['', 'count', ''], entries.map(([what, n]) => [
    name(what), number(count(n)),
    make('td', '', {}, make('span', 'bar', { style: 'width:' + Math.ceil((120 * n) / most) + 'px' })),
  ]));
}

function numerics() {
  const rewrites = Object.entries(summary.numerics.rewrites);
  table(byId('rewrites'), ['pass', 'applied', ''], rewrites.map(([what, each]) => [
    name(what), number(each.allowed ? count(each.count) : 'off'), cell(each.effect)]));
  table(byId('approximations'), ['function', 'operations', 'instruction'],
    summary.numerics.approximations.map((each) => [
      name(each.function), number(count(each.count)), name(each.instruction)]));
  table(byId('claims'), ['claim', 'found', ''], summary.claims.map((each) => [
    name(each.claim), number(each.found === null ? 'unknown' : count(each.found)),
    make('td', each.holds === false ? 'bad' : '', {},
      (each.holds === null ? 'not assembled' : each.holds ? 'holds' : 'does not hold') + ', ' + each.where)]));
  for (const [id, list] of [['rewrites', rewrites], ['claims', summary.claims],
    ['approximations', summary.numerics.approximations]]) {
    if (list.length === 0) byId(id).replaceChildren(make('tr', '', {}, cell('none')));
  }
}

function instructions() {
  counts(byId('machine-counts'), summary.instructions);
  counts(byId('sass-counts'), summary.sass_instructions);
  byId('sass-missing').textContent = summary.sass_missing;
  if (Object.keys(summary.sass_instructions).length === 0) byId('sass-counts').classList.add('hidden');
}

const kWords = new Set(('alignas auto bool break case char class const constexpr continue default do double ' +
  'else enum explicit extern false float for if inline int long namespace nullptr operator private public ' +
  'return short signed sizeof static struct switch template this true typename union unsigned using void ' +
  'volatile while __device__ __global__ __forceinline__ __launch_bounds__ __grid_constant__ __shared__ asm ' +
  'u8 u16 u32 u64 i64').split(' '));
const kToken = /(\/\/.*$)|("(?:[^"\\]|\\.)*")|(\b\d[\w.]*)|([A-Za-z_]\w*)|(\s+|.)/g;

function highlighted(text) {
  const code = make('code');
  for (const match of text.matchAll(kToken)) {
    const [whole, comment, string, digits, word] = match;
    const kind = comment ? 'comment' : string ? 'string' : digits ? 'number'
      : word && kWords.has(word) ? 'keyword' : '';
    code.append(kind ? make('span', 't-' + kind, {}, whole) : whole);
  }
  if (text === '') code.append(' ');
  return code;
}

const source = data.source;
const cudaRows = [];
let sourceRows = new Map();  // line -> row, of the file that is shown
let shownFile = 0;
const cudaOf = new Map();  // "file:line" -> indices of CUDA lines
source.from.forEach(([file, line], i) => {
  const key = file + ':' + line;
  if (!cudaOf.has(key)) cudaOf.set(key, []);
  cudaOf.get(key).push(i);
});

let lit = [];
function light(file, line) {
  for (const row of lit) row.classList.remove('lit');
  lit = (cudaOf.get(file + ':' + line) || []).map((i) => cudaRows[i]);
  if (file === shownFile && sourceRows.has(line)) lit.push(sourceRows.get(line));
  for (const row of lit) row.classList.add('lit');
}

function bring(row) {
  const pane = row.parentElement;
  pane.scrollTop = row.offsetTop - pane.offsetTop - pane.clientHeight / 3;
}

function showFile(file) {
  shownFile = file;
  sourceRows = new Map();
  const rows = source.files[file].lines.map((text, i) => {
    const row = make('div', 'row', {}, make('i', '', {}, String(i + 1)), highlighted(text));
    const made = cudaOf.get(file + ':' + (i + 1));
    if (made) {
      row.classList.add('linked');
      row.onclick = () => bring(cudaRows[made[0]]);
    }
    row.onmouseenter = () => light(file, i + 1);
    sourceRows.set(i + 1, row);
    return row;
  });
  if (rows.length === 0) rows.push(make('div', 'row', {}, make('code', '', {}, 'the file is not here')));
  byId('source-lines').replaceChildren(...rows);
  const selection = byId('files').querySelector('select');
  if (selection) selection.value = file;
}

// "path:line", as the explanation names places.
function showPlace(where) {
  const at = where.lastIndexOf(':');
  const file = source.files.findIndex((each) => each.path === where.slice(0, at));
  if (file < 0) return;
  const line = Number(where.slice(at + 1));
  showFile(file);
  byId('source').scrollIntoView();
  if (sourceRows.has(line)) bring(sourceRows.get(line));
  light(file, line);
  const made = cudaOf.get(file + ':' + line);
  if (made) bring(cudaRows[made[0]]);
}

function cudaPane() {
  source.cuda.forEach((text, i) => {
    const row = make('div', 'row', {}, make('i', '', {}, String(i + 1)), highlighted(text));
    const [file, line] = source.from[i];
    if (i < source.kernel_line) row.classList.add('prelude', 'hidden');
    if (file >= 0) {
      row.onmouseenter = () => light(file, line);
      row.onclick = () => {
        if (file !== shownFile) showFile(file);
        if (sourceRows.has(line)) bring(sourceRows.get(line));
        light(file, line);
      };
    }
    cudaRows.push(row);
  });
  byId('cuda-lines').append(...cudaRows);
  byId('show-functions').onchange = (event) => {
    for (const row of cudaRows.slice(0, source.kernel_line)) {
      row.classList.toggle('hidden', !event.target.checked);
    }
  };
}

function sourcePanes() {
  if (source.cuda.length === 0) return hide('source');
  cudaPane();
  // The file that most of the kernel is written in comes first.
  const weight = source.files.map((_, file) => source.from.filter((place) => place[0] === file).length);
  const order = source.files.map((_, file) => file).sort((a, b) => weight[b] - weight[a]);
  if (order.length > 1) {
    const selection = make('select', '', {}, ...order.map((file) =>
      make('option', '', { value: file }, source.files[file].path)));
    selection.onchange = () => showFile(Number(selection.value));
    byId('files').append(selection);
  }
  if (order.length > 0) showFile(order[0]);
}

// A text that is only built when it is opened.
function folded(head, build) {
  const element = make('details', '', {}, make('summary', '', {}, ...head));
  element.addEventListener('toggle', () => element.append(build()), { once: true });
  return element;
}

function diffText(diff) {
  const text = make('pre', 'text');
  for (const line of diff.replace(/\n$/, '').split('\n')) {
    const kind = line[0] === '+' ? 'add' : line[0] === '-' ? 'del' : line === '...' ? 'gap' : '';
    text.append(make('div', kind, {}, line));
  }
  return text;
}

function stages() {
  data.stages.forEach((stage, i) => {
    const { lines_added: added, lines_removed: removed } = summary.stages[i];
    const head = [
      make('span', 'name', {}, stage.name),
      make('span', 'time', {}, stage.milliseconds.toFixed(3) + ' ms'),
      added ? make('span', 'plus', {}, '+' + added) : null,
      removed ? make('span', 'minus', {}, '\u2212' + removed) : null,
      stage.changed ? null : make('span', '', {}, 'nothing changed'),
    ];
    byId('stage-list').append(stage.diff
      ? folded(head, () => diffText(stage.diff))
      : make('details', 'still', {}, make('summary', '', { onclick: 'return false' },
        ...head.filter((part) => part !== null))));
  });
}

function listings() {
  for (const [what, text] of [['CUDA C++', source.cuda.join('\n')], ['PTX', data.ptx], ['SASS', data.sass]]) {
    if (!text) continue;
    byId('listing-list').append(folded(
      [make('span', 'name', {}, what), make('span', '', {}, count(text.split('\n').length) + ' lines')],
      () => make('pre', 'text', {}, text)));
  }
  if (!byId('listing-list').firstChild) hide('listings');
}

function layouts() {
  if (data.layouts.length === 0) return hide('layouts');
  for (const layout of data.layouts) {
    byId('layout-list').append(folded([make('span', '', {}, layout.title)], () => {
      const picture = make('div', 'picture');
      picture.innerHTML = layout.svg;
      return picture;
    }));
  }
}

const graph = data.pipeline;
const kGap = 26, kLaneHeight = 58, kPlaceHeight = 104, kArrow = 62, kChip = 38, kSide = 16;

const isData = (place) => place >= 0 && !graph.places[place].barriers;

// Columns: one for each place of data that a role touches, then one for each tensor that roles
// reach without shared memory. Lanes above only fill places; those below do the rest.
function pipelineShape() {
  const touched = new Set(graph.flows.filter((flow) => isData(flow.place)).map((flow) => flow.place));
  const fills = (role) => {
    const own = graph.flows.filter((flow) => flow.role === role && isData(flow.place));
    return own.length > 0 && own.every((flow) => flow.writes && !flow.reads);
  };
  const roles = graph.roles.map((_, role) => role);
  const direct = graph.flows.filter((flow) => flow.place < 0 && flow.tensor >= 0);
  const columns = [...touched].sort((a, b) => a - b).map((place) => ({
    place, flows: graph.flows.filter((flow) => flow.place === place) }));
  const above = roles.filter(fills), below = roles.filter((role) => !fills(role));
  // A tensor of the lanes above and one of those below fit into one column.
  const tensors = (lanes) => [...new Set(direct.filter((flow) => lanes.includes(flow.role)).map((flow) => flow.tensor))];
  const [upper, lower] = [tensors(above), tensors(below)];
  for (let i = 0; i < Math.max(upper.length, lower.length); ++i) {
    columns.push({ place: -1, flows: direct.filter((flow) =>
      flow.tensor === (above.includes(flow.role) ? upper[i] : lower[i])) });
  }
  return { columns, above, below };
}

function arrow(x1, y1, x2, y2, kind) {
  const down = y2 > y1 ? 1 : -1;
  return [
    draw('path', { class: kind, d: `M${x1} ${y1}L${x2} ${y2 - 6 * down}` }),
    draw('path', { class: kind, d: `M${x2 - 4} ${y2 - 8 * down}L${x2} ${y2}L${x2 + 4} ${y2 - 8 * down}` }),
  ];
}

function ringOf(place) {
  const known = graph.places.filter((each) => each.barriers).map((each) => each.name);
  const rings = [place.name, place.name.replace(/\d+$/, ''), place.name.replace(/_numbers$/, '')];
  return rings.find((ring) => known.includes(ring + '_full'));
}

// A place with a cell for each stage, and the barriers of its ring.
function drawPlace(place, x, y, width) {
  const group = draw('g', {});
  const lines = [place.name + ': ' + place.contents, bytes(place.bytes) + ' at ' + place.offset, place.where];
  group.append(tip(lines.join('\n')));
  group.append(draw('rect', { class: 'place', x, y, width, height: kPlaceHeight, rx: 5 }));
  group.append(label(x + 10, y + 18, place.name, { 'font-weight': 'bold', 'font-size': 13 }));
  group.append(label(x + 10, y + 33, place.contents, { class: 'soft', 'font-size': 10 }));
  const cellWidth = (width - 20) / place.stages;
  for (let stage = 0; stage < place.stages; ++stage) {
    group.append(draw('rect', { class: 'stage', x: x + 10 + stage * cellWidth, y: y + 41,
      width: cellWidth - 3, height: 22, rx: 2 }));
    group.append(label(x + 10 + (stage + 0.5) * cellWidth - 1, y + 56, String(stage),
      { 'text-anchor': 'middle', 'font-size': 10 }));
  }
  group.append(label(x + 10, y + 78, bytes(place.bytes), { class: 'soft', 'font-size': 10 }));
  const ring = ringOf(place);
  if (ring) {
    const arrivals = (suffix) => graph.places.find((each) => each.name === ring + suffix).arrivals;
    group.append(label(x + 10, y + 94, `full: ${arrivals('_full')} + bytes, empty: ${arrivals('_empty')}`,
      { class: 'sync-text', 'font-size': 9 }));
  }
  return group;
}

function drawLane(role, y, width) {
  const { name: title, first_warp: first, warps, registers, where } = graph.roles[role];
  const group = draw('g', {}, tip('role ' + title + '\n' + where));
  group.append(draw('rect', { class: 'lane', x: kSide, y, width: width - 2 * kSide, height: kLaneHeight, rx: 5 }));
  group.append(label(kSide + 12, y + 22, title, { 'font-weight': 'bold', 'font-size': 14 }));
  const warpText = warps === 1 ? 'warp ' + first : `warps ${first} to ${first + warps - 1}`;
  group.append(label(kSide + 12, y + 40, warpText + (registers ? `, ${registers} registers a thread` : ''),
    { class: 'soft' }));
  const sync = (operation) => graph.flows.filter((flow) => flow.role === role && flow.operation === operation &&
    flow.place >= 0).map((flow) => graph.places[flow.place].name).join(', ');
  const waits = sync('mbarrier_wait'), arrives = sync('mbarrier_arrive');
  if (waits) group.append(label(kSide + 270, y + 22, 'waits for ' + waits, { class: 'sync-text' }));
  if (arrives) group.append(label(kSide + 270, y + 40, 'arrives at ' + arrives, { class: 'sync-text' }));
  group.style.cursor = 'pointer';
  group.onclick = () => showPlace(where);
  return group;
}

function drawChip(tensor, x, y, width) {
  const { name: title, kind, contents } = graph.tensors[tensor];
  const shown = contents.length * 5.5 > width ? contents.slice(0, Math.floor(width / 5.5) - 1) + '\u2026' : contents;
  return draw('g', {}, tip(kind + ' ' + title + ': ' + contents),
    draw('rect', { class: 'tensor', x, y, width, height: kChip, rx: kChip / 2 }),
    label(x + width / 2, y + 16, title, { 'text-anchor': 'middle', 'font-weight': 'bold' }),
    label(x + width / 2, y + 30, shown, { 'text-anchor': 'middle', class: 'soft', 'font-size': 9 }));
}

// Keeps what belongs to one column or lane, and fades the rest, while it is pointed at.
function focusable(element, svg, key, value) {
  element.addEventListener('mouseenter', () => {
    for (const part of svg.querySelectorAll('[data-flow]')) {
      part.classList.toggle('faint', part.dataset[key] !== String(value));
    }
  });
  element.addEventListener('mouseleave', () => {
    for (const part of svg.querySelectorAll('.faint')) part.classList.remove('faint');
  });
}

function drawFlow(flow, column, x, fromY, toY) {
  const kind = flow.writes ? 'write' : 'read';
  const group = draw('g', { 'data-flow': 1, 'data-column': column, 'data-role': flow.role });
  group.append(tip(`${graph.roles[flow.role].name}: ${flow.operation} \u00d7 ${flow.count}\n${flow.where.join('\n')}`));
  group.append(...arrow(x, fromY, x, toY, kind));
  const middle = (fromY + toY) / 2;
  group.append(label(x + 6, middle - 1, flow.operation, { class: kind + '-text', 'font-size': 10 }));
  group.append(label(x + 6, middle + 11, '\u00d7 ' + flow.count, { class: kind + '-text', 'font-size': 9 }));
  group.style.cursor = 'pointer';
  group.onclick = () => showPlace(flow.where[0]);
  return group;
}

function pipeline() {
  if (graph.roles.length === 0) return hide('pipeline');
  const { columns, above, below } = pipelineShape();
  const flowsBelow = (column) => column.flows.filter((flow) => below.includes(flow.role));
  let x = kSide + 14;
  for (const column of columns) {
    column.width = Math.max(190, 104 * flowsBelow(column).length,
      104 * column.flows.filter((flow) => above.includes(flow.role)).length);
    column.x = x;
    x += column.width + kGap;
  }
  const width = Math.max(900, x + kSide);
  // From top to bottom: tensors, lanes that fill, places, the other lanes, tensors.
  const lanesTop = 8 + kChip + kArrow;
  const placesTop = lanesTop + above.length * (kLaneHeight + 8) + (above.length ? kArrow : 0);
  const lanesBelow = placesTop + kPlaceHeight + kArrow;
  const chipsBelow = lanesBelow + below.length * (kLaneHeight + 8) + kArrow;
  const laneY = new Map();
  above.forEach((role, i) => laneY.set(role, lanesTop + i * (kLaneHeight + 8)));
  below.forEach((role, i) => laneY.set(role, lanesBelow + i * (kLaneHeight + 8)));
  const height = chipsBelow + kChip + 10;
  const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, style: `width:100%;max-width:${width}px` });
  svg.append(draw('rect', { class: 'band', x: kSide, y: placesTop - 12, width: width - 2 * kSide,
    height: kPlaceHeight + 24, rx: 6 }));
  svg.append(label(width - kSide - 8, placesTop + 2, 'shared memory',
    { class: 'soft', 'text-anchor': 'end', 'font-size': 10 }));
  for (const role of [...above, ...below]) {
    const lane = drawLane(role, laneY.get(role), width);
    focusable(lane, svg, 'role', role);
    svg.append(lane);
  }
  columns.forEach((column, index) => drawColumn(svg, column, index,
    { above, below, laneY, placesTop, chipsBelow, flowsBelow }));
  byId('pipeline-drawing').append(svg);
}

function drawColumn(svg, column, index, at) {
  const upper = column.flows.filter((flow) => at.above.includes(flow.role));
  const lower = at.flowsBelow(column);
  upper.forEach((flow, i) => {
    const x = column.x + (column.width * (i + 0.5)) / upper.length - 30;
    const y = at.laneY.get(flow.role);
    const down = flow.place >= 0 ? at.placesTop : null;
    if (down !== null) svg.append(drawFlow(flow, index, x, y + kLaneHeight, down));
    if (flow.tensor < 0) return;
    const chip = drawFlow(flow, index, x, flow.writes && down === null ? y : 8 + kChip,
      flow.writes && down === null ? 8 + kChip : y);
    svg.append(chip, drawChip(flow.tensor, x - 60, 8, Math.min(190, column.width)));
  });
  lower.forEach((flow, i) => {
    const x = column.x + (column.width * (i + 0.5)) / lower.length - 30;
    const y = at.laneY.get(flow.role);
    if (flow.place >= 0) {
      const bottom = at.placesTop + kPlaceHeight;
      svg.append(flow.writes ? drawFlow(flow, index, x, y, bottom) : drawFlow(flow, index, x, bottom, y));
    }
    if (flow.tensor < 0) return;
    const store = Object.assign({}, flow, flow.place >= 0 ? { writes: true } : {});
    const bottom = y + kLaneHeight;
    svg.append(store.writes ? drawFlow(store, index, x, bottom, at.chipsBelow)
      : drawFlow(store, index, x, at.chipsBelow, bottom));
    svg.append(drawChip(flow.tensor, Math.max(column.x, x - 80), at.chipsBelow, Math.min(180, column.width)));
  });
  if (column.place < 0) return;
  const place = drawPlace(graph.places[column.place], column.x, at.placesTop, column.width);
  place.style.cursor = 'pointer';
  place.onclick = () => showPlace(graph.places[column.place].where);
  focusable(place, svg, 'column', index);
  svg.append(place);
}

// Places that share bytes are drawn below each other.
function sharedMap() {
  const kCapacity = 232448;
  const places = graph.places.filter((place) => place.bytes > 0).sort((a, b) => a.offset - b.offset);
  if (places.length === 0) return;
  const width = 1200, scale = (width - 2 * kSide) / Math.max(kCapacity, graph.shared_bytes);
  const rows = [];
  const svg = draw('svg', {});
  places.forEach((place, i) => {
    let row = rows.findIndex((end) => end <= place.offset);
    if (row < 0) row = rows.push(0) - 1;
    rows[row] = place.offset + place.bytes;
    const x = kSide + place.offset * scale, w = Math.max(1.5, place.bytes * scale - 1);
    const group = draw('g', {}, tip(`${place.name}: ${place.contents}\n${bytes(place.bytes)} at ${place.offset}`));
    group.append(draw('rect', { x, y: 4 + row * 34, width: w, height: 28, rx: 2,
      fill: place.barriers ? 'var(--barrier)' : `hsl(${(i * 67) % 360} 45% 62%)` }));
    if (w > 44) group.append(label(x + 6, 22 + row * 34, place.name, { fill: '#111', class: '' }));
    svg.append(group);
  });
  const bottom = 8 + rows.length * 34;
  svg.append(draw('rect', { class: 'band', x: kSide, y: 2, width: kCapacity * scale, height: bottom - 4 }));
  svg.append(label(kSide, bottom + 12, '0', { class: 'soft', 'font-size': 10 }));
  svg.append(label(kSide + kCapacity * scale, bottom + 12, `${count(kCapacity)} bytes, the most of a CTA`,
    { class: 'soft', 'font-size': 10, 'text-anchor': 'end' }));
  svg.append(label(kSide + (graph.shared_bytes * scale) / 2, bottom + 12, count(graph.shared_bytes) + ' bytes taken',
    { 'font-size': 10, 'text-anchor': 'middle' }));
  svg.setAttribute('viewBox', `0 0 ${width} ${bottom + 20}`);
  svg.setAttribute('style', `width:100%;max-width:${width}px`);
  byId('shared-map').append(svg);
}

function roofline() {
  const roof = summary.roofline;
  if (!roof || !roof.devices || roof.flops <= 0 || roof.bytes <= 0) return hide('roofline');
  const rate = (value) => (value / 1e12).toPrecision(4) + ' TFLOP/s';
  table(byId('roofline-table'), ['device', 'bound by', 'ridge', 'at most', 'at least', 'figures of'],
    roof.devices.map((each) => [name(each.device), cell(each.bound), number(each.ridge.toFixed(0)),
      number(rate(each.flops_per_second)), number((each.seconds * 1e6).toPrecision(4) + ' \u00b5s'), cell(each.source)]));
  byId('roofline-table').append(make('tr', '', {}, make('td', '', { colspan: 6 },
    `${(roof.flops / 1e9).toPrecision(5)} GFLOP, ${(roof.bytes / 1e6).toPrecision(5)} MB: ` +
    `${roof.flops_per_byte.toPrecision(4)} FLOP a byte`)));
  const width = 560, height = 330, left = 66, bottom = 42;
  const lowX = Math.min(1, 10 ** Math.floor(Math.log10(roof.flops_per_byte)));
  const highX = Math.max(1e4, 10 ** Math.ceil(Math.log10(roof.flops_per_byte)));
  const peak = Math.max(...roof.devices.map((each) => each.peak_flops_per_second));
  const highY = 10 ** Math.ceil(Math.log10(peak * 1.05));
  const lowY = Math.min(...roof.devices.map((each) => each.bytes_per_second)) * lowX;
  const px = (x) => left + (Math.log10(x / lowX) / Math.log10(highX / lowX)) * (width - left - 20);
  const py = (y) => height - bottom - (Math.log10(y / lowY) / Math.log10(highY / lowY)) * (height - bottom - 20);
  const svg = draw('svg', { width, height });
  for (let x = lowX; x <= highX * 1.01; x *= 10) {
    svg.append(draw('path', { class: 'grid', d: `M${px(x)} 20V${height - bottom}` }));
    svg.append(label(px(x), height - bottom + 16, count(x), { 'text-anchor': 'middle', 'font-size': 10, class: 'soft' }));
  }
  for (let y = 10 ** Math.ceil(Math.log10(lowY)); y <= highY * 1.01; y *= 10) {
    svg.append(draw('path', { class: 'grid', d: `M${left} ${py(y)}H${width - 20}` }));
    svg.append(label(left - 6, py(y) + 4, (y / 1e12) + '', { 'text-anchor': 'end', 'font-size': 10, class: 'soft' }));
  }
  svg.append(label(left, 12, 'TFLOP/s', { 'font-size': 10, class: 'soft', 'text-anchor': 'end' }));
  svg.append(label((left + width) / 2, height - 6, 'FLOP a byte', { 'font-size': 10, class: 'soft', 'text-anchor': 'middle' }));
  roof.devices.forEach((each, i) => {
    const colour = i === 0 ? 'var(--accent)' : 'var(--consumer)';
    const corner = `${px(each.ridge)} ${py(each.peak_flops_per_second)}`;
    svg.append(draw('path', { class: 'roof', stroke: colour, 'stroke-dasharray': i ? '5 4' : 'none',
      d: `M${px(lowX)} ${py(each.bytes_per_second * lowX)}L${corner}H${px(highX)}` }));
    svg.append(label(px(lowX) + 14 + 96 * i, py(highY) + 14, each.device, { fill: colour, class: '' }));
    svg.append(draw('g', {}, tip(`${each.device}: at most ${rate(each.flops_per_second)}`),
      draw('circle', { cx: px(roof.flops_per_byte), cy: py(each.flops_per_second), r: 5, fill: colour })));
  });
  svg.append(draw('path', { class: 'sync', d: `M${px(roof.flops_per_byte)} 20V${height - bottom}` }));
  byId('roofline-drawing').append(svg);
}

head();
pipeline();
sharedMap();
sourcePanes();
stages();
numerics();
roofline();
instructions();
layouts();
listings();
navigation();
