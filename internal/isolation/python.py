# Runs one script for the process at the other end of the pipes 3 and 4, in the frames of
# frame.go. The script finds what a Code node offers to Python.
import _thread
import ast
import json
import os
import select
import struct
import sys

SCRIPT = '<code>'
PORTION = 500
MAX_LINES, MAX_LOGGED = 1000, 262144


class Pipe:
    """The frames to and from the parent."""

    def __init__(self):
        self.jobs, self.reply = os.fdopen(3, 'rb'), os.fdopen(4, 'wb')

    def send(self, kind, *parts):
        raw = [kind, bytes([len(parts)])]
        for part in parts:
            part = part.encode('utf-8', 'replace')
            raw += (struct.pack('<I', len(part)), part)
        self.reply.write(b''.join(raw))
        self.reply.flush()

    def receive(self):
        head = self.jobs.read(2)
        if len(head) < 2:
            os._exit(0)
        parts = []
        for _ in range(head[1]):
            size, = struct.unpack('<I', self.jobs.read(4))
            parts.append(self.jobs.read(size).decode('utf-8', 'replace'))
        return head[:1], parts

    def ask(self, op, arg):
        """The parent's answer as a text; None is undefined."""
        self.send(b'h', op, arg)
        kind, parts = self.receive()
        if kind == b'v':
            return parts[0]
        if kind == b'x':
            raise refusal(parts[0])
        return None

    def fetch(self, op, **question):
        text = self.ask(op, json.dumps(question))
        return None if text is None else json.loads(text, object_hook=Object)


class ScriptError(Exception):
    """An error of the workflow and not of the code."""

    description = type = None


def refusal(text):
    try:
        fields = json.loads(text)
        error = ScriptError(fields['message'])
        error.description, error.type = fields.get('description'), fields.get('type')
    except (ValueError, KeyError, TypeError):
        error = ScriptError(text)
    return error


def watch():
    """Ends this process with its parent, whatever the script does."""
    poll = select.poll()
    poll.register(3, 0)
    poll.poll()
    os._exit(0)


class Object(dict):
    """A dict whose keys are attributes too, as in n8n's older Python."""

    __slots__ = ()

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value

    def __delattr__(self, name):
        del self[name]

    def to_py(self, **_):
        return self


class List(list):
    def to_py(self, **_):
        return self


class Console:
    """Standard output: whole lines go to the parent."""

    encoding, errors, closed = 'utf-8', 'replace', False

    def __init__(self, pipe):
        self.pipe, self.rest, self.lines, self.size = pipe, '', 0, 0

    def write(self, text):
        *lines, self.rest = (self.rest + str(text)).split('\n')
        self.put(lines)
        if len(self.rest) > MAX_LOGGED:
            self.end()
        return len(text)

    def put(self, lines):
        kept = []
        for line in lines:
            if self.lines >= MAX_LINES or self.size > MAX_LOGGED:
                break
            line = line[:MAX_LOGGED]
            kept.append(line)
            self.lines += 1
            self.size += len(line)
            if self.lines == MAX_LINES or self.size > MAX_LOGGED:
                kept.append('… what follows is not kept')
        if kept:
            self.pipe.ask('log', json.dumps(kept))

    def end(self):
        rest, self.rest = self.rest, ''
        if rest:
            self.put([rest])

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        pass

    def isatty(self):
        return False

    def writable(self):
        return True


class Node:
    """What _("name") and _node["name"] say of another node."""

    def __init__(self, run, name):
        self._run, self._name = run, name
        run.fetch('exists', node=name)

    def _items(self, which, branch, index):
        return self._run.once(('node', self._name, which, branch, index), lambda: self._run.fetch(
            'node', node=self._name, which=which, branch=-1 if branch is None else branch, run=-1 if index is None else index))

    def all(self, branch=None, index=None):
        return List(self._items('all', branch, index) or [])

    def first(self, branch=None, index=None):
        return self._items('first', branch, index)

    def last(self, branch=None, index=None):
        return self._items('last', branch, index)

    def itemMatching(self, index):
        return self._run.once(('paired', self._name, index), lambda: self._run.fetch('paired', node=self._name, item=index))

    @property
    def item(self):
        return self.itemMatching(self._run.index)

    @property
    def _legacy(self):
        at = self._run.index
        return self._run.once(('legacy', self._name, at), lambda: self._run.fetch('legacy', node=self._name, item=at))

    @property
    def json(self):
        return self._legacy['json']

    @property
    def binary(self):
        return self._legacy.get('binary', Object())

    @property
    def _info(self):
        return self._run.once(('info', self._name), lambda: self._run.fetch('info', node=self._name))

    @property
    def params(self):
        return self._info['parameters']

    parameter = params

    @property
    def isExecuted(self):
        return self._info['runs'] > 0


