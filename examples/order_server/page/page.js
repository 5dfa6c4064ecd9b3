// What the instances tell of themselves and of their locks, as it happens: see live_state.hpp for what arrives.

const LINGER = 1500; // ms: how long a lock that is free is still shown
const SILENT = 2500; // an instance that has told nothing for so long is stopped, or cut off
const LOST = 4000; // the page asks another instance when this one has said nothing for so long
const SETTLED = 1500; // by then all that a session's end has removed is gone from the page's state
const SAMPLES = 60;

const $ = (id) => document.getElementById(id);
const instances = new Map(); // by name: what was told last, and what was seen
const locks = new Map(); // by name: the element, and what was seen
const samples = [];
let source, origin = location.origin, asked = Date.now(), heard = asked, leader, last;

// ---------------------------------------------------------------------------------------------- the connection

function listen(to) {
  source?.close();
  origin = to;
  asked = Date.now();
  source = new EventSource(`${to}/live`);
  source.onmessage = (message) => {
    heard = Date.now();
    show(JSON.parse(message.data));
  };
}

// An instance that was killed or stopped says nothing: the others know as much.
function watch() {
  if (Date.now() - Math.max(heard, asked) > LOST) {
    const all = [location.origin, ...[...instances.values()].filter((i) => !i.gone).map((i) => i.url)];
    const others = [...new Set(all)];
    listen(others[(others.indexOf(origin) + 1) % others.length]);
  }
  connection();
  // While nothing is heard, the servers' time goes on: nobody is shown as alive who may have been silent since.
  if (last) for (const i of instances.values()) showInstance(i, last.now + Date.now() - heard);
  sample();
}

function connection() {
  const quiet = Date.now() - heard > SILENT;
  const [text, kind] = quiet ? [`nothing heard from ${host(origin)}`, "bad"]
    : last?.current ? [`live, by ${last.self}`, "good"] : ["ZooKeeper is out of reach", "warn"];
  setText($("connection"), text);
  $("connection").className = `badge ${kind}`;
}

const host = (url) => url.replace("http://", "");

async function act(path, by) {
  try {
    const answer = await fetch(`${by}/demo/${path}`, {method: "POST", signal: AbortSignal.timeout(LOST)});
    if (!answer.ok) log(`refused: ${(await answer.json()).error}`, "bad");
  } catch {
    log(`no answer from ${host(by)}`, "bad");
  }
}

// Somebody who is certainly not stopped: the one who talks to us, unless it is the one that is meant.
function somebodyElse(than) {
  const able = [...instances.values()].filter((i) => i.name !== than && !i.gone && !i.silent);
  return (able.find((i) => i.url === origin) ?? able[0])?.url ?? origin;
}

// ------------------------------------------------------------------------------------------------ small helpers

function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

function log(text, kind = "") {
  const line = document.createElement("li");
  const time = document.createElement("time");
  time.textContent = new Date().toLocaleTimeString([], {hour12: false});
  line.className = kind;
  line.append(time, text);
  $("log").prepend(line);
  $("nothing-yet").hidden = true;
  while ($("log").children.length > 40) $("log").lastChild.remove();
}

function fromTemplate(name) {
  return $(name).content.firstElementChild.cloneNode(true);
}

// Each instance keeps its colour for as long as the page lives.
const colours = new Map();
function colour(name) {
  if (!colours.has(name)) colours.set(name, `var(--i${colours.size % 6})`);
  return colours.get(name);
}

// ---------------------------------------------------------------------------------------------------- instances

function newInstance(name) {
  const element = fromTemplate("instance-template");
  const i = {name, element, url: "", session: "", told: {}, gone: false, silent: false, rate: 0};
  element.dataset.instance = name;
  element.style.setProperty("--own", colour(name));
  setText(element.querySelector(".name"), name);
  for (const what of ["kill", "pause", "resume"]) {
    const button = element.querySelector(`.${what}`);
    button.setAttribute("aria-label", `${button.textContent} ${name}`);
    button.onclick = () => {
      log(`${name}: ${what}`);
      act(`processes/${i.told.pid}/${what}`, somebodyElse(name));
    };
  }
  instances.set(name, i);
  const after = [...$("instances").children].find((e) => e.dataset.instance > name);
  $("instances").insertBefore(element, after ?? null);
  return i;
}

