"""Random device selectors with types: most of them compile, about half of what compiles can fail when it runs.

Used for comparing with the real engine (tests marked `oracle`), and for properties that need expressions.
"""

from __future__ import annotations

import random
from typing import Any

DRIVER = "gpu.example.com"

DEVICE: dict[str, Any] = {
    "driver": DRIVER,
    "attributes": {
        "model": {"string": "A100-SXM4-80GB"},
        "index": {"int": 3},
        "numa": {"int": -1},
        "mig": {"bool": False},
        "healthy": {"bool": True},
        "driverVersion": {"version": "550.54.15"},
        "cuda": {"version": "12.4.0-rc.1+build.5"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
        "other.example.com/rack": {"string": "r12"},
        "big": {"int": 9007199254740993},
        "min": {"int": -(2**63)},
        "max": {"int": 2**63 - 1},
        "empty": {"string": ""},
        "uni": {"string": "héllo世界"},
        "list.example.com/ints": {"ints": [1, 3, 5]},
        "list.example.com/unsorted": {"ints": [5, 1, 3, 1]},
        "list.example.com/strs": {"strings": ["a", "b", "c"]},
        "list.example.com/bools": {"bools": [True, False]},
        "list.example.com/vers": {"versions": ["1.0.0", "1.2.3", "2.0.0-alpha"]},
        "list.example.com/none": {"strings": []},
    },
    "capacity": {
        "memory": {"value": "80Gi"},
        "share": {"value": "1500m"},
        "other.example.com/bandwidth": {"value": "900G"},
        "tiny": {"value": "1n"},
        "neg": {"value": "-5"},
        "zero": {"value": "0"},
        "huge": {"value": "10E"},
        "half": {"value": "0.5Gi"},
    },
    "allowMultipleAllocations": True,
}

_SCALARS = ["int", "uint", "double", "string", "bool", "bytes", "quantity", "semver", "duration", "timestamp"]
_ORDERED = ["int", "uint", "double", "string", "bool", "bytes", "duration", "timestamp"]
_NAMES = ["x", "y", "z", "k", "v"]


class Generator:
    """Makes expressions from one random source."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        # Variables in scope, with their types.
        self.scope: list[tuple[str, str]] = []

    def selector(self) -> str:
        """An expression of type bool, or now and then of type dyn or of another one."""
        kind = self.rng.choices(["bool", "dyn", self.scalar()], [40, 2, 1])[0]
        return self.expression(kind, self.rng.randint(1, 5))

    def scalar(self) -> str:
        return self.rng.choice(_SCALARS)

    def expression(self, kind: str, depth: int) -> str:
        """An expression that should have a type: a scalar, dyn, list<T>, map<T> (string keys), optional<T>."""
        rng = self.rng
        if rng.random() < 0.02:
            # Something of another type: the checker or the run time has to say so.
            kind = self.scalar()
        inside = [name for name, its in self.scope if its == kind]
        if inside and rng.random() < 0.35:
            return rng.choice(inside)
        if depth <= 0:
            return self.leaf(kind)
        if rng.random() < 0.12:
            return self.general(kind, depth)
        base, _, rest = kind.partition("<")
        return str(getattr(self, f"_{base}")(depth, *([rest[:-1]] if rest else [])))

    def general(self, kind: str, depth: int) -> str:
        """What works for every type."""
        rng = self.rng
        match rng.randrange(7):
            case 0:
                return f"({self.expression('bool', depth - 1)} ? {self.expression(kind, depth - 1)} : {self.expression(kind, depth - 1)})"
            case 1:
                return f"[{self.expression(kind, depth - 1)}, {self.expression(kind, depth - 2)}][{rng.choice(['0', '1', '2', '1u'])}]"
            case 2:
                return f'{{"a": {self.expression(kind, depth - 1)}}}{rng.choice([".a", chr(91) + chr(34) + "a" + chr(34) + chr(93), ".b"])}'
            case 3:
                name = rng.choice(_NAMES)
                bound = rng.choice([self.scalar(), "dyn"])
                value = self.expression(bound, depth - 1)
                return f"cel.bind({name}, {value}, {self.within([(name, bound)], kind, depth - 1)})"
            case 4:
                return f"{self.expression(f'optional<{kind}>', depth - 1)}.orValue({self.expression(kind, depth - 1)})"
            case 5:
                return f"{self.expression(f'optional<{kind}>', depth - 1)}.value()"
            case _:
                return self.leaf(kind)

    def within(self, names: list[tuple[str, str]], kind: str, depth: int) -> str:
        """An expression in which more names are known."""
        hidden = {name for name, _ in names}
        before = self.scope
        self.scope = [one for one in self.scope if one[0] not in hidden] + names
        text = self.expression(kind, depth)
        self.scope = before
        return text

    # --- leaves ------------------------------------------------------------------------------------------------------

    def leaf(self, kind: str) -> str:
        rng = self.rng
        base, _, rest = kind.partition("<")
        inner = rest[:-1]
        match base:
            case "int":
                return rng.choice(
                    ["0", "1", "2", "3", "-1", "7", "9223372036854775807", "-9223372036854775808", "0x1F", "100"]
                )
            case "uint":
                return rng.choice(["0u", "1u", "3u", "18446744073709551615u", "0xFu"])
            case "double":
                return rng.choice(
                    ["0.0", "1.0", "1.5", "-2.5", "3.0", "1e10", "9223372036854775807.0", "1e-7", "1e300"]
                )
            case "bool":
                return rng.choice(["true", "false"])
            case "string":
                return rng.choice(
                    ['""', '"a"', '"b"', '"abc"', '"A100-SXM4-80GB"', '"A100"', '"r12"', '"h\\u00e9llo世界"', "'x y'",
                     '"1"', '"12"', '"-"', '"1.2.3"', '"1Gi"', '"true"', '"gpu.example.com"', 'r"\\d+"', '"a,b,c"', "device.driver"]
                )  # fmt: skip
            case "bytes":
                return rng.choice(['b""', 'b"abc"', 'b"\\xff"', 'b"é"'])
            case "quantity":
                return rng.choice([f'quantity("{self.quantity()}")', self.capacity(), self.capacity()])
            case "semver":
                return f'semver("{self.version()}")'
            case "duration":
                return f'duration("{rng.choice(["0s", "1s", "90m", "-1h", "1h30m1.5s", "100ms", "1ns", "9999h"])}")'
            case "timestamp":
                return f'timestamp("{rng.choice(["2021-01-01T00:00:00Z", "1970-01-01T00:00:01.5Z", "2024-02-29T23:59:59+02:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"])}")'
            case "dyn":
                return rng.choice([self.attribute(), self.attribute(), f"dyn({self.leaf(self.scalar())})"])
            case "list":
                return "[]" if rng.random() < 0.3 else f"[{self.leaf(inner)}]"
            case "map":
                return "{}" if rng.random() < 0.3 else f'{{"a": {self.leaf(inner)}}}'
            case _:
                return "optional.none()" if rng.random() < 0.4 else f"optional.of({self.leaf(inner)})"

    def quantity(self) -> str:
        return self.rng.choice(
            [
                "1",
                "0",
                "1Gi",
                "1.5Gi",
                "80Gi",
                "1500m",
                "-5",
                "1e3",
                "0.5Ki",
                "10E",
                "900G",
                "1n",
                "12345678901234567890",
                "0.1",
            ]
        )

    def version(self) -> str:
        return self.rng.choice(
            [
                "1.0.0",
                "550.54.15",
                "12.4.0-rc.1",
                "12.4.0-rc.1+x",
                "1.2.3-alpha.1",
                "1.2.3-alpha.beta",
                "0.0.0",
                "v1.0",
                "1.2",
            ]
        )

    def attribute(self) -> str:
        rng = self.rng
        domain, names = rng.choice(
            [
                (DRIVER, ["model", "index", "numa", "mig", "healthy", "driverVersion", "cuda", "big", "min", "max", "empty", "uni", "nope"]),
                ("list.example.com", ["ints", "unsorted", "strs", "bools", "vers", "none", "nope"]),
                ("other.example.com", ["rack", "nope"]),
                ("unknown.example.com", ["nope"]),
            ]
        )  # fmt: skip
        name = rng.choice(names)
        return f'device.attributes["{domain}"]' + rng.choice([f".{name}", f'["{name}"]', f".{name}"])

    def capacity(self) -> str:
        rng = self.rng
        name = rng.choice(["memory", "share", "tiny", "neg", "zero", "huge", "half", "nope"])
        return rng.choice(
            [
                f'device.capacity["{DRIVER}"].{name}',
                f'device.capacity["{DRIVER}"]["{name}"]',
                'device.capacity["other.example.com"].bandwidth',
            ]
        )

    # --- by type -----------------------------------------------------------------------------------------------------

    def _bool(self, depth: int) -> str:
        rng = self.rng
        below = depth - 1

        def of(kind: str) -> str:
            return self.expression(kind, below)

        one = rng.choice([*_SCALARS, "dyn", "list<int>", "list<dyn>", "map<int>", "optional<int>"])
        match rng.randrange(30):
            case 0 | 1 | 2:
                return f"({of('bool')} {rng.choice(['&&', '||'])} {of('bool')})"
            case 3:
                return f"!{of('bool')}"
            case 4 | 5:
                return f"({of(one)} {rng.choice(['==', '!='])} {of(one)})"
            case 6 | 7:
                return f"({of('dyn')} {rng.choice(['==', '!='])} {of(rng.choice([*_SCALARS, 'dyn', 'list<int>']))})"
            case 8:
                return f"({of(one)} == {of('dyn')})"
            case 9 | 10:
                kind = rng.choice(_ORDERED)
                return f"({of(kind)} {rng.choice(['<', '<=', '>', '>='])} {of(rng.choice([kind, 'dyn']))})"
            case 11:
                numbers = ["int", "uint", "double"]
                return f"({of(rng.choice(numbers))} {rng.choice(['<', '<=', '>', '>='])} {of(rng.choice(numbers))})"
            case 12:
                kind = rng.choice(_SCALARS)
                return f"({of(rng.choice([kind, 'dyn']))} in {of(f'list<{kind}>')})"
            case 13:
                return f"({of(rng.choice(['string', 'dyn']))} in {of('map<int>')})"
            case 14:
                return f"({of(one)} in {of('dyn')})"
            case 15:
                return f"{of(rng.choice(['string', 'dyn']))}.{rng.choice(['startsWith', 'endsWith', 'contains'])}({of('string')})"
            case 16:
                return f"{of(rng.choice(['string', 'dyn']))}.matches({self.pattern()})"
            case 17:
                return f"has({self.attribute_or_capacity()})"
            case 18:
                return f"{of('quantity')}.{rng.choice(['isGreaterThan', 'isLessThan'])}({of('quantity')})"
            case 19:
                return (
                    f"{of(rng.choice(['semver', 'dyn']))}.{rng.choice(['isGreaterThan', 'isLessThan'])}({of('semver')})"
                )
            case 20:
                return f"{of('quantity')}.isInteger()"
            case 21:
                return rng.choice(
                    [
                        f"isQuantity({of('string')})",
                        f"isSemver({of('string')})",
                        f"isSemver({of('string')}, {of('bool')})",
                    ]
                )
            case 22 | 23:
                return self.quantifier(depth)
            case 24:
                kind = rng.choice(_ORDERED)
                return f"{of(rng.choice([f'list<{kind}>', 'dyn']))}.isSorted()"
            case 25:
                return f"{of(rng.choice(['list<int>', 'list<string>', 'dyn', 'int']))}.includes({of(rng.choice(['int', 'string', 'dyn']))})"
            case 26:
                kind = rng.choice(["int", "string", "dyn"])
                return f"sets.{rng.choice(['contains', 'equivalent', 'intersects'])}({of(f'list<{kind}>')}, {of(f'list<{kind}>')})"
            case 27:
                return f"{of(f'optional<{rng.choice(_SCALARS)}>')}.hasValue()"
            case 28:
                return rng.choice(
                    [
                        '"unknown.example.com" in device.attributes',
                        f'"memory" in device.capacity["{DRIVER}"]',
                        "device.allowMultipleAllocations",
                        f"bool({of('string')})",
                    ]
                )
            case _:
                return f"(type({of(one)}) == {rng.choice(['int', 'string', 'bool', 'list', 'map', 'double', 'uint', 'bytes', 'null_type', 'type'])})"

    def attribute_or_capacity(self) -> str:
        text = self.rng.choice(
            [
                self.attribute(),
                self.capacity(),
                "device.attributes.foo",
                '{"a": 1}.a',
                "device.attributes.foo.bar",
                'dyn("x").y',
                "dyn([1]).y",
            ]
        )
        return text if text.endswith((".bar", ".y", ".foo", ".a")) or "]." in text else "device.driver"

    def pattern(self) -> str:
        rng = self.rng
        if rng.random() < 0.15:
            return self.expression("string", 1)
        return rng.choice(
            [
                '"^A100"',
                '"[0-9]+"',
                '"a*"',
                '"(a|b)c?"',
                '"^.$"',
                '"\\\\pL+"',
                '"(?i)a"',
                '"^$"',
                '"x{2,3}"',
                '"\\\\d\\\\b"',
                '"["',
                '"[^a]"',
            ]
        )

    def quantifier(self, depth: int) -> str:
        rng = self.rng
        name, other = rng.sample(_NAMES, 2)
        kind = rng.choice(["int", "string", "dyn", "quantity"])
        macro = rng.choice(["all", "exists", "exists_one", "existsOne"])
        match rng.randrange(6):
            case 0:
                return f"device.attributes.map(d, d).sort().{macro}({name}, {self.within([(name, 'string')], 'bool', depth - 2)})"
            case 1:
                return f'device.capacity["{DRIVER}"].map(n, n).sort().all({other}, {name}, {self.within([(name, "string"), (other, "int")], "bool", depth - 2)})'
            case 2:
                return f"{self.expression('dyn', depth - 1)}.{macro}({name}, {self.within([(name, 'dyn')], 'bool', depth - 2)})"
            case 3:
                return f"{self.expression(f'list<{kind}>', depth - 1)}.{macro}({name}, {other}, {self.within([(name, 'int'), (other, kind)], 'bool', depth - 2)})"
            case _:
                return f"{self.expression(f'list<{kind}>', depth - 1)}.{macro}({name}, {self.within([(name, kind)], 'bool', depth - 2)})"

    def _int(self, depth: int) -> str:
        rng = self.rng

        def of(kind: str) -> str:
            return self.expression(kind, depth - 1)

        match rng.randrange(16):
            case 0 | 1 | 2:
                return f"({of('int')} {rng.choice(['+', '-', '*', '/', '%'])} {of(rng.choice(['int', 'int', 'dyn']))})"
            case 3:
                return f"(-{of('int')})"
            case 4:
                return f"size({of(rng.choice(['string', 'bytes', 'list<int>', 'map<int>', 'dyn']))})"
            case 5:
                return f"{of(rng.choice(['string', 'list<int>', 'map<int>', 'dyn']))}.size()"
            case 6:
                return f"int({of(rng.choice(['string', 'double', 'uint', 'dyn', 'int', 'duration', 'timestamp']))})"
            case 7:
                return f"{of('quantity')}.compareTo({of('quantity')})"
            case 8:
                return rng.choice([f"{of('quantity')}.asInteger()", f"sign({of('quantity')})"])
            case 9:
                return f"{of(rng.choice(['semver', 'dyn']))}.{rng.choice(['major', 'minor', 'patch'])}()"
            case 10:
                return f"{of('list<int>')}.{rng.choice(['sum', 'max', 'min'])}()"
            case 11:
                kind = rng.choice(["int", "string", "dyn", "quantity"])
                return f"{of(f'list<{kind}>')}.{rng.choice(['indexOf', 'lastIndexOf'])}({of(kind)})"
            case 12:
                offset = f", {of('int')}" if rng.random() < 0.4 else ""
                return f"{of(rng.choice(['string', 'dyn']))}.{rng.choice(['indexOf', 'lastIndexOf'])}({of('string')}{offset})"
            case 13:
                zone = rng.choice(["", "", '"UTC"', '"-08:00"', '"Europe/Berlin"'])
                part = rng.choice(
                    [
                        "getFullYear",
                        "getMonth",
                        "getDayOfYear",
                        "getDayOfMonth",
                        "getDate",
                        "getDayOfWeek",
                        "getHours",
                        "getMinutes",
                        "getSeconds",
                        "getMilliseconds",
                    ]
                )
                return f"{of('timestamp')}.{part}({zone})"
            case 14:
                return f"{of('duration')}.{rng.choice(['getHours', 'getMinutes', 'getSeconds', 'getMilliseconds'])}()"
            case _:
                return f"{of('semver')}.compareTo({of('semver')})"

    def _uint(self, depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.6:
            return f"({self.expression('uint', depth - 1)} {rng.choice(['+', '-', '*', '/', '%'])} {self.expression('uint', depth - 1)})"
        return f"uint({self.expression(rng.choice(['int', 'double', 'string', 'dyn', 'uint']), depth - 1)})"

    def _double(self, depth: int) -> str:
        rng = self.rng

        def of(kind: str) -> str:
            return self.expression(kind, depth - 1)

        match rng.randrange(5):
            case 0 | 1:
                return f"({of('double')} {rng.choice(['+', '-', '*', '/'])} {of('double')})"
            case 2:
                return f"double({of(rng.choice(['int', 'uint', 'string', 'dyn']))})"
            case 3:
                return f"{of('quantity')}.asApproximateFloat()"
            case _:
                return f"(-{of('double')})"

    def _string(self, depth: int) -> str:
        rng = self.rng

        def of(kind: str) -> str:
            return self.expression(kind, depth - 1)

        match rng.randrange(15):
            case 0 | 1:
                return f"({of('string')} + {of(rng.choice(['string', 'string', 'dyn']))})"
            case 2:
                return f"string({of(rng.choice(['int', 'uint', 'double', 'bool', 'string', 'bytes', 'duration', 'timestamp', 'dyn']))})"
            case 3:
                return f"{of('string')}.{rng.choice(['lowerAscii', 'upperAscii', 'trim'])}()"
            case 4:
                return f"{of(rng.choice(['string', 'dyn']))}.substring({of('int')})"
            case 5:
                return f"{of('string')}.substring({of('int')}, {of('int')})"
            case 6:
                limit = f", {of('int')}" if rng.random() < 0.4 else ""
                return f"{of('string')}.replace({of('string')}, {of('string')}{limit})"
            case 7:
                return f"{of('string')}.charAt({of('int')})"
            case 8:
                return f"{of(rng.choice(['list<string>', 'dyn']))}.join({rng.choice(['', of('string')])})"
            case 9:
                return f"{of(rng.choice(['string', 'dyn']))}.find({self.pattern()})"
            case 10:
                return f"strings.quote({of('string')})"
            case 11 | 12:
                clause = rng.choice(["%s", "%s", "%d", "%x", "%X", "%b", "%o", "%.2f", "%f", "%s-%s", "%%%s"])
                args = ", ".join(
                    of(
                        rng.choice(
                            [
                                "int",
                                "string",
                                "double",
                                "bool",
                                "list<int>",
                                "map<int>",
                                "dyn",
                                "uint",
                                "bytes",
                                "duration",
                            ]
                        )
                    )
                    for _ in range(clause.count("%s-%s") + 1)
                )
                return f'"{clause}".format([{args}])'
            case 13:
                return f"{of('list<string>')}.{rng.choice(['max', 'min'])}()"
            case _:
                return f"{of('list<string>')}[{of('int')}]"

    def _bytes(self, depth: int) -> str:
        if self.rng.random() < 0.5:
            return f"({self.expression('bytes', depth - 1)} + {self.expression('bytes', depth - 1)})"
        return f"bytes({self.expression('string', depth - 1)})"

    def _quantity(self, depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.7:
            operand = self.expression(rng.choice(["quantity", "quantity", "int", "dyn"]), depth - 1)
            return f"{self.expression('quantity', depth - 1)}.{rng.choice(['add', 'sub'])}({operand})"
        return f"quantity({self.expression('string', depth - 1)})"

    def _semver(self, depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.5:
            return self.leaf("semver")
        flag = rng.choice(["", ", true", ", false"])
        return f"semver({rng.choice([self.expression('string', depth - 1), chr(34) + self.version() + chr(34)])}{flag})"

    def _duration(self, depth: int) -> str:
        rng = self.rng

        def of(kind: str) -> str:
            return self.expression(kind, depth - 1)

        return rng.choice(
            [
                f"({of('duration')} {rng.choice('+-')} {of('duration')})",
                f"({of('timestamp')} - {of('timestamp')})",
                f"duration({of(rng.choice(['string', 'int', 'dyn']))})",
                f"{of('list<duration>')}.sum()",
            ]
        )

    def _timestamp(self, depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.7:
            return f"({self.expression('timestamp', depth - 1)} {rng.choice('+-')} {self.expression('duration', depth - 1)})"
        return f"timestamp({self.expression(rng.choice(['string', 'int', 'timestamp']), depth - 1)})"

    def _dyn(self, depth: int) -> str:
        rng = self.rng
        match rng.randrange(6):
            case 0 | 1 | 2:
                return self.attribute()
            case 3:
                return (
                    f"dyn({self.expression(rng.choice([*_SCALARS, 'list<int>', 'map<int>', 'list<dyn>']), depth - 1)})"
                )
            case 4:
                return f"{self.expression('dyn', depth - 1)}[{self.expression(rng.choice(['int', 'string', 'dyn']), depth - 1)}]"
            case _:
                return f'device.attributes["{DRIVER}"][{self.expression("string", depth - 1)}]'

    def _list(self, depth: int, inner: str) -> str:
        rng = self.rng

        def of(kind: str) -> str:
            return self.expression(kind, depth - 1)

        whole = f"list<{inner}>"
        name, other = rng.sample(_NAMES, 2)
        match rng.randrange(16):
            case 0 | 1 | 2 | 3:
                mark = lambda: f"?{of(f'optional<{inner}>')}" if rng.random() < 0.08 else of(inner)  # noqa: E731
                return f"[{', '.join(mark() for _ in range(rng.randint(0, 3)))}]"
            case 4:
                return f"({of(whole)} + {of(whole)})"
            case 5:
                return f"{of(whole)}.filter({name}, {self.within([(name, inner)], 'bool', depth - 1)})"
            case 6:
                source = rng.choice(["int", "string", "dyn"])
                return f"{of(f'list<{source}>')}.map({name}, {self.within([(name, source)], inner, depth - 1)})"
            case 7:
                source = rng.choice(["int", "string"])
                return f"{of(f'list<{source}>')}.map({name}, {self.within([(name, source)], 'bool', depth - 2)}, {self.within([(name, source)], inner, depth - 1)})"
            case 8:
                return f"{of(whole)}.{rng.choice(['distinct', 'reverse', 'sort'])}()"
            case 9:
                return f"{of(whole)}.slice({of('int')}, {of('int')})"
            case 10:
                return f"[{of(whole)}, {of(whole)}].flatten()"
            case 11:
                return f"{of(f'list<{inner}>')}.transformList({name}, {other}, {self.within([(name, 'int'), (other, inner)], inner, depth - 1)})"
            case 12:
                return f"[{of(f'optional<{inner}>')}].unwrapOpt()"
            case 13:
                return f"{of(whole)}.sortBy({name}, {self.within([(name, inner)], rng.choice(['int', 'string']), depth - 1)})"
            case 14 if inner == "int":
                return f"lists.range({rng.randint(0, 5)})"
            case 14 | 15 if inner == "string":
                return rng.choice(
                    [
                        f"{of('string')}.split({of('string')})",
                        f"{of('string')}.split({of('string')}, {of('int')})",
                        f"{of('string')}.findAll({self.pattern()})",
                        f"{of('string')}.findAll({self.pattern()}, {of('int')})",
                    ]
                )
            case _:
                return f"[{of(inner)}]"

    def _map(self, depth: int, inner: str) -> str:
        rng = self.rng
        name, other = rng.sample(_NAMES, 2)

        def of(kind: str) -> str:
            return self.expression(kind, depth - 1)

        match rng.randrange(5):
            case 0 | 1:
                return "{" + ", ".join(f"{of('string')}: {of(inner)}" for _ in range(rng.randint(0, 3))) + "}"
            case 2:
                return f"{of(f'map<{inner}>')}.transformMap({name}, {other}, {self.within([(name, 'string'), (other, inner)], inner, depth - 1)})"
            case 3:
                return f"{of('list<string>')}.transformMapEntry({name}, {other}, {{{other}: {self.within([(name, 'int'), (other, 'string')], inner, depth - 1)}}})"
            case _:
                return f"{of(f'map<{inner}>')}.transformMap({name}, {other}, {self.within([(name, 'string'), (other, inner)], 'bool', depth - 2)}, {self.within([(name, 'string'), (other, inner)], inner, depth - 1)})"

    def _optional(self, depth: int, inner: str) -> str:
        rng = self.rng
        name = rng.choice(_NAMES)

        def of(kind: str) -> str:
            return self.expression(kind, depth - 1)

        match rng.randrange(9):
            case 0 | 1:
                return f"optional.of({of(inner)})"
            case 2:
                return f"optional.ofNonZeroValue({of(inner)})"
            case 3:
                return f"{of(f'optional<{inner}>')}.or({of(f'optional<{inner}>')})"
            case 4:
                return f"{of(f'optional<{inner}>')}.optMap({name}, {self.within([(name, inner)], inner, depth - 1)})"
            case 5:
                return f"{of(f'optional<{inner}>')}.optFlatMap({name}, {self.within([(name, inner)], f'optional<{inner}>', depth - 1)})"
            case 6:
                return f"{of(f'list<{inner}>')}.{rng.choice(['first', 'last'])}()"
            case 7:
                return f"{of(f'list<{inner}>')}[?{of('int')}]"
            case _:
                return rng.choice([f"{of(f'map<{inner}>')}.?a", f"{of(f'map<{inner}>')}[?{of('string')}]"])
