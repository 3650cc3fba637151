# SPDX-License-Identifier: MIT OR Apache-2.0
"""Conversion between columns of tables and numpy arrays. pyarrow.compute and pyarrow.acero are not used, because their import takes
longer than to read and draw a run; nor is pa.array() of numpy arrays, which imports numpy.ma."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


def numbers(column: pa.ChunkedArray) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The exact values of a column of numbers, and a mask of its empty entries. The value of an empty entry has no meaning."""
    array = column.combine_chunks()
    count, first = len(array), array.offset
    kind = np.dtype(array.type.to_pandas_dtype())
    valid, data = array.buffers()
    made = np.frombuffer(data, kind, first + count)[first:] if count and data is not None else np.zeros(count, kind)
    if not array.null_count or valid is None:
        return made, np.zeros(count, bool)
    bits = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")
    return made, bits[first : first + count] == 0


def column(values: NDArray[Any], type_: pa.DataType, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """An Arrow array, empty where a value is NaN or where `missing` is set."""
    if values.dtype.kind == "f":
        missing = np.isnan(values) if missing is None else missing | np.isnan(values)
        values = np.where(missing, 0, values)
    return _array(values, type_, missing)


def _array(values: NDArray[Any], type_: pa.DataType, missing: NDArray[np.bool_] | None) -> pa.Array:
    import pyarrow as pa

    whole = np.ascontiguousarray(values, np.dtype(type_.to_pandas_dtype()))
    empty = missing is not None and missing.any()
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing is not None and empty else None
    return pa.Array.from_buffers(type_, len(whole), [valid, pa.py_buffer(whole)])


def in_order(table: pa.Table) -> pa.Table:
    """The table in one piece, sorted by series and time. The sort is stable."""
    import pyarrow as pa

    keys = [numbers(table.column(name))[0] for name in ("series", "t_ns") if name in table.column_names]
    if _sorted(keys):
        return table.combine_chunks()
    order = np.lexsort(keys[::-1])
    made = []
    for field in table.schema:
        if pa.types.is_string(field.type):
            words = table.column(field.name).to_pylist()
            made.append(pa.array([words[i] for i in order.tolist()], field.type))
        else:
            values, missing = numbers(table.column(field.name))
            made.append(_array(values[order], field.type, missing[order]))
    return pa.table(made, schema=table.schema)


def _sorted(keys: list[NDArray[Any]]) -> bool:
    """Whether the rows are in the order of these columns, the first of them first."""
    equal = np.ones(max(0, len(keys[0]) - 1), bool)  # in all columns before
    for key in keys:
        if (equal & (key[1:] < key[:-1])).any():
            return False
        equal &= key[1:] == key[:-1]
    return True