class Nodes:
    def __init__(self, run):
        self._run = run

    def __getitem__(self, name):
        return Node(self._run, name)

    __getattr__ = __getitem__


class Input:
    """_input."""

    def __init__(self, run):
        self._run = run

    def all(self):
        return self._run.all('all')

    def first(self):
        items = self._run.all('first')
        return items[0] if items else None

    def last(self):
        items = self._run.all('last')
        return items[-1] if items else None

    @property
    def item(self):
        return self._run.item()

    @property
    def params(self):
        name = self._run.scope.get('previous', {}).get('name')
        return Node(self._run, name).params if name else Object()


class Run:
    """One script."""

    def __init__(self, pipe, item, scope, variables):
        self.pipe, self.fetch = pipe, pipe.fetch
        self.each, self.index = item != -1, max(item, 0)
        self.scope, self.variables = scope, variables
        self.known, self.portion, self.begin = {}, [], 0
        self.static = {}

    def once(self, key, make):
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def all(self, name):
        if self.each:
            error = ScriptError("Can't use .%s() here" % name)
            error.description = "This is only available in 'Run Once for All Items' mode"
            raise error
        return self.once('input', lambda: List(self.fetch('input') or []))

    def item(self):
        if not self.each:
            items = self.all('all')
            return items[0] if items else None
        if not self.begin <= self.index < self.begin + len(self.portion):
            self.begin = self.index
            self.portion = self.fetch('items', item=self.index, end=self.index + PORTION) or []
        return self.portion[0 if not self.portion else self.index - self.begin] if self.portion else None

    def now(self):
        import datetime
        import zoneinfo

        class Moment(datetime.datetime):
            def toISO(self):
                return self.isoformat(timespec='milliseconds')

            def toISODate(self):
                return self.date().isoformat()

        try:
            zone = zoneinfo.ZoneInfo(self.scope.get('zone') or 'UTC')
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            zone = datetime.timezone.utc
        at = self.scope.get('now')
        return Moment.now(zone) if at is None else Moment.fromtimestamp(at / 1000, zone)

    def names(self):
        """The variables of a Code node, each made when the script names it."""
        scope = self.scope
        no_jmespath = 'JMESPath is not available in Python here; use a comprehension'

        def jmespath(*_):
            raise ScriptError(no_jmespath)

        return {
            '_': lambda: lambda name: Node(self, name),
            '_node': lambda: Nodes(self),
            '_input': lambda: Input(self),
            '_execution': lambda: scope['execution'],
            '_workflow': lambda: scope['workflow'],
            '_prevNode': lambda: scope.get('previous', Object()),
            '_runIndex': lambda: scope.get('runIndex', 0),
            '_mode': lambda: scope['execution']['mode'],
            '_parameter': lambda: self.fetch('parameters') or Object(),
            '_vars': lambda: self.fetch('vars') or Object(),
            '_env': lambda: self.fetch('env') or Object(),
            '_now': self.now,
            '_today': lambda: self.now().replace(hour=0, minute=0, second=0, microsecond=0),
            '_jmespath': lambda: jmespath,
            '_getWorkflowStaticData': lambda: lambda kind='global': self.static.setdefault(kind, Object()),
        }

    def globals(self, used):
        found = {'__name__': '__code__', '__builtins__': __builtins__}
        for name, make in self.names().items():
            if name in used:
                found[name] = make()
        if '_items' in used and not self.each:
            found['_items'] = self.all('all')
        found.update(self.variables)
        return found

    def set_item(self, found, used):
        if used & {'_item', '_json', '_binary'}:
            item = self.item()
            found['_item'] = item
            found['_json'] = item['json'] if item else None
            found['_binary'] = item.get('binary', Object()) if item else None
        found['_itemIndex'] = self.index


