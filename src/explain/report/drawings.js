// The drawings of the page; page.js comes before.

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

// A line for each use of columns of tensor memory, one role behind the other.
function tensorMap() {
  const uses = summary.tensor_memory;
  if (uses.length === 0) return byId('tensor-memory').remove();
  const kNames = 220, kLine = 18, width = 1200, columns = summary.resources.tensor_columns;
  const scale = (width - kNames - kSide) / columns;
  const svg = draw('svg', {});
  uses.forEach((use, i) => {
    const y = 4 + i * kLine, first = use.begin + use.first, last = first + use.columns - 1;
    const done = use.reads ? (use.writes ? 'read and written' : 'read') : 'written';
    const beyond = use.beyond ? ` and ${use.beyond}` : '';
    const group = draw('g', {}, tip(`${use.role}: ${use.operation} of ${use.memory}\n` +
      `columns ${first} to ${last}${beyond} ${done}, ${count(use.count)} instructions\n${use.where}`));
    if (i === 0 || uses[i - 1].role !== use.role) {
      group.append(label(kSide, y + 12, use.role, {}));
      svg.append(draw('line', { class: 'band', x1: kSide, x2: width - kSide, y1: y - 2, y2: y - 2 }));
    }
    group.append(label(kNames - 8, y + 12, use.operation, { class: 'soft', 'font-size': 10, 'text-anchor': 'end' }));
    group.append(draw('rect', { x: kNames + first * scale, y, width: Math.max(1.5, use.columns * scale - 1),
      height: kLine - 4, rx: 2, fill: `hsl(${use.writes ? (use.reads ? 285 : 15) : 210} 45% 62%)` }));
    svg.append(group);
  });
  const bottom = 8 + uses.length * kLine;
  svg.append(draw('rect', { class: 'band', x: kNames, y: 2, width: columns * scale, height: bottom - 4 }));
  svg.append(label(kNames, bottom + 12, '0', { class: 'soft', 'font-size': 10 }));
  svg.append(label(kNames + columns * scale, bottom + 12, `${count(columns)} columns; blue read, red written, violet both`,
    { class: 'soft', 'font-size': 10, 'text-anchor': 'end' }));
  svg.setAttribute('viewBox', `0 0 ${width} ${bottom + 20}`);
  svg.setAttribute('style', `width:100%;max-width:${width}px`);
  byId('tensor-map').append(svg);
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
