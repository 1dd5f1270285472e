// Intl: the part that Luxon needs to start.
(() => {
  'use strict';
  class DateTimeFormat {
    constructor(locale, options) { this.options = { ...options }; this.locale = locale || 'en-US'; }
    resolvedOptions() { return { locale: this.locale, numberingSystem: 'latn', calendar: 'gregory', timeZone: this.options.timeZone || 'UTC', ...this.options }; }
  }
  __standard.define(globalThis, 'Intl', { DateTimeFormat });
})();
