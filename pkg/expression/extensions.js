// n8n's extension methods: what x.isEmpty() means for the type of x.
(() => {
  'use strict';
  const n8n = globalThis.__n8n;
  const { ExpressionExtensionError, luxon, call } = n8n;
  const { DateTime, Duration } = luxon;
  const fail = (message, description) => {
    throw new ExpressionExtensionError(message, { description });
  };

  const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);
  // blank is what compact() takes away.
  const blank = (v) => v === null || v === undefined || v === '' || v === 'nil' || (typeof v === 'object' && !(v instanceof Date) && Object.keys(v).length === 0);
  const same = (a, b) => {
    if (a === b) return true;
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Number.isNaN(a) && Number.isNaN(b);
    if (DateTime.isDateTime(a) && DateTime.isDateTime(b)) return +a === +b;
    if (a instanceof Date && b instanceof Date) return +a === +b;
    const keys = Object.keys(a);
    return Array.isArray(a) === Array.isArray(b) && keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key], b[key]));
  };
  const includes = (list, value) => list.some((other) => same(other, value));
  const unique = (list, keys = []) => {
    if (keys.some((key) => typeof key !== 'string')) fail('unique(): all keys must be strings');
    const seen = [];
    return list.filter((value) => {
      const face = keys.length && isObject(value) ? keys.map((key) => value[key]) : value;
      if (includes(seen, face)) return false;
      seen.push(face);
      return true;
    });
  };
  const allNumbers = (list, name) => {
    if (list.some((v) => typeof v !== 'number')) fail(`${name}(): all array elements must be numbers`);
  };
  const isArrayArg = (v, name) => {
    if (!Array.isArray(v)) fail(`${name}(): expected array arg, e.g. .${name}([1, 2, 3])`);
    return v;
  };
  const toJsonString = (value) => JSON.stringify(value);

  const array = {
    append: (list, args) => list.concat(args),
    average(list) {
      allNumbers(list, 'average');
      return list.length ? list.reduce((sum, n) => sum + n, 0) / list.length : 0;
    },
    chunk(list, [size]) {
      if (typeof size !== 'number' || size === 0) fail('chunk(): expected non-zero numeric arg, e.g. .chunk(5)');
      const chunks = [];
      for (let i = 0; i < list.length; i += size) chunks.push(list.slice(i, i + size));
      return chunks;
    },
    compact: (list) =>
      list.filter((v) => !blank(v)).map((v) => (isObject(v) && !(v instanceof Date) && !DateTime.isDateTime(v) ? object.compact(v) : v)),
    difference: (list, [other]) => list.filter((v) => !includes(isArrayArg(other, 'difference'), v)),
    first: (list) => list[0],
    intersection: (list, [other]) => unique(list.filter((v) => includes(isArrayArg(other, 'intersection'), v))),
    isEmpty: (list) => list.length === 0,
    isNotEmpty: (list) => list.length > 0,
    last: (list) => list[list.length - 1],
    length: (list) => list.length,
    max(list) {
      allNumbers(list, 'max');
      return Math.max(...list);
    },
    merge(list, [other]) {
      if (other === undefined) return Object.assign({}, ...list.filter(isObject));
      isArrayArg(other, 'merge');
      const result = {};
      const length = Math.min(list.length, other.length);
      for (let i = 0; i < length; i++) {
        for (const part of [list[i], other[i]]) {
          if (!isObject(part)) continue;
          for (const key of Object.keys(part)) if (!(key in result)) result[key] = part[key];
        }
      }
      return result;
    },
    min(list) {
      allNumbers(list, 'min');
      return Math.min(...list);
    },
    pluck(list, keys) {
      if (keys.some((key) => typeof key !== 'string')) fail("pluck(): expected one or more strings, e.g. .pluck('id')");
      if (!keys.length) return list;
      const found = [];
      for (const item of list) {
        if (!isObject(item)) continue;
        if (keys.length === 1) {
          if (item[keys[0]] !== undefined) found.push(item[keys[0]]);
        } else found.push(Object.fromEntries(keys.filter((key) => key in item).map((key) => [key, item[key]])));
      }
      return found;
    },
    randomItem: (list) => list[Math.floor(Math.random() * list.length)],
    removeDuplicates: (list, keys) => unique(list, keys),
    renameKeys(list, names) {
      if (names.length === 0 || names.length % 2 !== 0) fail("renameKeys(): expected an even amount of args: from1, to1 [, from2, to2, ...], e.g. .renameKeys('name', 'title')");
      return list.map((item) => {
        if (!isObject(item)) return item;
        const result = { ...item };
        for (let i = 0; i < names.length; i += 2) {
          if (names[i] in result) {
            result[names[i + 1]] = result[names[i]];
            delete result[names[i]];
          }
        }
        return result;
      });
    },
    smartJoin(list, [key, value]) {
      if (typeof key !== 'string' || typeof value !== 'string' || !key || !value) fail("smartJoin(): expected two string args, e.g. .smartJoin('name', 'value')");
      const result = {};
      for (const item of list) if (isObject(item) && key in item && value in item) result[item[key]] = item[value];
      return result;
    },
    sum(list) {
      allNumbers(list, 'sum');
      return list.reduce((sum, n) => sum + n, 0);
    },
    toJsonString,
    union: (list, [other]) => unique([...list, ...isArrayArg(other, 'union')]),
    unique: (list, keys) => unique(list, keys),
  };

  // ---- Dates: Date and DateTime.
  const units = { year: 'years', month: 'months', week: 'weeks', day: 'days', hour: 'hours', minute: 'minutes', second: 'seconds', millisecond: 'milliseconds', ms: 'milliseconds', sec: 'seconds', min: 'minutes', hr: 'hours', wk: 'weeks', quarter: 'quarters' };
  const unitOf = (unit) => units[unit] ?? unit;
  const luxonOf = (date) => (DateTime.isDateTime(date) ? date : DateTime.fromJSDate(date));
  const backTo = (original, result) => (DateTime.isDateTime(original) ? result : result.toJSDate());
  const toDateTimeOf = (value) => {
    if (DateTime.isDateTime(value)) return value;
    if (value instanceof Date) return DateTime.fromJSDate(value);
    return parseDateTime(value);
  };
  const amount = (value, unit) => {
    if (isObject(value)) return value;
    return { [unitOf(unit ?? 'milliseconds')]: Number(value) };
  };
  const parts = { day: 'day', week: 'weekNumber', month: 'month', year: 'year', hour: 'hour', minute: 'minute', second: 'second', quarter: 'quarter', yearDayNumber: 'ordinal', dayOfYear: 'ordinal', weekday: 'weekday', weekNumber: 'weekNumber', millisecond: 'millisecond' };
  const date = {
    beginningOf: (d, [unit = 'week']) => backTo(d, luxonOf(d).startOf(unit)),
    endOfMonth: (d) => backTo(d, luxonOf(d).endOf('month')),
    extract(d, [part = 'week']) {
      return luxonOf(d).get(parts[part] ?? part.replace(/s$/, ''));
    },
    format(d, [format = 'yyyy-MM-dd', options = {}]) {
      return luxonOf(d).toFormat(format, { ...options });
    },
    isBetween(d, args) {
      if (args.length !== 2) fail('isBetween(): expected exactly two args');
      const [a, b] = args.map((v) => +toDateTimeOf(v));
      const at = +luxonOf(d);
      return (a < at && at < b) || (b < at && at < a);
    },
    isDst: (d) => luxonOf(d).isInDST,
    isEmpty: () => false,
    isNotEmpty: () => true,
    isInLast(d, [value = 0, unit = 'minutes']) {
      const at = luxonOf(d);
      const now = DateTime.now();
      return at >= now.minus({ [unitOf(unit)]: value }) && at <= now;
    },
    isWeekend: (d) => luxonOf(d).weekday >= 6,
    minus(d, [value, unit]) {
      return backTo(d, luxonOf(d).minus(Duration.isDuration(value) ? value : amount(value, unit)));
    },
    plus(d, [value, unit]) {
      return backTo(d, luxonOf(d).plus(Duration.isDuration(value) ? value : amount(value, unit)));
    },
    diffTo(d, [other = DateTime.now(), unit = 'days']) {
      const list = (Array.isArray(unit) ? unit : [unit]).map(unitOf);
      const difference = luxonOf(d).diff(toDateTimeOf(other), list).toObject();
      return Array.isArray(unit) ? difference : difference[list[0]];
    },
    diffToNow: (d, [unit]) => date.diffTo(d, [DateTime.now(), unit]),
    toDateTime: (d) => luxonOf(d),
    toInt: (d) => +d,
  };

  const number = {
    abs: (n) => Math.abs(n),
    ceil: (n) => Math.ceil(n),
    floor: (n) => Math.floor(n),
    format: (n, [locale, options]) => n.toLocaleString(locale ?? 'en-US', options),
    isEmpty: () => false,
    isNotEmpty: () => true,
    isInteger: (n) => Number.isInteger(n),
    isEven(n) {
      if (!Number.isInteger(n)) fail('isEven() is only callable on integers');
      return n % 2 === 0;
    },
    isOdd(n) {
      if (!Number.isInteger(n)) fail('isOdd() is only callable on integers');
      return Math.abs(n) % 2 === 1;
    },
    round: (n, [digits = 0]) => +n.toFixed(digits),
    toBoolean: (n) => n !== 0,
    toInt: (n) => number.round(n, []),
    toFloat: (n) => n,
    toDateTime(n, [format = 'ms']) {
      switch (format) {
        case 's':
          return DateTime.fromSeconds(n);
        case 'us':
          return DateTime.fromMillis(Math.floor(n / 1000));
        case 'excel':
          return DateTime.fromMillis((n - 25569) * 86400000);
        case 'ms':
          return DateTime.fromMillis(n);
      }
      return fail("Unsupported format in .toDateTime(): use 'ms', 's', 'us' or 'excel'");
    },
  };

  const object = {
    compact(o) {
      const result = {};
      for (const [key, value] of Object.entries(o)) {
        if (blank(value)) continue;
        result[key] = isObject(value) && !(value instanceof Date) && !DateTime.isDateTime(value) ? object.compact(value) : value;
      }
      return result;
    },
    hasField: (o, [name]) => Object.hasOwn(o, name),
    isEmpty: (o) => Object.keys(o).length === 0,
    isNotEmpty: (o) => Object.keys(o).length > 0,
    keepFieldsContaining(o, [text]) {
      if (typeof text !== 'string' || !text) fail("keepFieldsContaining(): expected a non-empty string arg");
      return Object.fromEntries(Object.entries(o).filter(([, v]) => typeof v === 'string' && v.includes(text)));
    },
    keys: (o) => Object.keys(o),
    removeField(o, [name]) {
      const { [name]: _, ...rest } = o;
      return rest;
    },
    removeFieldsContaining(o, [text]) {
      if (typeof text !== 'string' || !text) fail("removeFieldsContaining(): expected a non-empty string arg");
      return Object.fromEntries(Object.entries(o).filter(([, v]) => !(typeof v === 'string' && v.includes(text))));
    },
    toJsonString,
    urlEncode: (o) =>
      Object.entries(o)
        .map(([k, v]) => `${formEncode(k)}=${formEncode(String(v))}`)
        .join('&'),
    values: (o) => Object.values(o),
  };
  const formEncode = (text) =>
    encodeURIComponent(text)
      .replace(/[!'()~]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase())
      .replace(/%20/g, '+');

  // ---- Strings.
  const utf8 = {
    encode: (text) => unescape(encodeURIComponent(text)),
    decode(bytes) {
      try {
        return decodeURIComponent(escape(bytes));
      } catch {
        return bytes;
      }
    },
  };
  const { escape, unescape, atob, btoa } = globalThis;
  const parseDateTime = (value) => {
    if (typeof value === 'number') return DateTime.fromMillis(value);
    const text = String(value);
    const attempts = [
      () => DateTime.fromISO(text, { setZone: true }),
      () => DateTime.fromHTTP(text, { setZone: true }),
      () => DateTime.fromRFC2822(text, { setZone: true }),
      () => DateTime.fromSQL(text, { setZone: true }),
      () => (/^\d+$/.test(text) ? DateTime.fromMillis(Number(text)) : DateTime.invalid('no number')),
      () => DateTime.fromJSDate(new Date(text)),
    ];
    for (const attempt of attempts) {
      const parsed = attempt();
      if (parsed.isValid) return parsed;
    }
    return fail('cannot convert to Luxon DateTime');
  };
  const words = (text) =>
    text
      .replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
      .split(/[^\p{L}\d]+/u)
      .filter(Boolean);
  const domainOf = (text) => {
    const m = /^(?:[a-z][a-z\d+.-]*:\/\/)?(?:[^\s/?#@]*@)?((?:[\p{L}\d](?:[\p{L}\d-]*[\p{L}\d])?\.)+[\p{L}]{2,}|\d{1,3}(?:\.\d{1,3}){3}|localhost)(?::\d+)?(?:[/?#].*)?$/iu.exec(text.trim());
    return m ? m[1] : undefined;
  };
  const emailPattern = /[\p{L}\d.!#$%&'*+/=?^_`{|}~-]+@(?:[\p{L}\d](?:[\p{L}\d-]*[\p{L}\d])?\.)+[\p{L}]{2,}/u;
  const urlPattern = /(?:https?|ftp|file):\/\/(?:[\p{L}\d-]+(?:\.[\p{L}\d-]+)*)(?::\d+)?(?:[/?#][^\s"'<>]*)?/iu;
  const toNumber = (text) => {
    if (Number.isNaN(Number(text))) fail('cannot convert to number', `The value “${text}” is no number`);
    return Number(text);
  };
  const special = { ß: 'ss', æ: 'ae', Æ: 'AE', ø: 'o', Ø: 'O', œ: 'oe', Œ: 'OE', đ: 'd', Đ: 'D', ð: 'd', Ð: 'D', ł: 'l', Ł: 'L', þ: 'th', Þ: 'TH', ı: 'i' };
  const entities = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&nbsp;': ' ' };
  const string = {
    base64Decode: (s) => utf8.decode(atob(s.replace(/-/g, '+').replace(/_/g, '/'))),
    base64Encode: (s) => btoa(utf8.encode(s)),
    extractDomain(s) {
      const mail = emailPattern.exec(s);
      if (mail) return mail[0].slice(mail[0].lastIndexOf('@') + 1);
      return domainOf(s) ?? domainOf(urlPattern.exec(s)?.[0] ?? '');
    },
    extractEmail: (s) => emailPattern.exec(s)?.[0],
    extractUrl: (s) => urlPattern.exec(s)?.[0],
    extractUrlPath(s) {
      const m = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*([^?#]*)/i.exec(s);
      return m ? m[1] || '/' : undefined;
    },
    hash(s, [algorithm = 'md5']) {
      const name = String(algorithm).toLowerCase();
      if (name === 'base64') return string.base64Encode(s);
      const sum = call('hash', `${name}:${s}`);
      if (sum === undefined) fail(`Unknown algorithm ${algorithm}. Available algorithms are: md5,sha1,sha224,sha256,sha384,sha512,sha3, and Base64.`);
      return sum;
    },
    isDomain: (s) => /^(?:[\p{L}\d](?:[\p{L}\d-]*[\p{L}\d])?\.)+[\p{L}]{2,}$/u.test(s),
    isEmail: (s) => new RegExp(`^${emailPattern.source}$`, 'u').test(s),
    isEmpty: (s) => s === '',
    isNotEmpty: (s) => s !== '',
    isNumeric: (s) => s.trim() !== '' && !Number.isNaN(Number(s)),
    isUrl: (s) => /^[a-z][a-z\d+.-]*:\/\/[^\s/?#]+\S*$/i.test(s),
    length: (s) => s.length,
    parseJson(s) {
      try {
        return JSON.parse(s);
      } catch {
        return fail(s.includes("'") ? "Parsing failed. Check you're using double quotes" : 'Parsing failed');
      }
    },
    quote: (s, [mark = '"']) => mark + s.replaceAll('\\', '\\\\').replaceAll(mark, '\\' + mark) + mark,
    removeMarkdown: (s) => {
      let text = s
        .replace(/^(-\s*?|\*\s*?|_\s*?){3,}\s*$/gm, '')
        .replace(/^([\s\t]*)([*\-+]|\d+\.)\s+/gm, '$1')
        .replace(/\n={2,}/g, '\n')
        .replace(/~{3}.*\n/g, '')
        .replace(/~~/g, '')
        .replace(/`{3}.*\n/g, '')
        .replace(/<[^>]*>/g, '')
        .replace(/^[=-]{2,}\s*$/g, '')
        .replace(/\[\^.+?\](: .*?$)?/g, '')
        .replace(/!\[(.*?)\][[(].*?[\])]/g, '')
        .replace(/\[(.*?)\][[(].*?[\])]/g, '$1')
        .replace(/^\s{0,3}>\s?/gm, '')
        .replace(/^#{1,6}\s+/gm, '')
        .replace(/\s*#{1,6}\s*$/gm, '')
        .replace(/([*_]{2,3})(\S.*?\S|\S)\1/g, '$2')
        .replace(/(^|\s)_(\S.*?\S|\S)_(?=\s|$)/g, '$1$2')
        .replace(/`{3,}(.*?)`{3,}/gs, '$1')
        .replace(/`(.+?)`/g, '$1')
        .replace(/\s>\s?/g, '  ');
      return text;
    },
    removeTags: (s) => s.replace(/<[^>]*>?/g, ''),
    replaceSpecialChars: (s) => s.replace(/[^\u0000-\u007f]/g, (c) => special[c] ?? c).normalize('NFD').replace(/\p{M}/gu, ''),
    toBoolean: (s) => !['', 'false', 'no', '0', 'off'].includes(s.trim().toLowerCase()),
    toCamelCase: (s) =>
      words(s)
        .map((w, i) => (i ? w[0].toUpperCase() + w.slice(1).toLowerCase() : w.toLowerCase()))
        .join(''),
    toDate(s) {
      const d = new Date(s);
      if (Number.isNaN(+d)) fail('cannot convert to date');
      return d;
    },
    toDateTime(s, [format]) {
      if (format === undefined) return parseDateTime(s);
      if (['ms', 's', 'us', 'excel'].includes(format)) return number.toDateTime(toNumber(s), [format]);
      const parsed = DateTime.fromFormat(s, format);
      if (!parsed.isValid) fail('cannot convert to Luxon DateTime');
      return parsed;
    },
    toDecimalNumber: (s) => parseFloat(s),
    toFloat: (s) => parseFloat(s),
    toInt: (s, [radix]) => parseInt(s, radix),
    toWholeNumber: (s, [radix]) => parseInt(s, radix),
    toJsonString,
    toKebabCase: (s) =>
      words(s)
        .map((w) => w.toLowerCase())
        .join('-'),
    toNumber,
    toSentenceCase: (s) => s.toLowerCase().replace(/(^\s*|[.!?]\s+)(\p{L})/gu, (_, before, letter) => before + letter.toUpperCase()),
    toSnakeCase: (s) =>
      words(s)
        .map((w) => w.toLowerCase())
        .join('_'),
    toTitleCase: (s) => {
      const small = new Set(['a', 'an', 'the', 'and', 'but', 'or', 'for', 'nor', 'on', 'at', 'to', 'by', 'of', 'in', 'with', 'as']);
      return s.replace(/\S+/g, (word, at) => (at > 0 && small.has(word.toLowerCase()) ? word.toLowerCase() : word[0].toUpperCase() + word.slice(1).toLowerCase()));
    },
    urlDecode: (s, [whole]) => (whole ? decodeURI(s.toString()) : decodeURIComponent(s.toString())),
    urlEncode: (s, [whole]) => (whole ? encodeURI(s.toString()) : encodeURIComponent(s.toString())),
  };

  const boolean = {
    isEmpty: () => false,
    isNotEmpty: () => true,
    toBoolean: (b) => b,
    toInt: (b) => +b,
    toFloat: (b) => +b,
    toNumber: (b) => +b,
  };

  const types = [['Array', array], ['Date', date], ['Number', number], ['Object', object], ['String', string], ['Boolean', boolean]];
  const tableOf = (value) => {
    switch (typeof value) {
      case 'string':
        return string;
      case 'number':
        return number;
      case 'boolean':
        return boolean;
      case 'object':
        if (Array.isArray(value)) return array;
        if (value instanceof Date || DateTime.isDateTime(value)) return date;
        // Sets, Durations and the like keep their own methods.
        return Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null ? object : undefined;
    }
    return undefined;
  };

  const listed = (names) => {
    const quoted = names.map((name) => `"${name}"`);
    if (quoted.length === 1) return `type ${quoted[0]}`;
    return `types ${quoted.slice(0, -1).join(', ')}, and ${quoted.at(-1)}`;
  };
  n8n.extend = (value, name, args) => {
    if (value === undefined || value === null) {
      if (name === 'isEmpty') return true;
      if (name === 'isNotEmpty') return false;
      return value[name](...args); // the error that it is
    }
    const table = tableOf(value);
    const extension = table && Object.hasOwn(table, name) ? table[name] : undefined;
    if (extension) {
      // Methods of the value's own (a function in an object) come first.
      if (table === object && typeof value[name] === 'function') return value[name](...args);
      return extension(value, args);
    }
    if (typeof value[name] === 'function') return value[name](...args);
    const others = types.filter(([, t]) => Object.hasOwn(t, name)).map(([type]) => type);
    if (others.length === 0 || typeof value === 'function') return value[name](...args);
    return fail(`${name}() is only callable on ${listed(others)}`);
  };
  n8n.extendOptional = (value, name, args) => {
    if ((value === undefined || value === null) && name !== 'isEmpty' && name !== 'isNotEmpty') return undefined;
    return n8n.extend(value, name, args);
  };
  n8n.extensionNames = [...new Set(types.flatMap(([, table]) => Object.keys(table)))].sort();
})();
