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
  const launch = data.launches[cta.launch];
  const strips = [];
  launch.barriers.forEach((barrier, number) => {
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
  const launch = data.launches[cta.launch];
  const only = launch.roles.length === 1;
  launch.roles.forEach((role, number) => {
    const lanes = cta.lanes.filter((lane) => lane.role === number);
    if (lanes.length === 0) return;
    groups.push({
      title: number === 0 && !only ? 'warps in no role' : role,
      open: number !== 0 || only,
      rows: lanes.map((lane) => ({
        label: 'warp ' + lane.number, height: 18, kind: 'slices', warp: lane.warp,
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
  add(launch.copy_unit + ' loads', 0, 'in flight');
  if (cta.products.length > 0) {
    groups.push({
      title: launch.product_unit, open: true,
      rows: [{
        label: 'busy', height: 16, kind: 'products',
        items: records(cta.products, 4, ([start, length, name, where]) =>
          ({ start, end: start + length, name, where, colour: 'product', count: 1, detail: 0, iteration: 0 })),
      }],
    });
  }
  add('products', 2, 'in flight');
  add('bulk stores', 1, 'in flight');
  const phases = launch.arrays.map((name, array) => {
    const strips = phasesOf(cta, array);
    return { label: name, height: 6 + 7 * strips.length, kind: 'phases', strips, items: [] };
  });
  if (phases.length > 0) groups.push({ title: 'mbarriers', open: true, rows: phases });
  return groups;
}

// A rank's streams, a row each, above the CTAs of what they launch.
function streamsOf(rank) {
  const rows = [];
  let start = Infinity, end = 0;
  data.streams.forEach((stream, number) => {
    if (stream.rank !== rank) return;
    const items = slices(stream.slices);
    items.forEach((item) => { item.stream = number; });
    if (items.length > 0) {
      start = Math.min(start, items[0].start);
      end = Math.max(end, items[items.length - 1].end);
    }
    rows.push({ label: stream.name, height: 20, kind: 'slices', stream: number, items });
  });
  return {
    number: -1 - rank, title: 'rank ' + rank, start: Math.min(start, end), end, rank, order: -1, index: 0,
    work: 1, open: true, groups: [{ title: 'streams', open: true, rows }],
  };
}

// Ranks one after the other, and their launches in the order in which they began. CTAs that do something come first, and of these what a fault marks, or the busiest, is open.
const marked = new Set(data.faults.flatMap((fault) => fault.marks.map((mark) => (mark.stream < 0 ? mark.cta : -1))));
const ctas = data.ctas.map((cta, i) => {
  const work = cta.flights.length + cta.products.length;
  return {
    number: i,
    launch: cta.launch,
    index: cta.index,
    title: 'CTA ' + cta.index + (work === 0 && data.streams.length === 0 ? ', without work' : ''),
    rank: data.launches[cta.launch].rank,
    order: data.streams.length === 0 ? (work === 0) * 1 : cta.launch,
    start: cta.start,
    end: cta.end,
    work,
    open: marked.has(i),
    groups: groupsOf(cta),
  };
}).concat([...new Set(data.streams.map((stream) => stream.rank))].map(streamsOf))
  .sort((a, b) => a.rank - b.rank || a.order - b.order || a.index - b.index);
// Of a program each launch is folded to one line, unless a fault marks it.
const launches = data.launches.map((launch, number) => {
  const own = ctas.filter((cta) => cta.launch === number);
  return {
    title: launch.name.replace(/ of rank \d+/, '') + ': ' + own.length + (own.length === 1 ? ' CTA' : ' CTAs'),
    open: data.streams.length === 0 || own.some((cta) => cta.open), first: own[0],
    start: Math.min(...own.map((cta) => cta.start)), end: Math.max(...own.map((cta) => cta.end)),
  };
});
if (marked.size === 0 && ctas.length > 0 && data.streams.length === 0) {
  ctas.reduce((best, cta) => (cta.work > best.work ? cta : best)).open = true;
}
