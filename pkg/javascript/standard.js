// The standard library of every image. Later sources find its pieces in
// __standard; scripts do not see that object.
(() => {
  'use strict';
  const host = globalThis.__host;
  const { luxon, atob } = globalThis;
  const { stringify } = JSON;
  delete globalThis.luxon;

  // call asks Go. It throws an Error with the text of Go's error.
  const call = (op, arg) => {
    const reply = host(op, arg === undefined ? '' : String(arg));
    if (reply === 0) throw new Error(host('error', ''));
    return reply;
  };
  const define = (object, name, value) =>
    Object.defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });

  // ---- Time zones: Go's database instead of Intl.
  const zones = new Map();
  const zoneAt = (name, ms) => {
    // Offsets only change at full quarters of an hour.
    const slot = Math.floor(ms / 900000);
    let known = zones.get(name);
    if (!known) zones.set(name, (known = new Map()));
    let zone = known.get(slot);
    if (zone === undefined) {
      const reply = call('zone', `${name} ${slot * 900000}`);
      if (reply === undefined) zone = null;
      else {
        const [seconds, abbreviation, summer] = reply.split(' ');
        zone = { minutes: Number(seconds) / 60, abbreviation, summer: summer === '1' };
      }
      if (known.size > 500) known.clear();
      known.set(slot, zone);
    }
    return zone;
  };
  const zoneExists = (name) => {
    try {
      return typeof name === 'string' && call('zoneExists', name) !== undefined;
    } catch {
      return false;
    }
  };
  const Zone = luxon.IANAZone;
  Zone.isValidZone = zoneExists;
  Zone.isValidSpecifier = zoneExists;
  Zone.prototype.offset = function (ts) {
    if (!this.valid || Number.isNaN(ts)) return NaN;
    const zone = zoneAt(this.name, ts);
    return zone ? zone.minutes : NaN;
  };

  // ---- Random numbers: a reset VM would repeat its own.
  let state;
  const seed = () => {
    const bytes = atob(call('random', 16));
    state = new Uint32Array(4);
    for (let i = 0; i < 16; i++) state[i >> 2] |= bytes.charCodeAt(i) << (8 * (i & 3));
  };
  const next = () => {
    // sfc32
    const t = (((state[0] + state[1]) | 0) + state[3]) | 0;
    state[3] = (state[3] + 1) | 0;
    state[0] = state[1] ^ (state[1] >>> 9);
    state[1] = (state[2] + (state[2] << 3)) | 0;
    state[2] = (state[2] << 21) | (state[2] >>> 11);
    state[2] = (state[2] + t) | 0;
    return t >>> 0;
  };
  define(Math, 'random', function random() {
    if (!state) seed();
    return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
  });

  // ---- Builtins that loop without ever asking for the deadline: none may be
  // given more elements than fit into the memory of a VM.
  const maxElements = 1 << 24;
  const bounded = [
    'concat', 'copyWithin', 'every', 'fill', 'filter', 'find', 'findIndex', 'findLast', 'findLastIndex', 'flatMap',
    'forEach', 'includes', 'indexOf', 'join', 'lastIndexOf', 'map', 'reduce', 'reduceRight', 'reverse', 'shift', 'slice', 'some',
    'sort', 'splice', 'toReversed', 'toSorted', 'toSpliced', 'toString', 'toLocaleString', 'unshift', 'with',
  ];
  const apply = Reflect.apply;
  const tooLong = () => {
    throw new RangeError('the array is too long');
  };
  const guard = (prototype, name, check) => {
    const native = prototype[name];
    if (typeof native !== 'function') return;
    const guarded = {
      [name](...args) {
        if (check(this, args)) tooLong();
        return apply(native, this, args);
      },
    }[name];
    Object.defineProperty(guarded, 'length', { value: native.length, configurable: true });
    define(prototype, name, guarded);
  };
  for (const name of bounded) {
    guard(Array.prototype, name, (self) => self != null && self.length > maxElements);
  }
  // flat is written here: the builtin visits what is shared again and again
  // without ever being asked to stop.
  define(Array.prototype, 'flat', function flat(depth = 1) {
    const result = [];
    const add = (list, left) => {
      for (let i = 0; i < list.length; i++) {
        if (!(i in list)) continue;
        if (left > 0 && Array.isArray(list[i])) add(list[i], left - 1);
        else result.push(list[i]);
      }
    };
    if (this.length > maxElements) tooLong();
    add(this, Number(depth) || 0);
    return result;
  });
  guard(Array, 'from', (_, args) => args[0] != null && args[0].length > maxElements);
  for (const name of ['apply', 'construct']) {
    guard(Reflect, name, (_, args) => {
      const list = args[name === 'apply' ? 2 : 1];
      return list != null && list.length > maxElements;
    });
  }
  for (const name of ['indexOf', 'lastIndexOf', 'includes', 'split', 'replaceAll', 'replace']) {
    guard(String.prototype, name, (self, args) => {
      const pattern = args[0];
      return typeof pattern === 'string' && typeof self === 'string' && pattern.length * self.length > 4e9;
    });
  }

  // ---- Date: the name of the process's zone, as other engines print it.
  const dateToString = Date.prototype.toString;
  const dateToTimeString = Date.prototype.toTimeString;
  const zoneName = ' (Coordinated Universal Time)';
  const named = (text) => (/[+-]\d{4}$/.test(text) ? text + zoneName : text);
  define(Date.prototype, 'toString', function toString() {
    return named(apply(dateToString, this, []));
  });
  define(Date.prototype, 'toTimeString', function toTimeString() {
    return named(apply(dateToTimeString, this, []));
  });
  const toPrimitive = Date.prototype[Symbol.toPrimitive];
  Object.defineProperty(Date.prototype, Symbol.toPrimitive, {
    value(hint) {
      return hint === 'number' ? apply(toPrimitive, this, [hint]) : apply(toPrimitive, this, ['string']);
    },
    configurable: true,
  });

  // ---- Messages in the words of V8, which scripts and people know.
  const words = [
    [/^cannot (read|set) property '(.*)' of (null|undefined)$/, (_, verb, key, of) => `Cannot ${verb} properties of ${of} (${verb === 'set' ? 'setting' : 'reading'} '${key}')`],
    [/^'(\S+)' is not defined$/, (_, name) => `${name} is not defined`],
    [/^(\S+) is not initialized$/, (_, name) => `Cannot access '${name}' before initialization`],
    [/^'.*' is read-only$/, () => 'Assignment to constant variable.'],
    [/^value is not iterable$/, () => 'object is not iterable'],
    [/^circular reference$/, () => 'Converting circular structure to JSON'],
    [/^Date value is NaN$/, () => 'Invalid time value'],
    [/^invalid array length$/, () => 'Invalid array length'],
    [/^invalid number of digits$/, () => 'toFixed() digits argument must be between 0 and 100'],
    [/^empty array$/, () => 'Reduce of empty array with no initial value'],
  ];
  // Where the topmost function of a script stood; the engine calls evaluated
  // code <input>.
  const position = (error) => {
    const m = /\(<input>:(\d+):(\d+)\)/.exec(String(error.stack ?? ''));
    return m ? { line: Number(m[1]), column: Number(m[2]) } : undefined;
  };
  let source = [];
  const setSource = (text) => {
    source = text.split('\n');
  };
  // calleeAt is the text of the call at a place, as far as it is a path.
  const calleeAt = ({ line, column }) => {
    const text = source[line - 1];
    if (text === undefined) return undefined;
    const left = /[\w$.?\]['"]*$/.exec(text.slice(0, column))[0];
    const right = /^[\w$.?]*/.exec(text.slice(column))[0];
    const name = (left + right).replace(/^[.?]+/, '').replace(/'/g, '"');
    return name && /^\s*\(/.test(text.slice(column + right.length)) ? name : undefined;
  };
  const reword = (error) => {
    if (!(error instanceof Error) || typeof error.message !== 'string') return error;
    const { message } = error;
    let better;
    if (message === 'not a function') {
      const at = /^\s*at \S+ \(native\)/.test(error.stack) ? undefined : position(error);
      const name = at && calleeAt(at);
      if (name) better = `${name} is not a function`;
    } else {
      const found = words.find(([pattern]) => pattern.test(message));
      if (found) better = message.replace(...found);
    }
    if (better !== undefined) define(error, 'message', better);
    return error;
  };

  // ---- Console.
  // Lines are handed over as they come; many of them in portions.
  let logs = [];
  let lines = 0;
  let logged = 0;
  const flush = () => {
    const some = logs;
    logs = [];
    if (some.length) call('log', stringify(some));
  };
  const show = (value) => {
    if (typeof value === 'string') return value;
    if (value instanceof Error) return value.stack ? `${value.name}: ${value.message}` : String(value);
    if (typeof value === 'object' && value !== null) {
      try {
        return stringify(value);
      } catch {
        return String(value);
      }
    }
    return typeof value === 'function' ? `[Function: ${value.name || 'anonymous'}]` : String(value);
  };
  const log = (...args) => {
    if (lines >= 1000 || logged > 262144) return;
    let line = args.map(show).join(' ');
    if (line.length > 16384) line = line.slice(0, 16384) + '…';
    logged += line.length;
    logs.push(line);
    if (++lines === 1000 || logged > 262144) logs.push('… what follows is not kept');
    if (lines <= 50 || logs.length >= 50) flush();
  };
  const console = {};
  for (const name of ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir', 'table']) console[name] = log;
  for (const name of ['group', 'groupEnd', 'time', 'timeEnd', 'assert', 'count']) console[name] = () => {};

  // ---- Timers; Go calls runTimers when the next is due.
  let timers = [];
  let lastTimer = 0;
  const addTimer = (fn, ms, args, every) => {
    const timer = { id: ++lastTimer, at: Date.now() + Math.max(0, Number(ms) || 0), fn, args, every };
    timers.push(timer);
    return timer.id;
  };
  const clearTimer = (id) => {
    timers = timers.filter((t) => t.id !== id);
  };
  const timerWait = () => (timers.length ? Math.max(0, Math.min(...timers.map((t) => t.at)) - Date.now()) : undefined);
  const runTimers = () => {
    const now = Date.now();
    const due = timers.filter((t) => t.at <= now).sort((a, b) => a.at - b.at || a.id - b.id);
    for (const timer of due) {
      if (!timers.includes(timer)) continue;
      if (timer.every === undefined) clearTimer(timer.id);
      else timer.at = now + Math.max(1, timer.every);
      timer.fn(...timer.args);
    }
  };
  const timerGlobals = {
    setTimeout: (fn, ms, ...args) => addTimer(fn, ms, args),
    setInterval: (fn, ms, ...args) => addTimer(fn, ms, args, Number(ms) || 0),
    setImmediate: (fn, ...args) => addTimer(fn, 0, args),
    clearTimeout: clearTimer,
    clearInterval: clearTimer,
    clearImmediate: clearTimer,
  };

  globalThis.__standard = {
    call, define, luxon, zoneAt, zoneExists, reword, position, setSource, console, flush, timerGlobals, timerWait, runTimers, named,
    seedBytes: (n) => atob(call('random', n)),
  };
})();
