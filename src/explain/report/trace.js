const byId = (id) => document.getElementById(id);
const gutter = data.streams.length > 0 ? 230 : 190, ruler = 26, ctaHeight = 24, groupHeight = 20;
const canvas = byId('canvas'), view = byId('view'), tip = byId('tip');
const pen = canvas.getContext('2d');
const last = Math.max(data.end, 1);
let from = 0, to = last * 1.02;  // the times at the edges
let layout = [];              // what is drawn where, from the top
let colours = {};
let highlighted = null;

const count = (n) => Math.round(n).toLocaleString('en');
const width = () => view.clientWidth - gutter;
const xOf = (time) => gutter + ((time - from) / (to - from)) * width();
const timeAt = (x) => from + ((x - gutter) / width()) * (to - from);

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['compute', 'memory', 'issue', 'sync', 'wait', 'wait-line', 'load', 'store',
    'product', 'phase', 'phase-other', 'group', 'ink', 'soft', 'line', 'card', 'page', 'bad', 'accent', 'mark']) {
    colours[name] = style.getPropertyValue('--' + name).trim();
  }
  colours.barrier = colours.sync;
}

// Which rows are visible, and how tall all is.
function arrange() {
  layout = [];
  let y = ruler;
  const push = (entry, height) => {
    layout.push(Object.assign(entry, { y, height }));
    y += height;
  };
  ctas.forEach((cta) => {
    const c = cta.number;
    const launch = data.streams.length > 0 ? launches[cta.launch] : undefined;
    if (launch && launch.first === cta) push({ what: 'launch', cta: launch, number: cta.launch }, ctaHeight);
    if (launch && !launch.open) return;
    push({ what: 'cta', cta, c }, ctaHeight);
    if (!cta.open) return;
    for (const group of cta.groups) {
      push({ what: 'group', group, c }, groupHeight);
      if (!group.open) continue;
      for (const row of group.rows) push({ what: 'row', row, c }, row.height);
    }
  });
  byId('height').style.height = Math.max(y + 20, view.clientHeight) + 'px';
}

// The first item that ends after the time.
function firstAfter(items, time) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].end < time) low = middle + 1; else high = middle;
  }
  return low;
}

function words(content, x, y, limit, colour, bold) {
  pen.font = (bold ? '600 ' : '') + '11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace';
  const fits = Math.floor(limit / 6.7);
  if (fits < 3) return;
  pen.fillStyle = colour;
  pen.fillText(content.length > fits ? content.slice(0, fits - 1) + '\u2026' : content, x, y);
}

// Waits are hatched, so that gaps show without being read.
function drawWait(x, y, w, h) {
  pen.fillStyle = colours.wait;
  pen.fillRect(x, y, w, h);
  if (w < 4) return;
  pen.save();
  pen.beginPath();
  pen.rect(x, y, w, h);
  pen.clip();
  pen.strokeStyle = colours['wait-line'];
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = x - h - ((x - h) % 7); at < x + w; at += 7) {
    pen.moveTo(at, y + h);
    pen.lineTo(at + h, y);
  }
  pen.stroke();
  pen.restore();
}

function drawItems(row, y) {
  const height = row.height - 3;
  let drawn = -1;  // the right edge of what is too narrow to be seen by itself
  for (let i = firstAfter(row.items, from); i < row.items.length; ++i) {
    const item = row.items[i];
    if (item.start > to) break;
    const x = Math.max(xOf(item.start), gutter), end = Math.min(xOf(item.end), gutter + width());
    if (end < drawn + 0.5) continue;
    const w = Math.max(end - x, 0.7);
    if (item.colour === 'wait') {
      drawWait(x, y + 1, w, height);
    } else {
      pen.fillStyle = colours[item.colour];
      pen.fillRect(x, y + 1, w > 3 ? w - 0.7 : w, height);
      if (item.complete === 0) {
        pen.strokeStyle = colours.bad;
        pen.setLineDash([3, 2]);
        pen.strokeRect(x + 0.5, y + 1.5, Math.max(w - 1, 1), height - 1);
        pen.setLineDash([]);
      }
    }
    if (item === highlighted) {
      pen.strokeStyle = colours.ink;
      pen.strokeRect(x + 0.5, y + 1.5, Math.max(w - 1, 1), height - 1);
    }
    const title = item.count > 1 ? text(item.name) + ' \u00d7' + item.count : text(item.name);
    words(title, x + 4, y + row.height / 2 + 4, w - 6, item.colour === 'wait' ? colours.soft : colours.ink);
    drawn = end;
  }
}