def compiled(source):
    """The script as a function, with the lines it was written in, and the names it uses."""
    tree = ast.parse(source, SCRIPT)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    waits = awaits(tree.body)
    shell = ast.parse('async def code(): pass' if waits else 'def code(): pass')
    function = shell.body[0]
    function.body = tree.body or [ast.Pass()]
    ast.fix_missing_locations(shell)
    code = compile(shell, SCRIPT, 'exec', dont_inherit=True)
    return code, used, waits


def awaits(body):
    queue = list(body)
    while queue:
        node = queue.pop()
        if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            queue.extend(ast.iter_child_nodes(node))
    return False


KINDS = [(bool, 'boolean'), ((int, float), 'number'), (str, 'string'), ((list, tuple), 'array'), (dict, 'object')]


def encode(value):
    if value is None:
        return 'vnull null'
    for types_, kind in KINDS:
        if isinstance(value, types_):
            break
    else:
        kind = 'function' if callable(value) else 'object'
    try:
        text = json.dumps(value, default=plain, allow_nan=False, ensure_ascii=False, separators=(',', ':'))
    except ValueError:
        text = json.dumps(finite(value), default=plain, ensure_ascii=False, separators=(',', ':'))
    return 'v%s %s' % (kind, text)


def plain(value):
    """What JSON does not know."""
    if isinstance(value, (set, frozenset)):
        return list(value)
    return value.isoformat() if hasattr(value, 'isoformat') else str(value)


def finite(value):
    """A copy in which what is no JSON number is null."""
    if isinstance(value, dict):
        return {key: finite(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    if isinstance(value, float) and (value != value or value in (float('inf'), float('-inf'))):
        return None
    return value


def explain(error, each, index):
    """'m' for out of memory, or 'e' and the error as JSON."""
    if isinstance(error, MemoryError):
        return 'm'
    own = isinstance(error, ScriptError)
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SCRIPT:
            line = trace.tb_lineno
        trace = trace.tb_next
    try:
        message = str(error)
    except Exception:
        message = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename == SCRIPT:
        message, line = error.msg, error.lineno
    if line is not None:
        place = '[line %d, for item %d]' % (line, index) if own and each else '[line %d]' % line
        message = (message + ' ' + place).strip()
    fields = {'message': message or type(error).__name__}
    if own:
        fields.update(description=error.description, type=error.type)
    elif type(error) is not Exception:
        fields['description'] = type(error).__name__
    return 'e' + json.dumps({key: value for key, value in fields.items() if value is not None})


def caller(code, found, waits):
    """A function that calls the script."""
    exec(code, found)
    function = found.pop('code')
    if not waits:
        return function
    import asyncio
    loop = asyncio.new_event_loop()
    return lambda: loop.run_until_complete(function())


def perform(run, code, used, waits, item):
    """What the script returns; with item -2 it is handed over item by item."""
    found = run.globals(used)
    call = caller(code, found, waits)
    if item != -2:
        run.set_item(found, used)
        return encode(call())
    info, results = run.scope.get('code', {}), []
    for run.index in range(info.get('items', 0)):
        try:
            run.set_item(found, used)
            result = encode(call())
        except BaseException as error:
            result = explain(error, True, run.index)
        results.append(result)
        stop = result == 'm' or result[0] == 'e' and not info.get('goOn')
        if stop or len(results) == PORTION:
            run.pipe.ask('each', '\n'.join(results))
            results = []
        if stop:
            break
    if results:
        run.pipe.ask('each', '\n'.join(results))
    return 'vnull '


def main():
    pipe = Pipe()
    _thread.start_new_thread(watch, ())
    pipe.send(b'R', sys.argv[1] if len(sys.argv) > 1 else '')
    sys.argv = ['']
    _, (source, item, variables, scope, _) = pipe.receive()
    item = int(item)
    console = sys.stdout = sys.stderr = Console(pipe)
    try:
        run = Run(pipe, item, json.loads(scope, object_hook=Object), json.loads(variables, object_hook=Object))
        try:
            code, used, waits = compiled(source)
        except (SyntaxError, ValueError, RecursionError) as error:
            reply = explain(error, False, 0)
            if item == -2 and run.scope.get('code', {}).get('items'):
                pipe.ask('each', reply)
                reply = 'vnull '
        else:
            reply = perform(run, code, used, waits, item)
    except BaseException as error:
        reply = explain(error, item != -1, max(item, 0))
    console.end()
    pipe.send(b'd', reply)
    os._exit(0)


main()
