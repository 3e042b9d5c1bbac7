'use strict';

// The trace as rows to draw. A row has a height, a label and `items` in order of their starts;
// an item is drawn and described by its row's kind.
const data = JSON.parse(document.getElementById('data').textContent);
const text = (number) => data.texts[number];
const place = (number) => data.places[number];
const sliceKinds = ['compute', 'memory', 'issue', 'barrier', 'wait'];
const flightKinds = ['load', 'store', 'product'];

// Lists of numbers, so many for each record.
function records(numbers, size, make) {
  const list = [];
  for (let i = 0; i < numbers.length; i += size) list.push(make(numbers.slice(i, i + size)));
  return list;
}

function slices(numbers) {
  return records(numbers, 8, ([start, length, kind, name, detail, iteration, count, where]) => ({
    start, end: start + length, colour: sliceKinds[kind], name, detail, iteration, count, where,
  }));
}

// Flights overlap: each goes to the first row that is free.
function pack(flights) {
  const rows = [];
  for (const flight of flights.slice().sort((a, b) => a.start - b.start)) {
    let row = rows.findIndex((items) => items[items.length - 1].end <= flight.start);
    if (row < 0) row = rows.push([]) - 1;
    rows[row].push(flight);
  }
  return rows;
}

function flightsOf(cta) {
  return records(cta.flights, 9,
                 ([kind, start, length, complete, name, detail, iteration, issuer, where], i) => ({
    kind, start, end: start + length, complete, name, detail, iteration, issuer, where, count: 1,
    colour: flightKinds[kind],
  }));
}

// The stages of one array of barriers, each a strip whose shade changes with the phase.
function phasesOf(cta, array) {
  const strips = [];
  data.barriers.forEach((barrier, number) => {
    if (barrier.array !== array) return;
    const flips = records(cta.flips, 4, ([time, of, phase, cause]) => ({ time, of, phase, cause }))
      .filter((flip) => flip.of === number);
    const items = [];
    let start = cta.start;
    for (const flip of flips) {
      items.push({ start, end: flip.time, phase: flip.phase, cause: flip.cause, barrier: barrier.name });
      start = flip.time;
    }
    items.push({ start, end: Math.max(cta.end, start), phase: flips.length, open: true, barrier: barrier.name });
    strips.push(items);
  });
  return strips;
}

function groupsOf(cta) {
  const groups = [];
  const only = data.roles.length === 1;
  data.roles.forEach((role, number) => {
    const lanes = cta.lanes.filter((lane) => lane.role === number);
    if (lanes.length === 0) return;
    groups.push({
      title: number === 0 && !only ? 'warps in no role' : role,
      open: number !== 0 || only,
      rows: lanes.map((lane) => ({
        label: 'warp ' + (lane.warp - lanes[0].warp), height: 18, kind: 'slices', warp: lane.warp,
        items: slices(lane.slices),
      })),
    });
  });
  const flights = flightsOf(cta);
  flights.forEach((flight, i) => { flight.number = i; });
  const add = (title, kind, label) => {
    const packed = pack(flights.filter((flight) => flight.kind === kind));
    if (packed.length === 0) return;
    groups.push({
      title, open: true,
      rows: packed.map((items, i) => ({ label: i === 0 ? label : '', height: 14, kind: 'flights', items })),
    });
  };
  add('TMA loads', 0, 'in flight');
  if (cta.products.length > 0) {
    groups.push({
      title: 'tensor cores', open: true,
      rows: [{
        label: 'busy', height: 16, kind: 'products',
        items: records(cta.products, 4, ([start, length, name, where]) =>
          ({ start, end: start + length, name, where, colour: 'product', count: 1, detail: 0, iteration: 0 })),
      }],
    });
  }
  add('products', 2, 'in flight');
  add('bulk stores', 1, 'in flight');
  const phases = data.arrays.map((name, array) => {
    const strips = phasesOf(cta, array);
    return { label: name, height: 6 + 7 * strips.length, kind: 'phases', strips, items: [] };
  });
  if (phases.length > 0) groups.push({ title: 'mbarriers', open: true, rows: phases });
  return groups;
}

// CTAs that do something come first, and of these the busiest, or what a fault marks, is open.
const marked = new Set(data.faults.flatMap((fault) => fault.marks.map((mark) => mark.cta)));
const work = (cta) => cta.flights.length + cta.products.length;
const busiest = data.ctas.reduce((best, cta) => (work(cta) > work(best) ? cta : best), data.ctas[0]);
const ctas = data.ctas.map((cta, i) => ({
  number: i,
  title: 'CTA ' + cta.index + (work(cta) === 0 ? ', without work' : ''),
  start: cta.start,
  end: cta.end,
  idle: work(cta) === 0,
  open: marked.size > 0 ? marked.has(i) : cta === busiest,
  groups: groupsOf(cta),
})).sort((a, b) => a.idle - b.idle || data.ctas[a.number].index - data.ctas[b.number].index);