function drawPhases(row, y) {
  row.strips.forEach((items, stage) => {
    const top = y + 3 + 7 * stage;
    let drawn = -1;
    for (let i = firstAfter(items, from); i < items.length; ++i) {
      const item = items[i];
      if (item.start > to) break;
      const x = Math.max(xOf(item.start), gutter), end = Math.min(xOf(item.end), gutter + width());
      if (end < drawn + 0.5) continue;
      pen.fillStyle = colours[item.phase % 2 ? 'phase-other' : 'phase'];
      pen.fillRect(x, top, Math.max(end - x - 0.7, 0.7), 6);
      drawn = end;
    }
  });
}

function drawRuler() {
  pen.fillStyle = colours.card;
  pen.fillRect(0, 0, gutter + width(), ruler);
  words('cycles', 12, 17, gutter, colours.soft);
  const raw = ((to - from) / width()) * 110;
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = Math.max(1, [1, 2, 5, 10].find((factor) => factor * power >= raw) * power);
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
    pen.fillStyle = colours.line;
    pen.fillRect(Math.round(xOf(time)), ruler - 6, 1, 6);
    words(count(time), xOf(time) + 4, 17, 100, colours.soft);
  }
  pen.fillStyle = colours.line;
  pen.fillRect(0, ruler - 1, gutter + width(), 1);
}

function drawGrid(height) {
  const raw = ((to - from) / width()) * 110;
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = Math.max(1, [1, 2, 5, 10].find((factor) => factor * power >= raw) * power);
  pen.fillStyle = colours.line;
  pen.globalAlpha = 0.45;
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
    const x = Math.round(xOf(time));
    if (x >= gutter) pen.fillRect(x, ruler, 1, height);
  }
  pen.globalAlpha = 1;
}

// Where a fault's access is drawn: on its flight, else on its warp; on a closed group or CTA there.
function markAt(mark, top) {
  let found = null;
  for (const entry of layout) {
    if (entry.what === 'launch' && mark.stream < 0 && data.ctas[mark.cta].launch === entry.number) found = entry;
    if (entry.c !== blockOf(mark)) continue;
    if (entry.what === 'cta') found = entry;
    if (entry.what === 'group' && entry.group.rows.some((row) => holds(row, mark))) found = entry;
    if (entry.what === 'row' && holds(entry.row, mark)) found = entry;
  }
  return found && { x: xOf(mark.time), y: found.y - top + found.height / 2 };
}
// The number of the CTA, or of its rank's streams.
const blockOf = (mark) => (mark.stream < 0 ? mark.cta : -1 - data.streams[mark.stream].rank);
function holds(row, mark) {
  if (mark.stream >= 0) return row.stream === mark.stream;
  if (mark.flight >= 0) return row.kind === 'flights' && row.items.some((item) => item.number === mark.flight);
  return row.kind === 'slices' && row.warp === mark.warp;
}

function drawFaults(top, height) {
  for (const fault of data.faults) {
    const points = fault.marks.map((mark) => markAt(mark, top));
    pen.strokeStyle = pen.fillStyle = colours.bad;
    if (points.length > 1 && points[0] && points[1]) {
      const [a, b] = points;
      pen.lineWidth = 1.5;
      pen.setLineDash([5, 4]);
      pen.beginPath();
      pen.moveTo(a.x, a.y);
      pen.bezierCurveTo(a.x + 50, (a.y + b.y) / 2, b.x + 50, (a.y + b.y) / 2, b.x, b.y);
      pen.stroke();
      pen.setLineDash([]);
    }
    points.forEach((point, i) => {
      if (!point || point.x < gutter) return;
      pen.globalAlpha = 0.35;
      pen.fillRect(point.x, ruler, 1, height);
      pen.globalAlpha = 1;
      pen.lineWidth = 2.5;
      pen.beginPath();
      pen.arc(point.x, point.y, 7, 0, 2 * Math.PI);
      pen.stroke();
      const label = (i + 1) + ': ' + place(fault.marks[i].where).where;
      pen.font = '600 11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace';
      const wide = pen.measureText(label).width + 10;
      const left = point.x + 11 + wide > gutter + width() ? point.x - 11 - wide : point.x + 11;
      const y = Math.max(point.y, ruler + 9);
      pen.fillRect(left, y - 9, wide, 17);
      words(label, left + 5, y + 4, wide, colours.card, true);
      pen.fillStyle = colours.bad;
    });
  }
  pen.lineWidth = 1;
}

