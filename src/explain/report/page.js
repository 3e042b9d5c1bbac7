'use strict';

// The whole page; of a program it holds several kernels, of which `data` is the one that is shown.
const whole = JSON.parse(document.getElementById('data').textContent);
const kernelNumber = () => Math.min(Number(location.hash.slice(1)) || 0, whole.kernels.length - 1);
const data = whole.kernels ? whole.kernels[kernelNumber()] : whole;
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

// A page shows one kernel: another is another page.
function program() {
  if (!whole.kernels) return;
  byId('program').classList.remove('hidden');
  for (const step of whole.steps) {
    const shown = step.kernel === kernelNumber();
    const text = step.kernel < 0 ? step.text
      : make('a', shown ? 'shown' : '', { href: '#' + step.kernel }, step.text);
    byId('program-steps').append(make('li', '', { title: step.where }, text));
  }
  addEventListener('hashchange', () => {
    if (/^#\d+$/.test(location.hash)) location.reload();
  });
  byId('subtitle').textContent += ', of the program ' + whole.program;
}

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
  const fields = Object.entries(summary.schedule_fields);
  table(byId('fields'), ['field', 'value', 'chosen by'], fields.map(([what, each]) => [
    name(what), cell(each.value), cell([each.by, each.where].filter(Boolean).join(', '))]));
  for (const [id, list] of [['rewrites', rewrites], ['claims', summary.claims], ['fields', fields],
    ['approximations', summary.numerics.approximations]]) {
    if (list.length === 0) byId(id).replaceChildren(make('tr', '', {}, cell('none')));
  }
}

function schedule() {
  const choice = summary.schedule;
  if (!choice) return hide('schedule');
  byId('schedule-choice').append(make('b', '', {}, choice.chosen), ' because ' + choice.because);
  const row = (each, chosen) => [
    make('td', 'name', {}, chosen ? make('b', '', {}, each.name) : each.name),
    number((each.cost.seconds * 1e6).toPrecision(4)), cell(each.cost.bound), number(count(each.cost.ctas)),
    number(count(each.cost.ctas_a_multiprocessor)), number(count(each.cost.shared_bytes))];
  const all = choice.alternatives.slice();
  const mine = { name: choice.chosen, cost: choice.cost };
  if (choice.cost) all.push(mine);
  all.sort((a, b) => a.cost.seconds - b.cost.seconds);
  table(byId('schedule-table'),
    ['variant', '\u00b5s by the model', 'bound by', 'CTAs', 'a multiprocessor', 'bytes of shared memory'],
    all.map((each) => row(each, each === mine)));
  if (all.length === 0) byId('schedule-table').classList.add('hidden');
  byId('schedule-rest').textContent = [
    `variants for all lengths: ${count(choice.variants)}`,
    choice.refused ? `not for these options: ${count(choice.refused)}` : '',
    choice.cost_missing ? `no figure of the chosen one: ${choice.cost_missing}` : '',
  ].filter((text) => text).join('; ') + '.';
}

function instructions() {
  counts(byId('machine-counts'), summary.instructions);
  counts(byId('sass-counts'), summary.sass_instructions);
  byId('sass-missing').textContent = summary.sass_missing;
  if (Object.keys(summary.sass_instructions).length === 0) byId('sass-counts').classList.add('hidden');
}

// The list of a kernel for the CPU, with the time of each operation where it was measured.
function cpu() {
  const list = summary.cpu;
  if (!list) return hide('cpu');
  hide('instructions');  // of a GPU
  const percent = (part, all) => (all > 0 ? ((100 * part) / all).toFixed(1) + ' %' : '');
  const all = list.operations.filter((each) => !each.is_block)
    .reduce((sum, each) => sum + each.seconds, 0);
  const giga = (each) => (each / 1e9).toPrecision(4);
  byId('cpu-bounds').textContent = [
    `instruction set ${list.instruction_set}`,
    `${bytes(list.arena_bytes)} of tiles and ${bytes(list.packing_bytes)} of packed operands a thread`,
    list.measured ? `${(list.measured.seconds / list.measured.measured * 1e6).toPrecision(4)} \u00b5s a block` : '',
    list.peaks ? `this processor reaches ${giga(list.peaks.flops_per_second)} GFLOP/s and ${giga(list.peaks.bytes_per_second)} GB/s` : '',
    list.roofline ? `bound by ${list.roofline.bound}` : '',
  ].filter((text) => text).join('; ') + '.';
  byId('cpu-slow').append(...list.slow.map((text) => make('li', '', {}, text)));
  table(byId('cpu-list'), ['operation', 'share', '\u00b5s', 'times', 'flop', 'bytes', 'line'],
    list.operations.map((each) => [
      make('td', 'name', { style: `padding-left:${each.depth}em` }, each.text),
      number(each.is_block ? '' : percent(each.seconds, all)),
      number(each.is_block || !each.count ? '' : (each.seconds / each.count * 1e6).toPrecision(3)),
      number(each.is_block || !each.count ? '' : count(each.count)),
      number(each.flops > 0 ? count(each.flops) : ''),
      number(each.bytes > 0 ? count(each.bytes) : ''),
      cell(each.where)]));
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

// Once the drawings are known.
function show() {
  head();
  program();
  pipeline();
  sharedMap();
  tensorMap();
  sourcePanes();
  stages();
  numerics();
  schedule();
  roofline();
  instructions();
  cpu();
  layouts();
  listings();
  navigation();
}
