// What Code nodes have beside the language: Buffer, URL, text encoding, require.
(() => {
  'use strict';
  const n8n = globalThis.__n8n;
  const { call, define } = n8n;
  const { atob, btoa } = globalThis;

  // ---- Text and bytes.
  const utf8Bytes = (text) => {
    const binary = unescape(encodeURIComponent(text.toWellFormed()));
    return latin1Bytes(binary);
  };
  const { unescape, escape } = globalThis;
  const latin1Bytes = (binary) => {
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
  };
  const latin1Text = (bytes) => {
    let text = '';
    for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
    return text;
  };
  const utf8Text = (bytes) => {
    try {
      return decodeURIComponent(escape(latin1Text(bytes)));
    } catch {
      return lossyText(bytes);
    }
  };
  // lossyText replaces what is no UTF-8 by U+FFFD.
  const lossyText = (bytes) => {
    let text = '';
    for (let i = 0; i < bytes.length; ) {
      const b = bytes[i];
      const size = b < 0x80 ? 1 : b >= 0xc2 && b < 0xe0 ? 2 : b >= 0xe0 && b < 0xf0 ? 3 : b >= 0xf0 && b < 0xf5 ? 4 : 0;
      const part = bytes.subarray(i, i + size);
      let ok = size > 0 && part.length === size;
      if (ok) {
        try {
          text += decodeURIComponent(escape(latin1Text(part)));
        } catch {
          ok = false;
        }
      }
      if (!ok) text += '\ufffd';
      i += ok ? size : 1;
    }
    return text;
  };
  const toBytes = (value, encoding = 'utf8') => {
    switch (String(encoding).toLowerCase().replace('-', '')) {
      case 'base64':
      case 'base64url': {
        const clean = value.replace(/-/g, '+').replace(/_/g, '/').replace(/[^A-Za-z0-9+/]/g, '');
        return latin1Bytes(atob(clean.slice(0, clean.length - (clean.length % 4 === 1 ? 1 : 0))));
      }
      case 'hex': {
        const digits = /^(?:[\da-f]{2})*/i.exec(value)[0];
        return Uint8Array.from({ length: digits.length / 2 }, (_, i) => parseInt(digits.slice(2 * i, 2 * i + 2), 16));
      }
      case 'latin1':
      case 'binary':
      case 'ascii':
        return latin1Bytes(value);
      case 'utf16le':
      case 'ucs2': {
        const bytes = new Uint8Array(2 * value.length);
        for (let i = 0; i < value.length; i++) {
          bytes[2 * i] = value.charCodeAt(i);
          bytes[2 * i + 1] = value.charCodeAt(i) >> 8;
        }
        return bytes;
      }
    }
    return utf8Bytes(value);
  };
  const fromBytes = (bytes, encoding = 'utf8') => {
    switch (String(encoding).toLowerCase().replace('-', '')) {
      case 'base64':
        return btoa(latin1Text(bytes));
      case 'base64url':
        return btoa(latin1Text(bytes)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
      case 'hex':
        return Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
      case 'latin1':
      case 'binary':
        return latin1Text(bytes);
      case 'ascii':
        return latin1Text(bytes.map((b) => b & 127));
      case 'utf16le':
      case 'ucs2': {
        let text = '';
        for (let i = 0; i + 1 < bytes.length; i += 2) text += String.fromCharCode(bytes[i] | (bytes[i + 1] << 8));
        return text;
      }
    }
    return utf8Text(bytes);
  };

  class Buffer extends Uint8Array {
    static from(value, encoding, length) {
      if (typeof value === 'string') return Buffer.view(toBytes(value, encoding));
      if (value instanceof ArrayBuffer) return new Buffer(value, encoding, length);
      if (value?.type === 'Buffer' && Array.isArray(value.data)) value = value.data;
      return Buffer.view(Uint8Array.from(value));
    }
    static view(bytes) {
      return new Buffer(bytes.buffer, bytes.byteOffset, bytes.length);
    }
    static alloc(size, fill = 0) {
      return new Buffer(size).fill(fill);
    }
    static allocUnsafe(size) {
      return new Buffer(size);
    }
    static isBuffer(value) {
      return value instanceof Buffer;
    }
    static byteLength(value, encoding) {
      return typeof value === 'string' ? toBytes(value, encoding).length : value.byteLength;
    }
    static concat(list, total = list.reduce((sum, b) => sum + b.length, 0)) {
      const result = new Buffer(total);
      let offset = 0;
      for (const part of list) {
        const rest = part.subarray(0, Math.max(0, total - offset));
        result.set(rest, offset);
        offset += rest.length;
      }
      return result;
    }
    static compare(a, b) {
      return a.compare(b);
    }
    toString(encoding, start = 0, end = this.length) {
      return fromBytes(this.subarray(start, end), encoding);
    }
    toJSON() {
      return { type: 'Buffer', data: Array.from(this) };
    }
    equals(other) {
      return this.compare(other) === 0;
    }
    compare(other) {
      for (let i = 0; i < Math.min(this.length, other.length); i++) if (this[i] !== other[i]) return this[i] < other[i] ? -1 : 1;
      return Math.sign(this.length - other.length);
    }
    slice(start, end) {
      return this.subarray(start, end);
    }
    write(text, offset = 0) {
      const bytes = toBytes(text).subarray(0, this.length - offset);
      this.set(bytes, offset);
      return bytes.length;
    }
    readUInt8(offset = 0) {
      return this[offset];
    }
    readUInt16BE(offset = 0) {
      return (this[offset] << 8) | this[offset + 1];
    }
    readUInt32BE(offset = 0) {
      return ((this[offset] << 24) | (this[offset + 1] << 16) | (this[offset + 2] << 8) | this[offset + 3]) >>> 0;
    }
  }

  class TextEncoder {
    get encoding() {
      return 'utf-8';
    }
    encode(text = '') {
      return utf8Bytes(String(text));
    }
  }
  class TextDecoder {
    get encoding() {
      return 'utf-8';
    }
    decode(bytes = new Uint8Array()) {
      return utf8Text(bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)).replace(/^\ufeff/, '');
    }
  }

  // ---- URL.
  const formEncode = (text) =>
    encodeURIComponent(text.toWellFormed())
      .replace(/[!'()~]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase())
      .replace(/%20/g, '+');
  const formDecode = (text) => utf8Text(latin1Bytes(unescape(unescapeSafe(text.replace(/\+/g, ' ')))));
  const unescapeSafe = (text) => text.replace(/[^\u0000-\u00ff]/g, (c) => encodeURIComponent(c)).replace(/%u/g, '%25u');
  class URLSearchParams {
    #list = [];
    #changed = () => {};
    constructor(init = '', changed) {
      if (changed) this.#changed = changed;
      if (typeof init === 'string') {
        for (const pair of init.replace(/^\?/, '').split('&')) {
          if (!pair) continue;
          const i = pair.indexOf('=');
          this.#list.push(i < 0 ? [formDecode(pair), ''] : [formDecode(pair.slice(0, i)), formDecode(pair.slice(i + 1))]);
        }
      } else {
        const pairs = typeof init[Symbol.iterator] === 'function' ? [...init] : Object.entries(init);
        for (const [k, v] of pairs) this.#list.push([String(k), String(v)]);
      }
    }
    get size() {
      return this.#list.length;
    }
    append(k, v) {
      this.#list.push([String(k), String(v)]);
      this.#changed(this);
    }
    delete(k) {
      this.#list = this.#list.filter(([name]) => name !== k);
      this.#changed(this);
    }
    get(k) {
      return this.#list.find(([name]) => name === k)?.[1] ?? null;
    }
    getAll(k) {
      return this.#list.filter(([name]) => name === k).map(([, v]) => v);
    }
    has(k) {
      return this.#list.some(([name]) => name === k);
    }
    set(k, v) {
      const i = this.#list.findIndex(([name]) => name === k);
      if (i < 0) this.#list.push([String(k), String(v)]);
      else {
        this.#list[i] = [String(k), String(v)];
        this.#list = this.#list.filter(([name], j) => name !== k || j === i);
      }
      this.#changed(this);
    }
    sort() {
      this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      this.#changed(this);
    }
    forEach(fn) {
      for (const [k, v] of this.#list) fn(v, k, this);
    }
    *entries() {
      yield* this.#list.map((pair) => [...pair]);
    }
    *keys() {
      for (const [k] of this.#list) yield k;
    }
    *values() {
      for (const [, v] of this.#list) yield v;
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      return this.#list.map(([k, v]) => `${formEncode(k)}=${formEncode(v)}`).join('&');
    }
  }
  // Go's parser does the work; the fields are what the standard names them.
  class URL {
    #parts;
    #params;
    constructor(url, base) {
      const reply = call('url', JSON.stringify([String(url), base === undefined ? '' : String(base)]));
      if (reply === undefined) throw new TypeError('Invalid URL');
      this.#parts = JSON.parse(reply);
      this.#params = new URLSearchParams(this.#parts.search, (params) => {
        const text = params.toString();
        this.#parts.search = text && '?' + text;
      });
    }
    static canParse(url, base) {
      return call('url', JSON.stringify([String(url), base === undefined ? '' : String(base)])) !== undefined;
    }
    get searchParams() {
      return this.#params;
    }
    get host() {
      return this.hostname + (this.port && ':' + this.port);
    }
    get origin() {
      return /^(?:https?|ftp|wss?):$/.test(this.protocol) ? `${this.protocol}//${this.host}` : 'null';
    }
    get href() {
      const login = this.username ? `${this.username}${this.password && ':' + this.password}@` : '';
      return `${this.protocol}${this.#parts.slashes ? '//' : ''}${login}${this.host}${this.pathname}${this.search}${this.hash}`;
    }
    set search(text) {
      this.#parts.search = text === '' || text.startsWith('?') ? text : '?' + text;
      this.#params = new URLSearchParams(this.#parts.search);
    }
    get search() {
      return this.#parts.search;
    }
    static {
      for (const name of ['protocol', 'username', 'password', 'hostname', 'port', 'pathname', 'hash']) {
        Object.defineProperty(URL.prototype, name, {
          get() {
            return this.#parts[name];
          },
          set(value) {
            this.#parts[name] = String(value);
          },
          configurable: true,
          enumerable: true,
        });
      }
    }
    toString() {
      return this.href;
    }
    toJSON() {
      return this.href;
    }
  }

  // ---- structuredClone, for plain data, dates, maps and sets.
  const clone = (value, seen = new Map()) => {
    if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError(`${String(value)} could not be cloned.`);
    if (typeof value !== 'object' || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (copy) => (seen.set(value, copy), copy);
    if (value instanceof Date) return keep(new Date(+value));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof Map) {
      const copy = keep(new Map());
      for (const [k, v] of value) copy.set(clone(k, seen), clone(v, seen));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(new Set());
      for (const v of value) copy.add(clone(v, seen));
      return copy;
    }
    if (ArrayBuffer.isView(value)) return keep(value.slice());
    const copy = keep(Array.isArray(value) ? [] : {});
    for (const key of Object.keys(value)) copy[key] = clone(value[key], seen);
    return copy;
  };

  // ---- require: the modules n8n's users need most, as far as they are here.
  const random = (n) => latin1Bytes(atob(call('random', n)));
  const digests = (op, algorithm, key) => {
    const parts = [];
    return {
      update(data, encoding) {
        parts.push(typeof data === 'string' ? toBytes(data, encoding) : data);
        return this;
      },
      digest(encoding) {
        const text = (bytes) => fromBytes(bytes, 'base64');
        const sum = call(op, JSON.stringify([algorithm, text(Buffer.concat(parts)), key && text(typeof key === 'string' ? toBytes(key) : key)]));
        if (sum === undefined) throw new Error('Digest method not supported');
        const bytes = Buffer.view(toBytes(sum, 'hex'));
        return encoding && encoding !== 'buffer' ? bytes.toString(encoding) : bytes;
      },
    };
  };
  const uuid = () => {
    const b = random(16);
    b[6] = (b[6] & 15) | 64;
    b[8] = (b[8] & 63) | 128;
    const hex = fromBytes(b, 'hex');
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  };
  const crypto = {
    createHash: (algorithm) => digests('digest', algorithm),
    createHmac: (algorithm, key) => digests('hmac', algorithm, key),
    randomBytes: (n) => Buffer.view(random(n)),
    randomUUID: uuid,
    randomInt: (min, max) => (max === undefined ? Math.floor(Math.random() * min) : min + Math.floor(Math.random() * (max - min))),
    getRandomValues(array) {
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(random(array.byteLength));
      return array;
    },
    timingSafeEqual: (a, b) => Buffer.view(a).equals(b),
  };
  const modules = { crypto, buffer: { Buffer }, url: { URL, URLSearchParams }, util: { TextEncoder, TextDecoder } };
  n8n.require = (name) => {
    const module = modules[String(name).replace(/^node:/, '')];
    if (!module) throw new Error(`Module '${name}' is disallowed`);
    return module;
  };
  n8n.web = { Buffer, TextEncoder, TextDecoder, URL, URLSearchParams, structuredClone: (value) => clone(value) };
})();
