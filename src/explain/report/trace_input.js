// What the pointer and the keys do.
function zoom(factor, x) {
  const at = timeAt(x === undefined ? gutter + width() / 2 : Math.max(x, gutter));
  const span = Math.min(Math.max((to - from) * factor, 20), last * 1.1);
  from = at - ((at - from) / (to - from)) * span;
  to = from + span;
  keepInside();
}
function pan(pixels) {
  const by = (pixels / width()) * (to - from);
  from += by;
  to += by;
  keepInside();
}
function keepInside() {
  const span = to - from, low = -0.03 * last, high = 1.07 * last;
  if (to > high) { to = high; from = to - span; }
  if (from < low) { from = low; to = from + span; }
  redraw();
}
function fit() {
  from = 0;
  to = last * 1.02;
  redraw();
}

function openMarks(fault) {
  for (const mark of fault.marks) {
    const cta = ctas.find((each) => each.number === blockOf(mark));
    cta.open = true;
    if (cta.launch !== undefined) launches[cta.launch].open = true;
    for (const group of cta.groups) {
      if (group.rows.some((row) => holds(row, mark))) group.open = true;
    }
  }
  arrange();
}
function goTo(fault) {
  if (fault.marks.length === 0) return fit();
  openMarks(fault);
  const times = fault.marks.map((mark) => mark.time);
  const low = Math.min(...times), high = Math.max(...times);
  const span = Math.max((high - low) * 2.4, 1500);
  from = (low + high) / 2 - span / 2;
  to = from + span;
  const heights = fault.marks.map((mark) => markAt(mark, 0).y);
  view.scrollTop = (Math.min(...heights) + Math.max(...heights)) / 2 - view.clientHeight / 2;
  keepInside();
}

function element(tag, classes, ...children) {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  made.append(...children);
  return made;
}

function listFaults() {
  for (const fault of data.faults) {
    const box = element('div', 'message failure', fault.text);
    const button = element('button', '', 'show where');
    button.onclick = () => goTo(fault);
    if (fault.marks.length > 0) box.append(button);
    byId('faults').append(box);
  }
}

function legend() {
  const entries = [['arithmetic', 'compute'], ['memory access', 'memory'],
    ['issue', 'issue'], ['barriers, fences', 'sync'], ['wait', 'wait'],
    ['TMA load in flight', 'load'], ['product', 'product'], ['bulk store in flight', 'store'],
    ['mbarrier, even phase', 'phase'], ['odd phase', 'phase-other'], ['fault', 'bad']];
  for (const [what, colour] of entries) {
    const sample = element('i', '');
    sample.style.background = 'var(--' + colour + ')';
    if (colour === 'wait') {
      sample.style.background = 'repeating-linear-gradient(135deg, var(--wait-line) 0 1px, var(--wait) 1px 5px)';
    }
    byId('legend').append(element('span', '', sample, what));
  }
  byId('legend').append(element('span', '', 'drag: move; Ctrl and wheel, W, S: zoom; click on a title: fold'));
}

function entryAt(y) {
  const top = view.scrollTop;
  return y < ruler ? undefined : layout.find((entry) => y + top >= entry.y && y + top < entry.y + entry.height);
}
function itemAt(x, y) {
  const entry = entryAt(y);
  if (!entry || entry.what !== 'row' || x < gutter) return null;
  const slack = ((to - from) / width()) * 2;
  const pick = (items) => {
    const i = firstAfter(items, timeAt(x) - slack);
    return i < items.length && items[i].start <= timeAt(x) + slack ? items[i] : null;
  };
  if (entry.row.kind !== 'phases') return pick(entry.row.items);
  const stage = Math.floor((y + view.scrollTop - entry.y - 3) / 7);
  return entry.row.strips[stage] ? pick(entry.row.strips[stage]) : null;
}

