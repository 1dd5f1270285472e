// The entry of the VMs of Code nodes: runs one script with the globals of a Code
// node, waits for its promise, writes the result for Go.
(() => {
  'use strict';
  const n8n = globalThis.__n8n;
  const { ExpressionError, globals, install, setScope, setIndex, inputItems, itemAt, input, shared, perItem, reword, call } = n8n;
  const compile = eval;
  const { stringify, parse } = JSON;
  const at = () => n8n.getIndex();

  install(globals);
  install(n8n.timerGlobals);
  install({ console: n8n.console });
  install(n8n.web);

  // ---- Custom data of the execution: what earlier runs set, and what this one does. It is also
  // in the run's log, as Execution Data writes it.
  const saved = new Map();
  const maxSaved = 100;
  const text = (value, most) => [...String(value)].slice(0, most).join('').replaceAll('\n', ' ');
  const save = (key, value) => {
    if (!/^\w+$/.test(key)) {
      throw new ExpressionError(`The key ${stringify(key)} of the execution data is not allowed`, { description: 'A key is made of letters, digits and underscores.' });
    }
    const [name, kept] = [text(key, 50), text(value, 512)];
    if (saved.size >= maxSaved && !saved.has(name)) {
      throw new ExpressionError(`The execution has ${maxSaved} keys of execution data already`, { description: 'Keep what is more in the items.' });
    }
    saved.set(name, kept);
    call('custom', stringify([name, kept]));
    n8n.console.log(`execution data: ${name} = ${kept}`);
  };
  const customData = {
    set: save,
    setAll: (values) => Object.entries(values ?? {}).forEach(([key, value]) => save(key, value)),
    get: (key) => saved.get(key),
    getAll: () => Object.fromEntries(saved),
  };
  install({
    get $execution() {
      return Object.assign(globals.$execution, { customData });
    },
  });

  // ---- Modes: all items at once, or one item a call.
  let each = false;
  const notHere = (name) => {
    throw new ExpressionError(`Can't use .${name}() here`, {
      description: "This is only available in 'Run Once for All Items' mode",
      ofItem: at(),
    });
  };
  const eachInput = input(at, { first: () => notHere('first'), last: () => notHere('last'), all: () => notHere('all'), itemMatching: () => notHere('itemMatching') });
  const allInput = input(at, {});
  let old = '';
  let staticData = {};
  install({
    get $input() {
      return each ? eachInput : allInput;
    },
    get items() {
      return each && !old ? notHere('items') : inputItems();
    },
    get item() {
      return old === 'functionItem' ? itemAt(at()).json : itemAt(at());
    },
    $getWorkflowStaticData: (type) => (staticData[type] ??= {}),
    getWorkflowStaticData: (type) => (staticData[type] ??= {}),
    require: (name) => n8n.require(name),
  });
  // items and item may be replaced by the script's own.
  let replaced = false;
  for (const name of ['items', 'item']) {
    const { get } = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, {
      get,
      set(value) {
        replaced = true;
        Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
      },
      configurable: true,
    });
  }
  const original = Object.fromEntries(['items', 'item'].map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]));

  // ---- Errors as n8n shows them.
  const syntax = [
    [/^unexpected token in expression: '(.*)'$/, (_, token) => (token === '' ? 'Unexpected end of input' : `Unexpected token '${token}'`)],
    [/^unexpected token: '(.*)'$/i, (_, token) => `Unexpected token '${token}'`],
    [/^expecting '(.*)'$/, (_, token) => (token === ')' ? 'missing ) after argument list' : token === '}' ? 'Unexpected end of input' : `Unexpected token, expected '${token}'`)],
    [/^unexpected end of string$/, () => 'Invalid or unexpected token'],
  ];
  const explain = (error, compiling) => {
    if (!(error instanceof Error)) {
      let message;
      try {
        message = stringify(error) ?? String(error);
        if (typeof error === 'object' && error !== null && typeof error.message === 'string') message = error.message;
      } catch {
        message = String(error);
      }
      return { message };
    }
    reword(error);
    let message = String(error.message);
    if (compiling) {
      for (const [pattern, text] of syntax) message = message.replace(pattern, text);
      return { message, description: 'SyntaxError' };
    }
    const line = n8n.position(error)?.line;
    const own = error instanceof ExpressionError;
    // The old nodes show what was thrown as it is.
    if (old) return { message, description: error.description, line };
    const place = own && error.ofItem !== undefined && each ? `[line ${line}, for item ${error.ofItem}]` : `[line ${line}]`;
    if (line !== undefined) message = message ? `${message} ${place}` : place;
    return {
      message,
      description: own ? error.description : error.name === 'Error' ? undefined : error instanceof InternalError ? 'RangeError' : error.name,
      type: own ? error.type : undefined,
      line,
    };
  };

  const typeOf = (value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);
  const encode = (value) => {
    const text = stringify(value, (_, v) => (typeof v === 'bigint' ? String(v) : v));
    const files = old === 'functionItem' ? itemAt(at())?.binary : undefined;
    return `${typeOf(value)} ${text === undefined ? '' : text}${files === undefined ? '' : `\t${stringify(files)}`}`;
  };

  // ---- One script at a time.
  let outcome;
  const outOfMemory = (e) => e instanceof InternalError && e.message === 'out of memory';
  const finish = (text) => {
    outcome ??= text;
  };
  const failure = (error) => (outOfMemory(error) ? 'm' : 'e' + stringify(explain(error)));
  const failed = (error) => finish(failure(error));

  // The head names the globals of the call; the code starts on its line, so that
  // line numbers are those of the script.
  const compileCode = (code, names) => {
    const text = `(async function (${names.join()}) { ${code}\n})`;
    n8n.setSource(text);
    return compile(text);
  };

  // runEach runs a script on item after item, hands over what it returns in portions, and
  // reads the items in portions too: memory is for what the script keeps.
  const portion = 500;
  const runEach = async (fn, values, { items = 0, goOn }) => {
    let results = [];
    const handOver = () => {
      if (results.length) call('each', results.join('\n'));
      results = [];
    };
    for (let i = 0; i < items; i++) {
      setIndex(i);
      if (i % portion === 0) n8n.setPortion(i, i + portion);
      if (replaced) restore();
      let result;
      try {
        result = 'v' + encode(await fn.apply(self, values));
      } catch (e) {
        result = failure(e);
      }
      results.push(result);
      if (results.length === portion) handOver();
      if (result === 'm' || (result[0] === 'e' && !goOn)) break;
    }
    handOver();
    return null;
  };
  const restore = () => {
    replaced = false;
    for (const [name, property] of Object.entries(original)) Object.defineProperty(globalThis, name, property);
  };
  const self = {
    helpers: n8n.helpers,
    getInputData: () => inputItems(),
    getNode: () => ({ ...n8n.getScope().node }),
    getWorkflow: () => ({ ...n8n.getScope().workflow }),
    getMode: () => n8n.getScope().execution.rawMode,
    getTimezone: () => n8n.getScope().zone,
    getExecutionId: () => n8n.getScope().execution.id,
    getWorkflowStaticData: (type) => (staticData[type] ??= {}),
    getItemIndex: () => at(),
    getNodeParameter: (name) => globals.$parameter[name],
    continueOnFail: () => Boolean(n8n.getScope().code.goOn),
  };

  // start(code, item, globals, scope): item -1 is all items, -2 each of them.
  const start = (code, item, extra, scope) => {
    item = Number(item);
    setScope(parse(scope));
    for (const [key, value] of Object.entries(n8n.getScope().execution?.customData ?? {})) saved.set(key, value);
    const info = n8n.getScope().code ?? {};
    old = info.old ?? '';
    each = item !== -1;
    if (old) {
      install({ helpers: self.helpers, getNodeParameter: self.getNodeParameter });
      install({ getBinaryData: () => itemAt(at()).binary, setBinaryData: (files) => (itemAt(at()).binary = files) });
    }
    n8n.setWhole(!each);
    setIndex(Math.max(0, item));
    const variables = parse(extra);
    let fn;
    try {
      fn = compileCode(code, Object.keys(variables));
    } catch (e) {
      const text = outOfMemory(e) ? 'm' : 'e' + stringify(explain(e, true));
      if (item === -2 && info.items) call('each', text);
      finish(item === -2 && text !== 'm' ? 'vnull ' : text);
      return;
    }
    const values = Object.values(variables);
    if (item === -2) runEach(fn, values, info).then(() => finish('vnull '), failed);
    else fn.apply(self, values).then((value) => finish('v' + encode(value))).catch(failed);
  };
  const poll = () => {
    n8n.flush();
    if (outcome !== undefined) return `done${outcome}`;
    let wait = n8n.timerWait();
    if (n8n.pendingCalls()) {
      n8n.settleCalls(wait);
      wait = n8n.timerWait();
      if (wait !== 0) return 'wait0';
    }
    if (wait === undefined) return '';
    if (wait > 0) return `wait${wait}`;
    try {
      n8n.runTimers();
    } catch (e) {
      failed(e);
    }
    return 'wait0';
  };
  globalThis.__entry = (...args) => {
    if (args.length === 1) return poll();
    try {
      start(...args);
    } catch (e) {
      failed(e);
    }
  };

  Object.defineProperty(globalThis, '__reword', { value: reword });
  for (const name of ['__n8n', 'performance', 'navigator', 'gc']) delete globalThis[name];
})();