function render() {
  const ratio = window.devicePixelRatio || 1;
  const wide = view.clientWidth, high = view.clientHeight, top = view.scrollTop;
  if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) {
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(high * ratio);
    canvas.style.width = wide + 'px';
    canvas.style.height = high + 'px';
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = colours.card;
  pen.fillRect(0, 0, wide, high);
  const visible = layout.filter((entry) => entry.y + entry.height > top + ruler && entry.y < top + high);
  for (const entry of visible) {
    if (entry.what === 'row') continue;
    pen.fillStyle = entry.what === 'group' ? colours.page : colours.group;
    pen.fillRect(0, entry.y - top, wide, entry.height - 1);
  }
  drawGrid(high);
  for (const entry of visible) {
    const y = entry.y - top;
    if (entry.what === 'row') {
      if (entry.row.kind === 'phases') drawPhases(entry.row, y); else drawItems(entry.row, y);
    } else if (entry.what !== 'group' && !entry.cta.open) {
      const x = Math.max(xOf(entry.cta.start), gutter);
      pen.fillStyle = colours.compute;
      pen.fillRect(x, y + 9, Math.max(Math.min(xOf(entry.cta.end), wide) - x, 1), 5);
    }
  }
  pen.save();
  pen.beginPath();
  pen.rect(gutter, ruler, wide - gutter, high - ruler);
  pen.clip();
  drawFaults(top, high);
  pen.restore();
  // The labels, over what began to their left.
  for (const entry of visible) {
    const y = entry.y - top;
    pen.fillStyle = entry.what === 'group' ? colours.page : entry.what === 'row' ? colours.card : colours.group;
    pen.fillRect(0, y, gutter - 1, entry.height);
    const arrow = (open) => (open ? '\u25be ' : '\u25b8 ');
    if (entry.what === 'launch') words(arrow(entry.cta.open) + entry.cta.title, 10, y + 16, gutter - 14, colours.ink, true);
    if (entry.what === 'cta') words(arrow(entry.cta.open) + entry.cta.title, entry.cta.launch === undefined || data.streams.length === 0 ? 10 : 22, y + 16, gutter - 14, colours.ink, true);
    if (entry.what === 'group') words(arrow(entry.group.open) + entry.group.title, 22, y + 14, gutter - 26, colours.ink);
    if (entry.what === 'row') words(entry.row.label, 46, y + entry.height / 2 + 4, gutter - 50, colours.soft);
  }
  pen.fillStyle = colours.line;
  pen.fillRect(gutter - 1, 0, 1, high);
  drawRuler();
}

let pending = false;
function redraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; render(); });
}

function show() {
  document.title = data.kernel + ' - tilewright trace';
  byId('kernel').textContent = data.kernel;
  byId('subtitle').title = data.command;
  byId('subtitle').textContent = 'simulated ' + data.target + ', seed ' + data.seed + ': ' +
    (data.faults.length === 0 ? 'no fault' : data.faults.length === 1 ? '1 fault' : data.faults.length + ' faults') +
    '. ' + data.command;
  byId('axis').textContent = 'The axis: ' + data.axis + '.';
  readColours();
  legend();
  listFaults();
  listen();
  arrange();
  if (data.faults.length > 0) {
    goTo(data.faults[0]);
  } else {
    view.scrollTop = (layout.find((entry) => entry.what === 'cta' && entry.cta.open) || { y: 0 }).y - ruler;
  }
  view.focus({ preventScroll: true });
  render();
}
