# SPDX-License-Identifier: MIT OR Apache-2.0
"""C headers: a typed function for each field, which writes it. A field that no table has does not compile."""

from __future__ import annotations

from pathlib import Path

from tables import Field, Group, Tables

HEAD = """/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Made by contract/generate.py from the table of fields {family}. */
#ifndef KTRXER_FIELDS_{upper}_H
#define KTRXER_FIELDS_{upper}_H

#include "json.h"

struct ktrxer_hist;

void json_hist_us(struct json *json, const char *key, const struct ktrxer_hist *hist); /* cli/runtime/verdict.c */
"""
C_TYPES = {"u64": "uint64_t", "i64": "int64_t", "double": "double", "bool": "bool", "string": "const char *", "enum": "const char *"}


def renew(path: Path, text: str) -> None:
    """Writes a file if it has another text, so that the files that include an unchanged header are not compiled again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _function(name: str, parameters: str, call: str) -> str:
    return f"static inline void {name}(struct json *json{parameters})\n{{\n\t{call};\n}}\n"


def _columns(group: Group) -> str:
    """The fields of a batch in order: their indexes, how many there are, and their names."""
    prefix = group.name.upper()
    indexes = ", ".join(f"{prefix}_{one.name.upper()}" for one in group.fields)
    names = ", ".join(f'"{one.name}"' for one in group.fields)
    return f"/* {group.text} */\nenum {{ {indexes}, {prefix}_FIELDS }};\n#define {prefix}_NAMES {names}\n"


def _writers(group: Group, one: Field) -> list[str]:
    name, key = f"{group.name}_{one.name}", f'"{one.name}"'
    kind = one.type
    made = []
    if kind in ("object", "array"):
        made.append(_function(f"{name}_open", "", f"json_{kind}(json, {key})"))
    elif kind == "histogram":
        made.append(_function(name, ", const struct ktrxer_hist *hist", f"json_hist_us(json, {key}, hist)"))
    elif one.decimals is not None:
        c_type, call = ("double", "rounded") if kind.startswith("rounded") else ("int64_t", "fixed")
        made.append(_function(name, f", {c_type} value", f"json_{call}(json, {key}, value, {one.decimals})"))
        if one.null and call == "fixed":
            call = f"json_fixed_or_null(json, {key}, known, value, {one.decimals})"
            made.append(_function(f"{name}_or_null", ", bool known, int64_t value", call))
    else:
        call = "string" if kind == "enum" else kind
        c_type = C_TYPES[kind]
        made.append(_function(name, f", {c_type}{'' if c_type.endswith('*') else ' '}value", f"json_{call}(json, {key}, value)"))
        if one.null and kind == "u64":
            made.append(_function(f"{name}_or_null", ", bool known, uint64_t value", f"json_u64_or_null(json, {key}, known, value)"))
    if one.null:
        made.append(_function(f"{name}_null", "", f"json_null(json, {key})"))
    return made


def header(tables: Tables, family: str) -> str:
    parts = [HEAD.format(family=family, upper=family.upper())]
    for group in tables.groups.values():
        if group.family == family and group.columns:
            parts.append(_columns(group))
        elif group.family == family:
            parts += [f"/* {group.text} */\n" + "\n".join(writer for one in group.fields for writer in _writers(group, one))]
    return "\n".join([*parts, "#endif\n"])