function hear(i, state) {
  if (i.session && i.session !== state.session) log(`${i.name} has a new session, ${state.session}`, "good");
  const passed = (state.told.at - i.told.at) / 1000;
  const fenced = state.told.pid === i.told.pid ? state.told.fenced - i.told.fenced : state.told.fenced;
  const which = fenced === 1 ? "a payment was" : `${fenced} payments were`;
  if (fenced > 0) log(`${i.name} was fenced off: ${which} refused, for somebody else had the lock`, "bad");
  if (passed > 0) i.rate = Math.max(0, state.told.granted - i.told.granted) / passed;
  Object.assign(i, state, {gone: false});
}

function showInstance(i, now) {
  const e = i.element, quiet = now - i.told.at;
  i.silent = !i.gone && quiet > SILENT;
  const [text, kind] = i.gone ? ["session ended", "bad"]
    : i.silent ? [`silent for ${Math.round(quiet / 1000)} s`, "warn"] : ["alive", "good"];
  e.classList.toggle("gone", i.gone);
  setText(e.querySelector(".state"), text);
  e.querySelector(".state").className = `badge state ${kind}`;
  for (const what of ["granted", "paid", "fenced", "requests", "pid"])
    setText(e.querySelector(`.${what}`), i.told[what]);
  setText(e.querySelector(".session"), i.session);
  for (const button of e.querySelectorAll("button")) button.hidden = !i.told.demo;
}

function showInstances(state) {
  const present = new Set();
  for (const each of state.instances) {
    present.add(each.name);
    hear(instances.get(each.name) ?? newInstance(each.name), each);
  }
  for (const i of instances.values()) {
    if (!present.has(i.name) && !i.gone) {
      i.gone = true;
      i.rate = 0;
      log(`the session of ${i.name} has ended: its locks are free`, "bad");
    }
    showInstance(i, state.now);
  }
}

function showLeader(state) {
  const now = state.leader ? `${state.leader.name}, token ${state.leader.token}` : "nobody";
  if (leader !== undefined && leader !== now) log(`leader: ${now}`);
  leader = now;
  setText($("leader"), now);
}

// -------------------------------------------------------------------------------------------------------- locks

const instanceOf = (contender) => contender.who.split("/")[0];

function newLock(name) {
  const element = fromTemplate("lock-template");
  const lock = {name, element, queue: [], free: 0};
  element.dataset.lock = name;
  setText(element.querySelector(".name"), name);
  const button = element.querySelector(".cancel");
  button.setAttribute("aria-label", `Cancel the last who waits for ${name}`);
  button.onclick = () => {
    const who = lock.queue.at(-1).who.split("/");
    log(`${name}: cancel request ${who[1]} of ${who[0]}`);
    act(`requests/${who[1]}/cancel`, instances.get(who[0])?.url ?? origin);
  };
  locks.set(name, lock);
  const after = [...$("locks").children].find((e) => e.dataset.lock > name);
  $("locks").insertBefore(element, after ?? null);
  return lock;
}

// A holder that did not let go by itself: its session has ended. Its nodes go together, but a cache sees that one by
// one: so who has followed whom is looked at again a little later.
function tellOfSuccession(lock, before, now) {
  if (!before || !now || before.token === now.token) return;
  setTimeout(() => {
    const whose = instances.get(instanceOf(before));
    if (whose && (whose.gone || whose.session !== before.session))
      log(`${lock.name}: ${now.who} (token ${now.token}) replaces ${before.who} (token ${before.token})`, "good");
  }, SETTLED);
}

function showQueue(lock) {
  const boxes = lock.element.querySelector(".queue");
  while (boxes.children.length > lock.queue.length) boxes.lastChild.remove();
  lock.queue.forEach((contender, at) => {
    const box = boxes.children[at] ?? boxes.appendChild(document.createElement("i"));
    const title = `${contender.who}, token ${contender.token}`;
    if (box.title === title) return;
    box.title = title;
    box.style.setProperty("--own", colour(instanceOf(contender)));
    box.className = contender.kind;
  });
}

