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
  const staticData = {};
  install({
    get $input() {
      return each ? eachInput : allInput;
    },
    get items() {
      return each ? notHere('items') : inputItems();
    },
    get item() {
      return itemAt(at());
    },
    $getWorkflowStaticData: (type) => (staticData[type] ??= {}),
    getWorkflowStaticData: (type) => (staticData[type] ??= {}),
    require: (name) => n8n.require(name),
  });
  // items and item may be replaced by the script's own.
  for (const name of ['items', 'item']) {
    const { get } = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, {
      get,
      set(value) {
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
    return `${typeOf(value)} ${text === undefined ? '' : text}`;
  };

  // ---- One script at a time.
  let outcome;
  const functions = new Map();
  const outOfMemory = (e) => e instanceof InternalError && e.message === 'out of memory';
  const finish = (text) => {
    outcome ??= text;
  };
  const failed = (error) => finish(outOfMemory(error) ? 'm' : 'e' + stringify(explain(error)));

  // The head names the globals of the call; the code starts on its line, so that
  // line numbers are those of the script.
  const compileCode = (code, names) => {
    const key = names.join() + '\n' + code;
    const text = `(async function (${names.join()}) { ${code}\n})`;
    n8n.setSource(text);
    let fn = functions.get(key);
    if (!fn) functions.set(key, (fn = compile(text)));
    return fn;
  };

  // start(code, item, globals, scope): item -1 is all items; scope is "" when this
  // VM has it.
  const start = (code, item, extra, scope) => {
    outcome = undefined;
    n8n.logs.length = 0;
    shared.clear();
    perItem.clear();
    for (const [name, property] of Object.entries(original)) Object.defineProperty(globalThis, name, property);
    try {
      if (scope) setScope(parse(scope));
      each = Number(item) >= 0;
      n8n.setWhole(!each);
      setIndex(Math.max(0, Number(item)));
      const variables = parse(extra);
      let fn;
      try {
        fn = compileCode(code, Object.keys(variables));
      } catch (e) {
        finish(outOfMemory(e) ? 'm' : 'e' + stringify(explain(e, true)));
        return;
      }
      fn.call({ helpers: n8n.helpers ?? {} }, ...Object.values(variables)).then(
        (value) => {
          try {
            finish('v' + encode(value));
          } catch (e) {
            failed(e);
          }
        },
        failed,
      );
    } catch (e) {
      failed(e);
    }
  };
  const poll = () => {
    if (outcome !== undefined) return `done${stringify(n8n.logs)}\n${outcome}`;
    const wait = n8n.timerWait();
    if (wait === undefined) return '';
    if (wait > 0) return `wait${wait}`;
    try {
      n8n.runTimers();
    } catch (e) {
      failed(e);
    }
    return 'wait0';
  };
  globalThis.__entry = (...args) => (args[0] === 'poll' && args.length === 1 ? poll() : start(...args));

  Object.defineProperty(globalThis, '__reword', { value: reword });
  for (const name of ['__n8n', 'performance', 'navigator', 'gc']) delete globalThis[name];
})();
