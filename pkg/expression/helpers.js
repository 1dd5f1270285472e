// this.helpers of Code nodes: what needs nothing but the items is here; the rest
// says that it is not.
(() => {
  'use strict';
  const n8n = globalThis.__n8n;
  const { Buffer, URLSearchParams } = n8n.web;

  const binaryOf = (item, index, name) => {
    if (typeof name === 'object' && name !== null) return name;
    const binary = item?.binary?.[name];
    if (!binary) throw new Error(`This operation expects the node's input data to contain a binary file '${name}', but none was found [item ${index}]`);
    return binary;
  };
  const bytesOf = (binary) => {
    if (typeof binary.data !== 'string' || (binary.id && !binary.data)) throw new Error('The content of this file is not in the item, so a script cannot read it');
    return Buffer.from(binary.data, 'base64');
  };
  const types = { json: 'application/json', txt: 'text/plain', csv: 'text/csv', html: 'text/html', xml: 'application/xml', pdf: 'application/pdf', png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', svg: 'image/svg+xml', zip: 'application/zip', md: 'text/markdown' };
  const size = (bytes) => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${+(bytes / 1000).toPrecision(3)} kB` : `${+(bytes / 1e6).toPrecision(3)} MB`);
  const fileType = (mime) => (/^(?:image|audio|video)\//.test(mime) ? mime.split('/')[0] : mime === 'application/json' ? 'json' : mime === 'text/html' ? 'html' : mime === 'application/pdf' ? 'pdf' : mime.startsWith('text/') ? 'text' : undefined);
  const text = (data) => (typeof data === 'string' ? Buffer.from(data) : Buffer.from(data));

  const helpers = {
    assertBinaryData: (index, name) => binaryOf(n8n.itemAt(index), index, name),
    binaryToBuffer: async (data) => text(data),
    binaryToString: async (data, encoding) => text(data).toString(encoding),
    constructExecutionMetaData: (items, { itemData } = {}) => items.map((item) => ({ ...item, pairedItem: itemData })),
    copyInputItems: (items, keys) => items.map((item) => Object.fromEntries(keys.map((key) => [key, item.json[key] === undefined ? null : JSON.parse(JSON.stringify(item.json[key]))]))),
    createDeferredPromise() {
      let resolve;
      let reject;
      const promise = new Promise((a, b) => {
        resolve = a;
        reject = b;
      });
      return { promise, resolve, reject };
    },
    getBinaryDataBuffer: async (index, name) => bytesOf(binaryOf(n8n.itemAt(index), index, name)),
    normalizeItems(items) {
      if (!Array.isArray(items)) items = [items];
      if (items.every((item) => item && typeof item === 'object' && ('json' in item || 'binary' in item))) return items.map((item) => ({ json: {}, ...item }));
      if (items.some((item) => item && typeof item === 'object' && 'json' in item)) throw new Error('Inconsistent item format');
      return items.map((json) => ({ json }));
    },
    async prepareBinaryData(data, fileName, mimeType) {
      const bytes = text(data);
      const extension = /\.([a-z\d]+)$/i.exec(fileName ?? '')?.[1];
      const mime = mimeType ?? types[extension?.toLowerCase()] ?? 'text/plain';
      const binary = { mimeType: mime, fileType: fileType(mime), fileExtension: extension, data: bytes.toString('base64'), fileName, fileSize: size(bytes.length) };
      return JSON.parse(JSON.stringify(binary));
    },
  };
  // ---- What this process is asked for and answers later.
  const { stringify, parse } = JSON;
  const waiting = new Map();
  let lastCall = 0;
  const asyncCall = (name, arg) =>
    new Promise((resolve, reject) => {
      const id = ++lastCall;
      n8n.ask('start', stringify({ id, name, arg }));
      waiting.set(id, { resolve, reject });
    });
  n8n.pendingCalls = () => waiting.size > 0;
  n8n.settleCalls = (wait) => {
    const reply = n8n.call('settled', wait ?? '');
    if (reply === undefined) return;
    for (const { id, value, error } of parse(reply)) {
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      if (error) reject(Object.assign(new Error(error.message), error.name && { name: error.name }, error.fields));
      else resolve(value);
    }
  };

  const isBytes = (value) => ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
  const encodeBody = (body) => {
    if (body instanceof URLSearchParams) return { text: body.toString(), type: 'application/x-www-form-urlencoded' };
    if (isBytes(body)) return { bytes: text(body).toString('base64') };
    if (typeof body === 'string') return { text: body };
    return { json: body };
  };
  const httpRequest = async (options) => {
    if (typeof options === 'string') options = { url: options };
    const { body, ...rest } = options;
    if (body !== undefined && body !== null) rest.payload = encodeBody(body);
    const response = await asyncCall('httpRequest', rest);
    if (response.bytes !== undefined) response.body = Buffer.from(response.bytes, 'base64');
    if (!options.returnFullResponse) return response.body;
    const { body: data, headers, statusCode, statusMessage } = response;
    return { body: data, headers, statusCode, statusMessage };
  };
  helpers.httpRequest = httpRequest;
  // The older request(), in the options of the library it was named after.
  helpers.request = async (uri, more) => {
    const o = typeof uri === 'string' ? { ...more, uri } : uri;
    const { form, formData, qs, auth } = o;
    if (formData !== undefined) throw new Error('this.helpers.request() with formData is not available here; use an HTTP Request node');
    const response = await httpRequest({
      url: o.uri ?? o.url, baseURL: o.baseUrl, method: o.method, headers: o.headers, qs, timeout: o.timeout,
      body: form ? new URLSearchParams(Object.entries(form)) : o.body, json: o.json === true,
      auth: auth && { username: auth.user ?? auth.username, password: auth.pass ?? auth.password },
      encoding: o.encoding === null ? 'arraybuffer' : o.json ? undefined : 'text',
      ignoreHttpStatusErrors: o.simple === false, disableFollowRedirect: o.followRedirect === false, returnFullResponse: true,
      skipSslCertificateValidation: o.rejectUnauthorized === false,
    });
    return o.resolveWithFullResponse ? response : response.body;
  };

  // ---- Files that are not in their items.
  helpers.getBinaryDataBuffer = async (index, name) => {
    const binary = binaryOf(n8n.itemAt(index), index, name);
    return binary.id ? Buffer.from(await asyncCall('readFile', binary), 'base64') : bytesOf(binary);
  };
  const describe = helpers.prepareBinaryData;
  helpers.prepareBinaryData = async (data, fileName, mimeType) => {
    const binary = await describe(data, fileName, mimeType);
    return binary.data.length > 12000 ? asyncCall('saveFile', binary) : binary;
  };
  helpers.setBinaryDataBuffer = async (metadata, buffer) => helpers.prepareBinaryData(buffer, metadata.fileName, metadata.mimeType);
  helpers.getBinaryMetadata = async (id) => {
    throw new Error(`this.helpers.getBinaryMetadata() is not available here: what is known of the file '${id}' is in its item`);
  };

  for (const name of [
    'copyBinaryFile', 'createReadStream', 'getBinaryPath', 'getBinaryStream', 'getSSHClient', 'getStoragePath',
    'httpRequestWithAuthentication', 'requestWithAuthenticationPaginated', 'writeContentToFile',
  ]) {
    helpers[name] ??= () => {
      throw new Error(`this.helpers.${name}() is not available to scripts here; use a node of its own for it (HTTP Request, files …)`);
    };
  }
  helpers.returnJsonArray = helpers.normalizeItems;
  n8n.helpers = helpers;
})();
