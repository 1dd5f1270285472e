// The globals that expressions and Code nodes share: what an item, the other
// nodes, the execution and the workflow look like to a script. Data is fetched
// from Go when it is first touched.
(() => {
  'use strict';
  const std = globalThis.__standard;
  const { define, luxon } = std;
  const { DateTime, Duration, Interval, Settings } = luxon;
  const { Proxy } = globalThis; // expressions have none

  class ExpressionError extends Error {
    constructor(message, fields) {
      super(message);
      Object.assign(this, fields);
    }
  }
  define(ExpressionError.prototype, 'name', 'ExpressionError');
  class ExpressionExtensionError extends ExpressionError {}
  define(ExpressionExtensionError.prototype, 'name', 'ExpressionExtensionError');

  // ask calls Go; errors that Go raises are n8n's own.
  const ask = (op, arg) => {
    try {
      return std.call(op, arg);
    } catch (e) {
      let fields;
      try {
        fields = JSON.parse(e.message);
      } catch {
        throw e;
      }
      throw new ExpressionError(fields.message, fields);
    }
  };
  const fetch = (op, arg) => {
    const text = ask(op, arg === undefined ? undefined : JSON.stringify(arg));
    return text === undefined ? undefined : JSON.parse(text);
  };

  // ---- What was fetched, until the item changes (per item) or the VM is reset.
  const shared = new Map();
  const perItem = new Map();
  const cached = (cache, key, make) => {
    let value = cache.get(key);
    if (value === undefined && !cache.has(key)) cache.set(key, (value = make()));
    return value;
  };

  let scope = {};
  let index = 0;
  const setScope = (next) => {
    scope = next;
    Settings.defaultZone = scope.zone || 'UTC';
    Settings.defaultLocale = 'en-US';
  };
  const setIndex = (next) => {
    if (next === index) return;
    index = next;
    perItem.clear();
  };

  // A portion of the input that was fetched at once.
  let from = 0;
  let part = [];
  // keys are the fields of $json that the running expression reads, when that is known:
  // fetching them alone is much cheaper than a whole item.
  let keys;
  const setKeys = (next) => {
    keys = next;
  };
  // The same of several items, fetched at once.
  let keysFrom = 0;
  let keysPart = [];
  const setKeysOf = (begin, end) => {
    keysFrom = begin;
    keysPart = begin < end ? fetch('keysOf', { item: begin, end, keys }) : [];
  };
  const json = () => {
    const known = keysPart[index - keysFrom];
    if (known) return known;
    if (!keys || part[index - from] || perItem.has(`item ${index}`)) return itemAt(index)?.json;
    return cached(perItem, keys, () => fetch('keys', { item: index, keys }));
  };
  // whole: every item is one of the whole input, so that a script that changes
  // items[0] finds that in $input.item too.
  let whole = false;
  const setWhole = (next) => {
    whole = next;
  };
  const setPortion = (begin, end) => {
    from = begin;
    part = fetch('items', { item: begin, end }) ?? [];
  };
  const hasPortion = (begin, end) => begin === from && end === from + part.length;
  // forget drops all that was fetched, when it may have been changed.
  const forget = () => {
    shared.clear();
    perItem.clear();
    part = [];
  };
  const itemAt = (i) => (whole ? inputItems()[i] : (part[i - from] ?? oneItem(i)));
  const oneItem = (i) => cached(i === index ? perItem : shared, `item ${i}`, () => fetch('item', { item: i }));
  const inputItems = () => cached(shared, 'input', () => fetch('input', {}) ?? []);
  const paired = (node, i) => cached(i === index ? perItem : shared, `paired ${i} ${node}`, () => fetch('paired', { node, item: i }));
  const nodeItems = (node, which, branch, run) =>
    cached(shared, `${which} ${branch} ${run} ${node}`, () => fetch('node', { node, which, branch: branch ?? -1, run: run ?? -1 }));
  const nodeInfo = (node) => cached(shared, `info ${node}`, () => fetch('info', { node }));

  // ---- $('X') and $node['X'].
  const isNumber = (n) => (typeof n === 'number' && n >= 0 ? n : undefined);
  // opaque objects are empty when an expression returns them whole.
  const opaque = (object) => define(object, 'toJSON', () => ({}));
  const reference = (name, at) => {
    if (!name) return {};
    fetch('exists', { node: name });
    return opaque({
      get item() {
        return paired(name, at());
      },
      pairedItem: (i) => paired(name, i ?? at()),
      itemMatching: (i) => {
        if (i === undefined) throw new ExpressionError('Missing item index for .itemMatching()', { type: 'missing_argument' });
        return paired(name, i);
      },
      first: (branch, run) => nodeItems(name, 'first', isNumber(branch), isNumber(run)),
      last: (branch, run) => nodeItems(name, 'last', isNumber(branch), isNumber(run)),
      all: (branch, run) => nodeItems(name, 'all', isNumber(branch), isNumber(run)),
      get params() {
        return nodeInfo(name).parameters;
      },
      get context() {
        return {};
      },
      get isExecuted() {
        return nodeInfo(name).runs > 0;
      },
    });
  };
  const legacy = (name, at) => opaque({
    get json() {
      return cached(shared, `legacy ${at()} ${name}`, () => fetch('legacy', { node: name, item: at() })).json;
    },
    get data() {
      return this.json;
    },
    get binary() {
      return cached(shared, `legacy ${at()} ${name}`, () => fetch('legacy', { node: name, item: at() })).binary ?? {};
    },
    get runIndex() {
      return nodeInfo(name).runs - 1;
    },
    get parameter() {
      return nodeInfo(name).parameters;
    },
    get context() {
      return {};
    },
    name,
  });
  const nodes = (at) =>
    new Proxy(
      {},
      {
        get(_, name) {
          if (typeof name !== 'string' || name === 'toJSON' || name === 'isLuxonDateTime') return undefined;
          fetch('exists', { node: name });
          return legacy(name, at);
        },
        has: () => true,
      },
    );

  // ---- The input.
  const input = (at, mode) => opaque({
    get item() {
      return itemAt(at());
    },
    first() {
      return inputItems()[0];
    },
    last() {
      return inputItems().at(-1);
    },
    all() {
      return inputItems();
    },
    get params() {
      return scope.previous && nodeInfo(scope.previous.name).parameters;
    },
    get context() {
      return {};
    },
    ...mode,
  });

  const denied = () => {
    throw new ExpressionError('access to env vars denied', { description: 'Reading environment variables is switched off for this engine' });
  };
  const environment = () => {
    const values = fetch('env', {});
    return values ?? new Proxy({}, { get: (t, key) => (typeof key === 'symbol' || key === 'toJSON' || key === 'isLuxonDateTime' ? undefined : denied()), has: denied, ownKeys: () => [] });
  };

  const fromAI = (key, description, type, fallback) => {
    if (!key) throw new ExpressionError('Add a key, e.g. $fromAI(\'placeholder_name\')', {});
    const value = ask('fromAI', String(key));
    return value === undefined ? fallback : JSON.parse(value);
  };
  const jmespath = globalThis.jmespath;
  delete globalThis.jmespath;
  const at = () => index;
  const now = () => (scope.now ? DateTime.fromMillis(scope.now) : DateTime.now());

  const numbers = (list) => list.map(Number);
  // Everything by name; getters, so that what is not used costs nothing.
  const globals = {
    get $json() {
      return json();
    },
    get $binary() {
      return itemAt(index)?.binary ?? {};
    },
    get $itemIndex() {
      return index;
    },
    get $position() {
      return index;
    },
    get $thisItem() {
      return itemAt(index);
    },
    get $thisItemIndex() {
      return index;
    },
    get $runIndex() {
      return scope.runIndex;
    },
    get $thisRunIndex() {
      return scope.runIndex;
    },
    get $input() {
      return cached(shared, '$input', () => input(at));
    },
    get $node() {
      return cached(shared, '$node', () => nodes(at));
    },
    $: (name) => reference(name, at),
    $items: (name, branch, run) => (name === undefined ? inputItems() : nodeItems(name, 'all', isNumber(branch), isNumber(run))),
    $item: (i) => ({
      get $json() {
        return itemAt(i)?.json;
      },
      get $binary() {
        return itemAt(i)?.binary ?? {};
      },
      $node: nodes(() => i),
      $input: input(() => i),
      $: (name) => reference(name, () => i),
      $itemIndex: i,
    }),
    get $now() {
      return now();
    },
    get $today() {
      return now().startOf('day');
    },
    get $workflow() {
      return { ...scope.workflow };
    },
    get $execution() {
      const { id, mode, resumeUrl, resumeFormUrl, idempotencyKey, customData } = scope.execution;
      const unavailable = () => {
        throw new Error('not available');
      };
      // Expressions read what nodes have set before; as in n8n there is nothing to read otherwise.
      const read = customData ? { get: (key) => (Object.hasOwn(customData, key) ? customData[key] : undefined), getAll: () => ({ ...customData }) } : { get: unavailable, getAll: unavailable };
      const execution = {
        id,
        mode,
        resumeUrl,
        resumeFormUrl,
        customData: { ...read, set: unavailable, setAll: unavailable },
      };
      // Ours alone, so that listing $execution gives what it gives in n8n.
      Object.defineProperty(execution, 'idempotencyKey', { value: idempotencyKey });
      return execution;
    },
    get $executionId() {
      return scope.execution.id;
    },
    get $mode() {
      return scope.execution.rawMode;
    },
    get $resumeWebhookUrl() {
      return scope.execution.resumeUrl;
    },
    get $prevNode() {
      return { ...scope.previous };
    },
    get $parameter() {
      return cached(shared, '$parameter', () => fetch('parameters', {}) ?? {});
    },
    get $rawParameter() {
      return cached(shared, '$parameter', () => fetch('parameters', {}) ?? {});
    },
    get $nodeVersion() {
      return scope.node.typeVersion;
    },
    get $nodeId() {
      return scope.node.id;
    },
    get $webhookId() {
      return scope.node.webhookId;
    },
    get $vars() {
      return cached(shared, '$vars', () => fetch('vars', {}) ?? {});
    },
    get $env() {
      return cached(shared, '$env', environment);
    },
    get $tool() {
      return {};
    },
    $fromAI: fromAI,
    $fromAi: fromAI,
    $fromai: fromAI,
    $jmespath: (data, query) => {
      if (typeof query !== 'string') throw new ExpressionError('expected two arguments (Object, string) for this function', {});
      return jmespath.search(data, query);
    },
    $jmesPath: (data, query) => jmespath.search(data, query),
    DateTime,
    Duration,
    Interval,
  };

  const install = (source) => {
    for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(source))) {
      Object.defineProperty(globalThis, name, { ...property, configurable: true, enumerable: false, ...(property.get ? { set() {} } : {}) });
    }
  };

  globalThis.__n8n = {
    ...std, ExpressionError, ExpressionExtensionError, ask, fetch, globals, install, setScope, setIndex, setKeys, setWhole, setPortion, hasPortion, setKeysOf, forget, itemAt, inputItems, input,
    nodes, reference, numbers, cached, shared, perItem, getScope: () => scope, getIndex: at,
  };
})();
