# SPDX-License-Identifier: MIT OR Apache-2.0
"""JSON schemas (2020-12): one for each command, closed. It describes each line of `COMMAND --jsonl`, and the one object of `--json`."""

from __future__ import annotations

from typing import Any

from tables import LINES, SCALARS, Field, Object, Tables

Schema = dict[str, Any]
OPEN: Schema = {"type": ["number", "string", "null"]}  # of a further field of an open group
BASE = "https://json-schema.org/draft/2020-12/schema"


def _words(one: Field) -> str:
    return f"{one.meaning} In {one.unit}." if one.unit and not one.name.endswith(f"_{one.unit}") else one.meaning


def _type(kind: str) -> Schema:
    if kind == "any":
        return {}
    if kind in ("u64", "i64"):
        return {"type": "integer", **({"minimum": 0} if kind == "u64" else {})}
    return {"type": {"bool": "boolean", "string": "string"}.get(kind, "number")}


def _one(one: Field, columns: bool) -> Schema:
    made: Schema
    if one.type == "enum":
        made = {"enum": list(one.values)}
    elif one.type in ("object", "histogram"):
        made = {"$ref": f"#/$defs/{one.of or 'histogram'}"}
    elif one.type in ("array", "map"):
        items = _type(one.of) if one.of in (*SCALARS, "any") else {"$ref": f"#/$defs/{one.of}"}
        made = {"type": "array", "items": items} if one.type == "array" else {"type": "object", "additionalProperties": items}
        made |= {"minItems": one.least} if one.least else {}
    else:
        made = _type(one.type)
    made |= {"minimum": one.min} if one.min is not None else {}
    made |= {"maximum": one.max} if one.max is not None else {}
    made |= {"pattern": one.pattern} if one.pattern else {}
    if columns:
        made = {"type": "array", "items": made}
    if one.null and "enum" in made:
        made["enum"] = [*made["enum"], None]
    elif one.null and "type" in made:
        made["type"] = [made["type"], "null"]
    elif one.null and one.type != "any":
        made = {"anyOf": [made, {"type": "null"}]}
    return made | {"description": _words(one)}


def _closed(tables: Tables, groups: tuple[str, ...], text: str, fixed: Schema | None = None) -> Schema:
    properties: Schema = {}
    required = []
    further: Any = False
    for group in tables.parts(groups):
        further = True if group.any else OPEN if group.open else further
        for one in group.fields:
            properties[one.name] = _one(one, group.columns)
            required += [one.name] if one.required else []
    for key, schema in (fixed or {}).items():
        properties[key] = schema | {"description": properties[key].get("description", "")}
    return {"type": "object", "description": text, "required": required, "properties": properties, "additionalProperties": further}


def _title(one: Object) -> str:
    return "_".join((one.line, *one.names[:1]))


def _line(tables: Tables, one: Object) -> Schema:
    fixed: Schema = {"type": {"const": one.line}}
    if one.names:
        fixed["kind" if one.line == "sample" else "name"] = {"enum": list(one.names)}
    return _closed(tables, tables.around(one), one.text, fixed)


def _end(tables: Tables, one: Object) -> Schema:
    """A command that failed has an end object without fields of its own."""
    own = next((member.name for member in tables.members(one.has) if member.required), None)
    verdict = {
        "if": {"properties": {"verdict": {"enum": ["degraded", "invalid"]}}, "required": ["verdict"]},
        "then": {"properties": {"reasons": {"minItems": 1}}},
    }
    chosen: Schema = {"$ref": "#/$defs/end"}
    if own:
        chosen = {"if": {"required": [own]}, "then": chosen, "else": {"$ref": "#/$defs/end_failed"}}
    return {"allOf": [chosen, verdict]}


def _used(tables: Tables, schema: Any, found: Schema) -> None:
    """The groups that a schema refers to."""
    if isinstance(schema, dict):
        name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
        if name in tables.groups and name not in found:
            found[name] = _closed(tables, (name,), tables.groups[name].text)
            _used(tables, found[name], found)
        for part in schema.values():
            _used(tables, part, found)
    elif isinstance(schema, list):
        for part in schema:
            _used(tables, part, found)


def _when(key: str, values: list[str], then: Schema) -> Schema:
    return {"if": {"properties": {key: {"enum": values}}, "required": [key]}, "then": then}


def schema_of(tables: Tables, command: str) -> Schema:
    objects = [one for one in tables.objects if one.command == command]
    groups: Schema = {}
    if objects[0].line not in LINES:
        closed = _closed(tables, objects[0].has, objects[0].text)
        _used(tables, closed, groups)
        return _whole(command, closed, groups)
    defs: Schema = {_title(one): _line(tables, one) for one in objects}
    defs["start"] = _closed(tables, ("start",), tables.groups["start"].text)
    defs["start_line"] = _closed(tables, ("line", "start"), tables.groups["start"].text, {"type": {"const": "start"}})
    cases = [_when("type", ["start"], {"$ref": "#/$defs/start_line"})]
    measures = any(one.line == "end" and one.measures for one in objects)
    step = Object(command=command, line="event", names=("clock_step",), has=("clock_step",), text=tables.groups["clock_step"].text)
    if measures:
        objects.append(step)
        defs[_title(step)] = _line(tables, step)
    for line, key in (("sample", "kind"), ("event", "name")):
        kinds = [one for one in objects if one.line == line]
        if kinds:
            names = [name for one in kinds for name in one.names]
            known: Schema = {"properties": {key: {"enum": names}}, "required": [key]}
            each = (_when(key, list(one.names), {"$ref": f"#/$defs/{_title(one)}"}) for one in kinds)
            cases.append(_when("type", [line], {"allOf": [known, *each]}))
    for one in objects:
        if one.line == "end":
            cases.append(_when("type", ["end"], _end(tables, one)))
            failed = Object(command=command, line="end", has=(), measures=one.measures, text="Of a command that failed.")
            defs["end_failed"] = _line(tables, failed)
    types = [line for line in LINES if line == "start" or any(one.line == line for one in objects)]
    text = f"A line of `ktrxer {command} --jsonl`, or the one object of `--json`. Made by contract/generate.py."
    root: Schema = {"description": text, "type": "object", "required": ["type"], "properties": {"type": {"enum": types}}, "allOf": cases}
    _used(tables, defs, groups)
    return _whole(command, root, groups | defs)


def _whole(command: str, root: Schema, defs: Schema) -> Schema:
    return {"$schema": BASE, "$id": f"{command.replace(' ', '-')}.schema.json", "title": command, **root, "$defs": defs}
