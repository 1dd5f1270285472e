// Runs a query of Merge over its inputs. The data come in the variable sql; AlaSQL is put in
// place of the word below, in a function whose parameters hide what it would look for elsewhere.
const module = { exports: {} };
(function (module, exports, require, process, define, self, window, document, importScripts) {
  ALASQL
})(module, module.exports);
const alasql = module.exports;
const database = new alasql.Database('reprise');
sql.inputs.forEach((rows, i) => {
  const name = 'input' + (i + 1);
  database.exec('CREATE TABLE ' + name);
  database.tables[name].data = rows;
});
const answer = database.exec(sql.query);
// Several statements answer with a list of their answers, of which the last counts.
const several = alasql.parse(sql.query).statements.length > 1;
const rows = several ? answer[answer.length - 1] : answer;
if (typeof rows === 'number') return { statement: true };
if (!Array.isArray(rows)) throw new Error('it gives no rows at once; only the tables of the inputs can be read');
return { rows: rows.map((row) => (row !== null && typeof row === 'object' && !Array.isArray(row) ? row : { value: row })) };
