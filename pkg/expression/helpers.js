// this.helpers of Code nodes: what needs nothing but the items is here; the rest
// says that it is not.
(() => {
  'use strict';
  const n8n = globalThis.__n8n;
  const { Buffer } = n8n.web;

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
  for (const name of [
    'copyBinaryFile', 'createReadStream', 'getBinaryMetadata', 'getBinaryPath', 'getBinaryStream', 'getSSHClient', 'getStoragePath', 'httpRequest',
    'httpRequestWithAuthentication', 'request', 'requestWithAuthenticationPaginated',
    'setBinaryDataBuffer', 'writeContentToFile',
  ]) {
    helpers[name] ??= () => {
      throw new Error(`this.helpers.${name}() is not available to scripts here; use a node of its own for it (HTTP Request, files …)`);
    };
  }
  helpers.returnJsonArray = helpers.normalizeItems;
  n8n.helpers = helpers;
})();
