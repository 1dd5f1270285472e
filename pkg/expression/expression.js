// The entry of expression VMs: compiles expressions once, evaluates them for an
// item, writes the result for Go.
(() => {
  'use strict';
  const n8n = globalThis.__n8n;
  const { ExpressionError, globals, install, setScope, setIndex, setKeys, setKeysOf, setPortion, hasPortion, forget, reword } = n8n;
  const DateTime = globals.DateTime;
  const compile = eval;
  const global = globalThis;
  const { Promise } = globalThis; // expressions have none
  const stringify = JSON.stringify;
  const isEmpty = (v) =>
    v === undefined || v === null || v === '' || (typeof v === 'object' && !(v instanceof Date) && !DateTime.isDateTime(v) && Object.keys(v).length === 0);

  install(globals);
  install({
    $if: (condition, yes, no) => (condition ? yes : no),
    $ifEmpty: (value, fallback) => (isEmpty(value) ? fallback : value),
    $min: (...list) => Math.min(...list),
    $max: (...list) => Math.max(...list),
    $average: (...list) => list.reduce((sum, n) => sum + n, 0) / list.length,
    numberList: (from, to) => Array.from({ length: Math.abs(to - from) + 1 }, (_, i) => (to >= from ? from + i : from - i)),
    zip: (keys, values) => {
      if (keys.length !== values.length) throw new n8n.ExpressionExtensionError('zip(): keys and values not of equal length');
      return Object.fromEntries(keys.map((key, i) => [key, values[i]]));
    },
  });

  const outOfMemory = (e) => e instanceof InternalError && e.message === 'out of memory';

  // ---- Compiled programs: a list of literal texts and functions.
  const programs = new Map();
  const invalid = () => new ExpressionError('invalid syntax');
  const compileCode = ({ text: code, free = [] }) => {
    const unknown = free.filter((name) => !(name in global));
    const declare = unknown.length ? `var ${unknown.join()}; ` : '';
    try {
      return compile(`(function () { ${declare}return (${code}\n) })`);
    } catch (e) {
      if (/\bawait\b/.test(code)) {
        try {
          compile(`(async function () { return (${code}\n) })`);
          return () => undefined;
        } catch {}
      }
      throw invalid();
    }
  };

  const evaluate = (fn) => {
    try {
      return fn.call({});
    } catch (e) {
      if (e instanceof ExpressionError || outOfMemory(e)) throw e;
      return undefined;
    }
  };

  const encode = (value) => {
    switch (typeof value) {
      case 'undefined':
      case 'function':
      case 'symbol':
        return 'u';
      case 'bigint':
        return 'j' + stringify(String(value));
      case 'number':
        if (Number.isFinite(value)) return 'j' + stringify(value);
        return Number.isNaN(value) ? 'n' : value > 0 ? '+' : '-';
    }
    if (value instanceof Promise) return 'u';
    if (DateTime.isDateTime(value)) return 'j' + stringify(String(value));
    const text = stringify(value, (_, v) => (typeof v === 'bigint' ? String(v) : v));
    return text === undefined ? 'u' : 'j' + text;
  };

  const render = (value) => {
    if (value === undefined || value === null || Number.isNaN(value)) return '';
    try {
      return String(value);
    } catch {
      return '';
    }
  };

  const run = (program) => {
    if (program.length === 1 && typeof program[0] === 'function') return encode(evaluate(program[0]));
    let text = '';
    for (const part of program) text += typeof part === 'string' ? part : render(evaluate(part));
    return 'j' + stringify(text);
  };

  const answer = (program) => {
    try {
      return run(program);
    } catch (e) {
      if (e instanceof ExpressionError) {
        return 'e' + stringify({ name: e.name, message: e.message, description: e.description, type: e.type });
      }
      if (outOfMemory(e)) throw e;
      return 'u';
    }
  };

  // Evaluating ahead stops after this many milliseconds and characters of answers.
  const patience = 50;
  const plenty = 1 << 16;
  const clock = Date.now;

  // One item after the other, as if each had been asked for.
  const evaluateMany = (program, begin, count) => {
    const started = clock();
    const answers = [];
    let size = 0;
    try {
      // What a program spoils must not be shared between programs; the keys that are fetched for it are its own.
      if (program.items && !program.spoils) {
        if (!hasPortion(begin, begin + count)) setPortion(begin, begin + count);
      } else if (program.keys) setKeysOf(begin, begin + count);
      for (let i = 0; i < count; i++) {
        if (i > 0 && (size > plenty || clock() - started > patience)) break;
        setIndex(begin + i);
        const text = answer(program);
        if (program.spoils) forget();
        size += text.length;
        answers.push(text);
      }
    } finally {
      setKeysOf(0, 0);
    }
    return answers.join('\n');
  };

  // entry(id, item, count, definition, scope): definition and scope are "" when this
  // VM has them. Answers "?" when it does not know the program, else for the item and, when
  // there is time, for those after it, a line each.
  globalThis.__entry = (id, item, count, definition, scope) => {
    try {
      if (scope) setScope(JSON.parse(scope));
      if (definition) {
        const { parts, keys, items, spoils } = JSON.parse(definition);
        const program = parts.map((part) => (part.code ? compileCode(part) : part.text));
        Object.assign(program, { keys, items, spoils });
        programs.set(id, program);
      }
      const program = programs.get(id);
      if (!program) return '?';
      setKeys(program.keys);
      if (count !== '1') return evaluateMany(program, Number(item), Number(count));
      setIndex(Number(item));
      const text = answer(program);
      if (program.spoils) forget();
      return text;
    } catch (e) {
      if (e instanceof ExpressionError) {
        return 'e' + stringify({ name: e.name, message: e.message, description: e.description, type: e.type });
      }
      if (outOfMemory(e)) throw e;
      return 'u';
    }
  };

  for (const [name, value] of [['__extensionNames', n8n.extensionNames], ['__extend', n8n.extend], ['__extendOptional', n8n.extendOptional], ['__reword', reword]]) {
    Object.defineProperty(globalThis, name, { value });
  }
  // What expressions of n8n do not have.
  for (const name of [
    'Promise', 'eval', 'Function', 'Reflect', 'Proxy', 'WeakRef', 'FinalizationRegistry', 'queueMicrotask', 'btoa', 'atob', 'escape',
    'unescape', 'performance', 'globalThis', 'DOMException', 'AsyncFunction', 'luxon', '__n8n', 'navigator', 'gc',
  ]) {
    try {
      delete globalThis[name];
    } catch {}
  }
})();