function describe(item) {
  const lines = [];
  const line = (...words) => lines.push(element('div', '', ...words));
  const times = count(item.start) + ' to ' + count(item.end) + ' (' + count(item.end - item.start) + ' cycles)';
  if (item.barrier) {
    lines.push(element('b', '', item.barrier + ' phase ' + item.phase));
    line(times);
    line(item.open ? 'not complete' : 'completed: ' + text(item.cause));
    return lines;
  }
  lines.push(element('b', '', text(item.name) + (item.count > 1 ? ' \u00d7' + item.count : '')));
  line(times + (item.iteration ? (item.stream === undefined ? ', iteration ' : ', ') + text(item.iteration) : ''));
  if (item.detail) line((item.colour === 'wait' ? 'until: ' : '') + text(item.detail));
  if (item.issuer !== undefined) line('issued by warp ' + item.issuer + ' of the CTA');
  if (item.complete === 0) line('in flight when the run ended');
  const source = place(item.where);
  if (source) {
    line(source.where);
    if (source.line) lines.push(element('code', '', source.line.trim()));
  }
  return lines;
}

function hover(event) {
  const box = canvas.getBoundingClientRect();
  const item = itemAt(event.clientX - box.left, event.clientY - box.top);
  if (item !== highlighted) {
    highlighted = item;
    redraw();
  }
  tip.style.display = item ? 'block' : 'none';
  if (!item) return;
  tip.replaceChildren(...describe(item));
  const wide = tip.offsetWidth, high = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(event.clientX + 16, innerWidth - wide - 8)) + 'px';
  tip.style.top = (event.clientY + 18 + high > innerHeight ? event.clientY - high - 12 : event.clientY + 18) + 'px';
}

function fold(open) {
  for (const cta of ctas) cta.open = open;
  for (const launch of launches) launch.open = open || data.streams.length === 0;
  arrange();
  redraw();
}

function listen() {
  let held = null;
  canvas.addEventListener('pointerdown', (event) => {
    held = { x: event.clientX, y: event.clientY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!held) return hover(event);
    const dx = event.clientX - held.x, dy = event.clientY - held.y;
    if (!held.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    Object.assign(held, { moved: true, x: event.clientX, y: event.clientY });
    view.scrollTop -= dy;
    tip.style.display = 'none';
    pan(-dx);
  });
  canvas.addEventListener('pointerup', (event) => {
    const clicked = held && !held.moved;
    held = null;
    const entry = clicked && entryAt(event.clientY - canvas.getBoundingClientRect().top);
    if (!entry || entry.what === 'row') return;
    const folded = entry.what === 'group' ? entry.group : entry.cta;
    folded.open = !folded.open;
    arrange();
    redraw();
  });
  canvas.addEventListener('dblclick', (event) => {
    const box = canvas.getBoundingClientRect();
    const item = itemAt(event.clientX - box.left, event.clientY - box.top);
    if (!item) return;
    const room = (item.end - item.start) / 4 + 5;
    from = item.start - room;
    to = item.end + room;
    keepInside();
  });
  canvas.addEventListener('pointerleave', () => { tip.style.display = 'none'; });
  view.addEventListener('wheel', (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.004), event.clientX - canvas.getBoundingClientRect().left);
    } else if (event.shiftKey || event.deltaX !== 0) {
      event.preventDefault();
      pan(event.deltaX || event.deltaY);
    }
  }, { passive: false });
  view.addEventListener('scroll', redraw);
  addEventListener('resize', () => { arrange(); redraw(); });
  addEventListener('keydown', (event) => {
    const keys = { w: () => zoom(0.7), s: () => zoom(1 / 0.7), a: () => pan(-120), d: () => pan(120),
      ArrowLeft: () => pan(-120), ArrowRight: () => pan(120), f: fit };
    if (keys[event.key] && !event.ctrlKey && !event.metaKey) keys[event.key]();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readColours(); redraw(); });
  byId('zoom-in').onclick = () => zoom(0.6);
  byId('zoom-out').onclick = () => zoom(1 / 0.6);
  byId('fit').onclick = fit;
  byId('expand').onclick = () => fold(true);
  byId('collapse').onclick = () => fold(false);
}
