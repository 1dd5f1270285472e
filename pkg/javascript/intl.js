// Intl, as far as n8n's users need it, over the locales that Go has.
(() => {
  'use strict';
  const { call, define, zoneAt, zoneExists, luxon } = globalThis.__standard;

  // ---- Locales.
  const known = new Map();
  const tagPattern = /^[a-z]{2,3}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|\d{3}))?(?:-[a-z\d]{1,8})*$/i;
  const canonical = (tag) => {
    if (typeof tag !== 'string' && !(tag instanceof Locale)) throw new TypeError('Incorrect locale information provided');
    tag = String(tag);
    if (!tagPattern.test(tag)) throw new RangeError(`Incorrect locale information provided`);
    return tag
      .replace(/-u-.*$/i, '')
      .split('-')
      .map((part, i) => (i === 0 ? part.toLowerCase() : part.length === 2 ? part.toUpperCase() : part.length === 4 ? part[0].toUpperCase() + part.slice(1).toLowerCase() : part))
      .join('-');
  };
  const lookUp = (tag) => {
    let found = known.get(tag);
    if (found === undefined) {
      const reply = call('locale', tag);
      found = reply === undefined ? null : { ...JSON.parse(reply), asked: tag };
      known.set(tag, found);
    }
    return found;
  };
  const resolve = (requested) => {
    const list = requested === undefined ? [] : Array.isArray(requested) ? requested : [requested];
    for (const tag of list.map(canonical)) {
      const found = lookUp(tag);
      if (found) return found;
    }
    return lookUp('en-US');
  };
  const supportedLocalesOf = (requested) => (requested === undefined ? [] : Array.isArray(requested) ? requested : [requested]).map(canonical).filter((tag) => lookUp(tag));
  const language = (locale) => locale.tag.split('-')[0];
  const option = (options, name, allowed, fallback) => {
    const value = options[name];
    if (value === undefined) return fallback;
    if (!allowed.includes(String(value))) throw new RangeError(`Value ${value} out of range for Intl options property ${name}`);
    return String(value);
  };
  const digitsOption = (options, name, min, max, fallback) => {
    const value = options[name];
    if (value === undefined) return fallback;
    const n = Number(value);
    if (!(n >= min && n <= max)) throw new RangeError(`${name} value is out of range.`);
    return Math.floor(n);
  };

  // ---- Plural rules.
  const slavic = (n, one, few) => {
    if (!Number.isInteger(n)) return 'other';
    const ten = n % 10;
    const hundred = n % 100;
    if (one(n, ten, hundred)) return 'one';
    if (few(n, ten, hundred)) return 'few';
    return 'many';
  };
  const east = (n) => slavic(n, (_, t, h) => t === 1 && h !== 11, (_, t, h) => t >= 2 && t <= 4 && (h < 12 || h > 14));
  const plurals = {
    ru: east, uk: east,
    hr: (n) => { const c = east(n); return c === 'many' ? 'other' : c; },
    pl: (n) => slavic(n, (v) => v === 1, (_, t, h) => t >= 2 && t <= 4 && (h < 12 || h > 14)),
    cs: (n) => (n === 1 ? 'one' : Number.isInteger(n) ? (n >= 2 && n <= 4 ? 'few' : 'other') : 'many'),
    ro: (n) => (n === 1 ? 'one' : !Number.isInteger(n) || n === 0 || (n % 100 >= 1 && n % 100 <= 19) ? 'few' : 'other'),
    he: (n) => (n === 1 ? 'one' : n === 2 ? 'two' : 'other'),
    fr: (n) => (Math.abs(n) < 2 ? 'one' : n !== 0 && n % 1e6 === 0 ? 'many' : 'other'),
    hi: (n) => (n >= 0 && n <= 1 ? 'one' : 'other'),
    da: (n) => (n === 1 || (!Number.isInteger(n) && (Math.floor(n) === 0 || Math.floor(n) === 1)) ? 'one' : 'other'),
  };
  plurals.pt = (n) => (n >= 0 && n < 2 ? 'one' : n !== 0 && n % 1e6 === 0 ? 'many' : 'other');
  plurals.sk = plurals.cs;
  for (const l of ['ja', 'zh', 'ko', 'id', 'vi']) plurals[l] = () => 'other';
  for (const l of ['es', 'it', 'ca']) plurals[l] = (n) => (n === 1 ? 'one' : n !== 0 && n % 1e6 === 0 ? 'many' : 'other');
  const plural = (locale, n) => (plurals[language(locale)] ?? ((v) => (v === 1 ? 'one' : 'other')))(Math.abs(n));
  const ordinalEnglish = (n) => {
    const [ten, hundred] = [n % 10, n % 100];
    if (ten === 1 && hundred !== 11) return 'one';
    if (ten === 2 && hundred !== 12) return 'two';
    return ten === 3 && hundred !== 13 ? 'few' : 'other';
  };
  class PluralRules {
    #locale;
    #type;
    constructor(locales, options = {}) {
      this.#locale = resolve(locales);
      this.#type = option(options, 'type', ['cardinal', 'ordinal'], 'cardinal');
    }
    select(n) {
      if (this.#type === 'ordinal') return language(this.#locale) === 'en' ? ordinalEnglish(Math.abs(n)) : 'other';
      return plural(this.#locale, Number(n));
    }
    resolvedOptions() {
      return { locale: this.#locale.asked, type: this.#type, pluralCategories: ['one', 'other'] };
    }
  }

  // ---- Numbers.
  // decimalOf writes a finite number without exponent.
  const decimalOf = (value) => {
    if (typeof value === 'bigint') return String(value < 0n ? -value : value);
    let text = String(Math.abs(value));
    const m = /^(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(text);
    if (!m) return text;
    const exponent = Number(m[3]);
    const digits = m[1] + (m[2] ?? '');
    if (exponent < 0) return '0.' + '0'.repeat(-exponent - 1) + digits;
    return digits.length > exponent + 1 ? digits.slice(0, exponent + 1) + '.' + digits.slice(exponent + 1) : digits.padEnd(exponent + 1, '0');
  };
  // roundDecimal rounds the text of a number half away from zero.
  const roundDecimal = (text, places) => {
    let [whole, fraction = ''] = text.split('.');
    if (fraction.length <= places) return [whole, fraction];
    const cut = whole.length + places;
    const digits = whole + fraction;
    let kept = cut > 0 ? digits.slice(0, cut) : '';
    const up = cut >= 0 && digits[cut] >= '5';
    if (up) {
      const next = String(BigInt(kept || '0') + 1n);
      kept = next.padStart(kept.length, '0');
    }
    if (places <= 0) return [(kept || '0') + '0'.repeat(-places), ''];
    kept = kept.padStart(places + 1, '0');
    return [kept.slice(0, -places).replace(/^0+(?=\d)/, ''), kept.slice(-places)];
  };
  const noMinorUnits = new Set(['JPY', 'KRW', 'CLP', 'VND', 'ISK', 'PYG', 'UGX', 'XAF', 'XOF', 'XPF', 'RWF', 'KMF', 'GNF', 'DJF', 'BIF', 'VUV']);
  const threeMinorUnits = new Set(['KWD', 'BHD', 'JOD', 'OMR', 'TND', 'IQD', 'LYD']);
  const narrow = { USD: '$', EUR: '€', GBP: '£', JPY: '¥', CNY: '¥', INR: '₹', KRW: '₩', BRL: 'R$', RUB: '₽', UAH: '₴', TRY: '₺', ILS: '₪', VND: '₫', NGN: '₦', PHP: '₱', PLN: 'zł', CZK: 'Kč', HUF: 'Ft', SEK: 'kr', NOK: 'kr', DKK: 'kr', AUD: '$', CAD: '$', MXN: '$', NZD: '$', SGD: '$', HKD: '$', TWD: '$', ARS: '$', CLP: '$', COP: '$' };
  const currencyNames = { USD: ['US dollar', 'US dollars'], EUR: ['euro', 'euros'], GBP: ['British pound', 'British pounds'], JPY: ['Japanese yen', 'Japanese yen'], INR: ['Indian rupee', 'Indian rupees'], CNY: ['Chinese yuan', 'Chinese yuan'], CHF: ['Swiss franc', 'Swiss francs'], CAD: ['Canadian dollar', 'Canadian dollars'], AUD: ['Australian dollar', 'Australian dollars'] };
  const longCompact = ['', ' thousand', ' million', ' billion', ' trillion'];

  class NumberFormat {
    #locale;
    #o;
    constructor(locales, options = {}) {
      this.#locale = resolve(locales);
      options = Object(options);
      const style = option(options, 'style', ['decimal', 'percent', 'currency', 'unit'], 'decimal');
      const currency = options.currency === undefined ? undefined : String(options.currency).toUpperCase();
      if (style === 'currency' && currency === undefined) throw new TypeError('Currency code is required with currency style.');
      if (currency !== undefined && !/^[A-Z]{3}$/.test(currency)) throw new RangeError(`Invalid currency code : ${options.currency}`);
      const notation = option(options, 'notation', ['standard', 'scientific', 'engineering', 'compact'], 'standard');
      const usual = style === 'currency' ? (noMinorUnits.has(currency) ? 0 : threeMinorUnits.has(currency) ? 3 : 2) : undefined;
      const [low, high] = notation === 'compact' ? [0, 0] : usual !== undefined ? [usual, usual] : style === 'percent' ? [0, 0] : [0, 3];
      const min = digitsOption(options, 'minimumFractionDigits', 0, 100);
      const max = digitsOption(options, 'maximumFractionDigits', 0, 100);
      if (min !== undefined && max !== undefined && min > max) throw new RangeError('maximumFractionDigits value is out of range.');
      const minSignificant = digitsOption(options, 'minimumSignificantDigits', 1, 21);
      const maxSignificant = digitsOption(options, 'maximumSignificantDigits', minSignificant ?? 1, 21, minSignificant === undefined ? undefined : 21);
      this.#o = {
        style,
        currency,
        currencyDisplay: option(options, 'currencyDisplay', ['symbol', 'narrowSymbol', 'code', 'name'], 'symbol'),
        unit: options.unit,
        unitDisplay: option(options, 'unitDisplay', ['short', 'narrow', 'long'], 'short'),
        notation,
        compactDisplay: option(options, 'compactDisplay', ['short', 'long'], 'short'),
        useGrouping: options.useGrouping === undefined ? true : options.useGrouping === true || ['true', 'always', 'auto', 'min2'].includes(options.useGrouping),
        minGroup: options.useGrouping === 'always' ? 1 : options.useGrouping === 'min2' ? 2 : undefined,
        minimumIntegerDigits: digitsOption(options, 'minimumIntegerDigits', 1, 21, 1),
        minimumFractionDigits: min ?? (max === undefined ? low : Math.min(low, max)),
        maximumFractionDigits: max ?? Math.max(high, min ?? 0),
        minimumSignificantDigits: minSignificant ?? (maxSignificant === undefined ? undefined : 1),
        maximumSignificantDigits: maxSignificant,
        signDisplay: option(options, 'signDisplay', ['auto', 'never', 'always', 'exceptZero', 'negative'], 'auto'),
        roundingMode: options.roundingMode,
        explicit: min !== undefined || max !== undefined,
      };
    }
    get format() {
      const bound = (value) => this.formatToParts(value).map((p) => p.value).join('');
      return bound;
    }
    // #digits is the rounded number as [whole, fraction].
    #digits(text) {
      const o = this.#o;
      if (o.maximumSignificantDigits !== undefined) {
        const lead = text.replace('.', '').search(/[1-9]/);
        const magnitude = lead < 0 ? 1 : text.split('.')[0].replace(/^0$/, '').length || 1 - lead;
        let [whole, fraction] = roundDecimal(text, o.maximumSignificantDigits - magnitude);
        fraction = fraction.replace(/0+$/, '').padEnd(Math.max(0, o.minimumSignificantDigits - Math.max(magnitude, 0) + (magnitude < 0 ? -magnitude : 0)), '0');
        return [whole, fraction];
      }
      let [whole, fraction] = o.roundingMode === 'trunc' || o.roundingMode === 'floor'
        ? [text.split('.')[0], (text.split('.')[1] ?? '').slice(0, o.maximumFractionDigits)]
        : roundDecimal(text, o.maximumFractionDigits);
      fraction = fraction.replace(/0+$/, '').padEnd(o.minimumFractionDigits, '0');
      return [whole, fraction];
    }
    #group(whole) {
      const { data } = this.#locale;
      const min = this.#o.minGroup ?? data.minGroup;
      if (!this.#o.useGrouping || !data.group || whole.length < 3 + min) return [whole];
      const groups = [whole.slice(-3)];
      const size = data.indian ? 2 : 3;
      for (let end = whole.length - 3; end > 0; end -= size) groups.unshift(whole.slice(Math.max(0, end - size), end));
      return groups;
    }
    formatToParts(value) {
      const o = this.#o;
      const { data } = this.#locale;
      if (typeof value !== 'bigint') value = Number(value);
      const parts = [];
      const push = (type, text) => text && parts.push({ type, value: text });
      let suffix = '';
      let whole;
      let fraction = '';
      let exponent;
      if (typeof value === 'number' && !Number.isFinite(value)) {
        push(Number.isNaN(value) ? 'nan' : 'infinity', Number.isNaN(value) ? 'NaN' : '∞');
      } else {
        let text = decimalOf(value);
        if (o.style === 'percent') text = shift(text, 2);
        if (o.notation === 'compact') {
          let magnitude = text.split('.')[0].length - 1;
          const scale = (m) => {
            if (m < 3) return [text, ''];
            if (o.compactDisplay === 'long' && language(this.#locale) === 'en') {
              const thousands = Math.min(4, Math.floor(m / 3));
              return [shift(text, -3 * thousands), longCompact[thousands]];
            }
            const pattern = data.compact[Math.min(m, 12) - 3];
            const width = Number(/\{(\d)\}/.exec(pattern)[1]);
            const after = pattern.slice(pattern.indexOf('}') + 1).replace(/^\{\d\}/, '');
            return [shift(text, -(Math.min(m, 12) - (width - 1) - (pattern.includes('}{') ? Number(/\}\{(\d)\}/.exec(pattern)[1]) : 0))), after];
          };
          let [scaled, after] = scale(magnitude);
          const round = (t) => (o.explicit || o.maximumSignificantDigits !== undefined ? this.#digits(t) : roundDecimal(t, twoSignificant(t)));
          let [w, f] = round(scaled);
          if (w.length > scaled.split('.')[0].length && magnitude + 1 >= 3) {
            text = '1' + '0'.repeat(magnitude + 1);
            [scaled, after] = scale(magnitude + 1);
            [w, f] = round(scaled);
          }
          whole = w;
          fraction = o.explicit ? f : f.replace(/0+$/, '');
          suffix = after;
        } else if (o.notation === 'scientific' || o.notation === 'engineering') {
          exponent = Number(value) === 0 ? 0 : Math.floor(Math.log10(Math.abs(Number(value))));
          if (o.notation === 'engineering') exponent = Math.floor(exponent / 3) * 3;
          [whole, fraction] = this.#digits(shift(text, -exponent));
        } else [whole, fraction] = this.#digits(text);
        whole = whole.padStart(o.minimumIntegerDigits, '0');
        const groups = o.notation === 'compact' && whole.length < 5 ? [whole] : this.#group(whole);
        groups.forEach((g, i) => {
          if (i) push('group', data.group);
          push('integer', g);
        });
        if (fraction) {
          push('decimal', data.decimal);
          push('fraction', fraction);
        }
        if (exponent !== undefined) {
          push('exponentSeparator', 'E');
          if (exponent < 0) push('exponentMinusSign', '-');
          push('exponentInteger', String(Math.abs(exponent)));
        }
        if (suffix) {
          const m = /^(\s*)(.*)$/.exec(suffix);
          push('literal', m[1]);
          push('compact', m[2]);
        }
      }
      const wrapped = this.#wrap(parts, value);
      const zero = whole !== undefined && /^0*$/.test(whole + fraction);
      const negative = typeof value === 'bigint' ? value < 0n : value < 0 || Object.is(value, -0);
      const sign = {
        auto: negative ? '-' : '',
        negative: negative && !zero ? '-' : '',
        never: '',
        always: negative ? '-' : '+',
        exceptZero: zero ? '' : negative ? '-' : '+',
      }[o.signDisplay];
      if (sign) wrapped.unshift(sign === '-' ? { type: 'minusSign', value: data.minus } : { type: 'plusSign', value: '+' });
      return wrapped;
    }
    // #wrap adds the percent sign, the currency or the unit.
    #wrap(parts, value) {
      const o = this.#o;
      const { data } = this.#locale;
      const around = (pattern, mark, type, text) => {
        const [before, after] = pattern.split('#');
        const place = (piece) => {
          const i = piece.indexOf(mark);
          if (i < 0) return piece ? [{ type: 'literal', value: piece }] : [];
          return [piece.slice(0, i), null, piece.slice(i + mark.length)].flatMap((p) => (p === null ? [{ type, value: text }] : p ? [{ type: 'literal', value: p }] : []));
        };
        return [...place(before), ...parts, ...place(after)];
      };
      if (o.style === 'percent') return around(data.percent, '%', 'percentSign', '%');
      if (o.style === 'unit') {
        const n = Number(value);
        const units = { long: ` ${o.unit}${n === 1 ? '' : 's'}`, short: ` ${shortUnits[o.unit] ?? o.unit}`, narrow: shortUnits[o.unit] ?? o.unit };
        return [...parts, { type: 'unit', value: units[o.unitDisplay] }];
      }
      if (o.style !== 'currency') return parts;
      if (o.currencyDisplay === 'name') {
        const name = language(this.#locale) === 'en' && currencyNames[o.currency];
        return [...parts, { type: 'literal', value: ' ' }, { type: 'currency', value: name ? name[Number(value) === 1 ? 0 : 1] : o.currency }];
      }
      const symbol = o.currencyDisplay === 'code' ? o.currency : ((o.currencyDisplay === 'narrowSymbol' && narrow[o.currency]) || data.symbols[o.currency]) ?? o.currency;
      return around(/^[A-Z]{3}$/.test(symbol) ? data.currency : data.currencySymbol, '¤', 'currency', symbol);
    }
    resolvedOptions() {
      const { explicit, minGroup, ...rest } = this.#o;
      const result = { locale: this.#locale.asked, numberingSystem: 'latn' };
      for (const [k, v] of Object.entries(rest)) if (v !== undefined) result[k] = v;
      return result;
    }
  }
  // twoSignificant is the number of places that leaves two digits, or all of the whole.
  const twoSignificant = (text) => {
    const [whole, fraction = ''] = text.split('.');
    if (whole !== '0') return whole.length < 2 ? 1 : 0;
    const lead = fraction.search(/[1-9]/);
    return lead < 0 ? 0 : lead + 2;
  };
  const shortUnits = { year: 'yr', month: 'mth', week: 'wk', day: 'day', hour: 'hr', minute: 'min', second: 'sec', millisecond: 'ms', kilometer: 'km', meter: 'm', centimeter: 'cm', kilogram: 'kg', gram: 'g', liter: 'L', percent: '%', celsius: '°C', byte: 'byte', kilobyte: 'kB', megabyte: 'MB', gigabyte: 'GB', 'kilometer-per-hour': 'km/h' };
  // shift moves the decimal point of a number's text to the right.
  const shift = (text, by) => {
    let [whole, fraction = ''] = text.split('.');
    if (by >= 0) {
      fraction = fraction.padEnd(by, '0');
      whole += fraction.slice(0, by);
      fraction = fraction.slice(by);
    } else {
      whole = whole.padStart(1 - by, '0');
      fraction = whole.slice(by) + fraction;
      whole = whole.slice(0, by);
    }
    fraction = fraction.replace(/0+$/, '');
    return (whole.replace(/^0+(?=\d)/, '') || '0') + (fraction && '.' + fraction);
  };

  // ---- Dates.
  const american = /^(?:[ECMP][SD]T|AK[SD]T|HST)$/;
  const zoneNamesLong = {
    CET: 'Central European Standard Time', CEST: 'Central European Summer Time', GMT: 'Greenwich Mean Time', BST: 'British Summer Time',
    EST: 'Eastern Standard Time', EDT: 'Eastern Daylight Time', CST: 'Central Standard Time', CDT: 'Central Daylight Time',
    MST: 'Mountain Standard Time', MDT: 'Mountain Daylight Time', PST: 'Pacific Standard Time', PDT: 'Pacific Daylight Time',
    JST: 'Japan Standard Time', IST: 'India Standard Time', EET: 'Eastern European Standard Time', EEST: 'Eastern European Summer Time',
    WET: 'Western European Standard Time', WEST: 'Western European Summer Time', UTC: 'Coordinated Universal Time',
  };
  const offsetText = (minutes, long, mark = 'GMT') => {
    if (minutes === 0) return mark;
    const h = Math.floor(Math.abs(minutes) / 60);
    const m = Math.round(Math.abs(minutes) % 60);
    const sign = minutes < 0 ? '-' : '+';
    return long ? `${mark}${sign}${String(h).padStart(2, '0')}:${String(m).padStart(2, '0')}` : `${mark}${sign}${h}${m ? ':' + String(m).padStart(2, '0') : ''}`;
  };
  const utcNames = new Set(['UTC', 'Etc/UTC', 'Etc/GMT', 'GMT', 'Etc/UCT', 'Zulu', 'Etc/Zulu']);
  const zoneInfo = (name, ms) => {
    const m = /^([+-])(\d\d):?(\d\d)?$/.exec(name);
    if (m) return { minutes: (m[1] === '-' ? -1 : 1) * (Number(m[2]) * 60 + Number(m[3] ?? 0)), abbreviation: '' };
    return zoneAt(name, ms) ?? { minutes: 0, abbreviation: 'UTC' };
  };
  const zoneName = (locale, zone, ms, style) => {
    const { minutes, abbreviation } = zoneInfo(zone, ms);
    const lang = language(locale);
    if (style === 'shortOffset') return offsetText(minutes, false);
    if (style === 'longOffset') return offsetText(minutes, true);
    if (style.startsWith('long')) {
      if (utcNames.has(zone)) return 'Coordinated Universal Time';
      return (lang === 'en' && (!/^(?:CST|IST|BST)$/.test(abbreviation) || /^(?:America|Asia\/Kolkata|Asia\/Calcutta|Europe)/.test(zone)) && zoneNamesLong[abbreviation]) || offsetText(minutes, true);
    }
    if (utcNames.has(zone)) return 'UTC';
    if ((locale.tag === 'en-US' || locale.tag === 'en-CA') && american.test(abbreviation) && /^(?:America|US|Pacific\/Honolulu)/.test(zone)) return abbreviation;
    if (locale.tag === 'en-GB' && /^(?:GMT|BST|CES?T|EES?T|WES?T)$/.test(abbreviation) && zone.startsWith('Europe')) return abbreviation;
    if (lang === 'de' && /^CES?T$/.test(abbreviation)) return abbreviation === 'CET' ? 'MEZ' : 'MESZ';
    if ((lang === 'es' || lang === 'it' || lang === 'pl' || lang === 'sv' || lang === 'nb' || lang === 'da' || lang === 'cs') && /^CES?T$/.test(abbreviation)) return abbreviation;
    return offsetText(minutes, false, lang === 'fr' ? 'UTC' : 'GMT');
  };

  const fieldNames = ['weekday', 'era', 'year', 'month', 'day', 'dayPeriod', 'hour', 'minute', 'second', 'fractionalSecondDigits', 'timeZoneName'];
  const fieldTypes = { E: 'weekday', y: 'year', M: 'month', d: 'day', h: 'hour', m: 'minute', s: 'second', a: 'dayPeriod', z: 'timeZoneName' };
  const monthKinds = { numeric: 'n', '2-digit': 'n', short: 's', narrow: 's', long: 'l' };
  // defaults: what toLocaleString and its kin show when nothing is asked for.
  const withDefaults = (options, required, defaults) => {
    const o = { ...Object(options) };
    const has = (...names) => names.some((name) => o[name] !== undefined);
    let need = !has('dateStyle', 'timeStyle');
    if (need && (required === 'date' || required === 'any') && has('weekday', 'year', 'month', 'day')) need = false;
    if (need && (required === 'time' || required === 'any') && has('dayPeriod', 'hour', 'minute', 'second', 'fractionalSecondDigits')) need = false;
    if (need && (defaults === 'date' || defaults === 'all')) o.year = o.month = o.day = 'numeric';
    if (need && (defaults === 'time' || defaults === 'all')) o.hour = o.minute = o.second = 'numeric';
    return o;
  };

  class DateTimeFormat {
    #locale;
    #o;
    #pattern;
    constructor(locales, options) {
      const o = (this.#o = withDefaults(options, 'any', 'date'));
      const locale = (this.#locale = resolve(locales));
      if (o.timeZone !== undefined) {
        o.timeZone = String(o.timeZone);
        if (!/^[+-]\d\d(:?\d\d)?$/.test(o.timeZone) && !zoneExists(o.timeZone)) throw new RangeError(`Invalid time zone specified: ${o.timeZone}`);
      }
      o.zone = o.timeZone ?? 'UTC';
      if ((o.dateStyle || o.timeStyle) && fieldNames.some((name) => o[name] !== undefined)) throw new TypeError(`Can't set option ${fieldNames.find((n) => o[n] !== undefined)} when ${o.dateStyle ? 'dateStyle' : 'timeStyle'} is used`);
      option(o, 'dateStyle', ['full', 'long', 'medium', 'short']);
      option(o, 'timeStyle', ['full', 'long', 'medium', 'short']);
      option(o, 'month', ['numeric', '2-digit', 'short', 'long', 'narrow']);
      for (const name of ['year', 'day', 'hour', 'minute', 'second']) option(o, name, ['numeric', '2-digit']);
      option(o, 'weekday', ['long', 'short', 'narrow']);
      const own = locale.data.cycle;
      o.cycle = o.hour12 === undefined ? (o.hourCycle ?? own) : o.hour12 ? (own === 'h11' ? 'h11' : 'h12') : own === 'h12' ? 'h24' : 'h23';
      this.#pattern = this.#build();
    }
    #build() {
      const o = this.#o;
      const { data } = this.#locale;
      let date = '';
      let join;
      if (o.dateStyle) {
        date = data.styles[o.dateStyle];
        this.#o.monthStyle = o.dateStyle === 'medium' ? 'short' : 'long';
        this.#o.weekdayStyle = 'long';
        join = data.styleJoin[['short', 'medium', 'long', 'full'].indexOf(o.dateStyle)];
      } else {
        const kind = o.month ? monthKinds[o.month] : '';
        const key = (o.weekday ? 'E' : '') + (o.year ? 'y' : '') + kind + (o.day ? 'd' : '');
        date = key ? data.dates[key] : '';
        if (o.month === '2-digit') date = date.replace('{M1}', '{M2}');
        if (o.day === '2-digit') date = date.replace('{d1}', '{d2}');
        if (o.year === '2-digit') date = date.replace('{y}', '{y2}');
        o.monthStyle = o.month === 'narrow' ? 'narrow' : kind === 'l' ? 'long' : 'short';
        o.weekdayStyle = o.weekday;
        join = data.join[kind === 'l' ? (o.weekday === 'long' ? 3 : 2) : kind === 's' ? 1 : 0];
        if (o.era) date += ' {G}';
      }
      let time = '';
      const twelve = o.cycle === 'h12' || o.cycle === 'h11';
      if (o.timeStyle) {
        time = data.times[(twelve ? '12' : '24') + (o.timeStyle === 'short' ? 'hm' : 'hms')];
        if (o.timeStyle === 'long' || o.timeStyle === 'full') time += ' {z}';
        o.timeZoneName ??= o.timeStyle === 'full' ? 'long' : o.timeStyle === 'long' ? 'short' : undefined;
      } else {
        const key = (o.hour ? 'h' : '') + (o.minute ? 'm' : '') + (o.second ? 's' : '');
        if (o.hour) time = data.times[(twelve ? '12' : '24') + (key === 'hs' ? 'hms' : key)];
        else if (key === 'ms') time = data.times.ms;
        else if (key) time = `{${key}1}`;
        if (o.hour === '2-digit') time = time.replace('{h1}', '{h2}');
        if (o.fractionalSecondDigits) time = time ? time.replace(/\{s(\d)\}/, `{s$1}${data.decimal}{S}`) : '{S}';
        if (o.timeZoneName) {
          if (time) time += ' {z}';
          else date += date ? ', {z}' : '{z}';
        }
      }
      return date && time ? date + (join ?? ', ') + time : date + time;
    }
    get format() {
      return (date) => this.formatToParts(date).map((p) => p.value).join('');
    }
    formatToParts(date) {
      const ms = date === undefined ? Date.now() : luxon.DateTime.isDateTime(date) ? +date : Number(date);
      if (!Number.isFinite(ms) || Math.abs(ms) > 8.64e15) throw new RangeError('Invalid time value');
      const o = this.#o;
      const { data } = this.#locale;
      const local = new Date(ms + zoneInfo(o.zone, ms).minutes * 60000);
      const hours = local.getUTCHours();
      const year = local.getUTCFullYear();
      const pad = (n, width) => (width === '2' ? String(n).padStart(2, '0').slice(-2) : String(n));
      const values = {
        y: (w) => (w === '2' ? pad(Math.abs(year) % 100, '2') : String(year > 0 ? year : 1 - year)),
        M: (w) => {
          if (w) return pad(local.getUTCMonth() + 1, w);
          const inDate = o.day || o.dateStyle ? data.monthsInDate?.[o.monthStyle] : undefined;
          return (inDate ?? data.months[o.monthStyle])[local.getUTCMonth()];
        },
        d: (w) => pad(local.getUTCDate(), w),
        E: () => ((o.weekdayStyle === 'short' && o.day && data.weekdaysInDate) || data.weekdays[o.weekdayStyle ?? 'long'])[local.getUTCDay()],
        h: (w) => pad({ h11: hours % 12, h12: hours % 12 || 12, h23: hours, h24: hours || 24 }[o.cycle], w),
        m: (w) => pad(local.getUTCMinutes(), w),
        s: (w) => pad(local.getUTCSeconds(), w),
        S: () => String(local.getUTCMilliseconds()).padStart(3, '0').slice(0, o.fractionalSecondDigits),
        a: () => data.periods[hours < 12 ? 0 : 1],
        z: () => zoneName(this.#locale, o.zone, ms, o.timeZoneName ?? 'short'),
        G: () => (year > 0 ? data.era : 'BC'),
      };
      const types = { ...fieldTypes, S: 'fractionalSecond', G: 'era' };
      const parts = [];
      const pattern = /\{([A-Za-z])(\d?)\}|[^{]+/g;
      for (const [text, letter, width] of this.#pattern.matchAll(pattern)) {
        if (letter) parts.push({ type: types[letter], value: values[letter](width) });
        else parts.push({ type: 'literal', value: text });
      }
      return parts;
    }
    formatRange(a, b) {
      return `${this.format(a)} – ${this.format(b)}`;
    }
    resolvedOptions() {
      const { zone, cycle, monthStyle, weekdayStyle, timeZone, ...rest } = this.#o;
      const result = { locale: this.#locale.asked, calendar: 'gregory', numberingSystem: 'latn', timeZone: zone };
      if (rest.hour || rest.timeStyle) Object.assign(result, { hourCycle: cycle, hour12: cycle === 'h12' || cycle === 'h11' });
      for (const [k, v] of Object.entries(rest)) if (v !== undefined) result[k] = v;
      return result;
    }
  }

  // ---- Relative times and lists.
  class RelativeTimeFormat {
    #locale;
    #style;
    #numeric;
    constructor(locales, options = {}) {
      this.#locale = resolve(locales);
      this.#style = option(options, 'style', ['long', 'short', 'narrow'], 'long');
      this.#numeric = option(options, 'numeric', ['always', 'auto'], 'always');
    }
    format(value, unit) {
      const name = String(unit).replace(/s$/, '');
      const { data } = this.#locale;
      const table = data.relative[this.#style === 'long' ? 'long' : 'short'][name];
      if (!table) throw new RangeError(`Invalid unit argument for format() '${unit}'`);
      const n = Number(value);
      if (this.#numeric === 'auto' && data.auto[name][n + 2]) return data.auto[name][n + 2];
      const past = n < 0 || Object.is(n, -0);
      const category = plural(this.#locale, n);
      const i = category === 'one' ? 0 : category === 'few' || category === 'two' ? 1 : 2;
      return table[i + (past ? 3 : 0)].replace('#', new NumberFormat(this.#locale.asked).format(Math.abs(n)));
    }
    formatToParts(value, unit) {
      return [{ type: 'literal', value: this.format(value, unit) }];
    }
    resolvedOptions() {
      return { locale: this.#locale.asked, style: this.#style, numeric: this.#numeric, numberingSystem: 'latn' };
    }
  }
  class ListFormat {
    #locale;
    #type;
    #style;
    constructor(locales, options = {}) {
      this.#locale = resolve(locales);
      this.#type = option(options, 'type', ['conjunction', 'disjunction', 'unit'], 'conjunction');
      this.#style = option(options, 'style', ['long', 'short', 'narrow'], 'long');
    }
    format(list) {
      const items = [...list];
      const { data } = this.#locale;
      const [pair, middle, last] =
        this.#type === 'conjunction' && this.#style !== 'long' && language(this.#locale) === 'en'
          ? this.#style === 'narrow' ? [', ', ', ', ', '] : [' & ', ', ', ', & ']
          : this.#type === 'unit' ? (this.#style === 'narrow' ? [' ', ' ', ' '] : [', ', ', ', ', ']) : this.#type === 'disjunction' ? [data.listOr[0], ', ', data.listOr[2]] : data.list;
      if (items.length < 2) return items.join('');
      if (items.length === 2) return items.join(pair);
      return items.slice(0, -1).join(middle) + last + items.at(-1);
    }
    formatToParts(list) {
      return [{ type: 'literal', value: this.format(list) }];
    }
    resolvedOptions() {
      return { locale: this.#locale.asked, type: this.#type, style: this.#style };
    }
  }

  // ---- Comparing: letters first, then accents, then case.
  const weight = (c) => (/\p{L}/u.test(c) ? 3 : /\d/.test(c) ? 2 : /\s/.test(c) ? 0 : 1);
  const compareBy = (a, b, fold) => {
    const [x, y] = [[...fold(a)], [...fold(b)]];
    for (let i = 0; i < Math.min(x.length, y.length); i++) {
      if (x[i] === y[i]) continue;
      return weight(x[i]) - weight(y[i]) || (x[i] < y[i] ? -1 : 1);
    }
    return x.length - y.length;
  };
  const bare = (text) => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
  const compare = (a, b, { sensitivity = 'variant', numeric = false } = {}) => {
    if (numeric) {
      const [x, y] = [a, b].map((t) => t.split(/(\d+)/));
      for (let i = 0; i < Math.max(x.length, y.length); i++) {
        if (x[i] === undefined || y[i] === undefined) return x[i] === undefined ? -1 : 1;
        const result = i % 2 ? Math.sign(Number(x[i]) - Number(y[i])) : compare(x[i], y[i], { sensitivity });
        if (result) return result;
      }
      return 0;
    }
    let result = compareBy(a, b, bare);
    if (!result && (sensitivity === 'variant' || sensitivity === 'accent')) result = compareBy(a, b, (t) => t.normalize('NFD').toLowerCase());
    // Lower case comes before upper case.
    if (!result && (sensitivity === 'variant' || sensitivity === 'case')) result = compareBy(b, a, (t) => (sensitivity === 'case' ? t.normalize('NFD').replace(/\p{M}/gu, '') : t.normalize('NFD')));
    return Math.sign(result);
  };
  class Collator {
    #locale;
    #o;
    constructor(locales, options = {}) {
      this.#locale = resolve(locales);
      this.#o = { ...options };
    }
    get compare() {
      return (a, b) => compare(String(a), String(b), this.#o);
    }
    resolvedOptions() {
      return { locale: this.#locale.asked, usage: 'sort', sensitivity: 'variant', numeric: false, caseFirst: 'false', ...this.#o };
    }
  }

  class Locale {
    constructor(tag) {
      this.baseName = canonical(tag);
      [this.language] = this.baseName.split('-');
      this.region = this.baseName.split('-').find((p, i) => i && /^(?:[A-Z]{2}|\d{3})$/.test(p));
    }
    toString() {
      return this.baseName;
    }
    maximize() {
      return this;
    }
    minimize() {
      return new Locale(this.language);
    }
  }

  const Intl = { getCanonicalLocales: (list) => (list === undefined ? [] : [].concat(list)).map(canonical), supportedValuesOf: () => [] };
  for (const type of [NumberFormat, DateTimeFormat, PluralRules, RelativeTimeFormat, ListFormat, Collator, Locale]) {
    if (type !== Locale) define(type, 'supportedLocalesOf', supportedLocalesOf);
    // Callable without new, as the standard has it for these.
    define(Intl, type.name, type === NumberFormat || type === DateTimeFormat || type === Collator ? callable(type) : type);
  }
  function callable(type) {
    const f = function (locales, options) {
      return new type(locales, options);
    };
    f.prototype = type.prototype;
    define(f, 'supportedLocalesOf', supportedLocalesOf);
    define(f, 'name', type.name);
    return f;
  }
  define(globalThis, 'Intl', Intl);

  // ---- toLocaleString and kin.
  const formatters = new Map();
  const formatter = (type, locales, options) => {
    let key;
    try {
      key = type.name + JSON.stringify([locales, options]);
    } catch {
      return new type(locales, options);
    }
    let f = formatters.get(key);
    if (!f) {
      if (formatters.size > 100) formatters.clear();
      formatters.set(key, (f = new type(locales, options)));
    }
    return f;
  };
  define(Number.prototype, 'toLocaleString', function toLocaleString(locales, options) {
    return formatter(NumberFormat, locales, options).format(Number(this));
  });
  define(BigInt.prototype, 'toLocaleString', function toLocaleString(locales, options) {
    return formatter(NumberFormat, locales, options).format(BigInt(this));
  });
  const dateMethods = { toLocaleString: ['any', 'all'], toLocaleDateString: ['date', 'date'], toLocaleTimeString: ['time', 'time'] };
  for (const [name, [required, defaults]] of Object.entries(dateMethods)) {
    define(
      Date.prototype,
      name,
      {
        [name](locales, options) {
          const ms = this.getTime();
          if (Number.isNaN(ms)) return 'Invalid Date';
          return formatter(DateTimeFormat, locales, withDefaults(options, required, defaults)).format(ms);
        },
      }[name],
    );
  }
  define(String.prototype, 'localeCompare', function localeCompare(other, _, options) {
    return compare(String(this), String(other), options);
  });

  // ---- Luxon asks for the names of zones; its own way goes through the parts.
  luxon.IANAZone.prototype.offsetName = function (ts, { format, locale }) {
    return zoneName(resolve(locale), this.name, ts, format === 'long' ? 'long' : 'short');
  };
})();