function showLock(lock, queue) {
  tellOfSuccession(lock, lock.queue[0], queue[0]);
  if (queue.length > 0) lock.free = 0;
  else if (lock.free === 0) lock.free = Date.now();
  lock.queue = queue;
  const e = lock.element, holder = queue[0];
  // Readers at the front hold it together.
  const holders = holder?.kind === "shared" ? queue.findIndex((c) => c.kind !== "shared") : 1;
  const holding = holders < 0 ? queue.length : holders;
  e.classList.toggle("free", !holder);
  e.dataset.holder = holder ? holder.who : "";
  e.dataset.waiting = Math.max(0, queue.length - holding);
  setText(e.querySelector(".who"), holder ? (holding > 1 ? `${holding} readers` : holder.who) : "free");
  setText(e.querySelector(".token"), holder ? `token ${holder.token}` : "");
  setText(e.querySelector(".count"), queue.length > holding ? `${queue.length - holding} waiting` : "");
  const next = queue.slice(holding, holding + 3).map((c) => `${c.who} (${c.token})`);
  if (queue.length > holding + 3) next.push("…");
  setText(e.querySelector(".next"), next.length > 0 ? `next: ${next.join(", ")}` : "");
  if (holder) e.style.setProperty("--own", colour(instanceOf(holder)));
  e.querySelector(".cancel").hidden = queue.length < 2 || !hasButtons();
  showQueue(lock);
}

function showLocks(state) {
  const present = new Set();
  let waiting = 0;
  for (const {name, queue} of state.locks) {
    present.add(name);
    showLock(locks.get(name) ?? newLock(name), queue);
    waiting += Number(locks.get(name).element.dataset.waiting);
  }
  for (const lock of locks.values()) {
    if (present.has(lock.name)) continue;
    showLock(lock, []);
    if (Date.now() - lock.free < LINGER || lock.element.contains(document.activeElement)) continue;
    lock.element.remove();
    locks.delete(lock.name);
  }
  $("no-locks").hidden = locks.size > 0;
  setText($("waiting"), waiting > 0 ? `${waiting} waiting` : "");
  document.body.dataset.waiting = waiting;
}

// -------------------------------------------------------------------------------------------------------- plots

function sample() {
  const able = [...instances.values()].filter((i) => !i.gone && !i.silent);
  const most = (what) => Math.max(0, ...able.map((i) => i.told[what]));
  samples.push({rate: able.reduce((sum, i) => sum + i.rate, 0), half: most("wait_p50_ms"), most: most("wait_p95_ms")});
  if (samples.length > SAMPLES) samples.shift();
  const now = samples.at(-1);
  setText($("rate"), now.rate.toFixed(now.rate < 10 ? 1 : 0));
  setText($("waits"), `half ${short(now.half)}, 95 % ${short(now.most)}`);
  plot("rate", ["rate"]);
  plot("wait", ["most", "half"]);
}

const hasButtons = () => [...instances.values()].some((i) => i.told.demo);
const short = (ms) => (ms >= 100 ? ms.toFixed(0) : ms.toPrecision(2));

function plot(name, lines) {
  const top = Math.max(1, ...samples.map((s) => s[lines[0]]));
  const x = (at) => (300 * (SAMPLES - samples.length + at)) / (SAMPLES - 1);
  const y = (value) => 78 - (74 * value) / top;
  const point = (s, at, line) => `${at ? "L" : "M"}${x(at).toFixed(1)},${y(s[line]).toFixed(1)}`;
  const path = (line) => samples.map((s, at) => point(s, at, line)).join("");
  const paths = $(`${name}-plot`).querySelectorAll("path");
  paths[0].setAttribute("d", `${path(lines[0])}L300,80L${x(0).toFixed(1)},80Z`);
  lines.forEach((line, at) => paths[at + 1].setAttribute("d", path(line)));
  setText($(`${name}-most`), top >= 100 ? top.toFixed(0) : top.toPrecision(2));
}

// --------------------------------------------------------------------------------------------------------- all

function show(state) {
  last = state;
  showInstances(state);
  $("try-it").hidden = !hasButtons();
  showLeader(state);
  showLocks(state);
  connection();
}

listen(location.origin);
setInterval(watch, 1000);
